"""Whether a group fits a snapshot, where, and how large a group would."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.answers import Gang, Plan, Rejection
from hpc_sched.core.group_plan import decide
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.planner import solve
from hpc_sched.core.problem import Problem
from hpc_sched.core.processors import METADATA, best_first, of_cpu_info, stated_type, type_names
from hpc_sched.core.rejection import largest_gang, rejected
from hpc_sched.core.wishes import NO_WISHES
from hpc_sched.snapshot import settings
from hpc_sched.snapshot.problem import State

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a group fits, and what that costs."""

    answer: Plan | Rejection
    reason: str | None  # why it does not fit
    hop_bytes: float | None  # of members and new VMs on the fabric; None without a plan
    least: float | None  # the same if nothing were asked for beside policy and class
    processor: str | None = None  # the type that all new VMs are on, where that was looked at

    @property
    def fits(self) -> bool:
        """Tell whether it does."""
        return isinstance(self.answer, Plan)


def fit(state: State) -> Fit:
    """Return whether a request fits now, as HPCGroupFilter and the planner would have it.

    :raises exceptions.RequestError: for a level that the fabric does not have
    """
    asked = state.asked
    if asked.is_unclear:
        refused = rejected(state.problem(), state.request.count, require=None, max_leaves=None)
        return Fit(refused, "; ".join(asked.faults), None, None)
    processor = None
    answer = _decide(state, None)
    reason = answer.operator if isinstance(answer, Rejection) else None
    if isinstance(answer, Plan) and _minds_processors(state):
        chosen = _on_one_type(state)
        if chosen is not None:
            processor, answer = chosen
        elif asked.homogeneous == "true":
            answer = rejected(state.problem(), answer.count, require=None, max_leaves=None)
            reason = f"no single processor type holds {state.request.count} VMs"
    if isinstance(answer, Rejection):
        return Fit(answer, reason, None, None)
    return Fit(answer, None, _cost(state, answer), _least(state, answer), processor)


def least(state: State) -> float | None:
    """Return the least Hop-Byte that the VMs could have, wishes left aside; None: no way."""
    answer = _decide(state, None, wishes=False)
    return _cost(state, answer) if isinstance(answer, Plan) else None


def gangs(state: State) -> list[Gang]:
    """Return the largest group that fits under one switch of each level, bottom up.

    With the request's members where it has any, within ``max_leaves`` where that is asked for,
    on hosts as its policy allows.
    """
    problem = _one_service(state, state.problem())
    found = [
        largest_gang(problem, level, max_leaves=problem.wishes.max_leaves, with_members=True)
        for level in range(1, problem.topology.depth + 1)
    ]
    return [gang for gang in found if gang is not None]


def _one_service(state: State, problem: Problem) -> Problem:
    """Return the problem of the largest service alone where all VMs must be on one."""
    if state.request.policy != "affinity" or problem.members.any():
        return problem
    rooms: dict[str, int] = {}
    for node, room in zip(state.cloud.snapshot.hypervisors, state.room.tolist(), strict=True):
        rooms[node.host] = rooms.get(node.host, 0) + room
    if not rooms:
        return problem
    best = min(rooms, key=lambda host: (-rooms[host], host))
    among = np.array([node.host == best for node in state.cloud.snapshot.hypervisors])
    capacity = np.zeros_like(problem.capacity)
    np.add.at(capacity, state.host_index[among], state.room[among])
    return replace(problem, capacity=capacity)


def _decide(state: State, among: Mask | None, *, wishes: bool = True) -> Plan | Rejection:
    """Return a plan that keeps the group's policy also where services own many nodes."""

    def answer_of(problem: Problem) -> Plan | Rejection:
        if not wishes:
            return solve(replace(problem, wishes=NO_WISHES), state.request.count)
        return decide(problem, state.sizes, state.sizes[0])

    problem = state.problem(among)
    answer = answer_of(problem)
    if isinstance(answer, Rejection) or state.keeps_policy(dict(answer.hosts)):
        return answer
    for bounded in state.problems_by_policy(among):
        answer = answer_of(bounded)
        if isinstance(answer, Plan):
            return answer
    # No service takes them all.
    return rejected(problem, state.sizes[-1], require=None, max_leaves=None)


def _least(state: State, plan: Plan) -> float:
    planned = replace(state, request=replace(state.request, count=plan.count))
    found = least(planned)
    cost = _cost(state, plan)
    return cost if found is None else min(found, cost)


def _cost(state: State, plan: Plan) -> float:
    """Return the Hop-Byte of members and plan on the fabric, also where that does not matter."""
    if not state.is_flat:
        return plan.hop_bytes
    counts = dict(plan.hosts)
    for server in state.request.members:
        host = state.cloud.host_of.get(server.uuid)
        if host is not None:
            counts[host] = counts.get(host, 0) + 1
    return hop_bytes_of_counts(topology=state.cloud.topology, counts=counts)


def _minds_processors(state: State) -> bool:
    return state.asked.homogeneous != "false" and settings.has_filter(
        state.cloud.snapshot, settings.HOMOGENEITY_FILTER
    )


def _on_one_type(state: State) -> tuple[str, Plan] | None:
    """Return the plan on the best processor type that holds the group, None where none does.

    As HPCHomogeneityFilter chooses: the members' type, else the first in order that holds most.
    """
    names, cores = _processors(state)
    at = {
        (node.host, node.nodename): name
        for node, name in zip(state.cloud.snapshot.hypervisors, names, strict=True)
    }
    running: dict[str, int] = {}
    for server in state.request.members:
        if server.host:
            name = at.get((server.host, server.nodename or server.host))
            if name is not None:
                running[name] = running.get(name, 0) + 1
    known = {name: count for name, count in cores.items() if not running or name in running}
    order = settings.option(state.cloud.snapshot, "processor_order")
    best: tuple[str, Plan] | None = None
    for name in best_first(known, order, running):
        answer = _decide(state, np.array([found == name for found in names], dtype=np.bool_))
        if isinstance(answer, Plan) and (best is None or answer.count > best[1].count):
            best = name, answer
            if answer.count == state.sizes[0]:
                break
    return best


def _processors(state: State) -> tuple[list[str | None], dict[str, int]]:
    """Return the processor type of each hypervisor, and type to the cores of one of its hosts."""
    cloud = state.cloud
    metadata: dict[str, list[str]] = {}
    for aggregate in cloud.snapshot.aggregates:
        if METADATA in aggregate.metadata:
            for host in aggregate.hosts:
                metadata.setdefault(host, []).append(aggregate.metadata[METADATA])
    nodes = cloud.snapshot.hypervisors
    reported = [None if node.cpu_info is None else of_cpu_info(node.cpu_info) for node in nodes]
    names: list[str | None] = []
    cores: dict[str, int] = {}
    for node, processor, measured in zip(nodes, reported, type_names(reported), strict=True):
        place = cloud.name_at[node.host, node.nodename]
        stated = stated_type(metadata.get(node.host, ()))
        name = stated or cloud.topology.processor_of(place) or measured
        names.append(name)
        if name is not None:
            own = processor.sockets * processor.cores if processor else 0
            number = own or math.floor(node.capacity.get("VCPU", 0) + node.capacity.get("PCPU", 0))
            cores[name] = max(cores.get(name, 0), number)
    return names, cores
