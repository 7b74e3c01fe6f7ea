"""The installed policies, by name: those of this package and of others."""

import difflib
from importlib import metadata

import stevedore

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
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        like = f", did you mean {near[0]}" if near else ""
        raise exceptions.SimulationError(
            f"there is no policy {name!r}{like}: expected one of {', '.join(names())}"
        )

    def broken(_manager: object, _entry_point: object, error: BaseException) -> None:
        raise exceptions.SimulationError(f"policy {name!r} cannot be loaded: {error}") from error

    found: object = stevedore.DriverManager(NAMESPACE, name, on_load_failure_callback=broken).driver
    if not isinstance(found, Policy):
        raise exceptions.SimulationError(
            f"policy {name!r}: expected a Policy at its entry point, found {found!r}"
        )
    return found
