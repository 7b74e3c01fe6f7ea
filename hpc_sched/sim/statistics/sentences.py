"""What readers of a table must know of its means and marks, in sentences."""

from hpc_sched.sim.statistics.columns import COLUMNS, Scope
from hpc_sched.sim.statistics.estimate import CONFIDENCE, LEAST_SEEDS
from hpc_sched.sim.statistics.policy_comparison import Comparison, Evidence

# Scopes whose jobs differ although equally many are done, and what follows.
_UNLIKE = {
    Scope.DONE_ON_ONE_ISLAND: "Not equally many jobs are apart: no Hop-Byte is marked.",
    Scope.OCCUPIED: "Placements changed runtimes, or jobs were killed, failed, restarted or were "
    "left: more use is no merit, and not marked.",
    Scope.SPENT: "Jobs were killed, failed or were left: hours were spent on them too, and no "
    "hours are marked.",
}
_WINDOW = (
    "A part of the run is measured: its length, and the hours and use in it, are no merit of a "
    "policy, and not marked."
)


def about_marks(comparison: Comparison, star: str) -> list[str]:
    """Return how policies are compared, and what is marked and why; empty for one policy."""
    if len(comparison.policies) < 2:
        return []
    seeds = f"{len(comparison.seeds)} seeds"
    percent = f"{100 * CONFIDENCE:g} %"
    drawing = [policy.name for policy in comparison.policies if policy.drawn]
    all_draw = len(drawing) == len(comparison.policies)
    what = "what is drawn" if all_draw else f"the runs of {', '.join(drawing)}"
    texts = {
        Evidence.EXACT: f"Nothing is drawn: any seed gives these numbers. {star} is the best of a "
        "column and what equals it; there is none where all are equal.",
        Evidence.INTERVALS: f"Means over {seeds}, with half the width of their {percent} "
        f"confidence interval. {star} is better than each other policy: the {percent} interval of "
        "the difference, taken seed by seed, excludes 0.",
        Evidence.RANGE: f"{seeds} are too few for confidence intervals: they show a range, and no "
        f"policy is marked as the best. {LEAST_SEEDS} are enough.",
        Evidence.ONE_SEED: f"One seed: another one changes {what}, and may change the order. No "
        f"policy is marked as the best; --seeds {LEAST_SEEDS} compares them.",
    }
    has_marks = comparison.evidence in (Evidence.EXACT, Evidence.INTERVALS)
    return [texts[comparison.evidence], *(_about_unlike(comparison) if has_marks else ())]


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
    if comparison.has_window:
        islands = [_UNLIKE[Scope.DONE_ON_ONE_ISLAND]] if Scope.DONE_ON_ONE_ISLAND in unlike else []
        return [*islands, _WINDOW]
    return [text for scope, text in _UNLIKE.items() if scope in unlike]
