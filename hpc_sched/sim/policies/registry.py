"""The installed policies, by name: those of this package and of others."""

import difflib
from importlib import metadata

from hpc_sched import exceptions
from hpc_sched.sim.policies.base import Policy

NAMESPACE = "hpc_sched.policies"


def names() -> list[str]:
    """Return the names of the installed policies, sorted, without importing them."""
    return sorted({point.name for point in metadata.entry_points(group=NAMESPACE)})


def policy(name: str) -> Policy:
    """Return a policy.

    :raises exceptions.SimulationError: for an unknown policy, or one that cannot be loaded
    """
    points = {point.name: point for point in metadata.entry_points(group=NAMESPACE)}
    if name not in points:
        near = difflib.get_close_matches(name, points, n=1)
        like = f", did you mean {near[0]}" if near else ""
        raise exceptions.SimulationError(
            f"there is no policy {name!r}{like}: expected one of {', '.join(names())}"
        )
    try:
        found = points[name].load()
    except Exception as error:
        raise exceptions.SimulationError(f"policy {name!r} cannot be loaded: {error}") from error
    if not isinstance(found, Policy):
        raise exceptions.SimulationError(
            f"policy {name!r}: expected a Policy at its entry point, found {found!r}"
        )
    return found
