"""What the runs of a sweep show about its policies: means, intervals, the best of each measure.

Runs of one seed have the same jobs and the same failures of hosts, so policies are compared seed
by seed: most of what differs from seed to seed is the same for both and drops out.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from hpc_sched.sim.results import Result, Summary
from hpc_sched.sim.statistics.columns import COLUMNS, Column, Scope
from hpc_sched.sim.statistics.estimate import CONFIDENCE, LEAST_SEEDS, Estimate, difference


class Evidence(StrEnum):
    """What a difference between two policies rests on."""

    EXACT = "exact"  # nothing is drawn: the run of any seed has the same numbers
    INTERVALS = "intervals"  # enough seeds for confidence intervals
    RANGE = "range"  # several seeds, too few for intervals
    ONE_SEED = "one seed"  # numbers are drawn: another seed may give another order


_Estimates = Mapping[str, Estimate | None]  # by field of Summary

# The numbers of a run that say which jobs a scope is about; of others those submitted and done.
_COUNTED = {Scope.SUBMITTED: ("jobs",), Scope.DONE_ON_ONE_ISLAND: ("jobs", "done", "apart")}
# With a window: what is used in it also depends on when jobs run, and its length on no policy.
_CUT = frozenset({Scope.OCCUPIED, Scope.SPENT, Scope.SPAN})


@dataclass(frozen=True, slots=True)
class ComparedPolicy:
    """A policy and what its runs show."""

    name: str
    drawn: bool  # whether its runs differ from seed to seed
    runs: Mapping[int, Summary]  # by seed; one that draws nothing has the same run for each
    means: _Estimates
    # Its numbers less those of the baseline, over the seeds of both; none of the baseline itself.
    differences: _Estimates = field(default_factory=dict)

    @property
    def has_done(self) -> bool:
        """Whether a job was done."""
        return any(summary.done for summary in self.runs.values())


@dataclass(frozen=True, slots=True)
class Comparison:
    """The policies of a sweep in the order of their first results; the first is the baseline."""

    evidence: Evidence
    seeds: tuple[int, ...]
    policies: tuple[ComparedPolicy, ...]
    unlike: frozenset[Scope]  # scopes whose jobs differ from policy to policy
    best: Mapping[str, frozenset[str]]  # field of Summary to policies; empty if undecided
    has_window: bool = False  # whether a part of each run is measured

    def percent(self, policy: ComparedPolicy, measure: str) -> tuple[float, float | None] | None:
        """Return the difference to the baseline, and half the width of its interval.

        Both in % of the baseline's mean; None if they have no number, or differ and that is 0.
        """
        reference, found = self.policies[0].means[measure], policy.differences.get(measure)
        if found is None or reference is None:
            return None
        if not reference.mean:
            return None if found.mean or found.half_width else (0.0, 0.0)
        unit = abs(reference.mean) / 100
        return found.mean / unit, None if found.half_width is None else found.half_width / unit

    def marked(self, field: str, text: Callable[[float], str]) -> frozenset[str]:
        """Return the policies that a table marks as the best.

        With them those that read alike, as a mark on one of these could not be understood; empty
        if that is all.

        :param text: how the table writes a mean without an interval
        """
        best = self.best[field]
        means = {
            policy.name: mean
            for policy in self.policies
            if policy.has_done and (mean := policy.means[field]) is not None
        }
        texts = {name: text(mean.mean) for name, mean in means.items() if mean.half_width == 0}
        alike = {texts[name] for name in best if name in texts}
        found = best | {name for name in texts if texts[name] in alike}
        return frozenset() if found == means.keys() else found

    def as_json(self, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the comparison as plain values, by policy and field of Summary.

        :param names: fields that are written; None: all
        """

        def measure(policy: ComparedPolicy, field: str) -> dict[str, Any] | None:
            mean, found = policy.means[field], policy.differences.get(field)
            if mean is None:
                return None
            return asdict(mean) | {
                "difference": None if found is None else asdict(found),
                "best": policy.name in self.best[field],
            }

        return {
            "evidence": self.evidence,
            "confidence": CONFIDENCE,
            "seeds": list(self.seeds),
            "baseline": self.policies[0].name if self.policies else None,
            "policies": {
                policy.name: {
                    column.field: measure(policy, column.field)
                    for column in COLUMNS
                    if names is None or column.field in names
                }
                for policy in self.policies
            },
        }


