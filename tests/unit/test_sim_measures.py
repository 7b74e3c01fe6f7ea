"""What a run is measured by, worked out by hand."""

import json
import math
from dataclasses import asdict
from itertools import pairwise

import pytest

from hpc_sched.core.sharing.cache_interference import Application, Limits
from hpc_sched.sim import measures
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.results import STEPS, Result, result_of
from hpc_sched.topology import Topology
from tests.unit.simulated import Simulated, cluster

#  vcpus   10 |     1 1 1 1              leaf1 has 4, leaf2 6
#             | 2 2 2 2 2 2 . .
#           0 +--------------------- time
#             0       4       8
JOBS = [Job(1, 2, 4, 4), Job(2, 2, 6, 6), Job(3, 2, 1, 10), Job(4, 2, 1, 11)]


def result(policy: str = "exact-plan") -> Result:
    return result_of(policy, 1, Simulated(policy, JOBS).simulation)


def test_a_run_is_summed_up():
    found = result().summary
    assert (found.jobs, found.done, found.refused, found.left) == (4, 3, 1, 0)
    # From 2, the first start, to 9: job 3 waits for job 2, which ends at 8.
    assert found.makespan == 7
    assert (found.wait_mean, found.wait_median) == (2.0, 0.0)
    assert found.wait_p95 == pytest.approx(5.4)  # of 0, 0 and 6
    # Job 3: 7 s in the system, but jobs below 10 s count as if they took 10.
    assert found.slowdown_mean == 1.0
    assert found.vcpu_use == pytest.approx((4 * 4 + 6 * 6 + 10) / (10 * 7))
    assert found.memory_use == 0.0
    assert found.leaf_ratio == 1.0
    # Only job 3 has VMs under two leaves: one leaf-crossing job at each, for 1 s of 7.
    assert found.crossing == pytest.approx(1 / 7)
    assert found.most_crossing == 1
    assert found.factor_mean == 1.0


def test_hops_are_counted_per_pair_and_over_the_least():
    """Two VMs a host: C(4,2) - 2 pairs of job 1 are a hop apart, and so on.

    Job 3 has 24 pairs over the core, 3 hops each, and 4 + 12 pairs under a leaf.
    """
    planned = 4 + 12 + (24 * 3 + 4 + 12)
    found = result().summary
    assert found.hops_per_pair == pytest.approx(planned / (6 + 15 + 45))
    assert found.hop_byte_ratio == 1.0
    spread = result("nova-default").summary
    # a1 a2 b1 b2, then two more of each of b3's and what is left.
    assert spread.hop_byte_ratio > 1.0
    assert spread.leaf_ratio > 1.0


def test_the_least_is_the_same_whatever_a_policy_puts_on_a_host():
    # Two VMs fit on a host: 4 pairs are a hop apart. Of those scores a host takes one VM: three
    # pairs below leaf2, and three over the core.
    job = Job(1, 0, 10, 4, application=Application("sync", score=40.0))
    limits = Limits(alpha=100.0, beta=60.0)
    [planned] = Simulated("exact-plan", [job], limits=limits).records
    [apart] = Simulated("gupta2013", [job], limits=limits).records
    assert (planned.hop_bytes, planned.least_hop_bytes, planned.least_leaves) == (4, 4, 1)
    assert (apart.hop_bytes, apart.least_hop_bytes, apart.least_leaves) == (12, 4, 1)


def test_jobs_on_several_islands_are_counted_and_have_no_hop_byte():
    islands = Topology.from_tree({"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2", "b3"]})
    found = Simulated("nova-default", [Job(1, 0, 1, 4)], on=cluster(topology=islands))
    summary = result_of("nova-default", 1, found.simulation).summary
    assert (summary.done, summary.apart, summary.hops_per_pair) == (1, 1, None)


def test_refusals_are_counted_by_their_reason():
    reason = "group of 11 does not fit: largest gang that fits: 10 on core"
    assert result().refusals == {reason: 1}


def test_a_result_is_plain_json_without_odd_numbers():
    document = json.dumps(asdict(result()), allow_nan=False)
    assert json.loads(document)["summary"]["policy"] == "exact-plan"


def test_a_run_in_which_nothing_happens_has_no_means():
    empty = result_of("first-fit", 1, Simulated("first-fit", [Job(1, 0, 1, 11)]).simulation)
    assert empty.summary.wait_mean is None
    assert empty.summary.makespan == 0
    assert empty.waits == []
    json.dumps(asdict(empty), allow_nan=False)


def test_quantiles_begin_with_the_least_and_end_with_the_most():
    found = result()
    assert len(found.waits) == STEPS + 1
    assert (found.waits[0], found.waits[-1]) == (0.0, 6.0)


def test_samples_tell_the_largest_group_under_one_switch_of_each_level():
    jobs = [Job(1, 0, 100, 3), Job(2, 70, 1, 1)]
    found = Simulated("first-fit", jobs)
    series = result_of("first-fit", 1, found.simulation).series
    assert series.time == [0.0, 60.0]
    # leaf1 has 1 slot left, leaf2 has 6, and together they have 7.
    assert series.gangs == {"leaf": [6, 6], "pod": [7, 7]}
    assert series.leaves == [[0.75, 0.0], [0.75, 0.0]]
    assert series.running == [1, 1]


def test_long_runs_are_sampled_evenly_in_bounded_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measures, "MOST_SAMPLES", 16)
    jobs = [Job(number, number * 60.0, 30, 1) for number in range(1, 1000)]
    series = Simulated("first-fit", jobs).simulation.measures.series
    assert 8 <= len(series.time) < 16
    assert len({after - before for before, after in pairwise(series.time)}) == 1
    assert series.time[-1] > 50_000
    assert {len(series.done), len(series.leaves), *map(len, series.gangs.values())} == {
        len(series.time)
    }


def test_memory_bounds_jobs_and_is_measured():
    there = cluster(vcpus=8, memory_mb=1000)
    jobs = [Job(1, 0, 10, 6, 1, 400)]
    found = Simulated("first-fit", jobs, on=there)
    assert found.starts == ["0 start 1: a1*2 a2*2 b1*2"]
    assert result_of("first-fit", 1, found.simulation).summary.memory_use == pytest.approx(0.48)
    assert math.isclose(found.simulation.measures.integrals.utilisation[0], 6 / 40)
