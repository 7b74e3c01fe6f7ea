"""What nova.conf calls our filters and weighers."""

from collections.abc import Iterable

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
ALL_WEIGHERS = "hpc_sched.weighers.all_weighers"


def names_weigher(paths: Iterable[str], name: str) -> bool:
    """Tell whether weight_classes enables a weigher, by itself or with all of ours."""
    return any(path == ALL_WEIGHERS or path.rpartition(".")[2] == name for path in paths)
