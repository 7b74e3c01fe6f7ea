"""What the plan of a decision is best by, in the form in which the decision log keeps it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

_FRACTION = re.compile("[0-9]{1,18}(/[1-9][0-9]{0,17})?")


@dataclass(frozen=True, slots=True)
class LoggedObjective:
    """The objective of a group, if it is not hops, and the links by which it was planned."""

    name: str = ""  # bottleneck or isolated
    tradeoff: str | None = None  # bound on the harm, as a fraction; None: without one
    pattern: str | None = None  # of what its VMs send; None: uniform
    bottleneck: float | None = None  # of the plan, s, see plan_loads; None without a plan
    harm: float | None = None
    # Mb/s in one direction: of most switches of each level, and of those that have others.
    uplinks: Mapping[str, int] = field(default_factory=dict)
    other_uplinks: Mapping[str, int] = field(default_factory=dict)
    host_link: int = 0  # of most hosts
    host_links: tuple[int, ...] = ()  # of other hosts, by the number in their class
    used: tuple[str, ...] = ()  # switches whose uplinks other isolated groups use

    def bound(self) -> Fraction | None:
        """Return the trade-off, None without one.

        :raises ValueError: if it is no fraction
        """
        if self.tradeoff is not None and not _FRACTION.fullmatch(self.tradeoff):
            raise ValueError(f"tradeoff {self.tradeoff[:40]!r}: expected a fraction such as 3/10")
        return None if self.tradeoff is None else Fraction(self.tradeoff)
