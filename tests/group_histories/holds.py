"""The holds of the plugin, as the harness reads them in Placement."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from hpc_sched.nova_glue.claim.holds import hold_numbers, hold_provider, hold_turn
from hpc_sched.nova_glue.read.hold import Hold
from tests.protocol.placement_model import Provider, Record

if TYPE_CHECKING:
    from tests.group_histories.cloud import GroupCloud
    from tests.group_histories.seen_cloud import SeenCloud

# Digits of names and uuids that are prepared.
_DIGITS = 8


def forget() -> None:
    """Begin with schedulers that have seen no holds."""
    hold_turn._missing = hold_turn.MissingTurn()


def prepare(cloud: GroupCloud) -> None:
    """Make the provider of the holds as an earlier request has left it."""
    placement, prefix = cloud.placement, hold_numbers.PREFIX
    names = [f"{prefix}{name}" for name in ("MOVING", "UNTIL", "TURN", *cloud.demand)]
    names += [
        f"{prefix}{what}_{digit}" for what in ("NODE", "INSTANCE") for digit in range(_DIGITS)
    ]
    placement.classes.update(names)
    totals, ratios = dict.fromkeys(names, hold_numbers.LARGEST), dict.fromkeys(names, 1000.0)
    placement.providers[hold_provider.UUID] = Provider(hold_provider.NAME, totals, ratios=ratios)
    turn = {(hold_provider.UUID, hold_provider.TURN_CLASS): 1}
    placement.allocations[hold_provider.TURN] = turn
    placement.consumers[hold_provider.TURN] = Record(-1, "hpc_sched", "hpc_sched", generation=7)


def of(cloud: SeenCloud) -> dict[str, Hold]:
    """Return the holds that have not ended, by name of the VM."""
    found = {}
    for rows in cloud.allocations.values():
        here = {name: amount for (at, name), amount in rows.items() if at == hold_provider.UUID}
        hold = hold_numbers.hold_of(here) if here else None
        if hold is not None and hold.until > cloud.now:
            found[cloud.name_of(hold.instance)] = hold
    return found


def taken(cloud: SeenCloud, but: Collection[str]) -> Mapping[str, int]:
    """Return how many VMs are held on each node, but for some of them.

    :param but: names of VMs
    """
    found: dict[str, int] = {}
    for name, hold in of(cloud).items():
        if name not in but:
            node = cloud.node_called(hold.node)
            found[node] = found.get(node, 0) + 1
    return found


def is_hold(cloud: SeenCloud, consumer: str) -> bool:
    """True if a consumer is a hold of the plugin, or the turn of all."""
    held = cloud.allocations.get(consumer, {})
    return bool(held) and all(at == hold_provider.UUID for at, _ in held)
