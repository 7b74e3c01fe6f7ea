"""Results by policy."""

from collections.abc import Sequence
from dataclasses import dataclass

from hpc_sched.sim.report.line_styles import Look, look
from hpc_sched.sim.summary import Result


@dataclass(frozen=True, slots=True)
class PolicyRuns:
    """The runs of one policy, a seed each; at least one."""

    policy: str
    look: Look
    results: tuple[Result, ...]

    @property
    def shown(self) -> Result:
        """The run that stands for the policy where only one can be drawn: the first.

        A mean over seeds would show states that the cluster never was in.
        """
        return self.results[0]

    @property
    def has_done(self) -> bool:
        """Whether a job was done."""
        return any(result.summary.done for result in self.results)


def by_policy(results: Sequence[Result]) -> list[PolicyRuns]:
    """Return the runs of each policy; both in the order in which they were given."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.summary.policy, []).append(result)
    return [
        PolicyRuns(policy, look(number), tuple(runs))
        for number, (policy, runs) in enumerate(found.items())
    ]


def about_seeds(policies: Sequence[PolicyRuns]) -> str:
    """Return a sentence that says which seeds are shown where; none for one seed."""
    if all(len(each.results) < 2 for each in policies):
        return ""
    shown = {each.shown.summary.seed for each in policies}
    which = f"seed {min(shown)}" if len(shown) == 1 else "the first seed of each policy"
    return (
        "There are several seeds: the table and the bars have the mean over them and the range, "
        f"all other plots show {which} alone."
    )
