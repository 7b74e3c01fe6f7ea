"""What one live migration would gain for a group that is apart."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import level_of
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.ranking import added_hops
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.processor_choice import ProcessorChoice, choose_processor


@dataclass(frozen=True, slots=True)
class Move:
    """A VM of a group on another host."""

    source: str  # hosts of the topology
    target: str
    hop_bytes: float  # of the group then
    is_together: bool  # whether all its VMs are then under one switch of its level

    @property
    def key(self) -> tuple[bool, float, str, str]:
        """The sort key of moves, best first."""
        return not self.is_together, self.hop_bytes, self.source, self.target


def level_name(group: GroupRequest) -> str:
    """Return the level of which one switch should hold a group: preferred, required, or leaf."""
    bounds = group.constraints.bounds
    return bounds.preferred or bounds.level or group.topology.request_levels[0]


def is_apart(group: GroupRequest) -> bool:
    """True if the members of a group are under several switches of its level.

    Not of a group by bottleneck: it is spread on purpose.
    """
    return not isinstance(group.objective, LeastBottleneck) and not _is_together(
        group, group.members
    )


def best_move(
    group: GroupRequest, sources: Iterable[str], moved_from: Callable[[str], GroupRequest]
) -> Move | None:
    """Return the move of one VM that gains most for a group that is apart, or None.

    One that brings all VMs under one switch of the group's level comes first, then the one of the
    least Hop-Byte, then go names of hosts. The VM is placed as a request that moves it would be:
    within rooms, constraints, policy and processor types. It gains if Hop-Byte becomes less.

    Few requests are planned. The others cannot gain more, by the hops to the nearest open host.

    :param group: all its members, and the hosts with room for one more of the VMs that may move
    :param sources: hosts of the topology with VMs that may move
    :param moved_from: returns the request to move a VM from one of them, not among the members
    """
    now = _cost(group, group.members)
    least = {source: _least(group, source) for source in sources}
    best: Move | None = None
    for source in sorted(least, key=lambda source: (*least[source], source)):
        is_apart_without, cost = least[source]
        if best is not None and (is_apart_without, cost) > (not best.is_together, best.hop_bytes):
            break
        move = _move(group, moved_from(source), source) if cost < now else None
        if move is not None and move.hop_bytes < now:
            best = min(best or move, move, key=lambda one: one.key)
    return best


def _least(group: GroupRequest, source: str) -> tuple[bool, float]:
    """Return whether a group is apart without a VM, and a bound on its cost with that VM elsewhere.

    :param source: the host of the VM
    """
    at = group.topology.index_of(source)
    others = _with(group.members, at, -1)
    problem = replace(group.problem(), members=others, pack_hosts=True)
    is_open = group.per_host(group.room) > 0
    is_open[at] = False
    hops = added_hops(problem, others)[is_open]
    nearest = int(hops.min()) if len(hops) else math.inf
    return not _is_together(group, others), _cost(group, others) + nearest


def _move(group: GroupRequest, request: GroupRequest, source: str) -> Move | None:
    """Return the move of a VM from its host as the scheduler would make it, or None."""
    at = group.topology.index_of(source)
    wanted = replace(
        request.among(request.hosts_of_rows != at),
        constraints=request.constraints.changed(prefer=level_name(group)),
        gathering=None,
        left=1,
        awaiting=1,
        missing=0,
    )
    answer = choose_processor(wanted, GroupRequest.decide, lambda plan: plan.count)
    if isinstance(answer, ProcessorChoice):
        plan: object = answer.answer
    else:
        plan = wanted.decide() if answer is None else answer
    if not isinstance(plan, Plan):
        return None
    [target] = plan.places
    there = _with(wanted.members, group.topology.index_of(target), 1)
    return Move(source, target, _cost(group, there), _is_together(group, there))


def _is_together(group: GroupRequest, vms: Array) -> bool:
    topology = group.topology
    level = level_of(topology, level_name(group))
    return len(np.unique(topology.groups[level - 1][vms > 0])) <= 1


def _cost(group: GroupRequest, vms: Array) -> float:
    hosts = group.topology.hosts
    counts = {hosts[i]: int(vms[i]) for i in np.flatnonzero(vms).tolist()}
    return hop_bytes_of_counts(topology=group.topology, counts=counts)


def _with(vms: Array, host: int, number: int) -> Array:
    changed = vms.copy()
    changed[host] += number
    return changed
