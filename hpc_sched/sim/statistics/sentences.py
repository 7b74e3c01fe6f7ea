"""What readers of a table must know of its means and marks, in sentences."""

from hpc_sched.sim.statistics.columns import COLUMNS, Scope
from hpc_sched.sim.statistics.estimate import CONFIDENCE, LEAST_SEEDS
from hpc_sched.sim.statistics.policy_comparison import Comparison, Evidence


def about_marks(comparison: Comparison, star: str) -> list[str]:
    """Return how policies are compared, and what is marked and why; empty for one policy."""
    if len(comparison.policies) < 2:
        return []
    seeds = f"{len(comparison.seeds)} seeds"
    percent = f"{100 * CONFIDENCE:g} %"
    drawing = [policy.name for policy in comparison.policies if policy.drawn]
    match comparison.evidence:
        case Evidence.EXACT:
            found = [
                f"Nothing is drawn: any seed gives these numbers. {star} is the best of a column "
                "and what equals it; there is none where all are equal."
            ]
        case Evidence.INTERVALS:
            found = [
                f"Means over {seeds}, with half the width of their {percent} confidence interval. "
                f"{star} is better than each other policy: the {percent} interval of the "
                "difference, taken seed by seed, excludes 0."
            ]
        case Evidence.RANGE:
            found = [
                f"{seeds} are too few for confidence intervals: they show a range, and no policy "
                f"is marked as the best. {LEAST_SEEDS} are enough."
            ]
        case Evidence.ONE_SEED:
            what = "what is drawn"
            if len(drawing) < len(comparison.policies):
                what = f"the runs of {', '.join(drawing)}"
            found = [
                f"One seed: another one changes {what}, and may change the order. No policy is "
                f"marked as the best; --seeds {LEAST_SEEDS} compares them."
            ]
    if comparison.evidence in (Evidence.EXACT, Evidence.INTERVALS):
        found += _about_unlike(comparison)
    return found


def _about_unlike(comparison: Comparison) -> list[str]:
    unlike = comparison.unlike
    if Scope.SUBMITTED in unlike:
        return ["A run was stopped early: nothing is marked."]
    if Scope.DONE in unlike:
        counts = [column.field for column in COLUMNS if column.scope is Scope.SUBMITTED]
        return [
            f"The policies have not done equally many jobs: columns other than {', '.join(counts)} "
            "are about different ones, and nothing is marked in them."
        ]
    found = []
    if Scope.DONE_ON_ONE_ISLAND in unlike:
        found.append("Not equally many jobs are apart: no Hop-Byte is marked.")
    if Scope.OCCUPIED in unlike:
        found.append(
            "Placements changed runtimes, or jobs were killed, failed, restarted or were left: "
            "more use is no merit, and not marked."
        )
    if Scope.SPENT in unlike:
        found.append(
            "Jobs were killed, failed or were left: hours were spent on them too, and no hours are "
            "marked."
        )
    return found
