"""Groups with guarantees are moved off hosts that are down or disabled, on a whole Nova.

Every host takes one VM. The fabric is drawn at MOVES in :mod:`tests.functional.cloud_kinds`.
"""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.functional import faults
from tests.functional.cloud_kinds import MOVES
from tests.functional.moving_servers import dead, disabled, evacuate, hosts_after
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = [
    cloud_mark(MOVES),
    pytest.mark.nightly("moves", "evacuations and migrations of groups on real computes"),
]

LEAVES = {
    "leaf1": ["n1", "n2", "n3"],
    "leaf2": ["n4", "n5", "n6"],
    "leaf3": ["n7", "n8", "n9"],
    "leaf4": ["n10", "n11"],
}
PODS = {"pod1": ("leaf1", "leaf2"), "pod2": ("leaf3", "leaf4")}
LEAF_OF = {host: leaf for leaf, below in LEAVES.items() for host in below}
POD_OF = {host: pod for host, leaf in LEAF_OF.items() for pod in PODS if leaf in PODS[pod]}

ENDED = ("done", "error")

# Constraint, size of the group, and the switches that count.
LEAF = ({"hpc:require": "leaf"}, 3, LEAF_OF)
ONE_LEAF = ({"hpc:max_leaves": "1"}, 3, LEAF_OF)
POD = ({"hpc:require": "pod"}, 4, POD_OF)
CLASS = {"hpc:app_class": "sync"}
CLASS_ALONE = (CLASS, 3, LEAF_OF)


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    for specs in (LEAF[0], ONE_LEAF[0], POD[0], CLASS):
        [(key, value)] = specs.items()
        shared_cloud.flavor(key[4:] + value, vcpus=16, extra_specs=specs)
    return shared_cloud


@pytest.fixture(autouse=True)
def _sources_are_trusted() -> Iterator[None]:
    yield
    faults.forget()


@pytest.fixture
def start_group(cloud: TestedCloud) -> Iterator[Callable[..., dict[str, str]]]:
    """Boot a group and return its servers with their hosts."""
    made: list[str] = []

    def boot(specs: dict[str, str], count: int, policy: str | None = "soft-anti-affinity"):
        [(key, value)] = specs.items()
        group = cloud.server_group("group", policy) if policy else None
        made.extend(cloud.boot(key[4:] + value, count=count, group=group))
        return cloud.hosts_of(made)

    yield boot
    cloud.remove(made)


def hosts_below(switches: dict[str, str], switch: str) -> list[str]:
    return [host for host, above in switches.items() if above == switch]


APIS = {
    "api": contextlib.nullcontext,
    "no api database": faults.api_database_gone_for_us,
    "an api database that hangs": faults.api_database_hangs_for_us,
}


CASES = [
    pytest.param(
        kind,
        order,
        api,
        # One evacuation of the tier ci.
        marks=pytest.mark.ci if (name, order, api) == ("leaf", 1, "api") else (),
        id=f"{name}, {'first to last' if order == 1 else 'last to first'}, {api}",
    )
    for name, kind in (("leaf", LEAF), ("max_leaves", ONE_LEAF), ("pod", POD))
    for order in (1, -1)
    for api in APIS
]


@pytest.mark.parametrize(("kind", "order", "api"), CASES)
def test_a_group_on_a_dead_switch_is_together_again_after_its_evacuation_one_by_one(
    cloud, start_group, kind, order, api
):
    specs, count, switches = kind
    before = start_group(specs, count)
    [switch] = {switches[host] for host in before.values()}
    with dead(cloud, hosts_below(switches, switch)), APIS[api]():
        for server in sorted(before)[::order]:
            cloud._evacuate_server({"id": server})
        after = hosts_after(cloud, before)
        assert len(set(after)) == count
        [other] = {switches[host] for host in after}
        assert other != switch


@pytest.mark.parametrize("kind", [LEAF, CLASS_ALONE], ids=["leaf", "no constraint"])
def test_a_group_that_is_evacuated_all_at_once_is_together_again_also_after_a_second_failure(
    cloud, start_group, kind
):
    """Its allocations on the leaf that died first stay there until that is back."""
    specs, count, _ = kind
    before = start_group(specs, count)
    [leaf] = {LEAF_OF[host] for host in before.values()}
    with dead(cloud, LEAVES[leaf]):
        hosts = evacuate(cloud, *before)
        assert len(set(hosts)) == count
        [second] = {LEAF_OF[host] for host in hosts}
        with dead(cloud, LEAVES[second]):
            hosts = evacuate(cloud, *before)
            assert len(set(hosts)) == count
            [third] = {LEAF_OF[host] for host in hosts}
            assert third not in (leaf, second)


def test_a_vm_that_moves_stays_with_one_on_a_disabled_host_where_both_have_room(cloud, start_group):
    """Without the other, leaf4 would suit two of them best."""
    with disabled(cloud, hosts_below(POD_OF, "pod2")):
        before = start_group(POD[0], 2)
    server, other = before
    with disabled(cloud, [before[other]]):
        cloud._migrate_server({"id": server})
        cloud._confirm_resize({"id": server})
        assert {POD_OF[host] for host in hosts_after(cloud, before)} == {"pod1"}


def test_a_leaf_that_is_disabled_is_emptied_by_migrations(cloud, start_group):
    before = start_group(LEAF[0], 3)
    [leaf] = {LEAF_OF[host] for host in before.values()}
    with disabled(cloud, LEAVES[leaf]):
        for server in before:
            cloud._migrate_server({"id": server})
            cloud._confirm_resize({"id": server})
        after = hosts_after(cloud, before)
        assert len({LEAF_OF[host] for host in after} - {leaf}) == 1


def refused(cloud: TestedCloud, server: str, **evacuate: object) -> bool:
    """Evacuate a server; return whether it found no host."""

    def ended() -> dict[int, str]:
        moves = [one for one in cloud.api.get_migrations() if one["instance_uuid"] == server]
        return {one["id"]: one["status"] for one in moves if one["status"] in ENDED}

    before = ended()
    cloud.api.post_server_action(server, {"evacuate": evacuate})
    faults.wait_until(lambda: len(ended()) > len(before), 60)
    [status] = [status for i, status in ended().items() if i not in before]
    return status == "error"


def test_members_that_live_hold_one_that_moves_unless_its_guarantees_are_lifted(
    cloud, start_group, caplog
):
    before = start_group(LEAF[0], 3)
    server, host = min(before.items())
    other = next(name for name in LEAF_OF if LEAF_OF[name] != LEAF_OF[host])
    with dead(cloud, [host]):
        assert refused(cloud, server)
        assert refused(cloud, server, host=other)
        assert "relax_moves" in caplog.text
        cloud.flags(relax_moves="named_host", group="hpc_sched")
        assert refused(cloud, server)
        assert not refused(cloud, server, host=other)
        shown = cloud.api.get_server(server)
        assert shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] == other


def test_with_relaxed_moves_one_that_has_no_room_near_the_others_goes_elsewhere(cloud, start_group):
    before = start_group(LEAF[0], 3)
    server, host = min(before.items())
    cloud.flags(relax_moves="always", group="hpc_sched")
    with dead(cloud, [host]):
        assert not refused(cloud, server)


def test_without_the_api_database_a_vm_of_a_multi_create_moves_as_one_vm(cloud, start_group):
    """Nine of its size would not fit a second time."""
    before = start_group(CLASS, 9, policy=None)
    with faults.api_database_gone_for_us():
        server = min(before)
        cloud._migrate_server({"id": server})
        cloud._confirm_resize({"id": server})
    assert cloud.hosts_of([server])[server] not in before.values()
