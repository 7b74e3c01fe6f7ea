"""The options of nova.conf that a snapshot carries, as checked values."""

import functools
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg, types

from hpc_sched import conf, exceptions
from hpc_sched.core.extra_specs import Defaults
from hpc_sched.core.fragmentation.rates import FragmentationRates, rates_of
from hpc_sched.core.objectives import stated_objective
from hpc_sched.core.objectives.stated_objective import ObjectiveOptions
from hpc_sched.core.processors.processor_ranking import ProcessorRanking
from hpc_sched.core.sharing.cache_interference import InterferenceIndex
from hpc_sched.enabled_plugins import EnabledPlugins
from hpc_sched.snapshot.snapshot_model import Snapshot

MAX_IO_OPS, MAX_INSTANCES = "max_io_ops_per_host", "max_instances_per_host"
# Options of [filter_scheduler] that a snapshot has among its own, with Nova's defaults.
FILTER_LIMITS = (cfg.IntOpt(MAX_IO_OPS, default=8), cfg.IntOpt(MAX_INSTANCES, default=50))

_OPTS = {opt.dest: opt for opt in (*conf.OPTS, *FILTER_LIMITS)}


def option(snapshot: Snapshot, name: str) -> Any:
    """Return an option of [hpc_sched] or a limit of filters; its default if there is none.

    :raises exceptions.SnapshotError: for an invalid value
    """
    opt, value = _OPTS[name], snapshot.options.get(name)
    if value is None:
        return opt.default
    if isinstance(opt.type, types.Dict) and not isinstance(value, str):
        value = _dict_text(name, value)
    try:
        value = opt.type(value)
        conf.check_value(opt, value)
        return value
    except (AttributeError, TypeError, ValueError) as failure:
        # AttributeError: oslo.config expects a text if the value is no number.
        raise exceptions.SnapshotError(f"options[{name!r}]: {failure}") from failure


def _dict_text(name: str, value: object) -> str:
    """Return a dict as nova.conf has it: oslo.config checks no values of one that is a dict."""
    if not isinstance(value, Mapping):
        raise exceptions.SnapshotError(f"options[{name!r}]: expected an object, found {value!r}")
    return ",".join(f"{key}:{each}" for key, each in value.items())


def defaults(snapshot: Snapshot) -> Defaults:
    """Return the options that complete a request."""
    return Defaults(
        option(snapshot, "default_app_class"),
        option(snapshot, "default_homogeneous"),
        option(snapshot, "allow_user_hints"),
        option(snapshot, "implicit_groups"),
        frozenset(option(snapshot, "mdobp_classes")),
    )


def objective_options(snapshot: Snapshot) -> ObjectiveOptions:
    """Return the options on objectives of plans."""
    return stated_objective.objective_options(functools.partial(option, snapshot))


def fragmentation_rates(snapshot: Snapshot) -> FragmentationRates:
    """Return the rates of the fragmentation price."""
    return rates_of(*option(snapshot, "fragmentation_price"))


def enabled(snapshot: Snapshot) -> EnabledPlugins:
    """Return the enabled filters and weighers; none if the snapshot does not list them.

    :raises exceptions.SnapshotError: for a multiplier that is not a number
    """
    return EnabledPlugins.read(
        snapshot.filters or (), snapshot.weighers or (), functools.partial(option, snapshot)
    )


def ranking(snapshot: Snapshot) -> ProcessorRanking:
    """Return the order and the speeds of processor types."""
    return ProcessorRanking(
        option(snapshot, "processor_order"), option(snapshot, "processor_speeds")
    )


def incompatible(snapshot: Snapshot, name: str | None) -> frozenset[str]:
    """Return the applications with which a named one must not share a host."""
    if name is None or not snapshot.interference:
        return frozenset()
    tolerance = option(snapshot, "interference_tolerance")
    return index(snapshot).bad_company(tolerance).get(name, frozenset())


def attracting(snapshot: Snapshot, name: str | None) -> Mapping[str, float]:
    """Return the applications that attract one, each with what the two gain."""
    tolerance = option(snapshot, "interference_tolerance")
    return index(snapshot).attracting(name, tolerance)


def index(snapshot: Snapshot) -> InterferenceIndex:
    """Return the interference index that the snapshot carries; empty without one."""
    return InterferenceIndex(
        {
            (one, neighbour): speed
            for one, neighbours in snapshot.interference.items()
            for neighbour, speed in neighbours.items()
        }
    )
