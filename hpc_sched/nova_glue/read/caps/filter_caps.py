"""The caps of a request: the answers of Nova's filters for hosts that have some of its VMs."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nova import objects
from nova.scheduler import filters, host_manager
from oslo_log import log as logging
from oslo_serialization import jsonutils

from hpc_sched import clock
from hpc_sched.core.room.host_caps import HostCaps, RequestCaps
from hpc_sched.nova_glue.read.caps import counting_filters
from hpc_sched.nova_glue.read.caps.raised_state import raised

LOG = logging.getLogger(__name__)

# Time for questions about hosts outside a plan, from the first one of a request.
MAX_SECONDS = 1.0

_failed: set[str] = set()  # filters whose failure has been logged


@dataclass(frozen=True, slots=True, eq=False)
class FilterCap:
    """The cap of one filter on the HostStates of one request.

    A filter that fails refuses no VM here, with one ERROR per process: its cap is not known.
    """

    name: str
    counting: filters.BaseHostFilter
    states: Sequence[host_manager.HostState]
    # A session, which keeps this, must not keep the RequestSpec that it lives as long as.
    spec: weakref.ref[objects.RequestSpec]
    # Attributes of a HostState that its answer depends on; None: it may depend on anything.
    reads: Sequence[str] | None

    def kinds(self, positions: Sequence[int]) -> Sequence[Hashable]:
        """Return what the answers for HostStates depend on; 1 us each."""
        states = [self.states[i] for i in positions]
        if self.reads is None:
            # The counters change once VMs of the request are placed.
            return [(i, state.num_instances) for i, state in zip(positions, states, strict=True)]
        columns = ([_hashable(getattr(one, name, None)) for one in states] for name in self.reads)
        return list(zip(*columns, strict=True))

    def passes(self, i: int, added: int) -> bool:
        """True if the filter passes a HostState once some VMs have been placed there."""
        if (spec := self.spec()) is None:
            return True
        try:
            shown = _copied(spec)
            state = raised(self.states[i], shown, added)
            # The filter may be one that overrides filter_all.
            return bool(list(self.counting.filter_all([state], shown) or ()))
        except Exception:
            own = type(self.counting).__name__
            if own not in _failed:
                _failed.add(own)
                LOG.exception("%s cannot be asked how many VMs a host takes, plans ignore it", own)
            return True


def of(spec: objects.RequestSpec, states: Sequence[host_manager.HostState]) -> RequestCaps:
    """Return the caps of the enabled filters on HostStates, none of them asked yet."""
    lasting, operations = list[FilterCap](), list[FilterCap]()
    for cap in _caps(spec, states):
        (operations if counting_filters.counts_operations(cap.counting) else lasting).append(cap)
    return RequestCaps(
        HostCaps(lasting, len(states)),
        HostCaps(operations, len(states)),
        is_exhausted=_deadline(),
    )


def _deadline() -> Callable[[], bool]:
    """Return what returns whether MAX_SECONDS have passed since it was called first."""
    until: list[float] = []

    def has_passed() -> bool:
        now = clock.current.monotonic()
        until[:] = until or [now + MAX_SECONDS]
        return now > until[0]

    return has_passed


def _copied(spec: objects.RequestSpec) -> objects.RequestSpec:
    """Return a copy whose fields a filter may set."""
    copied = copy.copy(spec)
    copied._changed_fields = set(spec._changed_fields)
    return copied


def _caps(
    spec: objects.RequestSpec, states: Sequence[host_manager.HostState]
) -> Iterator[FilterCap]:
    for counting in counting_filters.enabled():
        name, reads = counting_filters.name_of(counting), _reads(counting, spec)
        if reads is None or reads:
            yield FilterCap(name, counting, states, weakref.ref(spec), reads)


def _reads(counting: filters.BaseHostFilter, spec: objects.RequestSpec) -> Sequence[str] | None:
    """Return the attributes that an answer depends on, None for any; empty if it never changes."""
    own = type(counting).__name__
    if not counting_filters.is_of_nova(counting):
        return None
    if own == "JsonFilter":
        return _read_by_query(spec)
    counter = "num_io_ops" if "IoOps" in own else "num_instances"
    return (counter, "aggregates") if own.startswith("Aggregate") else (counter,)


def _read_by_query(spec: objects.RequestSpec) -> Sequence[str] | None:
    """Return the attributes that the query of JsonFilter names; empty without a query.

    None if it cannot be read: then the filter itself answers for each host, or fails.
    """
    query = spec.get_scheduler_hint("query") if "scheduler_hints" in spec else None
    if not query:
        return ()
    try:
        return tuple(dict.fromkeys(_variables(jsonutils.loads(query))))
    except Exception:
        return None


def _variables(query: Any) -> Iterator[str]:
    if isinstance(query, list):
        for part in query:
            yield from _variables(part)
    elif isinstance(query, str) and query.startswith("$"):
        yield query[1:].partition(".")[0]


def _hashable(value: Any) -> Hashable:
    if type(value) is int:  # a counter of each of 10,000 hosts
        return value
    if isinstance(value, list):
        # Aggregates are the objects that the host manager keeps.
        return tuple(map(id, value))
    return value if isinstance(value, float | str | None) else repr(value)
