"""Jobs by the objectives of their plans: least bottleneck, and isolated from each other."""

from fractions import Fraction

import numpy as np
import pytest

from hpc_sched.sim.jobs.communication import Communication
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.in_order import ListScheduling
from hpc_sched.topology import Topology
from hpc_sched.topology.capacities import LinkDefaults, capacities
from tests.unit.simulated import Simulated, cluster

# ::
#
#              core
#        /       |       \
#     leaf1    leaf2    leaf3
#     a1..a4   b1..b4   c1..c4
FABRIC = Topology.from_tree(
    {
        "core": {
            "leaf1": ["a1", "a2", "a3", "a4"],
            "leaf2": ["b1", "b2", "b3", "b4"],
            "leaf3": ["c1", "c2", "c3", "c4"],
        }
    }
)


def starts(policy: str, jobs: list[Job], **setting: object) -> list[str]:
    on = cluster(vcpus=1, topology=FABRIC)
    return Simulated(policy, jobs, on=on, **setting).starts


def leaves(start: str) -> dict[str, int]:
    """Return the VMs of a start by leaf."""
    found: dict[str, int] = {}
    for name in start.split()[3:]:
        found[name[0]] = found.get(name[0], 0) + 1
    return found


@pytest.mark.parametrize(
    ("vms", "tradeoff", "used"),
    [
        (8, None, [2, 3, 3]),
        (8, Fraction(3, 10), [4, 4]),
        (9, None, [3, 3, 3]),
        (9, Fraction(3, 10), [3, 3, 3]),
        (9, Fraction(0), [1, 4, 4]),
    ],
    ids=[
        "8 VMs without a bound: 15 on two leaves, 12 on one",
        "8 VMs, at most 1.3 times the harm of 16 and 16: 42 is too much",
        "9 VMs without a bound: 18 on each leaf",
        "9 VMs, at most 1.3 times the harm of 8, 20 and 20: 54 is not too much",
        "9 VMs, no more harm than 48",
    ],
)
def test_a_job_by_bottleneck_spreads_as_far_as_its_harm_may_grow(vms, tradeoff, used):
    links = capacities(FABRIC, LinkDefaults({"leaf": 8.0}))
    [start] = starts("bottleneck", [Job(1, 0, 9, vms)], capacities=links, tradeoff=tradeoff)
    assert sorted(leaves(start).values()) == used


def test_a_job_by_the_pattern_of_its_messages_spreads_only_if_that_relieves_a_link():
    """Around a ring the uplinks of each leaf carry as much, however many leaves there are."""
    links = capacities(FABRIC, LinkDefaults({"leaf": 8.0}))
    found = {
        (policy, pattern): sorted(leaves(start).values())
        for policy in ("bottleneck", "bottleneck-pattern")
        for pattern in ("ring", "alltoall", "none")
        for start in starts(
            policy,
            [Job(1, 0, 9, 9, communication=Communication(pattern, 0.5))],
            capacities=links,
            tradeoff=None,
        )
    }
    assert found == {
        **{("bottleneck", pattern): [3, 3, 3] for pattern in ("ring", "alltoall", "none")},
        ("bottleneck-pattern", "ring"): [1, 4, 4],
        ("bottleneck-pattern", "alltoall"): [3, 3, 3],
        ("bottleneck-pattern", "none"): [1, 4, 4],
    }


def test_a_job_that_cannot_have_uplinks_of_its_own_waits_and_one_inside_a_leaf_does_not():
    """Job 1 takes leaf1 and uses the uplinks of leaf2; job 2 would need these."""
    jobs = [Job(1, 0, 9, 5), Job(2, 1, 9, 5), Job(3, 1, 9, 2)]
    assert starts("exact-plan", jobs)[1].startswith("1 start 2: b2 c1")
    assert starts("isolated", jobs, discipline=ListScheduling()) == [
        "0 start 1: a1 a2 a3 a4 b1",
        "1 start 3: b2 b3",
        "9 start 2: b1 c1 c2 c3 c4",
    ]


def test_no_uplink_is_used_by_two_isolated_jobs_whatever_the_jobs():
    generator = np.random.default_rng(7)
    jobs = [
        Job(number, number, int(generator.integers(1, 30)), int(generator.integers(1, 9)))
        for number in range(1, 200)
    ]
    found = Simulated("isolated", jobs, on=cluster(vcpus=1, topology=FABRIC))
    used: dict[int, set[str]] = {}
    shared = 0
    for line in found.log:
        _, event, number, *hosts = line.replace(":", "").split()
        if event == "start":
            names = {host[0] for host in hosts}
            crossing = names if len(names) > 1 else set()
            assert not crossing & set().union(*used.values(), set())
            shared += len(used) > 0
            used[int(number)] = crossing
        elif event == "end":
            del used[int(number)]
    assert shared > 100
    assert {record.outcome for record in found.records} == {"done"}
