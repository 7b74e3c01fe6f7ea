"""Synthetic jobs: arrivals, sizes and runtimes drawn from stated distributions."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, fields

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim.jobs import distributions
from hpc_sched.sim.jobs.distributions import (
    ALL_SYNC,
    ZERO,
    Distribution,
    Mix,
    drawn_name,
    read,
)
from hpc_sched.sim.jobs.job import Job

_15_SECONDS = read("exponential:15")
_UP_TO_128 = read("choice:4:8:16:32:64:128")
_TEN_MINUTES = read("lognormal:600:1.5")
_TWICE = read("constant:2")


@dataclass(frozen=True, slots=True)
class Synthetic:
    """Distributions of the jobs; by default up to 128 VMs, mostly minutes long, some hours.

    All numbers are 0 or more. Arrivals are a Poisson process where the times between them are
    exponential.
    """

    count: int  # jobs
    interarrivals: Distribution = _15_SECONDS  # s
    sizes: Distribution = _UP_TO_128  # VMs, rounded
    runtimes: Distribution = _TEN_MINUTES  # s
    walltimes: Distribution = _TWICE  # requested walltime, in runtimes
    vcpus: int = 1  # of one VM
    memory_mb: Distribution = ZERO  # of one VM, rounded
    classes: Mix = ALL_SYNC
    scores: Distribution = ZERO  # cache scores
    applications: Mix | None = None  # by name; None: they have none

    @property
    def draws(self) -> bool:
        """True if the jobs of two seeds may differ."""
        drawn = (getattr(self, field.name) for field in fields(self))
        return any(not each.is_constant for each in drawn if isinstance(each, Distribution | Mix))

    def jobs(self, seed: int) -> Iterator[Job]:
        """Return the jobs, one at a time, numbered from 1; the first is submitted at 0.

        The numbers drawn for a job depend on the seed and the job's number only.
        """
        submit = 0.0
        for number in range(1, self.count + 1):
            rng = random.Random(f"{seed} {number}")
            # The application first, as for a job of a trace: both draw the same one.
            application = Application(
                app_class=self.classes.draw(rng),
                name=drawn_name(self.applications, seed, number),
                score=self.scores.draw(rng),
            )
            between = self.interarrivals.draw(rng)
            if number > 1:
                submit += between
            runtime = self.runtimes.draw(rng)
            yield Job(
                number=number,
                submit=submit,
                runtime=runtime,
                # A long tail is unbounded; no cluster holds a job beyond the bound either.
                count=max(1, round(min(self.sizes.draw(rng), distributions.MAX_NUMBER))),
                vcpus=self.vcpus,
                memory_mb=round(self.memory_mb.draw(rng)),
                walltime=runtime * self.walltimes.draw(rng),
                trace_job=number,
                trace_submit=submit,
                application=application,
            )