def compare(results: Sequence[Result]) -> Comparison:
    """Return the comparison of the policies of results. O(policies * measures * seeds)."""
    found: defaultdict[str, dict[int, Summary]] = defaultdict(dict)
    for summary in (result.summary for result in results):
        found[summary.policy][summary.seed] = summary
    drawn = {name: any(each.drawn for each in runs.values()) for name, runs in found.items()}
    seeds = sorted({seed for name, runs in found.items() if drawn[name] for seed in runs})
    evidence = Evidence.RANGE
    if not seeds:
        evidence = Evidence.EXACT
        seeds = [result.summary.seed for result in results[:1]]
    elif len(seeds) < 2:
        evidence = Evidence.ONE_SEED
    elif max(len(runs) for name, runs in found.items() if drawn[name]) >= LEAST_SEEDS:
        evidence = Evidence.INTERVALS
    by_seed = {
        name: runs if drawn[name] else dict.fromkeys(seeds, next(iter(runs.values())))
        for name, runs in found.items()
    }
    bare = [
        ComparedPolicy(
            name, drawn[name], runs, {c.field: _mean(c, runs, drawn[name]) for c in COLUMNS}
        )
        for name, runs in by_seed.items()
    ]
    policies = bare[:1] + [
        replace(one, differences={c.field: _difference(c, one, bare[0]) for c in COLUMNS})
        for one in bare[1:]
    ]
    # A policy that has done no job is best in nothing: its waits of 0 mean nothing.
    able = [policy for policy in policies if policy.has_done]
    unlike = frozenset(scope for scope in Scope if _is_unlike(scope, able))
    has_window = any(result.window is not None for result in results)
    if has_window:
        unlike |= _CUT
    best = {
        column.field: frozenset() if column.scope in unlike else _best(column, able)
        for column in COLUMNS
    }
    return Comparison(evidence, tuple(seeds), tuple(policies), unlike, best, has_window)


def _mean(column: Column, runs: Mapping[int, Summary], is_drawn: bool) -> Estimate | None:
    values = map(column.value, runs.values())
    return Estimate.of([value for value in values if value is not None], is_drawn=is_drawn)


def _difference(column: Column, one: ComparedPolicy, other: ComparedPolicy) -> Estimate | None:
    """Return one policy's number less the other's, over the seeds for which both have it."""
    return Estimate.of(
        [difference(a, b) for a, b in _pairs(column, one, other)],
        is_drawn=one.drawn or other.drawn,
    )


def _pairs(
    column: Column, one: ComparedPolicy, other: ComparedPolicy
) -> Iterator[tuple[float, float]]:
    for seed in [seed for seed in one.runs if seed in other.runs]:
        a, b = column.value(one.runs[seed]), column.value(other.runs[seed])
        if a is not None and b is not None:
            yield a, b


def _best(column: Column, policies: Sequence[ComparedPolicy]) -> frozenset[str]:
    """Return the policy that is better than all others, with those that equal it.

    Empty if all are equal, or if the interval of the difference to another one includes 0.
    """
    means = {
        policy.name: found.mean
        for policy in policies
        if (found := policy.means[column.field]) is not None
    }
    compared = [policy for policy in policies if policy.name in means]
    if not compared:
        return frozenset()
    top = max(compared, key=lambda policy: column.better * means[policy.name])
    others = [policy for policy in compared if not _is_equal(column, top, policy)]
    is_best = all(_is_better(column, _difference(column, top, policy)) for policy in others)
    if not others or not is_best:
        return frozenset()
    return frozenset(means).difference(policy.name for policy in others)


def _is_better(column: Column, apart: Estimate | None) -> bool:
    """True if a difference is a merit, and its interval excludes 0."""
    return (
        apart is not None
        and apart.half_width is not None
        and column.better * apart.mean > apart.half_width
    )


def _is_equal(column: Column, one: ComparedPolicy, other: ComparedPolicy) -> bool:
    """True if two policies have equal numbers with every seed."""
    same_seeds = one.runs.keys() == other.runs.keys()
    return same_seeds and not any(difference(a, b) for a, b in _pairs(column, one, other))


def _is_unlike(scope: Scope, policies: Sequence[ComparedPolicy]) -> bool:
    """True if the jobs of a scope differ from policy to policy, seed by seed."""
    names = _COUNTED.get(scope, ("jobs", "done"))
    runs = [run for policy in policies for run in policy.runs.items()]
    if any(_is_no_merit(scope, summary) for _, summary in runs):
        return True
    counts = {(seed, *(getattr(summary, name) for name in names)) for seed, summary in runs}
    return len(counts) > len({seed for seed, _ in runs})


def _is_no_merit(scope: Scope, summary: Summary) -> bool:
    """True if a run has used resources for jobs that were not done, or for longer runtimes."""
    is_unfinished = bool(summary.killed or summary.failed or summary.left)
    if scope is Scope.OCCUPIED:
        return is_unfinished or summary.restarts > 0 or summary.factor_mean not in (None, 1.0)
    return scope is Scope.SPENT and is_unfinished
