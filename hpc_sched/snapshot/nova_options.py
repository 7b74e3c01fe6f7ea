"""The options of nova.conf that a snapshot carries, as checked values."""

from collections.abc import Mapping
from typing import Any

from hpc_sched import conf, exceptions
from hpc_sched.core.extra_specs import Defaults
from hpc_sched.core.sharing.cache_interference import InterferenceIndex
from hpc_sched.enabling import HOMOGENEITY_FILTER, MDOBP_WEIGHER, names_weigher
from hpc_sched.snapshot.model import Snapshot

_OPTS = {opt.dest: opt for opt in conf.OPTS}


def option(snapshot: Snapshot, name: str) -> Any:
    """Return an option of [hpc_sched], its default where the snapshot has none.

    :raises exceptions.SnapshotError: for a value that the option cannot have
    """
    opt = _OPTS[name]
    if snapshot.options.get(name) is None:
        return opt.default
    try:
        return opt.type(snapshot.options[name])
    except (AttributeError, TypeError, ValueError) as failure:
        # oslo.config takes for granted that what is no number is a text.
        raise exceptions.SnapshotError(f"options[{name!r}]: {failure}") from failure


def defaults(snapshot: Snapshot) -> Defaults:
    """Return what stands in for what a flavor does not say."""
    return Defaults(
        option(snapshot, "default_app_class"),
        option(snapshot, "default_homogeneous"),
        option(snapshot, "allow_user_hints"),
    )


def has_filter(snapshot: Snapshot, name: str) -> bool:
    """Tell whether a filter is known to be enabled."""
    return snapshot.filters is not None and name in snapshot.filters


def has_homogeneity_filter(snapshot: Snapshot) -> bool:
    """True if HPCHomogeneityFilter is known to be enabled."""
    return has_filter(snapshot, HOMOGENEITY_FILTER)


def has_mdobp(snapshot: Snapshot) -> bool:
    """Tell whether MDOBPWeigher is known to decide something."""
    named = names_weigher(snapshot.weighers or (), MDOBP_WEIGHER)
    return named and option(snapshot, "mdobp_weight_multiplier") != 0


def bad_company(snapshot: Snapshot, name: str | None) -> frozenset[str]:
    """Return the applications that one must not share a host with."""
    if name is None or not snapshot.interference:
        return frozenset()
    index = InterferenceIndex(
        {
            (one, other): speed
            for one, beside in snapshot.interference.items()
            for other, speed in beside.items()
        }
    )
    bad: Mapping[str, frozenset[str]] = index.bad_company(
        option(snapshot, "interference_tolerance")
    )
    return bad.get(name, frozenset())
