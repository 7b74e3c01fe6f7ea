"""Whether a group fits a snapshot, where, and how large a group would."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.group_plan import decide
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.rejection import largest_gang, rejected
from hpc_sched.core.plan.result import Gang, Plan, Rejection
from hpc_sched.core.processors import best_first
from hpc_sched.enabled_plugins import HOMOGENEITY_FILTER
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.hypervisor_processors import Types, types_of
from hpc_sched.snapshot.request_builder import State

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a group fits, and what that costs."""

    answer: Plan | Rejection
    reason: str | None  # why it does not fit
    hop_bytes: float | None  # of members and new VMs on the fabric; None without a plan
    least: float | None  # the same if nothing were asked for beside the policy
    processor: str | None = None  # the type that all new VMs are on, where that was looked at

    @property
    def fits(self) -> bool:
        """Tell whether it does."""
        return isinstance(self.answer, Plan)


def fit(state: State) -> Fit:
    """Return whether a request fits now, as HPCGroupFilter and the planner would have it.

    :raises exceptions.RequestError: for a level that the fabric does not have
    """
    asked = state.hpc_specs
    if asked.is_unclear:
        refused = rejected(state.problem(), state.request.count, require=None, max_leaves=None)
        return Fit(refused, "; ".join(asked.faults), None, None)
    processor = None
    answer = _decide(state, None)
    reason = _reason(state, answer) if isinstance(answer, Rejection) else None
    if isinstance(answer, Plan) and _minds_processors(state):
        types = types_of(state)
        wrong = types.fault if asked.homogeneous == "true" else None
        chosen = None if wrong else _on_one_type(state, types)
        if chosen is not None:
            processor, answer = chosen
        elif asked.homogeneous == "true":
            answer = rejected(state.problem(), answer.count, require=None, max_leaves=None)
            reason = wrong or f"no single processor type holds {state.sizes[-1]} VMs"
    if isinstance(answer, Rejection):
        return Fit(answer, reason, None, None)
    return Fit(answer, None, _cost(state, answer), _least(state, answer), processor)


def least(state: State) -> float | None:
    """Return the least Hop-Byte that the VMs could have, wishes left aside; None: no way.

    On the fabric, also for those whose class does not mind it.
    """
    state = state.on_fabric
    answer = _decide(state, None, constraints=False)
    return _cost(state, answer) if isinstance(answer, Plan) else None


def gangs(state: State) -> list[Gang]:
    """Return the largest group that fits under one switch of each level, bottom up.

    With the request's members where it has any, within ``max_leaves`` and on one processor
    type where that is asked for, on hosts as its policy allows.
    """
    kinds = _masks(state)
    found = [_gang(state, level, kinds) for level in range(1, state.topology.depth + 1)]
    return [gang for gang in found if gang is not None]


def _masks(state: State) -> list[Mask | None]:
    """Return the hypervisors that a group may use together; None for all of them."""
    if state.hpc_specs.homogeneous != "true" or not _minds_processors(state):
        return [None]
    types = types_of(state)
    if types.fault is not None:
        return [np.zeros(len(types.names), dtype=np.bool_)]
    return [types.mask(name) for name in _in_order(state, types)]


def _gang(state: State, level: int, kinds: list[Mask | None]) -> Gang | None:
    """Return the largest group under one switch of a level; of equal kinds that of the first."""
    found: Gang | None = None
    for among in kinds:
        problem = _one_service(state, state.problem_at(level, among), level, among)
        gang = largest_gang(
            problem, level, max_leaves=problem.constraints.max_leaves, with_members=True
        )
        if gang is not None and _are_spread(problem, level):
            # They are not under one switch, whatever there is room for.
            gang = replace(gang, vms=0)
        if gang is not None and (found is None or gang.vms > found.vms):
            found = gang
    return found


def _are_spread(problem: Problem, level: int) -> bool:
    """Tell whether the members already break what is asked for."""
    topology, most = problem.topology, problem.constraints.max_leaves
    here = problem.members > 0
    if len(np.unique(topology.groups[level - 1][here])) > 1:
        return True
    return most is not None and len(np.unique(topology.leaf_index[here])) > most


