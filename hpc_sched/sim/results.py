"""The results of runs: plain numbers for tables, files and plots."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from hpc_sched.core.cost import Prices
from hpc_sched.sim.jobs.job_record import Outcome
from hpc_sched.sim.measured.job_kinds import SIZE, KindMeasures
from hpc_sched.sim.measured.measured_window import WHOLE_RUN, Window
from hpc_sched.sim.series import Series
from hpc_sched.sim.simulation import Simulation

# Quantiles kept of each distribution: 0 %, 0.5 % .. 100 %.
STEPS = 200
_STEPS = np.linspace(0.0, 1.0, STEPS + 1).tolist()


@dataclass(frozen=True, slots=True)
class Summary:
    """One run in numbers; times in s. None for a number that no job gives.

    With a window, jobs are those submitted in it, and times the part of them in it.
    """

    policy: str
    seed: int
    drawn: bool  # False: the run of any seed has these numbers
    jobs: int
    done: int
    refused: int
    killed: int  # at their walltimes
    failed: int
    left: int  # ran or waited when the run stopped
    restarts: int  # of jobs that had lost a host
    makespan: float  # first start to last end
    wait_mean: float | None
    wait_median: float | None
    wait_p95: float | None
    slowdown_mean: float | None  # bounded slowdown
    slowdown_p95: float | None
    vcpu_use: float  # share, from first start to last end
    memory_use: float
    hop_byte_ratio: float | None  # sum over the sum of the least on the cluster without other jobs
    apart: int  # done with VMs on several islands: no Hop-Byte counts them
    hops_per_pair: float | None  # mean over all pairs of VMs of one job
    leaf_ratio: float | None  # leaves of all jobs, those apart too, over the least
    crossing: float  # jobs at a leaf that reach beyond it, mean over leaves and time
    most_crossing: int  # at one leaf at one time
    factor_mean: float | None  # by which placements made jobs longer
    # All time that VMs ran counts: of jobs that were done, killed, failed or were left.
    core_hours: float  # vcpus of VMs times hours
    host_hours: float  # of hosts in use, those with a VM
    host_core_hours: float  # of all cores of these hosts
    revenue: float | None  # of the core-hours at their prices; None without prices
    revenue_per_host_hour: float | None
    revenue_per_host_core_hour: float | None
    # With a network only.
    goodput: float | None = None  # vcpu-hours of jobs done, as stated, over those of the cluster
    lost: float | None = None  # share of hosts' time that jobs lost by their neighbours
    uplink_use: float | None = None  # share of the leaves' uplinks in use
    # VMs of one job that fit below a switch just above leaves, mean over the samples measured.
    largest_gang: float | None = None
    # With a limit of waiting for a preferred place only.
    wait_limit: float | None = None
    held: int | None = None  # jobs that could have started before they did, elsewhere
    as_preferred: float | None = None  # share of the jobs that started, on their last hosts


# Fields of Summary that are written only where a run has numbers for them.
NETWORK_FIELDS = ("goodput", "lost", "uplink_use")
WAITING_FIELDS = ("wait_limit", "held", "as_preferred")


def written_fields(results: Sequence["Result"]) -> list[str]:
    """Return the fields of Summary that files have.

    Those of networks, and of waiting for a place, only where a run has them.
    """
    empty = {
        name
        for name in (*NETWORK_FIELDS, *WAITING_FIELDS)
        if all(getattr(result.summary, name) is None for result in results)
    }
    return [each.name for each in fields(Summary) if each.name not in empty]


@dataclass(frozen=True, slots=True)
class Result:
    """Everything kept of a run."""

    summary: Summary
    refusals: dict[str, int]  # reason to jobs
    waits: list[float]  # quantiles, see STEPS
    slowdowns: list[float]
    leaves: list[str]  # names, in the order of the series
    series: Series
    window: Window | None = None  # what the summary measures; None: the whole run
    kinds: list[KindMeasures] = field(default_factory=list)  # with a network


def result_of(
    policy: str,
    seed: int,
    simulation: Simulation,
    prices: Prices | None = None,
    *,
    is_drawn: bool = True,
) -> Result:
    """Return the result of a simulation that has been concluded; without prices no revenue.

    :param is_drawn: whether another seed may give other numbers
    """
    measures, held = simulation.measures, simulation.held
    jobs, integrals, window = measures.jobs, measures.integrals, measures.window
    usage, outcomes = integrals.usage, jobs.outcomes
    vcpu_use, memory_use = integrals.utilisation
    wait_median, wait_p95 = _quantiles(jobs.waits, 0.5, 0.95) or (None, None)
    _, slowdown_p95 = _quantiles(jobs.slowdowns, 0.5, 0.95) or (None, None)
    kinds = measures.kinds.measures(integrals.available)
    sizes = [kind for kind in kinds if kind.dimension == SIZE]
    summary = Summary(
        policy=policy,
        seed=seed,
        drawn=is_drawn,
        jobs=outcomes.total(),
        done=outcomes[Outcome.DONE],
        refused=outcomes[Outcome.REFUSED],
        killed=outcomes[Outcome.KILLED],
        failed=outcomes[Outcome.FAILED],
        left=outcomes[Outcome.RUNNING] + outcomes[Outcome.WAITING],
        restarts=jobs.restarts,
        makespan=integrals.span,
        wait_mean=_mean(jobs.waits),
        wait_median=wait_median,
        wait_p95=wait_p95,
        slowdown_mean=_mean(jobs.slowdowns),
        slowdown_p95=slowdown_p95,
        vcpu_use=vcpu_use,
        memory_use=memory_use,
        hop_byte_ratio=jobs.hop_byte_ratio,
        apart=jobs.apart,
        hops_per_pair=jobs.hops_per_pair,
        leaf_ratio=jobs.leaf_ratio,
        crossing=integrals.crossing,
        most_crossing=integrals.most_crossing,
        factor_mean=_mean(jobs.factors),
        core_hours=usage.all_core_hours,
        host_hours=usage.host_hours,
        host_core_hours=usage.host_core_hours,
        revenue=None if prices is None else usage.revenue(prices),
        revenue_per_host_hour=None if prices is None else usage.revenue_per_host_hour(prices),
        revenue_per_host_core_hour=(
            None if prices is None else usage.revenue_per_host_core_hour(prices)
        ),
        goodput=sum(kind.goodput for kind in sizes) if sizes else None,
        lost=jobs.lost,
        uplink_use=next(iter(integrals.uplink_use.values())) if sizes else None,
        largest_gang=measures.largest_gang,
        wait_limit=None if held is None else held.limit,
        held=None if held is None else held.held_in(window),
        as_preferred=None if held is None else held.preferred_share_in(window),
    )
    return Result(
        summary=summary,
        refusals=dict(sorted(jobs.refusals.items(), key=lambda item: (-item[1], item[0]))),
        waits=_quantiles(jobs.waits, *_STEPS),
        slowdowns=_quantiles(jobs.slowdowns, *_STEPS),
        leaves=[measures.cluster.topology.switches[leaf].name for leaf in measures.leaves_sampled],
        series=measures.series,
        window=None if window == WHOLE_RUN else window,
        kinds=kinds,
    )


def _mean(numbers: "array[float]") -> float | None:
    return math.fsum(numbers) / len(numbers) if numbers else None


def _quantiles(numbers: "array[float]", *shares: float) -> list[float]:
    """Return the quantiles at shares of 1; empty without numbers."""
    return list(np.quantile(np.frombuffer(numbers), shares).tolist()) if numbers else []
