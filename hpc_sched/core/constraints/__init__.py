"""What a user can request of the places of a group: one module a constraint."""

from hpc_sched.core.constraints.constraint import UNBOUND, Bounds, level_of
from hpc_sched.core.constraints.values import NO_CONSTRAINTS, Constraints

__all__ = ["NO_CONSTRAINTS", "UNBOUND", "Bounds", "Constraints", "level_of"]
