"""Filters for nova.conf: ``available_filters = hpc_sched.filters.all_filters``."""

from hpc_sched.extensions import classes

NAMESPACE = "hpc_sched.filters"


def all_filters() -> list[type]:
    """Return the filter classes of the stevedore group ``hpc_sched.filters``, by name."""
    return classes(NAMESPACE)
