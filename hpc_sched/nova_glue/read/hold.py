"""Holds: places on hosts that are kept free for some instances for a while."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Hold:
    """The place of one instance on a host."""

    instance: str
    node: str  # the nodename of the host
    amounts: Mapping[str, int]  # by Nova's resource class
    until: int  # when it ends: seconds since 1970
    is_moving: bool = False  # whether the instance is being placed there now


@dataclass(frozen=True, slots=True)
class HoldConsumer:
    """A consumer in Placement."""

    uuid: str
    generation: int


@dataclass(frozen=True, slots=True)
class Holds:
    """All holds at one moment."""

    # The generation of the turn's consumer; None before the first hold of the cloud.
    turn: int | None = None
    held: Mapping[str, Hold] = field(default_factory=dict)  # by instance; none has ended
    consumers: Mapping[str, HoldConsumer] = field(default_factory=dict)  # likewise
    # Consumers of what has ended, which the next write removes.
    ended: Sequence[HoldConsumer] = ()

    def taken_by_others(self, instances: Collection[str]) -> dict[str, dict[str, int]]:
        """Return what is held, by nodename and Nova's resource class, but for some instances.

        O(holds).
        """
        return total(one for one in self.held.values() if one.instance not in instances)

    @property
    def destinations(self) -> dict[str, str]:
        """The nodenames of the hosts on which instances are being placed, by instance."""
        return {one.instance: one.node for one in self.held.values() if one.is_moving}


# What is known where holds are off, or cannot be read.
NO_HOLDS = Holds()


def total(holds: Iterable[Hold]) -> dict[str, dict[str, int]]:
    """Return what some holds take, by nodename and Nova's resource class."""
    found: dict[str, dict[str, int]] = {}
    for one in holds:
        on_node = found.setdefault(one.node, {})
        for name, amount in one.amounts.items():
            on_node[name] = on_node.get(name, 0) + amount
    return found
