"""The filters and weighers of hpc_sched that nova.conf enables."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

GROUP_FILTER = "HPCGroupFilter"
DEDICATED_FILTER = "HPCDedicatedHostFilter"
INTERFERENCE_FILTER = "HPCInterferenceFilter"
HOMOGENEITY_FILTER = "HPCHomogeneityFilter"
RACK_FILTER = "HPCRackCapacityFilter"
# After Nova's own filters, in this order; the last one prunes.
FILTER_ORDER = (
    DEDICATED_FILTER,
    INTERFERENCE_FILTER,
    HOMOGENEITY_FILTER,
    GROUP_FILTER,
    RACK_FILTER,
)
# Nova's filters that count the VMs of a request as they are placed, to where their limit is set.
COUNTING_FILTERS = {
    "IoOpsFilter": "[filter_scheduler] max_io_ops_per_host",
    "AggregateIoOpsFilter": "max_io_ops_per_host of aggregates or [filter_scheduler]",
    "NumInstancesFilter": "[filter_scheduler] max_instances_per_host",
    "AggregateNumInstancesFilter": "max_instances_per_host of aggregates or [filter_scheduler]",
    "JsonFilter": "scheduler hint query",
}
MDOBP_WEIGHER = "MDOBPWeigher"
# With at most this number of leaves MDOBPWeigher's weights of a leaf may go up to 1, and are less
# than a step of the topology weigher: 180 against 100,000 / 501. With fewer they go up to more.
MDOBP_LEAVES = 500
HOP_BYTE_WEIGHER = "HopByteWeigher"
TOPOLOGY_WEIGHERS = ("BunchWeigher", HOP_BYTE_WEIGHER, "RackCapacityWeigher")
ALL_WEIGHERS = "hpc_sched.weighers.all_weighers"
# Class of a weigher of groups to the option of [hpc_sched] with its multiplier.
MULTIPLIERS = {
    "BunchWeigher": "bunch_weight_multiplier",
    HOP_BYTE_WEIGHER: "hop_byte_weight_multiplier",
    "RackCapacityWeigher": "rack_capacity_weight_multiplier",
    MDOBP_WEIGHER: "mdobp_weight_multiplier",
}
# The greatest weight of those that Nova does not normalise to 1: that of MDOBPWeigher on one leaf.
LARGEST_WEIGHTS = {MDOBP_WEIGHER: (MDOBP_LEAVES + 1) / 2}


@dataclass(frozen=True, slots=True)
class EnabledPlugins:
    """The enabled filters, and the enabled weighers of hpc_sched."""

    filters: tuple[str, ...]  # class names, in the order in which they run
    multipliers: Mapping[str, float]  # by class name of the weigher

    @classmethod
    def read(
        cls,
        enabled_filters: Iterable[str],
        weight_classes: Collection[str],
        option: Callable[[str], float],
    ) -> Self:
        """Return what nova.conf enables; ``option`` reads multipliers of enabled weighers only."""
        enabled = {path.rpartition(".")[2] for path in weight_classes}
        if ALL_WEIGHERS in weight_classes:
            enabled |= MULTIPLIERS.keys()
        weighers = {name: option(key) for name, key in MULTIPLIERS.items() if name in enabled}
        return cls(tuple(enabled_filters), weighers)

    def has_filter(self, name: str) -> bool:
        """True if a filter is enabled."""
        return name in self.filters

    def group_filter_follows(self, name: str) -> bool:
        """True if HPCGroupFilter is enabled and runs after this enabled filter."""
        if name not in self.filters or GROUP_FILTER not in self.filters:
            return False
        return self.filters.index(GROUP_FILTER) > self.filters.index(name)

    @property
    def has_mdobp(self) -> bool:
        """True if MDOBPWeigher is enabled with a multiplier other than 0."""
        return self.multipliers.get(MDOBP_WEIGHER, 0) != 0

    @property
    def reads_interference(self) -> bool:
        """True if an enabled filter or weigher reads the interference index."""
        return self.has_filter(INTERFERENCE_FILTER) or MDOBP_WEIGHER in self.multipliers

    @property
    def has_topology_weigher(self) -> bool:
        """True if a weigher by topology is enabled with a multiplier other than 0."""
        return any(self.multipliers.get(name, 0) != 0 for name in TOPOLOGY_WEIGHERS)
