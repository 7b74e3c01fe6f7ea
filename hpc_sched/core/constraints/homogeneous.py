"""``hpc:homogeneous``: all VMs of a group on one processor type."""

from collections.abc import Sequence

from hpc_sched.core.constraints.constraint import Constraint, Value
from hpc_sched.core.constraints.extra_spec import ExtraSpec, one_of

CHOICES = ("true", "prefer", "false")


class Homogeneous(Constraint):
    """Whether one type is required, preferred or does not matter; see ``processor_choice``.

    Its value is not among ``Constraints``: an option completes it, and the choice of a type comes
    before the plan.
    """

    name = "homogeneous"
    spec = ExtraSpec(
        "hpc:homogeneous",
        "|".join(CHOICES),
        one_of(CHOICES),
        "Whether all VMs of a request go to processors of one type. ``true``: a group that "
        "no single type can hold is refused. ``prefer``: it is mixed. ``false``: types do "
        "not matter. Lower case here, while the scheduler compares without case. Default: "
        "the option ``[hpc_sched] default_homogeneous``, ``prefer`` as delivered.",
    )
    is_guarantee = True

    @classmethod
    def parse(cls, text: str, levels: Sequence[str]) -> Value | None:
        """Return the choice in lower case, or None if it is invalid."""
        return text.lower() if text.lower() in CHOICES else None
