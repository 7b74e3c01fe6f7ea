"""What must not decide when a job starts: samples, and jobs that no reservation has room for."""

import pytest

from hpc_sched.sim.installed import QUEUES
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.queues.conservative import Conservative
from hpc_sched.sim.queues.queue_discipline import QueueOptions
from hpc_sched.sim.simulation_input import Failure
from tests.unit.core_jobs import one_leaf
from tests.unit.simulated import Simulated


def starts(found: Simulated) -> dict[int, float | None]:
    return {record.number: record.start for record in found.records}


def test_a_sample_starts_no_job():
    """At 60 jobs 1 and 2 are late, and job 4 would fit beside job 3 if both ended at once."""
    jobs = [
        Job(1, 0, 200, 2, walltime=30),
        Job(2, 0, 400, 2, walltime=40),
        Job(3, 1, 10, 3),
        Job(4, 1, 500, 1),
    ]
    easy = QUEUES.load("easy").discipline(QueueOptions())
    found = Simulated("first-fit", jobs, on=one_leaf(5), discipline=easy)
    assert found.simulation.measures.series.time[:2] == [0, 60]
    assert starts(found) == {1: 0, 2: 0, 3: 200, 4: 210}


def test_conservative_backfilling_goes_on_while_a_job_has_no_room_at_any_time():
    """A host that never comes back takes the room of job 2."""
    jobs = [Job(1, 0, 10, 1), Job(2, 2, 10, 2), Job(3, 3, 10, 1)]
    down = [Failure(1, 1)]
    found = Simulated("first-fit", jobs, on=one_leaf(2), discipline=Conservative(), failures=down)
    assert starts(found) == {1: 0, 2: None, 3: 10}


@pytest.mark.parametrize("depth", [0, 1])
def test_jobs_that_become_the_first_ones_of_the_queue_start_at_once(depth: int):
    jobs = [Job(number, 0, 10, 1) for number in (1, 2, 3, 4)]
    for name in ("easy", "conservative"):
        discipline = QUEUES.load(name).discipline(QueueOptions(depth=depth))
        found = Simulated("first-fit", jobs, on=one_leaf(4), discipline=discipline)
        assert set(starts(found).values()) == {0}
