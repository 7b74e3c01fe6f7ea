"""How the amounts of hosts in Placement differ from what their HostStates say."""

from collections.abc import Mapping
from dataclasses import dataclass

import os_resource_classes as orc
from nova.scheduler import host_manager

from hpc_sched import clock
from hpc_sched.nova_glue.io.placement import Stock
from hpc_sched.nova_glue.read.room import host_state_room

# Seconds after which inventories are read again, as nova-compute does by default.
MAX_AGE = 300.0
MAX_HOSTS = 1 << 17
_PROCESSORS = (orc.VCPU, orc.PCPU)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of a host's inventories with its HostState."""

    totals: tuple[object, ...]  # of the HostState, with its ratios
    at: float  # monotonic time
    # Resource class to what is free in Placement less what is free by the HostState.
    excess: Mapping[str, float]


# By uuid of the compute node. Values are immutable: threads share them without a lock.
_known: dict[str, Comparison] = {}


def find(state: host_manager.HostState) -> Comparison | None:
    """Return the comparison of a host if it still holds, else None."""
    found = _known.get(state.uuid)
    holds = (
        found is not None
        and found.totals == _totals(state)
        and clock.current.monotonic() - found.at <= MAX_AGE
    )
    return found if holds else None


def excess_of(state: host_manager.HostState) -> Mapping[str, float]:
    """Return what Placement has free beyond the HostState, by resource class, if it is known."""
    found = _known.get(state.uuid)
    # Few or no hosts of most clouds have any: others are not compared with their totals.
    return found.excess if found is not None and found.excess and find(state) else {}


def compare(state: host_manager.HostState, stocks: Mapping[str, Stock]) -> Comparison | None:
    """Compare a host's inventories with its HostState; keep and return the comparison.

    None if both disagree on the processors that are in use: instances in flight are no
    difference that lasts. Nor are pinned processors on a host that has shared ones too, which
    HostState does not separate. HostState does not have the generation of its provider, and
    to read it would be the call that is saved: its totals and ratios, and the age, say when to
    compare again.
    """
    try:
        ours, total = host_state_room.free(state), host_state_room.totals(state)
    except (OverflowError, TypeError, ValueError):
        return None
    processors = [stocks[name] for name in _PROCESSORS if name in stocks]
    used = sum(stock.used for stock in processors)
    # nova-compute counts reserved processors as used.
    reserved = sum(stock.reserved for stock in processors)
    if len(processors) > 1 or (state.vcpus_used or 0) not in (used, used + reserved):
        return None
    if len(_known) >= MAX_HOSTS:
        forget_all()
    _known[state.uuid] = found = Comparison(
        _totals(state),
        clock.current.monotonic(),
        {
            name: stock.capacity - stock.used - ours[name]
            for name, stock in stocks.items()
            if name in total and stock.capacity - stock.used != int(ours[name])
        },
    )
    return found


def forget(state: host_manager.HostState) -> None:
    """Have a host compared again: a claim was refused there."""
    _known.pop(state.uuid, None)


def forget_all() -> None:
    """Have all hosts compared again, as in a scheduler that has just started."""
    _known.clear()


def _totals(state: host_manager.HostState) -> tuple[object, ...]:
    return (
        state.vcpus_total,
        state.total_usable_ram_mb,
        state.total_usable_disk_gb,
        state.cpu_allocation_ratio,
        state.ram_allocation_ratio,
        state.disk_allocation_ratio,
    )
