"""What objectives are worth: the neighbours that are drawn, the plans, and what is found of them.

The fabric has 4 pods of 4 leaves of 16 hosts: hosts 0 to 15 are under leaf1-1, 16 to 31 under
leaf1-2, 64 to 79 under leaf2-1.
"""

from dataclasses import replace

import numpy as np
import pytest

from hpc_sched import exceptions
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.experiments.objectives import isolated_table, job_table
from hpc_sched.experiments.objectives.drawn_neighbours import (
    NEIGHBOURS,
    PACKED,
    SCATTERED,
    DrawnNeighbours,
    Neighbour,
    drawn_neighbours,
    placed,
)
from hpc_sched.experiments.objectives.fabrics import (
    BOTTLENECK,
    FABRICS,
    HOPS,
    ISOLATED,
    OBJECTIVES,
    STATED,
    UNBOUNDED,
    network_of,
)
from hpc_sched.experiments.objectives.single_jobs import (
    Case,
    Found,
    JobRuns,
    JobStudy,
    job_runs,
    plans,
    stated_plan,
)

TOPOLOGY = FABRICS[16].topology()
SMALL = JobStudy(runs=1, pod_ratios=(1.0,), patterns=("halo3", "alltoall"))
FIRST = Case(16, 1.0, 8.0, SCATTERED, 64, "alltoall", HOPS.name)


@pytest.fixture(scope="module")
def runs() -> JobRuns:
    return job_runs(SMALL)


def neighbours(*hosts: list[int]) -> DrawnNeighbours:
    return DrawnNeighbours(1, TOPOLOGY, tuple(Neighbour("halo3", np.array(each)) for each in hosts))


def test_the_same_neighbours_are_packed_or_scattered_on_at_most_their_part_of_the_hosts():
    packed, scattered = (drawn_neighbours(TOPOLOGY, 3, kind, 0.4) for kind in (PACKED, SCATTERED))
    jobs = [[(job.pattern, len(job.hosts)) for job in each.jobs] for each in (packed, scattered)]
    assert jobs[0] == jobs[1]
    for each in (packed, scattered):
        taken = np.concatenate([job.hosts for job in each.jobs])
        assert len(set(taken.tolist())) == len(taken)
        assert 0.3 * 256 < len(taken) <= 0.4 * 256
        assert int(each.free.sum()) == 256 - len(taken)
    assert packed.uses_uplinks.sum() < scattered.uses_uplinks.sum()


def test_a_seed_draws_the_same_neighbours_again():
    first, again, other = (drawn_neighbours(TOPOLOGY, seed, PACKED, 0.4) for seed in (5, 5, 6))
    assert [job.hosts.tolist() for job in first.jobs] == [job.hosts.tolist() for job in again.jobs]
    assert [job.hosts.tolist() for job in first.jobs] != [job.hosts.tolist() for job in other.jobs]


def test_uplinks_are_used_by_jobs_that_reach_beyond_their_switch():
    used = neighbours([0, 1, 2], [20, 40]).uses_uplinks
    leaf, pod = TOPOLOGY.groups[0], TOPOLOGY.groups[1]
    assert used[[leaf[20], leaf[40]]].all()
    assert not used[[leaf[0], pod[20], pod[64]]].any()


def test_plans_are_in_the_order_of_the_fabric_and_differ_by_objective():
    drawn = drawn_neighbours(TOPOLOGY, 1, SCATTERED, 0.4)
    found = plans(drawn, network_of(TOPOLOGY, 8.0, 1.0), 64)
    assert {STATED.name, *found} == {each.name for each in OBJECTIVES}
    hops, bottleneck = found[HOPS.name], found[BOTTLENECK.name]
    assert hops is not None
    assert bottleneck is not None
    for hosts in (hops, bottleneck):
        assert hosts.tolist() == sorted(hosts.tolist())  # names are in that order here
        assert drawn.free[hosts].all()
    leaves = [len(set(TOPOLOGY.leaf_index[hosts].tolist())) for hosts in (hops, bottleneck)]
    assert leaves[0] < leaves[1]
    assert found[ISOLATED.name] is None  # scattered neighbours use the uplinks of all leaves


