"""Which filters and weighers nova.conf names."""

import nova.conf

CONF = nova.conf.CONF

GROUP_FILTER = "HPCGroupFilter"
DEDICATED_FILTER = "HPCDedicatedHostFilter"
INTERFERENCE_FILTER = "HPCInterferenceFilter"
HOMOGENEITY_FILTER = "HPCHomogeneityFilter"
RACK_FILTER = "HPCRackCapacityFilter"
# Behind Nova's own, in this order; the last one prunes.
FILTER_ORDER = (
    DEDICATED_FILTER,
    INTERFERENCE_FILTER,
    HOMOGENEITY_FILTER,
    GROUP_FILTER,
    RACK_FILTER,
)
MDOBP_WEIGHER = "MDOBPWeigher"
_ALL_OURS = "hpc_sched.weighers.all_weighers"
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
    paths = CONF.filter_scheduler.weight_classes
    named = any(path == _ALL_OURS or path.rpartition(".")[2] == name for path in paths)
    return named and CONF.hpc_sched[multiplier] != 0
