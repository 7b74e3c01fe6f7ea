"""The places that jobs prefer, and how long they wait for one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hpc_sched.core.constraints import Constraints, level_of
from hpc_sched.topology.model import Topology

# Nothing waits longer; anything beyond is a typing error, and a time plus it is still exact.
LONGEST = 1e9  # s, some 30 years


@dataclass(frozen=True, slots=True)
class PlacePreference:
    """What a place keeps that a job prefers, and its waiting limit, as Slurm's --switches has both.

    With the limit 0 nothing waits, and jobs are placed as if they preferred nothing.
    """

    constraints: Constraints  # as guarantees, with those that every place must keep
    limit: float  # s, from the first moment at which the job could have started elsewhere


def preferred(constraints: Constraints, topology: Topology) -> Constraints:
    """Return constraints with the preferred level as a required one.

    :raises exceptions.RequestError: for an unknown level
    """
    bounds = constraints.bounds
    number: Callable[[Any], int] = partial(level_of, topology)
    # A preference for the required level, or a wider one, adds nothing.
    level = min((bounds.level, bounds.preferred), key=number)
    return constraints.changed(require=level, prefer=None)
