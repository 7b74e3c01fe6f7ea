"""The enabled filters whose answer may change as VMs of the same request are placed.

Of Nova's own (31 to 34) these count: IoOpsFilter, NumInstancesFilter, their Aggregate forms, and
JsonFilter with a query. NUMATopologyFilter and PciPassthroughFilter are those of
:mod:`nova_fitting`, the filters of server groups those of the group's policy, and MetricsFilter
reads what does not change with a VM. All others run once per request.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import nova.conf
from nova.scheduler import filters
from oslo_log import log as logging

from hpc_sched.enabled_plugins import COUNTING_FILTERS

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

_SITE = "[hpc_sched] counting_filters"
_NOVAS = "nova.scheduler.filters."


def enabled() -> Sequence[filters.BaseHostFilter]:
    """Return the enabled filters that count, in their order. The first call loads them."""
    options = CONF.filter_scheduler
    return _loaded(
        tuple(options.enabled_filters),
        tuple(options.available_filters),
        tuple(CONF.hpc_sched.counting_filters),
    )


def name_of(found: filters.BaseHostFilter) -> str:
    """Return the name of a filter and where its limit is set, for operators."""
    return f"{type(found).__name__} ({COUNTING_FILTERS.get(_novas(type(found)) or '', _SITE)})"


def counts_operations(found: filters.BaseHostFilter) -> bool:
    """True if a filter counts I/O operations, which end, and not VMs."""
    return "IoOps" in (_novas(type(found)) or "")


def is_of_nova(found: filters.BaseHostFilter) -> bool:
    """True if Nova's own code answers, which reads nothing but what is known."""
    return _novas(type(found)) == type(found).__name__ and type(found).__module__.startswith(_NOVAS)


def _novas(cls: type[filters.BaseHostFilter]) -> str | None:
    """Return the counting filter of Nova that a class is, or is derived from, or None."""
    for base in cls.__mro__:
        if base.__name__ in COUNTING_FILTERS and base.__module__.startswith(_NOVAS):
            return base.__name__
    return None


@functools.lru_cache(maxsize=1)
def _loaded(
    names: tuple[str, ...], paths: tuple[str, ...], of_site: tuple[str, ...]
) -> tuple[filters.BaseHostFilter, ...]:
    """Return the filters of nova.conf that count, built as nova-scheduler builds its own."""
    return tuple(_built(names, paths, of_site))


def _built(
    names: Sequence[str], paths: Sequence[str], of_site: Sequence[str]
) -> Iterator[filters.BaseHostFilter]:
    classes: dict[str, type[filters.BaseHostFilter]] = {}
    for path in paths:
        try:
            found = filters.HostFilterHandler().get_matching_classes([path])
        except Exception:
            LOG.exception("Filters of %s are not asked how many VMs a host takes", path)
            continue
        classes.update({cls.__name__: cls for cls in found})
    for name in dict.fromkeys(names):
        cls = classes.get(name)
        if cls is None or not (name in of_site or _novas(cls)):
            continue
        if any(base.__module__.startswith("hpc_sched.") for base in cls.__mro__):
            continue  # it would plan the copy of the request
        try:
            made = cls()
            is_run = made.run_filter_for_index(1)
        except Exception:
            LOG.exception("%s is not asked how many VMs a host takes", name)
            continue
        if is_run:
            yield made
