"""Made-up results of runs, for tests of what is made of results."""

from dataclasses import replace
from typing import Any

from hpc_sched.sim.results import Result, Summary
from hpc_sched.sim.series import Series, Totals

# A run without a job.
_NOTHING = Summary(
    policy="",
    seed=1,
    drawn=False,
    jobs=0,
    done=0,
    refused=0,
    killed=0,
    failed=0,
    left=0,
    restarts=0,
    makespan=0.0,
    wait_mean=None,
    wait_median=None,
    wait_p95=None,
    slowdown_mean=None,
    slowdown_p95=None,
    vcpu_use=0.0,
    memory_use=0.0,
    apart=0,
    hop_byte_ratio=None,
    hops_per_pair=None,
    leaf_ratio=None,
    crossing=0.0,
    most_crossing=0,
    factor_mean=None,
    core_hours=0.0,
    host_hours=0.0,
    host_core_hours=0.0,
    revenue=None,
    revenue_per_host_hour=None,
    revenue_per_host_core_hour=None,
)
NO_SERIES = Series([], [], [], [], [], [], [], {"leaf": [], "core": []}, [], Totals.empty())


def empty(policy: str, **known: Any) -> Result:
    """Return a run without a job or a sample, but for what is known of its summary."""
    return Result(replace(_NOTHING, policy=policy, **known), {}, [], [], ["sw1", "sw2"], NO_SERIES)


def lived(
    policy: str, seed: int = 1, samples: int = 20, leaves: int = 4, step: float = 600.0
) -> Result:
    """Return a run with as many samples, a step in s apart; the seed moves its numbers a little."""
    numbers = range(samples)
    # What a sample has holds until the next one; the run ends a step after the last.
    sums = range(samples + 1)
    totals = Totals(
        time=[step * i for i in sums],
        done=list(sums),
        ended=list(sums),
        vcpus=[step * sum((j + seed) % 10 / 10 for j in range(i)) for i in sums],
        memory=[step * sum(j % 5 / 10 for j in range(i)) for i in sums],
        running=[step * sum(j % 7 for j in range(i)) for i in sums],
        waiting=[step * sum(j % 3 for j in range(i)) for i in sums],
        crossing=[step * sum(j % 4 / 2 for j in range(i)) for i in sums],
    )
    series = Series(
        time=[step * i for i in numbers],
        vcpus=[(i + seed) % 10 / 10 for i in numbers],
        memory=[i % 5 / 10 for i in numbers],
        running=[i % 7 for i in numbers],
        waiting=[i % 3 for i in numbers],
        done=list(numbers),
        crossing=[i % 4 / 2 for i in numbers],
        gangs={"leaf": [8 - i % 8 for i in numbers], "core": [64 - i % 60 for i in numbers]},
        leaves=[[(i + leaf) % 5 / 4 for leaf in range(leaves)] for i in numbers],
        totals=totals,
    )
    summary = replace(
        _NOTHING,
        policy=policy,
        seed=seed,
        drawn=True,
        jobs=100,
        done=100,
        makespan=step * samples,
        wait_mean=100.0 + seed,
        wait_median=12.5,
        wait_p95=273_600.0,
        slowdown_mean=1.5,
        slowdown_p95=3.0,
        vcpu_use=0.5,
        memory_use=0.25,
        apart=0,
        hop_byte_ratio=1.25 * seed,
        hops_per_pair=2.5,
        leaf_ratio=1.5,
        crossing=0.5,
        most_crossing=4,
        largest_gang=24.5,
        factor_mean=1.0,
        core_hours=100.0 + seed,
        host_hours=12.0,
        host_core_hours=192.0,
    )
    waits = [0.0] * 100 + [10.0 * i for i in range(101)]
    slowdowns = [1.0 + i / 100 for i in range(201)]
    return Result(
        summary, {}, waits, slowdowns, [f"sw{number}" for number in range(1, leaves + 1)], series
    )
