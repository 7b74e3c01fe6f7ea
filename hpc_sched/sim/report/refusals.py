"""Why jobs were refused, by policy."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hpc_sched.sim.report.policy_runs import PolicyRuns

# A policy that names hosts or counts in its reasons has about one a job.
MOST_REASONS = 12


@dataclass(frozen=True, slots=True)
class Refusals:
    """What one policy refused, all its seeds together."""

    runs: PolicyRuns
    reasons: tuple[tuple[str, int], ...]  # with jobs, most jobs first
    others: int  # reasons that are not named
    other_jobs: int


def by_policy(policies: Sequence[PolicyRuns]) -> list[Refusals]:
    """Return the refusals of each policy that has refused a job."""
    found = []
    for runs in policies:
        jobs: Counter[str] = Counter()
        for result in runs.results:
            jobs.update(result.refusals)
        ordered = sorted(jobs.items(), key=lambda item: (-item[1], item[0]))
        if ordered:
            rest = ordered[MOST_REASONS:]
            found.append(
                Refusals(
                    runs=runs,
                    reasons=tuple(ordered[:MOST_REASONS]),
                    others=len(rest),
                    other_jobs=sum(count for _, count in rest),
                )
            )
    return found
