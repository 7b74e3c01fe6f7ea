"""The hosts that other weighers than those of hpc_sched put behind all others."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np
from nova import objects, weights
from nova.conf import CONF
from nova.scheduler import host_manager
from nova.scheduler import weights as host_weights
from nova.scheduler.weights.cross_cell import CrossCellWeigher
from oslo_log import log as logging

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.nova_glue import configured_plugins

LOG = logging.getLogger(__name__)

# Weigher class to the reason; other weighers are named alone.
_REASONS = {"BuildFailureWeigher": "failed builds", "CrossCellWeigher": "another cell"}
_METADATA = "_weight_multiplier"  # end of the names of multipliers in metadata of aggregates
_failed: set[str] = set()  # weighers whose failure has been logged


def find(states: Sequence[host_manager.HostState], spec: objects.RequestSpec) -> dict[str, Mask]:
    """Return which hosts are shunned, by reason. Shape (HostStates,) each.

    A weigher counts if its multiplier is larger than that of every weigher of hpc_sched. It
    shuns the hosts that it puts behind its best one by more than a step between two ranks of
    hpc_sched. Never raises: a weigher that fails is ignored, with one WARNING per process.
    O(HostStates) per such weigher.
    """
    largest = max(map(abs, configured_plugins.enabled().multipliers.values()), default=0.0)
    found: dict[str, Mask] = {}
    if not largest or len(states) < 2:
        return found
    kinds, examples = _kinds(states)
    for weigher in _weighers(tuple(CONF.filter_scheduler.weight_classes)):
        name = type(weigher).__name__
        try:
            multipliers = np.array([float(weigher.weight_multiplier(state)) for state in examples])
            if not (abs(multipliers) > largest).any() or _is_idle(weigher, spec):
                continue
            raw = _weights(weigher, states, spec)
            # A weigher that returns nothing does not apply.
            if len(raw) != len(states):
                continue
            normal = list(weights.normalize(raw, weigher.minval, weigher.maxval))
            terms = multipliers[kinds] * np.array(normal, dtype=float)
            is_behind = terms.max() - terms > largest / len(states)
        except Exception as error:
            _log_failure(name, error)
            continue
        if is_behind.any():
            found[f"{_REASONS[name]} ({name})" if name in _REASONS else name] = is_behind
    return found


def examples(states: Sequence[host_manager.HostState]) -> list[host_manager.HostState]:
    """Return hosts that together have every multiplier that any host has. O(HostStates)."""
    return _kinds(states)[1]


def sum_of_multipliers(states: Sequence[host_manager.HostState]) -> float:
    """Return the sum of the largest absolute multiplier of every weigher but hpc_sched's."""
    return sum(
        max(abs(float(weigher.weight_multiplier(state))) for state in states)
        for weigher in _weighers(tuple(CONF.filter_scheduler.weight_classes))
    )


def _weights(
    weigher: weights.BaseWeigher,
    states: Sequence[host_manager.HostState],
    spec: objects.RequestSpec,
) -> list[float]:
    """Return what a weigher's ``weigh_objects`` returns; 10,000 hosts take some 3 ms."""
    is_simple = type(weigher).weigh_objects is weights.BaseWeigher.weigh_objects
    if is_simple and weigher.minval is None and weigher.maxval is None:
        return [weigher._weigh_object(state, spec) for state in states]
    hosts = [host_weights.WeighedHost(state, 0.0) for state in states]
    return list(weigher.weigh_objects(hosts, spec))


def _is_idle(weigher: weights.BaseWeigher, spec: objects.RequestSpec) -> bool:
    """True if a weigher is known to weigh all hosts alike: saves its time on most requests."""
    if not isinstance(weigher, CrossCellWeigher):
        return False
    destination = spec.requested_destination if "requested_destination" in spec else None
    return destination is None or "cell" not in destination or destination.cell is None


def _kinds(
    states: Sequence[host_manager.HostState],
) -> tuple[Array, list[host_manager.HostState]]:
    """Return the kind of each host, and a host of each: a kind has one multiplier per weigher.

    Hosts of a kind are in the same of those aggregates that set a multiplier.
    """
    aggregates = [tuple(map(id, state.aggregates or ())) for state in states]
    example = dict(zip(aggregates, states, strict=True))
    setting = {
        id(aggregate)
        for state in example.values()
        for aggregate in state.aggregates or ()
        if any(name.endswith(_METADATA) for name in aggregate.metadata)
    }
    if not setting:
        return np.zeros(len(states), dtype=np.int64), [states[0]]
    kind_of = {there: frozenset(setting.intersection(there)) for there in example}
    found = {kind_of[there]: state for there, state in example.items()}
    index = {kind: i for i, kind in enumerate(found)}
    return np.array([index[kind_of[there]] for there in aggregates]), list(found.values())


@functools.lru_cache(maxsize=1)
def _weighers(paths: tuple[str, ...]) -> tuple[weights.BaseWeigher, ...]:
    """Return the weighers of nova.conf as nova-scheduler builds them, without hpc_sched's."""
    return tuple(weigher for path in paths for weigher in _built(path))


def _built(path: str) -> Iterator[weights.BaseWeigher]:
    if path.startswith("hpc_sched."):
        return
    try:
        classes = host_weights.HostWeightHandler().get_matching_classes([path])
    except Exception as error:
        _log_failure(path, error)
        return
    for cls in classes:
        try:
            yield cls()
        except Exception as error:
            _log_failure(cls.__name__, error)


def _log_failure(name: str, error: Exception) -> None:
    if name not in _failed:
        _failed.add(name)
        LOG.warning(
            "%s cannot be asked which hosts it puts behind all others, plans may use them: %s: %s",
            name,
            type(error).__name__,
            error,
        )
