"""Weighers for nova.conf: ``weight_classes = hpc_sched.weighers.bunch.BunchWeigher``."""

from hpc_sched.extensions import classes

NAMESPACE = "hpc_sched.weighers"


def all_weighers() -> list[type]:
    """Return the weigher classes of the stevedore group ``hpc_sched.weighers``, by name."""
    return classes(NAMESPACE)
