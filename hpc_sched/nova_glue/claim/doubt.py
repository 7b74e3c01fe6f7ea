"""What a claim yields to the session: what it must read again before it plans again."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hpc_sched.core.plan.result import Plan, Rejection


@dataclass(frozen=True, slots=True)
class Doubt:
    """What must be read again before the group is planned again."""

    hosts: Sequence[int] | None = None  # positions of HostStates; None: all
    members: bool = False  # of the group, after the hosts
    needs_members: bool = True  # whether nothing changes if the members cannot be read
    anew: bool = True  # whether what others have looked up a moment ago will not do
    holds: bool = False  # before the members


# Yields what must be read again; is sent the decision then, or None if it could not be read;
# returns the answer that holds.
Rounds: TypeAlias = Generator[Doubt, Plan | Rejection | None, Plan | Rejection]
