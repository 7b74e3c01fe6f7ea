"""How many VMs of a group go to each leaf."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeafCounts:
    """New VMs per leaf, all below one switch. Indices in ``topology.switches``."""

    top: int  # the switch of the required level, or root
    counts: Mapping[int, int]  # leaf to VMs
    is_proven: bool = True  # whether no other counts are better
