"""What a placement policy of the simulator is: one function of one Problem."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpc_sched import exceptions
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import rejected
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.sharing.cache_interference import Application

Places = tuple[int, ...]  # per VM, the index of its host in topology.hosts


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A group of which all VMs are placed at once, or none.

    The group's ``packing`` is always there: the free processors and memory of hosts, in this
    order, and what one VM takes of them.
    """

    group: GroupRequest  # a row per host of the topology
    application: Application
    draw: random.Random  # the only source of randomness; the same for the same seed and job

    @property
    def problem(self) -> Problem:
        """The group as the planner takes it."""
        return self.group.problem()


Place = Callable[[PlacementRequest], Places | Rejection]  # every VM gets a place, or none does


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule by which groups get their places, by name."""

    name: str
    summary: str  # one line for help texts and reports, with its source
    place: Place
    # Whether VMs of others bound the room on a host (core.interference).
    minds_neighbours: bool = False

    def places(self, request: PlacementRequest) -> Places | Rejection:
        """Return the places of a group.

        :raises exceptions.SimulationError: naming the policy, where its own code fails
        """
        try:
            return self.place(request)
        except exceptions.HPCSchedError:
            raise
        except Exception as error:
            raise exceptions.SimulationError(f"policy {self.name!r} failed: {error!r}") from error


def refused(problem: Problem) -> Rejection:
    """Return the Rejection of a group that a policy found no places for."""
    constraints = problem.constraints
    return rejected(
        problem, problem.awaiting, require=constraints.require, max_leaves=constraints.max_leaves
    )


def filled(problem: Problem, order: NDArray[np.int64]) -> Places | Rejection:
    """Return the places of a group that fills one host after the other. O(hosts).

    :param order: indices into ``topology.hosts``, the host that is filled first leading
    """
    room = np.minimum(problem.capacity[order], problem.awaiting)
    needed = int(np.searchsorted(np.cumsum(room), problem.awaiting)) + 1
    if needed > len(order):
        return refused(problem)
    places = np.repeat(order[:needed], room[:needed])
    return tuple(places[: problem.awaiting].tolist())
