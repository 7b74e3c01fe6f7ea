"""Checks whether a group fits on a snapshot, where, and at what cost."""

from collections import Counter
from dataclasses import dataclass, replace

from hpc_sched.core import largest_gangs
from hpc_sched.core.constraints.min_size import MinSize
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.result import Gang, Plan, Refusal, Rejection
from hpc_sched.core.processor_choice import ProcessorChoice, choose_processor
from hpc_sched.snapshot.request_builder import SnapshotRequest


@dataclass(frozen=True, slots=True)
class Fit:
    """The plan of a group and its cost, or the reason why it does not fit."""

    plan: Plan | None
    reason: str | None  # None with a plan
    hop_bytes: float | None  # of members and new VMs on the fabric; None without a plan
    least: float | None  # the same without constraints
    processor: str | None = None  # the chosen type of all new VMs; None: any types


def fit(state: SnapshotRequest) -> Fit:
    """Return whether a group fits, as HPCHomogeneityFilter and HPCGroupFilter decide.

    :raises exceptions.RequestError: for an unknown level
    """
    if fault := state.fault:
        return Fit(None, fault, None, None)
    group = state.group
    choice = choose_processor(group, GroupRequest.decide, lambda plan: plan.count)
    if isinstance(choice, Refusal):
        return Fit(None, choice.operator, None, None)
    if isinstance(choice, ProcessorChoice):
        return _fitting(state, choice.answer, choice.name)
    answer = group.decide()
    if isinstance(answer, Plan):
        return _fitting(state, answer, None)
    if group.is_refused(answer):
        return Fit(None, group.refusal(answer).operator + _most_that_fit(group), None, None)
    unplanned = "the scheduler does not refuse it, and places it without a plan"
    return Fit(None, f"{answer.operator}; {unplanned}", None, None)


def _most_that_fit(group: GroupRequest) -> str:
    """Return the end of a sentence on the largest number that fits, if a smaller one is of use."""
    size = group.constraints.values.get(MinSize.name)
    whole = int(group.members.sum()) + group.left
    if size is None or group.is_move or int(size) >= whole:
        return ""
    fewest = max(int(size) - int(group.members.sum()), 1)
    constraints = group.constraints.changed(group_size=whole)
    smaller = replace(
        group, constraints=constraints, left=fewest, awaiting=fewest, missing=group.left
    )
    answer = smaller.decide()
    if isinstance(answer, Plan):
        return f"; the largest number that fits: {answer.count}"
    return f"; fewer than {fewest} fit"


def least(state: SnapshotRequest, count: int | None = None) -> float | None:
    """Return the least possible Hop-Byte on the fabric without constraints; None if none fits.

    Also for classes that are not placed by topology.

    :param count: VMs to place with the members; those of the request by default
    """
    packs = state.request.policy != "soft-anti-affinity"
    free = replace(state.on_fabric, packing=None, pack_hosts=packs)
    answer = free.unconstrained(state.request.count if count is None else count)
    return None if isinstance(answer, Rejection) else answer.hop_bytes


def largest(state: SnapshotRequest) -> list[Gang]:
    """Return the largest group that fits under one switch of each level, bottom up.

    Where the room of a hypervisor depends on the plan, each is lowered until its plan holds: by
    halves, some 15 plans for each level at most.
    """
    found = largest_gangs.gangs(state.group)
    return found if state.rooms.is_exact else [_verified(state.group, gang) for gang in found]


def _verified(group: GroupRequest, gang: Gang) -> Gang:
    constraints = group.constraints.changed(require=gang.level, group_size=None)
    fits, unsure = 0, gang.vms
    best: Plan | None = None
    number = unsure  # which most often fits
    while fits < unsure:
        wanted = replace(
            group, constraints=constraints, left=number, awaiting=number, orphans=0, missing=0
        )
        choice = choose_processor(wanted, GroupRequest.decide, lambda plan: plan.count)
        answer = choice.answer if isinstance(choice, ProcessorChoice) else wanted.decide()
        if isinstance(choice, Refusal) or isinstance(answer, Rejection):
            unsure = number - 1
        else:
            fits, best = number, answer
        number = (fits + unsure + 1) // 2
    if best is None or fits == gang.vms:
        return replace(gang, vms=fits)
    above = group.topology.ancestors(next(iter(best.hosts)))
    return replace(gang, vms=fits, switch=above[group.topology.levels.index(gang.level)])


def _fitting(state: SnapshotRequest, plan: Plan, processor: str | None) -> Fit:
    cost = plan.hop_bytes
    if state.is_flat:
        host_of = state.cloud.host_of
        members = Counter(host_of[vm.uuid] for vm in state.request.members if vm.uuid in host_of)
        cost = hop_bytes_of_counts(
            topology=state.cloud.topology, counts=members + Counter(plan.hosts)
        )
    found = least(state, plan.count)
    return Fit(plan, None, cost, cost if found is None else min(found, cost), processor)
