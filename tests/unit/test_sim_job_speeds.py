"""Speeds of jobs by their places and by each other, and what they take of uplinks."""

import pytest

from hpc_sched.core.traffic.patterns import PATTERNS, sends
from hpc_sched.sim.network.links import fat_tree
from hpc_sched.sim.network.neighbours.job_speeds import DETAILS, JobNetwork, JobSpeeds
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.network_cases import hosts, two_leaves_thin

THIN = JobNetwork(two_leaves_thin())


def places(topology: Topology, names: str) -> list[int]:
    found: list[int] = hosts(topology, names.split()).tolist()
    return found


def start(speeds: JobSpeeds, number: int, names: str, share: float, best: str = "") -> None:
    """Start a ring on hosts, by name; its stated runtime is that on its best hosts."""
    topology = THIN.links.topology
    chosen = places(topology, names)
    speeds.start(number, "ring", share, chosen, places(topology, best) if best else chosen)


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("pattern", [name for name in PATTERNS if sends(name, 9)])
def test_a_job_alone_on_its_best_hosts_is_as_fast_as_stated(pattern: str, detail: str):
    topology = fabrics.two_pods()
    network = fat_tree(topology, host_rate=1e9, oversubscription=4.0, host_latency=1e-6)
    speeds = JobSpeeds(JobNetwork(network, detail))
    every = places(topology, "a1 a2 b1 b2 c1 c2 d1 d2 a1")
    speeds.start(7, pattern, 0.3, every, every)
    ((number, speed),) = speeds.settle()
    assert (number, speed.lost, speed.caused) == (7, 0.0, 0.0)
    assert speed.factor == pytest.approx(1.0, abs=1e-12)


def test_uplinks_are_in_use_for_the_part_of_the_time_in_which_jobs_communicate():
    """Both ranks send at the rate of an uplink: all four directions are full, or empty."""
    speeds = JobSpeeds(THIN)
    start(speeds, 1, "a1 b1", 0.3)
    speeds.settle()
    # The root has no uplinks.
    assert speeds.uplink_use.tolist() == pytest.approx([0.3, 0.0])
    speeds.end(1)
    speeds.settle()
    assert speeds.uplink_use.tolist() == [0.0, 0.0]


def test_two_jobs_that_always_communicate_use_an_uplink_as_one_does():
    speeds = JobSpeeds(THIN)
    start(speeds, 1, "a1 b1", 1.0)
    start(speeds, 2, "a2 b2", 1.0)
    found = dict(speeds.settle())
    assert [found[number].factor for number in (1, 2)] == pytest.approx([2.0, 2.0], rel=1e-3)
    assert speeds.uplink_use.tolist() == pytest.approx([1.0, 0.0], rel=1e-3)


def test_a_job_next_to_none_is_not_settled_again():
    speeds = JobSpeeds(THIN)
    start(speeds, 1, "b1 b2", 0.5)
    start(speeds, 2, "a1 a2", 0.5)
    assert [number for number, _ in speeds.settle()] == [1, 2]
    speeds.end(1)
    assert speeds.settle() == []


def test_ranks_on_one_host_send_no_faster_than_its_link():
    """On two hosts a ring of four sends as much as on four; within hosts it gains nothing."""
    speeds = JobSpeeds(THIN)
    start(speeds, 1, "b1 b1 b2 b2", 0.5, best="b1 b2 b3 a1")
    ((_, speed),) = speeds.settle()
    assert speed.factor == pytest.approx(1.0)


@pytest.mark.parametrize("detail", DETAILS)
def test_slow_processors_make_computation_longer_but_no_message(detail: str):
    speeds = JobSpeeds(JobNetwork(THIN.links, detail))
    both = places(THIN.links.topology, "b1 b2")
    speeds.start(1, "ring", 0.25, both, both, slowness=2.0)
    ((_, speed),) = speeds.settle()
    assert speed.factor == pytest.approx(0.25 + 2 * 0.75)


def test_levels_with_uplinks_are_those_below_a_root():
    topology = fabrics.two_pods()
    assert JobNetwork(fat_tree(topology, host_rate=1.0)).levels == topology.levels[:2]
    alone = Topology.from_tree({"leaf": ["a", "b"]})
    assert JobNetwork(fat_tree(alone, host_rate=1.0)).levels == ()