def test_a_ring_that_is_stated_has_the_hops_plan():
    drawn = drawn_neighbours(TOPOLOGY, 1, SCATTERED, 0.4)
    network = network_of(TOPOLOGY, 8.0, 1.0)
    hops, stated = plans(drawn, network, 64)[HOPS.name], stated_plan(drawn, network, 64, "ring")
    assert hops is not None
    assert stated is not None
    assert hops.tolist() == stated.tolist()


def test_an_isolated_plan_uses_no_uplink_of_a_neighbour():
    drawn = neighbours(list(range(8, 24)), list(range(40, 48)))
    hosts = placed(TOPOLOGY, drawn.free, 40, "job", Isolation(drawn.uses_uplinks))
    assert hosts is not None
    mine = DrawnNeighbours(1, TOPOLOGY, (Neighbour("ring", hosts),)).uses_uplinks
    assert not (mine & drawn.uses_uplinks).any()


def test_a_job_that_does_not_fit_is_an_error_with_counts():
    with pytest.raises(exceptions.SimulationError, match="64 ranks, but 63 free hosts"):
        placed(TOPOLOGY, np.arange(256) < 63, 64, "job")


def test_least_bottleneck_gains_for_all_to_all_among_scattered_neighbours(runs: JobRuns):
    assert set(runs.found) == {
        FIRST._replace(neighbours=kind, pattern=pattern, objective=each.name)
        for kind in NEIGHBOURS
        for pattern in SMALL.patterns
        for each in OBJECTIVES
    }
    found = runs.runtime(FIRST.by(BOTTLENECK.name))
    assert found is not None
    assert found.mean < 0.95
    assert found.half_width is None  # of one run
    assert runs.placed(FIRST.by(ISOLATED.name)) == 0
    assert runs.runtime(FIRST.by(ISOLATED.name)) is None


def test_values_are_against_the_hops_plan_of_the_same_seed():
    case = FIRST.by(UNBOUNDED.name)
    runs = JobRuns(
        SMALL,
        {FIRST: [Found(2.0, 0.1), Found(4.0, 0.2)], case: [Found(1.0, 0.4), None]},
    )
    runtime, others, alone = runs.runtime(case), runs.others(case), runs.others_alone(case)
    assert runtime is not None
    assert others is not None
    assert alone is not None
    assert (runtime.mean, runtime.seeds) == (0.5, 1)
    assert others.mean == pytest.approx(0.3)
    assert alone.mean == 0.4
    assert runs.placed(case) == 1


def test_notes_count_the_cases_whose_intervals_exclude_no_difference():
    cases = {
        (HOPS, "halo3"): Found(1.0, 0.1),
        (HOPS, "alltoall"): Found(1.0, 0.1),
        (BOTTLENECK, "halo3"): Found(1.2, 0.3),
        (BOTTLENECK, "alltoall"): Found(0.8, 0.3),
    }
    found = {
        FIRST._replace(pattern=pattern, objective=each.name): [value] * 10
        for (each, pattern), value in cases.items()
    }
    table = job_table.table(JobRuns(replace(SMALL, runs=10), found))
    assert (
        "bottleneck: the job is faster than by hops in 1 of 2 cases and slower in 1;"
        in (table.notes[2])
    )
    assert "neighbours lose more in 2 and less in 0" in table.notes[2]


def test_the_clos_network_has_the_sizes_that_are_stated():
    topology = isolated_table.topology()
    sizes = np.bincount(topology.leaf_index)
    assert len(topology.hosts) == 847
    assert (sorted(sizes[sizes > 0].tolist())) == [17] * 17 + [18] * 31
    assert len(topology.roots) == 1
    assert topology.depth == 3
