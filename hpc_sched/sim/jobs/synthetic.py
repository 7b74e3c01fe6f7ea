"""Jobs that nobody has submitted: arrivals, sizes and runtimes by stated distributions."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from hpc_sched import exceptions
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim.jobs.class_mix import ALL_SYNC, ClassMix
from hpc_sched.sim.jobs.distributions import (
    MAX_NUMBER,
    ZERO,
    Choice,
    Constant,
    Distribution,
    Exponential,
    LogNormal,
)
from hpc_sched.sim.jobs.job import Job

_15_SECONDS = Exponential(15.0)
_UP_TO_128 = Choice((4.0, 8.0, 16.0, 32.0, 64.0, 128.0), (1.0,) * 6)
_TEN_MINUTES = LogNormal(600.0, 1.5)
_TWICE = Constant(2.0)


@dataclass(frozen=True, slots=True)
class Synthetic:
    """What the jobs are like; as delivered, up to 128 VMs, mostly for minutes, at times for hours.

    Arrivals are a Poisson process where the times between them are exponential.

    :raises exceptions.ConfigError: for a distribution that may fall below what makes sense
    """

    count: int  # jobs
    interarrivals: Distribution = _15_SECONDS  # s
    sizes: Distribution = _UP_TO_128  # VMs, rounded
    runtimes: Distribution = _TEN_MINUTES  # s
    walltimes: Distribution = _TWICE  # what users ask for, in runtimes
    vcpus: int = 1  # of one VM
    memory_mb: Distribution = ZERO  # of one VM, rounded
    classes: ClassMix = ALL_SYNC
    scores: Distribution = ZERO  # cache scores
    seed: int = 0

    def __post_init__(self) -> None:
        for what, number in (("jobs", self.count), ("cores of a VM", self.vcpus)):
            if number < 1:
                raise exceptions.ConfigError(f"{what}: expected at least 1, found {number}")
        for what, found in (
            ("times between arrivals", self.interarrivals),
            ("sizes", self.sizes),
            ("runtimes", self.runtimes),
            ("walltimes", self.walltimes),
            ("memory", self.memory_mb),
            ("cache scores", self.scores),
        ):
            if found.lowest < 0:
                raise exceptions.ConfigError(f"{what}: expected at least 0, found {found.text}")


def jobs(synthetic: Synthetic) -> Iterator[Job]:
    """Return the jobs, one at a time, numbered from 1; the first is submitted at 0.

    What is drawn for a job follows from the seed and its number alone.
    """
    submit = 0.0
    for number in range(1, synthetic.count + 1):
        rng = random.Random(f"{synthetic.seed} {number}")
        # The application first, as for a job of a trace: it is the same in both.
        application = Application(
            app_class=synthetic.classes.draw(rng), score=synthetic.scores.draw(rng)
        )
        between = synthetic.interarrivals.draw(rng)
        if number > 1:
            submit += between
        runtime = synthetic.runtimes.draw(rng)
        yield Job(
            number=number,
            submit=submit,
            runtime=runtime,
            # A long tail has no end; what is beyond the largest number is as hopeless as that.
            count=max(1, round(min(synthetic.sizes.draw(rng), MAX_NUMBER))),
            vcpus=synthetic.vcpus,
            memory_mb=round(synthetic.memory_mb.draw(rng)),
            walltime=runtime * synthetic.walltimes.draw(rng),
            application=application,
        )
