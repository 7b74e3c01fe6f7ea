"""Samples only observe: what a run does must not depend on when it is sampled."""

import random

import pytest

from hpc_sched.sim.installed import POLICIES, QUEUES
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.measures import Measures
from hpc_sched.sim.queues.queue_discipline import QueueOptions
from hpc_sched.sim.simulation import Simulation
from hpc_sched.sim.simulation_input import SimulationInput
from tests.unit import simulated


def drawn_jobs(seed: int, count: int = 60) -> list[Job]:
    """Return jobs of four users; some run longer than their estimates."""
    dice = random.Random(seed)
    jobs, submit = [], 0.0
    for number in range(1, count + 1):
        submit += dice.uniform(0, 60)
        runtime = dice.uniform(10, 900)
        estimate = runtime * dice.choice((0.5, 1.0, 3.0))
        jobs.append(
            Job(
                number=number,
                submit=submit,
                runtime=runtime,
                walltime=estimate,
                count=dice.randint(1, 12),
                user=dice.randint(1, 4),
            )
        )
    return jobs


def events(queue: str, seed: int, interval: float) -> list[str]:
    cluster = simulated.cluster()
    log: list[str] = []
    simulation = Simulation(
        SimulationInput(cluster, POLICIES.load("exact-plan")),
        QUEUES.load(queue).discipline(QueueOptions()),
        drawn_jobs(seed),
        measures=Measures(cluster, interval=interval),
        log=log.append,
    )
    simulation.run()
    simulation.conclude()
    return log


@pytest.mark.parametrize("queue", QUEUES.names())
def test_a_run_is_the_same_however_often_it_is_sampled(queue: str):
    for seed in range(4):
        assert events(queue, seed, 40.0) == events(queue, seed, 5000.0)
