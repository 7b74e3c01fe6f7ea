"""Drawn histories of groups with objectives on Nova's scheduler: creates, deletions, failures.

After each event no two isolated groups share an uplink, and each new group is where ``core`` says
on the same input. The fabric is drawn in :mod:`tests.functional.isolated_cloud`.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hpc_sched import exceptions
from hpc_sched.core.objectives.used_uplinks import used_uplinks
from hpc_sched.core.plan.objective import Isolation, LeastBottleneck, Objective
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.read.instances.kept import cell_read
from hpc_sched.topology.capacities import LinkDefaults, capacities
from tests.functional.cloud_kinds import EMPTY
from tests.functional.isolated_cloud import FABRIC, Group, IsolatedCloud, isolated_cloud
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = cloud_mark(EMPTY)

EVENTS = 6


@pytest.fixture(scope="module")
def cloud(
    cloud_of_module: TestedCloud, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedCloud]:
    with isolated_cloud(cloud_of_module, tmp_path_factory.mktemp("objectives")) as found:
        yield found


@pytest.mark.parametrize(
    "seeds",
    [
        range(16),
        pytest.param(
            range(16, 200), marks=pytest.mark.nightly("lives", "184 histories, read as the others")
        ),
    ],
    ids=["16 histories", "the rest of 200"],
)
def test_no_uplink_is_shared_and_groups_are_where_core_says(cloud, monkeypatch, seeds):
    seen: Counter[str] = Counter()
    for seed in seeds:
        draw = random.Random(f"groups with objectives {seed}")
        for _ in range(EVENTS):
            seen[_happens(cloud, draw, monkeypatch)] += 1
            assert not cloud.shared(), seed
        cloud.clear()
    missing = {"isolated", "bottleneck", "hops", "refused", "deleted", "failed"} - seen.keys()
    assert not missing, seen


def _happens(cloud: IsolatedCloud, draw: random.Random, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let one event happen; return which."""
    event = draw.choice(["isolated", "isolated", "bottleneck", "hops", "delete", "fail"])
    count = draw.choice([2, 3, 4, 5, 6])
    if event == "delete" and cloud.groups:
        cloud.delete(draw.choice(cloud.groups))
        return "deleted"
    if event == "fail":
        with monkeypatch.context() as patch:
            patch.setattr(cell_read, "read", _no_answer)
            assert cloud.claim(count).refused
        return "failed"
    objective = "hops" if event == "delete" else event
    before = list(cloud.groups)
    group = cloud.claim(count, objective)
    expected = _by_core(before, group, count)
    if isinstance(expected, Rejection):
        assert group.refused
        # On a full cloud Nova finds no candidates, and asks no filter.
        is_full = sum(len(one.hosts) for one in before) == len(FABRIC.hosts)
        assert is_full or expected.for_tenant(count) in group.refused
        return "refused"
    assert dict(Counter(map(FABRIC.leaf_of, group.hosts))) == dict(expected.leaves)
    # Some are in flight while the next event happens.
    if draw.random() < 0.7:
        cloud.land(group)
    return objective


def _no_answer(*_args: object) -> None:
    raise exceptions.UnansweredError("no answer")


def _by_core(before: list[Group], group: Group, count: int) -> Plan | Rejection:
    """Return the plan of a group next to others."""
    taken = {host for one in before for host in one.hosts}
    problem = Problem.from_counts(
        topology=FABRIC,
        capacity={host: int(host not in taken) for host in FABRIC.hosts},
        members={},
        awaiting=count,
        group_id=group.vms[0],
    )
    isolated = [Counter(one.hosts) for one in before if one.objective == "isolated"]
    objectives: dict[str | None, Objective] = {
        "bottleneck": LeastBottleneck(capacities(FABRIC, LinkDefaults())),
        "isolated": Isolation(used_uplinks(FABRIC, isolated)),
    }
    return solve(replace(problem, objective=objectives.get(group.objective)), count)
