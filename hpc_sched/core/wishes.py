"""What a group asks for beyond compactness."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wishes:
    """The constraints and preferences of one group, as checked values.

    Levels are names of the topology's levels. Members count everywhere: with ``require`` they
    stand under the same switch as the new VMs, and their leaves are among ``max_leaves``.
    """

    require: str | None = None  # all VMs under one switch of this level
    prefer: str | None = None  # the same, where that can be had
    max_leaves: int | None = None  # most leaf switches that the group may use
    group_size: int | None = None  # how large the group will become


NO_WISHES = Wishes()
