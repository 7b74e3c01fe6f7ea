"""Jobs that wait, up to a limit, for a place that they prefer: exact event logs."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.sim.installed import QUEUES
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.measured.measured_window import WHOLE_RUN, Window
from hpc_sched.sim.preference.place_preference import PlacePreference, preferred
from hpc_sched.sim.queues.conservative import Conservative
from hpc_sched.sim.queues.in_order import Easy, Fcfs, ListScheduling
from hpc_sched.sim.queues.queue_discipline import QueueOptions
from hpc_sched.sim.simulation import Discipline
from hpc_sched.sim.simulation_input import Failure
from hpc_sched.topology import Topology
from tests.unit.simulated import Simulated, cluster


def three_leaves() -> Topology:
    """Return a fabric on which three jobs of 3 VMs leave a host free below each leaf.

    ::

                   core
            /       |       \\
          a         b         c
       a1 .. a4  b1 .. b4  c1 .. c4
    """
    return Topology.from_tree(
        {"core": {leaf: [f"{leaf}{i}" for i in range(1, 5)] for leaf in "abc"}}
    )


def four_leaves() -> Topology:
    """Return two pods of two leaves, of two hosts each.

    ::

                 core
            /           \\
          pod1          pod2
         /    \\       /    \\
        a      b      c      d
      a1 a2  b1 b2  c1 c2  d1 d2
    """
    leaves = {leaf: [f"{leaf}1", f"{leaf}2"] for leaf in "abcd"}
    return Topology.from_tree(
        {"core": {pod: {leaf: leaves[leaf] for leaf in names} for pod, names in PODS.items()}}
    )


PODS = {"pod1": "ab", "pod2": "cd"}
# On hosts of one VM. From 10 on three hosts are free, below three leaves, until job 2 ends at 60.
JOBS = [
    Job(1, 0, 100, 3),
    Job(2, 0, 60, 3),
    Job(3, 0, 200, 3),
    Job(4, 10, 50, 2),
    Job(5, 15, 30, 1),
    Job(6, 16, 10, 1),
]
ONE_LEAF = Constraints(require="leaf")


def run(
    limit: float,
    jobs: list[Job] = JOBS,
    policy: str = "exact-plan",
    discipline: Discipline | None = None,
    topology: Topology | None = None,
    wanted: Constraints = ONE_LEAF,
    kept: Constraints = NO_CONSTRAINTS,
    **more: object,
) -> Simulated:
    return Simulated(
        policy,
        jobs,
        on=cluster(1, topology=topology or three_leaves()),
        discipline=discipline,
        constraints=kept,
        preference=PlacePreference(wanted, limit),
        **more,
    )


def of_job(found: Simulated, number: int) -> list[str]:
    """Return the holds and starts of a job."""
    words = (line.split() for line in found.log)
    return [
        " ".join(line)
        for line in words
        if line[1] in ("hold", "start") and line[2].rstrip(":") == str(number)
    ]


def test_a_job_is_held_until_the_place_that_it_prefers_is_free():
    found = run(1000)
    assert found.log[3:] == [
        "0 start 1: b1 b2 b3",
        "0 start 2: c1 c2 c3",
        "0 start 3: a1 a2 a3",
        "10 submit 4: 2 VMs",
        "10 hold 4: until 1010",
        "15 submit 5: 1 VM",
        "16 submit 6: 1 VM",
        "60 end 2",
        "60 start 4: c1 c2",
        "60 start 5: a4",
        "60 start 6: b4",
        "70 end 6",
        "90 end 5",
        "100 end 1",
        "110 end 4",
        "200 end 3",
    ]


def test_when_the_limit_is_over_a_job_takes_the_best_place_there_is():
    assert of_job(run(20), 4) == ["10 hold 4: until 30", "30 start 4: a4 c4"]


def test_a_place_that_is_free_at_the_end_of_the_limit_is_taken():
    # Job 2 ends at 60, before the queue is tried.
    assert of_job(run(50), 4) == ["10 hold 4: until 60", "60 start 4: c1 c2"]


@pytest.mark.parametrize(
    ("discipline", "others"),
    [
        # The held job stays first, and all others wait behind it.
        pytest.param(Fcfs, ["60 start 5: a4", "60 start 6: b4"], id="fcfs"),
        # Of three hosts one is spare.
        pytest.param(Easy, ["15 start 5: a4", "45 start 6: c4"], id="easy"),
        pytest.param(ListScheduling, ["15 start 5: a4", "16 start 6: c4"], id="list-scheduling"),
        # Both end before job 4 is tried again, at 60.
        pytest.param(Conservative, ["15 start 5: a4", "16 start 6: c4"], id="conservative"),
    ],
)
def test_what_starts_behind_a_held_job_depends_on_the_queue(discipline, others: list[str]):
    found = run(1000, discipline=discipline())
    assert [*of_job(found, 5), *of_job(found, 6)] == others
    assert of_job(found, 4)[1] == "60 start 4: c1 c2"


def test_backfilling_leaves_a_held_job_its_room_also_to_jobs_that_end_soon():
    # With job 5 on the spare host, job 6 would end at 26; the hold of job 4 may end at any moment.
    found = run(20, discipline=Easy())
    assert found.starts[3:] == ["15 start 5: a4", "30 start 4: b4 c4", "45 start 6: a4"]


def test_a_held_job_does_not_wait_beyond_its_limit_for_what_started_behind_it():
    behind = [Job(n, 11, 500, 1) for n in range(5, 9)]
    for discipline in (Fcfs(), Easy()):
        found = run(20, [*JOBS[:4], *behind], discipline=discipline)
        assert of_job(found, 4)[1].startswith("30 start 4")


def test_a_job_that_is_held_behind_the_first_one_is_tried_when_its_limit_is_over():
    # Job 4 needs all hosts, and is first; job 5 is held behind it, and ends before it can start.
    jobs = [*JOBS[:3], Job(4, 5, 10, 12), Job(5, 10, 100, 2)]
    found = run(20, jobs, discipline=Easy())
    assert of_job(found, 5) == ["10 hold 5: until 30", "30 start 5: a4 c4"]


@pytest.mark.parametrize("queue", QUEUES.names())
def test_each_queue_lets_go_of_a_held_job_when_its_limit_is_over(queue: str):
    found = run(7, JOBS[:4], discipline=QUEUES.load(queue).discipline(QueueOptions()))
    assert of_job(found, 4) == ["10 hold 4: until 17", "17 start 4: a4 c4"]


def test_a_job_that_no_leaf_can_ever_hold_does_not_wait_for_one():
    found = run(1000, [Job(1, 0, 100, 3), Job(2, 0, 50, 6)])
    assert of_job(found, 2) == ["0 start 2: a1 a2 c1 c2 c3 c4"]


def test_a_job_that_has_no_room_at_all_is_not_held():
    found = run(1000, [Job(1, 0, 100, 12), Job(2, 5, 50, 2)])
    assert of_job(found, 2) == ["100 start 2: b1 b2"]


def test_the_limit_counts_from_the_first_moment_at_which_the_job_could_have_started():
    jobs = [*JOBS[:3], Job(7, 0, 20, 3), Job(4, 1, 50, 2)]
    found = run(5, jobs)
    # Job 7 takes the three hosts that are left, and job 4 finds them when it ends at 25.
    assert of_job(found, 7) == ["0 hold 7: until 5", "5 start 7: a4 b4 c4"]
    assert of_job(found, 4) == ["25 hold 4: until 30", "30 start 4: a4 c4"]


def test_a_limit_goes_on_while_the_room_is_lost_again():
    # Of the three free hosts two fail at 12, and are back at 40: the limit is over at 30.
    failures = [Failure(12, 3, 28), Failure(13, 7, 27)]
    found = run(20, JOBS[:4], failures=failures)
    assert of_job(found, 4) == ["10 hold 4: until 30", "40 start 4: a4 c4"]


def test_a_held_job_starts_even_if_nothing_else_happens_any_more():
    # Each leaf keeps its last host, and no host is repaired.
    failures = [Failure(1, host) for host in (0, 1, 2, 4, 5, 6, 8, 9, 10)]
    found = run(20, [Job(1, 5, 10, 2)], failures=failures)
    assert of_job(found, 1) == ["5 hold 1: until 25", "25 start 1: a4 b4"]
    assert found.records[0].outcome == "done"


def test_a_job_that_lost_a_host_is_held_anew():
    jobs = [*JOBS[:3], Job(4, 10, 50, 2)]
    # It runs on c1 and c2 from 60 on; c1 fails, and leaf a and b have a host each.
    found = run(1000, jobs, failures=[Failure(70, 8), Failure(70, 10)])
    assert of_job(found, 4) == [
        "10 hold 4: until 1010",
        "60 start 4: c1 c2",
        "70 start 4: c2 c4",
    ]


@pytest.mark.parametrize(
    ("policy", "start"),
    [
        ("nova-default", "105 start 1: a4 b4"),
        ("slurm-tree", "60 start 1: c1 c2"),
        ("kueue-best-fit", "60 start 1: c1 c2"),
        ("dudina2013", "60 start 1: c1 c2"),
        ("gupta2012", "60 start 1: c1 c2"),
        ("first-fit", "105 start 1: a4 b4"),
    ],
)
def test_a_place_is_judged_also_of_policies_that_know_no_preference(policy: str, start: str):
    # Each leaf has its last host alone until the others below c are back at 60.
    down = [Failure(1, host) for host in (0, 1, 2, 4, 5, 6)]
    back = [Failure(1, host, 59) for host in (8, 9, 10)]
    found = run(100, [Job(1, 5, 10, 2)], policy, failures=[*down, *back])
    assert of_job(found, 1) == ["5 hold 1: until 105", start]


def test_a_limit_on_leaves_is_a_preference_that_a_plan_may_miss():
    # Each leaf has its last host alone: three VMs are below two leaves when c is back at 60.
    down = [Failure(1, host) for host in (0, 1, 2, 4, 5, 6)]
    back = [Failure(1, host, 59) for host in (8, 9, 10)]
    two = Constraints(max_leaves=2)
    starts = [
        of_job(run(limit, [Job(1, 5, 10, 3)], wanted=two, failures=[*down, *back]), 1)[-1]
        for limit in (0, 30, 100)
    ]
    assert starts == ["5 start 1: a4 b4 c4", "35 start 1: a4 b4 c4", "60 start 1: c1 c2 c3"]


def test_constraints_that_every_place_keeps_are_kept_when_the_limit_is_over():
    # Below one pod, and if possible below one leaf.
    jobs = [Job(n, 0, 50 + n, 1) for n in range(1, 7)]
    kept = Constraints(require="pod", prefer="leaf")
    wanted = preferred(kept, four_leaves())
    assert wanted == Constraints(require="leaf")
    found = run(10, [*jobs, Job(7, 1, 10, 2)], topology=four_leaves(), wanted=wanted, kept=kept)
    start = of_job(found, 7)[-1]
    pods = {pod for pod, leaves in PODS.items() for host in start.split()[3:] if host[0] in leaves}
    assert len(pods) == 1


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        pytest.param({"prefer": "leaf"}, {"require": "leaf"}, id="a level"),
        pytest.param({"prefer": "core"}, {}, id="the root, which holds all"),
        pytest.param({"prefer": "pod", "require": "leaf"}, {"require": "leaf"}, id="a wider level"),
        pytest.param(
            {"prefer": "leaf", "max_leaves": 2, "min_leaves": 2},
            {"require": "leaf", "max_leaves": 2, "min_leaves": 2},
            id="with bounds on leaves",
        ),
    ],
)
def test_what_is_preferred_is_what_would_be_guaranteed(stated: dict, wanted: dict):
    assert preferred(Constraints(**stated), four_leaves()) == Constraints(**wanted)


def test_an_unknown_level_cannot_be_preferred():
    with pytest.raises(exceptions.RequestError, match="there is no level 'rack'"):
        preferred(Constraints(prefer="rack"), four_leaves())


def test_held_jobs_and_preferred_places_are_counted_in_a_window():
    held = run(20).simulation.held
    assert held is not None
    assert (held.held_in(WHOLE_RUN), held.held_in(Window(11, 100))) == (1, 0)
    # Of six jobs only job 4 is not below one leaf.
    assert held.preferred_share_in(WHOLE_RUN) == pytest.approx(5 / 6)
    assert held.preferred_share_in(Window(11, 100)) == 1
    assert held.preferred_share_in(Window(500, 600)) is None


DRAWN = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 60), st.integers(1, 6)), min_size=1, max_size=14
)


def drawn_jobs(drawn: list[tuple[int, int, int]]) -> list[Job]:
    return [Job(n, *each) for n, each in enumerate(sorted(drawn), 1)]


@settings(suppress_health_check=list(HealthCheck))
@given(DRAWN, st.sampled_from(QUEUES.names()), st.sampled_from(["exact-plan", "slurm-tree"]))
def test_with_a_limit_of_0_all_events_are_those_without_a_preference(drawn, queue, policy):
    jobs = drawn_jobs(drawn)

    def discipline() -> Discipline:
        return QUEUES.load(queue).discipline(QueueOptions())

    without = Simulated(
        policy, jobs, on=cluster(1, topology=three_leaves()), discipline=discipline()
    )
    assert run(0, jobs, policy, discipline()).log == without.log


@settings(suppress_health_check=list(HealthCheck))
@given(DRAWN, st.sampled_from(QUEUES.names()), st.integers(0, 80))
def test_each_job_ends_and_a_held_one_is_apart_only_when_its_limit_is_over(drawn, queue, limit):
    jobs = drawn_jobs(drawn)
    found = run(limit, jobs, discipline=QUEUES.load(queue).discipline(QueueOptions()))
    ends = {"done", "refused"} if queue == "refuse" else {"done"}
    assert len(found.records) == len(jobs)
    assert {record.outcome for record in found.records} <= ends
    for record in found.records:
        if record.outcome == "refused":
            continue
        lines = of_job(found, record.number)
        until = float(lines[0].split()[-1]) if len(lines) > 1 else None
        assert record.start is not None
        if until is not None and record.leaves > 1:
            assert record.start >= until
        if until is not None and queue == "fcfs":
            assert record.start <= until
        if record.vms <= 4 and record.leaves > 1 and limit:
            assert until is not None
