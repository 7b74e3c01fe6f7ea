"""Results by policy, and why policies refused jobs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hpc_sched.sim.report.line_styles import LineStyle, line_style
from hpc_sched.sim.summary import Result

# A policy that names hosts or counts in its reasons has about one per job.
MOST_REASONS = 12


@dataclass(frozen=True, slots=True)
class PolicyRuns:
    """The runs of one policy, one per seed; at least one."""

    policy: str
    look: LineStyle
    results: tuple[Result, ...]

    @property
    def shown(self) -> Result:
        """The run shown where only one can be drawn: the first.

        A mean over seeds would show states that the cluster never was in.
        """
        return self.results[0]

    @property
    def has_done(self) -> bool:
        """Whether a job was done."""
        return any(result.summary.done for result in self.results)


def by_policy(results: Sequence[Result]) -> list[PolicyRuns]:
    """Return the runs of each policy; policies and runs in the given order."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.summary.policy, []).append(result)
    return [
        PolicyRuns(policy, line_style(number), tuple(runs))
        for number, (policy, runs) in enumerate(found.items())
    ]


def about_seeds(policies: Sequence[PolicyRuns]) -> str:
    """Return a sentence on which seeds are shown where; empty for one seed."""
    if all(len(each.results) < 2 for each in policies):
        return ""
    shown = {each.shown.summary.seed for each in policies}
    which = f"seed {min(shown)}" if len(shown) == 1 else "the first seed of each policy"
    return (
        "There are several seeds: the table and the bars have the mean over them and the range, "
        f"all other plots show {which} alone."
    )


@dataclass(frozen=True, slots=True)
class Refusals:
    """Jobs that one policy refused, over all its seeds."""

    runs: PolicyRuns
    reasons: tuple[tuple[str, int], ...]  # reason and jobs, most jobs first
    others: int  # number of further reasons
    other_jobs: int


def refusals(policies: Sequence[PolicyRuns]) -> list[Refusals]:
    """Return the refusals of each policy that refused a job."""
    found = []
    for runs in policies:
        jobs: Counter[str] = Counter()
        for result in runs.results:
            jobs.update(result.refusals)
        ordered = sorted(jobs.items(), key=lambda item: (-item[1], item[0]))
        named, rest = ordered[:MOST_REASONS], ordered[MOST_REASONS:]
        if named:
            other_jobs = sum(count for _, count in rest)
            found.append(Refusals(runs, tuple(named), len(rest), other_jobs))
    return found
