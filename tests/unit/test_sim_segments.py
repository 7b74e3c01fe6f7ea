"""Jobs in segments, and balanced ones, in the simulator."""

from collections import Counter

import pytest

from hpc_sched.core.constraints import Constraints
from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.jobs.job import Job
from hpc_sched.topology import Topology
from tests.unit.simulated import Simulated

#              core
#            /      \
#        pod1        pod2
#       /    \      /    \
#      a      b    c      d      six hosts of one VM each
FABRIC = Topology.from_tree(
    {
        "core": {
            f"pod{number}": {leaf: [f"{leaf}{host}" for host in range(1, 7)] for leaf in leaves}
            for number, leaves in enumerate(("ab", "cd"), 1)
        }
    }
)
CLUSTER = uniform(FABRIC, HostType(1, 1024))
# Those with the filters of hpc_sched: the others do not read these constraints.
KEEPING = [
    *("bottleneck", "bottleneck-pattern", "dudina2013", "exact-plan", "gupta2012"),
    *("gupta2012-best-fit", "gupta2013", "least-hops"),
]


def started(policy: str, vms: int, **wishes: str | int) -> Counter[str] | None:
    """Return the VMs of a job below each leaf, or None if it is refused."""
    found = Simulated(policy, [Job(1, 0, 10, vms)], on=CLUSTER, constraints=Constraints(**wishes))
    hosts = [line.split(": ")[1].split() for line in found.starts]
    return Counter(host[0] for host in hosts[0]) if hosts else None


@pytest.mark.parametrize("policy", KEEPING)
def test_policies_with_the_filters_keep_parts(policy: str):
    placed = started(policy, 10, segment=4)
    assert placed is not None
    assert sorted(vms % 4 for vms in placed.values() if vms % 4) == [2]
    placed = started(policy, 10, balance="true")
    assert placed is not None
    assert sorted(placed.values()) == [5, 5]
    placed = started(policy, 14, segment=8, segment_level="pod")
    assert placed is not None
    assert sorted((placed["a"] + placed["b"], placed["c"] + placed["d"])) in ([6, 8], [0, 14])


def test_parts_that_fit_below_no_leaf_are_refused_or_left_out():
    assert started("exact-plan", 10, segment=7) is None
    assert started("exact-plan", 10, segment="prefer:7") == started("exact-plan", 10)


def test_preferred_parts_are_kept_where_they_fit():
    placed = started("exact-plan", 10, segment="prefer:4", balance="prefer")
    assert placed is not None
    assert sorted(placed.values()) == [4, 6]


def test_plans_by_an_objective_have_no_parts():
    assert started("isolated", 10, segment=4) is None
    assert started("isolated", 10, segment="prefer:4") is not None


def test_all_policies_have_a_place_in_this_test():
    others = {"isolated", "kueue-best-fit", "kueue-least-free", "random", "slurm-tree", "mdobp"}
    others |= {"first-fit", "least-free-pe", "most-free-pe", "nova-default", "nova-soft-affinity"}
    assert {*KEEPING} | others == {*POLICIES.names()}