def _one_service(state: State, problem: Problem, level: int, among: Mask | None) -> Problem:
    """Return the problem of one service alone where all VMs must be on one.

    The one that takes most under one switch of the level.
    """
    if state.request.policy != "affinity" or problem.members.any():
        return problem
    nodes = state.cloud.snapshot.hypervisors
    room = state.room if among is None else np.where(among, state.room, 0)
    domain = problem.topology.groups[level - 1][state.host_index].tolist()
    places = [(node.host, below) for node, below in zip(nodes, domain, strict=True)]
    rooms: dict[tuple[str, int], int] = {}
    for place, number in zip(places, room.tolist(), strict=True):
        rooms[place] = rooms.get(place, 0) + number
    if not rooms:
        return problem
    best = min(rooms, key=lambda place: (-rooms[place], place))
    there = np.array([place == best for place in places])
    capacity = np.zeros_like(problem.capacity)
    np.add.at(capacity, state.host_index[there], room[there])
    return replace(problem, capacity=capacity)


def _reason(state: State, answer: Rejection) -> str:
    """Return why there is no plan, and whether that hinders the scheduler."""
    must = state.hpc_specs.needs_place or (
        state.hpc_specs.homogeneous == "true" and _minds_processors(state)
    )
    if answer.conflict and not must:
        return f"{answer.operator}; the scheduler does not refuse it, and places it without a plan"
    if state.request.policy == "affinity" and not answer.conflict:
        most = _gang(state, state.topology.depth, [None])
        number = 0 if most is None else most.vms
        if number < answer.count:
            what = "the members' host" if answer.members else "one host"
            return (
                f"{answer.count} VMs of a group with policy affinity need {what}: largest gang "
                f"that fits there: {number}"
            )
    return answer.operator


def _decide(state: State, among: Mask | None, *, constraints: bool = True) -> Plan | Rejection:
    """Return a plan that keeps the group's policy also where services own many nodes."""
    packs = state.request.policy != "soft-anti-affinity"

    def answer_of(problem: Problem) -> Plan | Rejection:
        if not constraints:
            bare = replace(problem, constraints=NO_CONSTRAINTS, packing=None, pack_hosts=packs)
            return solve(bare, state.request.count)
        return decide(problem, state.sizes, state.sizes[0])

    problem = state.problem(among)
    answer = answer_of(problem)
    if isinstance(answer, Rejection) or state.keeps_policy(dict(answer.hosts)):
        return answer
    for bounded in state.problems_by_policy(among):
        answer = answer_of(bounded)
        if isinstance(answer, Plan):
            return answer
    # No service takes them all; what each may take counts once in the whole fabric.
    whole = state.problem_at(state.topology.depth, among)
    return rejected(whole, state.sizes[-1], require=None, max_leaves=None)


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
    plugins = nova_options.enabled(state.cloud.snapshot)
    return state.hpc_specs.homogeneous != "false" and plugins.has_filter(HOMOGENEITY_FILTER)


def _in_order(state: State, types: Types) -> list[str]:
    """Return the types that a group may take, best first: its members' where it has any."""
    running = {name: count for name, count in types.members.items() if name is not None}
    known = {name: cores for name, cores in types.cores.items() if not running or name in running}
    return best_first(known, nova_options.option(state.cloud.snapshot, "processor_order"), running)


def _on_one_type(state: State, types: Types) -> tuple[str, Plan] | None:
    """Return the plan on the best processor type that holds the group, None where none does.

    As HPCHomogeneityFilter chooses: the members' type, else the first in order that holds most.
    """
    best: tuple[str, Plan] | None = None
    for name in _in_order(state, types):
        answer = _decide(state, types.mask(name))
        if isinstance(answer, Plan) and (best is None or answer.count > best[1].count):
            best = name, answer
            if answer.count == state.sizes[0]:
                break
    return best
