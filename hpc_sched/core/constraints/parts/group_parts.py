"""The parts of a group that are each below one switch, as segments and balance state them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Parts:
    """Into what parts a group is divided, members included.

    A part is ``size`` VMs below one switch; the last part of the group may be smaller. So of all
    switches of the level at most one has VMs that are no multiple of the size, and these are as
    many more as the group has more than a multiple.
    """

    size: int = 1  # VMs of a part
    level: str | None = None  # of the switches, a name of the topology's; None: leaves
    is_balanced: bool = False  # whether numbers of parts below used switches differ by 1 at most
    # Whether the group is placed without this where it does not fit with it.
    is_size_preferred: bool = False
    is_balance_preferred: bool = False

    def stages(self) -> Iterator["Parts | None"]:
        """Yield the parts that plans are tried with, the last one of guarantees alone.

        A preferred balance gives way before a preferred size. None: no parts.
        """
        first = replace(self, is_size_preferred=False, is_balance_preferred=False)
        stages = [first]
        if self.is_balanced and self.is_balance_preferred:
            stages.append(replace(first, is_balanced=False))
        if self.size > 1 and self.is_size_preferred:
            stages.append(replace(stages[-1], size=1))
        yield from (one if one.is_bound else None for one in stages)

    @property
    def guaranteed(self) -> "Parts | None":
        """The parts without preferences; None without any."""
        *_, last = self.stages()
        return last

    @property
    def is_bound(self) -> bool:
        """True if not all divisions of a group are allowed."""
        return self.size > 1 or self.is_balanced

    @property
    def needs(self) -> str:
        """What a group needs, in words."""
        where = f"one {self.level or 'leaf switch'}"
        if self.size == 1:
            return (
                f"as many VMs, or one more, under each {self.level or 'leaf switch'} that it uses"
            )
        evenly = ", as many or one more under each that it uses" if self.is_balanced else ""
        return f"parts of {self.size} under {where} each{evenly}"
