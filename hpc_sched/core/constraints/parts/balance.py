"""``hpc:balance``: parts of a group that are as equal as can be."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hpc_sched.core.constraints.constraint import Bounds, Constraint, Value
from hpc_sched.core.constraints.extra_spec import ExtraSpec, one_of
from hpc_sched.core.constraints.min_leaves import MinLeaves
from hpc_sched.core.constraints.parts.group_parts import Parts

CHOICES = ("true", "prefer", "false")


class Balance(Constraint):
    """Whether switches with VMs of the group have equally many, as far as can be."""

    name = "balance"
    spec = ExtraSpec(
        "hpc:balance",
        "|".join(CHOICES),
        one_of(CHOICES),
        "Whether VMs are spread evenly where the group spans several leaf switches, or switches of "
        "``hpc:segment_level``: their numbers, with ``hpc:segment`` those of parts, differ by 1 at "
        "most. ``true``: a group that does not fit so is refused. ``prefer``: it is placed "
        "unevenly. ``false``: what is nearest. Default: ``false``.",
    )
    is_guarantee = binds_place = True
    is_always_logged = False
    why_not = "the VMs of the group are no longer spread evenly with it"
    fits_help = "evenly over the leaf switches that it uses (hpc:balance)"
    simulate_help = "every job evenly over the leaves that it uses"

    @classmethod
    def parse(cls, text: str, levels: Sequence[str]) -> Value | None:
        """Return the choice in lower case, or None if it is invalid."""
        return text.lower() if text.lower() in CHOICES else None

    @classmethod
    def bound(cls, value: Value, bounds: Bounds) -> Bounds:
        """Return bounds with the balance."""
        if value == "false":
            return bounds
        is_preferred = value == "prefer"
        parts = replace(
            bounds.parts or Parts(), is_balanced=True, is_balance_preferred=is_preferred
        )
        return replace(bounds, parts=parts)

    @classmethod
    def binds(cls, value: Value) -> bool:
        """True if the group is refused without it."""
        return value == "true"

    @classmethod
    def relaxed(cls, value: Value) -> Mapping[str, Value]:
        """Return the balance as a preference."""
        return {cls.name: "prefer" if value == "true" else value}

    @classmethod
    def excluded_by(cls, value: Value, others: Mapping[str, Value]) -> type[Constraint] | None:
        """Return the constraint with which a balance has no meaning, or None."""
        return MinLeaves if value != "false" and MinLeaves.name in others else None
