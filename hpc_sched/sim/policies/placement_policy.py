"""The placement policies of the simulator: functions from a request to its places."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Array
from hpc_sched.core.extra_spec_names import HOPS
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import rejected
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.core.sharing.cache_interference import Application

Places = tuple[int, ...]  # per VM, the index of its host in topology.hosts


class _NoRandomness(random.Random):
    """A source of randomness that raises an error when it is used."""

    def random(self) -> NoReturn:
        raise RuntimeError("it draws a random number, although its Policy has draws=False")

    def getrandbits(self, _k: int, /) -> NoReturn:
        self.random()


NO_RANDOMNESS: random.Random = _NoRandomness()


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A group to place: all of its VMs at once, or none.

    The group has a ``packing``, for policies that read it: free processors and memory of hosts, in
    this order, and the demand of one VM.
    """

    group: GroupRequest  # a row per host of the topology
    application: Application
    # The only source of randomness, seeded by the simulation and the job; NO_RANDOMNESS for a
    # policy that says that it draws nothing.
    draw: random.Random
    mdobp_classes: frozenset[str] = frozenset(mdobp_classes.DEFAULT)

    @property
    def by_mdobp(self) -> bool:
        """True if MDOBP places the job's class."""
        return mdobp_classes.places(self.application.app_class, self.mdobp_classes)

    @property
    def problem(self) -> Problem:
        """The input of the planner."""
        return self.group.problem()


# Every VM gets a place, or none does. Pure: the answer depends on the request alone, ``draw``
# included, and changes nothing.
Place = Callable[[PlacementRequest], Places | Rejection]


@dataclass(frozen=True, slots=True)
class Policy:
    """A named rule that places groups.

    Its ``place`` is pure, as the ideal placement of a job is computed once and kept for all jobs
    of the same VMs and class (IdealPlacements). A simulation checks resources only: ``place`` reads
    ``PlacementRequest.group.constraints``, or is wrapped with :func:`plugin_policies.constrained`,
    or models a scheduler that knows no constraints, as Nova's own.
    """

    name: str
    summary: str  # one line for help texts and reports, with its source
    place: Place
    # Whether VMs of others bound the room on a host, and attract those that gain with them
    # (core.sharing.cache_interference); simulation_input reads it.
    bounded_by_neighbours: bool = False
    # Whether it reads PlacementRequest.draw: if not, one run stands for all seeds where the
    # scenario draws nothing either. True unless a policy says otherwise.
    draws: bool = True
    # Whether it reads PlacementRequest.group.packing: if not, requests come without. True unless a
    # policy says otherwise.
    packs: bool = True
    objective: str = HOPS  # of plans, one of extra_spec_names.OBJECTIVES
    follows_pattern: bool = False  # whether that is for the pattern of messages that a job has

    def places(self, request: PlacementRequest) -> Places | Rejection:
        """Return the places of a group.

        :raises exceptions.SimulationError: if the code of the policy fails; names the policy
        """
        try:
            return self.place(request)
        except exceptions.HPCSchedError:
            raise
        except Exception as error:
            raise exceptions.SimulationError(f"policy {self.name!r} failed: {error!r}") from error


def refused(problem: Problem) -> Rejection:
    """Return the Rejection of a group for which a policy has found no places."""
    return rejected(problem, problem.awaiting, problem.constraints.bounds)


def filled(problem: Problem, order: Array) -> Places | Rejection:
    """Return the places of a group that fills one host after the other. O(hosts).

    :param order: indices into ``topology.hosts``, in the order of filling
    """
    room = np.minimum(problem.capacity[order], problem.awaiting)
    needed = int(np.searchsorted(np.cumsum(room), problem.awaiting)) + 1
    if needed > len(order):
        return refused(problem)
    places = np.repeat(order[:needed], room[:needed])
    return tuple(places[: problem.awaiting].tolist())
