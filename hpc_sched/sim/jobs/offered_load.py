"""Drawn jobs that arrive as fast as a share of the cluster needs them to."""

from dataclasses import replace

from hpc_sched import exceptions
from hpc_sched.sim.jobs.distributions import LEAST, MAX_NUMBER, Distribution
from hpc_sched.sim.jobs.job_sources import Synthetic


def arriving(jobs: Synthetic, use: float, vms: int) -> Synthetic:
    """Return the jobs with exponential times between arrivals that offer a load.

    On average they would keep a share of the VMs that the cluster holds in use, if no job waited
    and no placement changed a runtime: mean VMs of a job times mean runtime, over the mean time
    between arrivals, is ``use`` of these VMs.

    :param use: the share, above 0; from 1 on the queue grows without end
    :param vms: that the cluster holds without jobs; where it is 0 all jobs are refused
    :raises exceptions.ConfigError: for jobs that take no time, or an interarrival time that is
        too short or too long
    """
    # A job has one VM at least, whatever is drawn.
    mean = max(jobs.sizes.mean, 1.0) * jobs.runtimes.mean / (max(vms, 1) * use)
    if not LEAST <= mean <= MAX_NUMBER:
        raise exceptions.ConfigError(
            f"--use: expected a mean interarrival time of {LEAST:g} to {MAX_NUMBER:g} s, found "
            f"{mean:g} s: sizes {jobs.sizes.text}, runtimes {jobs.runtimes.text}"
        )
    # Six digits, so that it can be read and stated again.
    return replace(jobs, interarrivals=Distribution("exponential", (float(f"{mean:.6g}"),)))
