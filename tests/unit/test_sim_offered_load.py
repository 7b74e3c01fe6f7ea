"""Drawn jobs arrive as fast as a share of the cluster needs them to."""

import math

import pytest

from hpc_sched.exceptions import ConfigError
from hpc_sched.sim.jobs import distributions, offered_load
from hpc_sched.sim.jobs.job_sources import Synthetic


def synthetic(count: int = 1, **stated: str) -> Synthetic:
    return Synthetic(count, **{name: distributions.read(text) for name, text in stated.items()})


def interarrivals(use: float, vms: int, **stated: str) -> str:
    return offered_load.arriving(synthetic(**stated), use, vms).interarrivals.text


def test_the_interarrival_time_is_that_of_mean_size_times_mean_runtime_over_the_vms():
    # 4 VMs for 100 s are 400 VM-seconds, which half of 20 VMs do in 40 s.
    assert interarrivals(0.5, 20, sizes="choice:2:6", runtimes="uniform:50:150") == "exponential:40"
    mean = 42 * 600 * math.exp(0.5) / (0.9 * 4096)
    assert interarrivals(0.9, 4096) == f"exponential:{mean:.6g}"


def test_twice_the_load_arrives_twice_as_fast_and_only_that_changes():
    jobs = synthetic(sizes="constant:5", runtimes="constant:10")
    one, other = (offered_load.arriving(jobs, use, 10) for use in (0.5, 1.0))
    assert (one.interarrivals.text, other.interarrivals.text) == ("exponential:10", "exponential:5")
    assert (one.sizes, one.runtimes, one.count) == (jobs.sizes, jobs.runtimes, jobs.count)


@pytest.mark.parametrize("use", [0.3, 0.9, 1.5])
def test_what_is_drawn_offers_the_load(use: float):
    jobs = list(offered_load.arriving(synthetic(20_000), use, 4096).jobs(seed=1))
    offered = math.fsum(job.runtime * job.count for job in jobs) / (jobs[-1].submit * 4096)
    assert offered == pytest.approx(use, rel=0.05)


def test_a_job_has_a_vm_at_least_whatever_is_drawn():
    assert interarrivals(1, 1, sizes="constant:0", runtimes="constant:7") == "exponential:7"


@pytest.mark.parametrize(
    ("runtimes", "found"), [("constant:0", "found 0 s"), ("lognormal:1e14:3", "found 1.8")]
)
def test_jobs_that_can_be_no_load_are_refused_with_their_means(runtimes: str, found: str):
    with pytest.raises(ConfigError, match=f"^--use: expected a mean.*{found}.*{runtimes[:8]}"):
        interarrivals(0.5, 1, sizes="constant:1", runtimes=runtimes)
