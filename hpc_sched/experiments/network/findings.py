"""What the numbers of the network study show, in sentences."""

from collections.abc import Iterable, Iterator, Sequence

from hpc_sched.experiments.network.compared_placements import ALONG, PLACEMENTS, PLAN, RANDOM
from hpc_sched.experiments.network.job_seconds import ENDLESS, PART_TIME
from hpc_sched.experiments.network.paired_runs import Case, PairedRuns
from hpc_sched.sim.statistics.estimate import Estimate


def findings(runs: PairedRuns) -> Iterator[str]:
    """Yield a sentence for each finding; those on gains need an interval, and so 10 runs."""
    top = max(runs.study.ratios)
    if 1.0 in runs.study.ratios:
        yield _at_one(runs)
    yield (
        f"On random hosts the job takes {_range(_endless_over_part_time(runs, top))} times as long "
        f"next to endless flows at {top:g}:1 as next to jobs that send {PART_TIME}."
    )
    cases = list(_cases(runs, top, PLAN))
    where = f"Next to jobs that send {PART_TIME}, at {top:g}:1,"
    found = {case: runs.against(case) for case in cases}
    gains = [case for case in cases if found[case].is_below(1)]
    harms = [case for case in cases if found[case].is_above(1)]
    if gains:
        yield f"{where} the exact plan gains on random hosts for {_listed(gains, found)}."
    if harms:
        yield (
            f"{where} the exact plan is slower than random hosts for {_listed(harms, found)}: a "
            "group that no leaf holds, packed on few leaves, waits for few uplinks."
        )
    along = {case: runs.against(case) for case in _cases(runs, top, ALONG)}
    yield (
        f"{where} ranks in fabric order alone, on the same random hosts, take "
        f"{_range([each.mean for each in along.values()])} of the runtime; it is less, beyond the "
        f"interval, in {_number_below(along.values())} of {len(along)} cases, and more in "
        f"{_number_above(along.values())}."
    )
    against = [runs.against(case, ALONG) for case in cases]
    yield (
        f"{where} the exact plan is faster than random hosts with ranks in fabric order in "
        f"{_number_below(against)} of {len(cases)} cases, and slower in "
        f"{_number_above(against)}."
    )


def _at_one(runs: PairedRuns) -> str:
    apart = max(
        abs(runs.against(case._replace(neighbours=neighbours)).mean - 1)
        for neighbours in (ENDLESS, PART_TIME)
        for name in PLACEMENTS
        for case in _cases(runs, 1.0, name)
    )
    return (
        f"At 1:1 placements differ by at most {100 * apart:.1f} %: no uplink is shared by more "
        "than it carries."
    )


def _cases(runs: PairedRuns, ratio: float, name: str) -> Iterator[Case]:
    for ranks in runs.study.ranks:
        for pattern in runs.study.patterns:
            yield Case(PART_TIME, ranks, pattern, ratio, name)


def _endless_over_part_time(runs: PairedRuns, ratio: float) -> list[float]:
    return [
        Estimate.of_drawn(runs.runtime[case._replace(neighbours=ENDLESS)]).mean
        / Estimate.of_drawn(runs.runtime[case]).mean
        for case in _cases(runs, ratio, RANDOM)
    ]


def _listed(cases: Sequence[Case], found: dict[Case, Estimate]) -> str:
    """Return cases with their change of the runtime, by ranks."""
    parts = []
    for ranks in dict.fromkeys(case.ranks for case in cases):
        of_ranks = ", ".join(
            f"{case.pattern} {100 * (found[case].mean - 1):+.1f} %"
            for case in cases
            if case.ranks == ranks
        )
        parts.append(f"{ranks} ranks ({of_ranks})")
    return "; ".join(parts)


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _number_below(found: Iterable[Estimate]) -> int:
    return sum(each.is_below(1) for each in found)


def _number_above(found: Iterable[Estimate]) -> int:
    return sum(each.is_above(1) for each in found)
