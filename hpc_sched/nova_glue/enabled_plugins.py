"""Which filters and weighers nova.conf names."""

import nova.conf

from hpc_sched.enabling import GROUP_FILTER, MDOBP_WEIGHER, names_weigher

CONF = nova.conf.CONF

# Class to the option that holds its multiplier.
_TOPOLOGY_WEIGHERS = {
    "BunchWeigher": "bunch_weight_multiplier",
    "HopByteWeigher": "hop_byte_weight_multiplier",
    "RackCapacityWeigher": "rack_capacity_weight_multiplier",
}


def has_filter(name: str) -> bool:
    """Tell whether a filter is enabled; Nova names filters by their bare class names."""
    return name in CONF.filter_scheduler.enabled_filters


def group_filter_follows(name: str) -> bool:
    """Tell whether HPCGroupFilter is enabled and runs behind a filter."""
    enabled = list(CONF.filter_scheduler.enabled_filters)
    if name not in enabled or GROUP_FILTER not in enabled:
        return False
    return enabled.index(GROUP_FILTER) > enabled.index(name)


def has_mdobp() -> bool:
    """Tell whether MDOBPWeigher decides something."""
    return _has_weigher(MDOBP_WEIGHER, "mdobp_weight_multiplier")


def has_topology_weigher() -> bool:
    """Tell whether a weigher by topology decides something."""
    return any(_has_weigher(name, option) for name, option in _TOPOLOGY_WEIGHERS.items())


def _has_weigher(name: str, multiplier: str) -> bool:
    named = names_weigher(CONF.filter_scheduler.weight_classes, name)
    return named and CONF.hpc_sched[multiplier] != 0
