"""Two schedulers, processes of their own, place requests of one group at the same time.

Databases and Placement are those of this process; Placement is served over HTTP.

::

                       core
            /           |          \\
         leaf1        leaf2        leaf3
        n01-n08      n09-n16      n17-n24
"""

from collections.abc import Iterator

import pytest
from oslo_utils import uuidutils

from tests.functional import build_requests, outcomes, rows
from tests.functional.claims import ClaimsOnly, claims_on, request
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import leaves_used, write_topology
from tests.functional.scheduler_processes import (
    Scheduler,
    add_group,
    needs_files,
    served,
    started,
)
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import wishing
from tests.functional.tested_cloud import TestedCloud

pytestmark = [needs_files, cloud_mark(EMPTY)]

LEAVES = {f"leaf{n + 1}": [f"n{8 * n + m:02}" for m in range(1, 9)] for n in range(3)}
ROUNDS = 3


@pytest.fixture(scope="module")
def claims(cloud_of_module: TestedCloud) -> Iterator[ClaimsOnly]:
    hosts = [host for below in LEAVES.values() for host in below]
    with claims_on(cloud_of_module, dict.fromkeys(hosts, 0)) as claims:
        yield claims


@pytest.fixture(scope="module")
def schedulers(
    claims: ClaimsOnly, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Scheduler]]:
    """Return two schedulers that have started."""
    folder = tmp_path_factory.mktemp("schedulers")
    with (
        served(claims.cloud, folder, write_topology(folder, LEAVES)) as conf,
        started(conf, folder / "log0", folder / "log1") as found,
    ):
        yield found


def place_at_once(
    claims: ClaimsOnly,
    schedulers: list[Scheduler],
    count: int,
    policy: str = "soft-anti-affinity",
    vcpus: int = 16,
    **constraints: object,
) -> list[outcomes.Outcome]:
    """Have each scheduler place VMs of one group, at the same moment; undo it afterwards."""
    vms = [[uuidutils.generate_uuid() for _ in range(count)] for _ in schedulers]
    group = add_group(claims, policy, [vm for own in vms for vm in own])
    for own in vms:
        build_requests.add(own, f"r-{own[0]}")
    asked = [
        request(
            count=count,
            group=group,
            policy=policy,
            vcpus=vcpus,
            extra_specs=wishing(**constraints),
            uuid=own[0],
        )
        for own in vms
    ]
    for scheduler, spec, own in zip(schedulers, asked, vms, strict=True):
        scheduler.begin(spec, own)
    found = []
    for scheduler, own in zip(schedulers, vms, strict=True):
        said = scheduler.answer()
        found.append(outcomes.Outcome(own, said.get("hosts", []), said.get("refused"), 0.0, 0.0))
        claims.consumers += own
    try:
        outcomes.check_nothing_lost(claims, found)
    finally:
        claims.release()
        rows.clear(claims.cloud)
    return found


@pytest.mark.parametrize("wish", [{"require": "leaf"}, {"max_leaves": 1}], ids=str)
def test_both_place_under_the_same_switch_where_that_has_room(claims, schedulers, wish):
    for _ in range(ROUNDS):
        both = place_at_once(claims, schedulers, 3, **wish)
        assert not any(outcome.refused for outcome in both)
        assert len(leaves_used(LEAVES, [h for outcome in both for h in outcome.hosts])) == 1


def test_both_place_on_the_same_host_where_affinity_is_hard(claims, schedulers):
    for _ in range(ROUNDS):
        both = place_at_once(claims, schedulers, 3, policy="affinity", vcpus=1)
        assert not any(outcome.refused for outcome in both)
        assert len({host for outcome in both for host in outcome.hosts}) == 1


def test_a_group_size_that_no_switch_holds_is_refused_by_both(claims, schedulers):
    both = place_at_once(claims, schedulers, 6, require="leaf", group_size=12)
    assert all(outcome.refused for outcome in both)


def test_one_is_placed_where_no_switch_has_room_for_both(claims, schedulers):
    """Each alone would fit under any switch; together they would break the constraint."""
    for _ in range(ROUNDS):
        both = place_at_once(claims, schedulers, 6, require="leaf")
        assert sum(not outcome.refused for outcome in both) == 1
        assert len(leaves_used(LEAVES, [h for outcome in both for h in outcome.hosts])) == 1
