"""What the plan of a decision would have cost without one of its constraints.

Each counterfactual is a plan of the planner that made the decision, for the same number of VMs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from hpc_sched.core.constraints import NO_CONSTRAINTS
from hpc_sched.core.constraints.group_size import GroupSize
from hpc_sched.core.counterfactual.rebuilt_request import RebuiltRequest, RecordError, of_size
from hpc_sched.core.counterfactual.recorded_objective import loads_of
from hpc_sched.core.fragmentation.broken import BrokenSlots, broken_slots
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.logged.decision_entry import DecisionEntry
from hpc_sched.core.logged.decision_summary import LoggedPlan
from hpc_sched.core.objectives.plan_loads import PlanLoads
from hpc_sched.core.plan.result import Plan, Refusal, Rejection
from hpc_sched.core.plan.time_limit import TimeLimit
from hpc_sched.core.processor_choice import ProcessorChoice, choose_processor
from hpc_sched.topology import plurals

SERVER_GROUP_POLICIES = ("affinity", "anti-affinity", "soft-anti-affinity")
EVERYTHING = "all of these"
HPC = "hpc:"
PRICE = "fragmentation_price"
NO_TIME = "the time for planning is over"
NOT_PROVEN = "the plan is not proven best"


@dataclass(frozen=True, slots=True)
class Alternative:
    """The request of a decision without one or all of its constraints."""

    without: str  # what is left out, EVERYTHING for all
    request: GroupRequest
    unknown: str | None = None  # why it cannot be planned


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """The best plan without a constraint; without a cost there is none."""

    without: str
    hop_bytes: float | None = None
    less: float | None = None  # than the decision's plan costs; negative if it is more
    leaves: int = 0  # of all VMs of the group
    vms: int = 0  # that are planned
    is_proven: bool = True
    unknown: str | None = None  # why it is not known whether there is one
    # Of links, relative to the decision's plan; None where links did not count for it.
    bottleneck: float | None = None
    harm: float | None = None
    # Without the fragmentation price: what this plan leaves free on switches that it uses, and what
    # the decision's plan does.
    broken: BrokenSlots | None = None
    kept: BrokenSlots | None = None


def decided(request: GroupRequest, limit: TimeLimit) -> Plan | Rejection | Refusal:
    """Return the answer of HPCHomogeneityFilter and HPCGroupFilter."""
    choice = choose_processor(request, lambda group: group.decide(limit), lambda plan: plan.count)
    if isinstance(choice, ProcessorChoice):
        return choice.answer
    return request.decide(limit) if choice is None else choice


def alternatives(
    rebuilt: RebuiltRequest, entry: DecisionEntry, request: GroupRequest
) -> list[Alternative]:
    """Return the request of a decision without each of its constraints, and without all.

    :param request: of the decision, maybe for another number of VMs
    """
    single = [*_without_wishes(request, entry, rebuilt), *_without_hosts(rebuilt, entry, request)]
    if len(single) < 2:
        return single
    bare = replace(
        request,
        constraints=NO_CONSTRAINTS,
        missing=0,
        server_group_policy=None,
        hard_policy=None,
        pack_hosts=not rebuilt.by_mdobp,
        processors=None,
        shunned=None,
        room=rebuilt.free,
        objective=None,
        price=None,
    )
    unknown = next(iter(_unknown_rooms(rebuilt, entry).values()), None)
    return [*single, Alternative(EVERYTHING, bare, unknown)]


def _without_wishes(
    request: GroupRequest, entry: DecisionEntry, rebuilt: RebuiltRequest
) -> Iterator[Alternative]:
    wanted = request.constraints
    for one, value in wanted.items():
        relaxed = replace(request, constraints=wanted.changed(**{one.name: None}))
        if one is GroupSize:
            if entry.input is None or not entry.input.missing:
                continue
            relaxed = replace(relaxed, missing=0)
        yield Alternative(f"{one.spec.name}={value}", relaxed)
    if _has_types(request):
        yield Alternative(
            f"{HPC}homogeneous={request.homogeneous}", replace(request, processors=None)
        )
    if request.server_group_policy in SERVER_GROUP_POLICIES:
        free = replace(
            request, server_group_policy=None, hard_policy=None, pack_hosts=not rebuilt.by_mdobp
        )
        yield Alternative(f"policy {request.server_group_policy}", free)
    if request.objective is not None and entry.objective is not None:
        name = f"{HPC}objective={entry.objective.name}"
        yield Alternative(name, replace(request, objective=None))
    elif request.price is not None:
        yield Alternative(f"{PRICE}={request.price.rates}", replace(request, price=None))


def _has_types(request: GroupRequest) -> bool:
    """True if the choice of a processor type may leave out hosts, or refuse the request."""
    processors = request.processors
    if processors is None or request.homogeneous == "false":
        return False
    if request.homogeneous == "true" and processors.fault_of_members():
        return True
    is_full = request.room < 1
    return not any(
        (processors.hypervisors[name] | is_full).all() for name in processors.best_first()
    )


def _without_hosts(
    rebuilt: RebuiltRequest, entry: DecisionEntry, request: GroupRequest
) -> Iterator[Alternative]:
    """Yield the request with the hosts that were avoided or removed for each reason."""
    for why in rebuilt.shunned:
        others = [mask for name, mask in rebuilt.shunned.items() if name != why]
        left = np.logical_or.reduce(others) if others else None
        yield Alternative(f"shunned hosts: {why}", replace(request, shunned=left))
    is_removed = np.zeros(len(request.room), dtype=np.bool_)
    unknown = _unknown_rooms(rebuilt, entry)
    for why in entry.input.removed if entry.input else ():
        mask = rebuilt.removed.get(why, np.zeros_like(is_removed))
        is_removed |= mask
        fault = unknown.get(why)
        if fault is None and _has_types(request):
            fault = "the processor types of its hosts are not known"
        more = replace(request, room=np.where(mask, rebuilt.free, request.room))
        yield Alternative(f"filter: {why}", more, fault)
    is_fuller = (rebuilt.free > request.room) & ~is_removed
    if is_fuller.any():
        more = replace(request, room=np.where(is_fuller, rebuilt.free, request.room))
        yield Alternative("filter: the VMs of others", more)


def _unknown_rooms(rebuilt: RebuiltRequest, entry: DecisionEntry) -> dict[str, str]:
    """Return the filters that removed hosts without a place in the record, with a sentence."""
    assert entry.input is not None
    found = {}
    for why in entry.input.removed:
        mask = rebuilt.removed.get(why)
        number = (entry.removed or {}).get(why, 0) - (0 if mask is None else int(mask.sum()))
        if number > 0:
            found[why] = f"the room of {plurals.text(number, 'host')} is not known"
    return found


def logged_plan(entry: DecisionEntry) -> LoggedPlan | None:
    """Return the plan of a decision, or None for a refusal."""
    return None if entry.decision == "refused" else entry.plan


def planned_again(rebuilt: RebuiltRequest, entry: DecisionEntry, limit: TimeLimit) -> Plan | None:
    """Return the plan of the decision, for the same number of VMs; None if it is refused again.

    :raises RecordError: if it is not what the record says, or if no time is left
    """
    if limit.has_passed():
        raise RecordError(NO_TIME)
    logged = logged_plan(entry)
    if logged is None:
        if isinstance(decided(rebuilt.request, limit), Plan):
            raise RecordError("there is a plan: the reason is none of its constraints")
        return None
    count = sum(logged.hosts.values())
    if not entry.proven:
        raise RecordError(NOT_PROVEN)
    if logged.hop_bytes is None or count < max(entry.left or 0, 1):
        raise RecordError("the record has no cost of a plan for its VMs")
    plan = decided(of_size(rebuilt.request, count), limit)
    if isinstance(plan, Plan) and not plan.is_proven:
        raise RecordError(NO_TIME if limit.has_passed() else NOT_PROVEN)
    if not isinstance(plan, Plan) or cost_of(rebuilt, plan.places) != _logged_cost(rebuilt, logged):
        raise RecordError("the plan that the record gives has another cost than the logged one")
    loads = loads_of(rebuilt.request, plan.hosts)
    stated = entry.objective.bottleneck if entry.objective is not None else None
    # Where MDOBP chooses hosts, their links may be others.
    if loads is not None and not rebuilt.by_mdobp and float(loads.bottleneck) != stated:
        raise RecordError("the plan that the record gives has another bottleneck")
    return plan


def cost_of(rebuilt: RebuiltRequest, places: Sequence[str] | Mapping[str, int]) -> float:
    """Return the Hop-Byte of members and the VMs on some places.

    Where MDOBP chooses the hosts inside leaves, VMs on one host count as VMs of one leaf.

    :param places: the host of each VM, or VMs by host
    """
    topology, members = rebuilt.request.topology, rebuilt.request.members
    counts = Counter(places)
    for i in np.flatnonzero(members).tolist():
        counts[topology.hosts[i]] += int(members[i])
    cost = hop_bytes_of_counts(topology=topology, counts=counts)
    return cost + sum(comb(count, 2) for count in counts.values()) if rebuilt.by_leaf else cost


def _logged_cost(rebuilt: RebuiltRequest, logged: LoggedPlan) -> float | None:
    """Return the cost of the logged plan; None for a leaf that the record does not have."""
    if not rebuilt.by_leaf:
        return logged.hop_bytes
    topology, hosts = rebuilt.request.topology, rebuilt.request.topology.leaf_hosts()
    try:
        leaves = [topology.switch_index(leaf) for leaf in logged.leaves]
    except LookupError:
        return None
    # Which host of a leaf has a VM makes no difference.
    first = [hosts[leaf][0] for leaf in leaves]
    return cost_of(rebuilt, dict(zip(first, logged.leaves.values(), strict=True)))


def leaves_of(request: GroupRequest, places: Sequence[str]) -> int:
    """Return the number of leaves of members and planned VMs."""
    topology = request.topology
    used = set(topology.leaf_index[request.members > 0].tolist())
    return len(used | {int(topology.leaf_index[topology.index_of(host)]) for host in set(places)})


# What a name begins with that refuses nothing.
_PREFERENCES = (
    *(f"{HPC}{name}" for name in ("prefer", "homogeneous=prefer", "segment=prefer")),
    *(f"{HPC}{name}" for name in ("balance=prefer", "balance=false", "segment_level")),
    PRICE,
)


def counterfactuals(
    rebuilt: RebuiltRequest, entry: DecisionEntry, plan: Plan | None, limit: TimeLimit
) -> list[Counterfactual]:
    """Return the cost of the best plan without each constraint of a decision, and without all.

    Of a refusal: whether there is a plan then.

    :param plan: the answer of :func:`planned_again`
    """
    request, cost = rebuilt.request, None
    if plan is not None:
        request, cost = of_size(request, plan.count), cost_of(rebuilt, plan.places)
    found = []
    for one in alternatives(rebuilt, entry, request):
        group, before = one.request, cost
        loads = None if plan is None else loads_of(request, plan.hosts)
        if plan is None:
            # A preference has given way, and a price refuses nothing.
            if one.without.startswith(_PREFERENCES):
                continue
        elif one.without.startswith(GroupSize.spec.name) and entry.awaiting:
            # Without it the plan is for those that exist: the first slots count. A preferred
            # level then holds for these.
            now = min(entry.awaiting, plan.count)
            constraints = rebuilt.request.constraints.changed(group_size=None)
            existing = replace(rebuilt.request, constraints=constraints, missing=0)
            first = _in_order_of_slots(rebuilt.request, plan, limit).places[:now]
            group, before = of_size(existing, now), cost_of(rebuilt, first)
            loads = None
        found.append(_counterfactual(rebuilt, one, group, before, loads, plan, limit))
    return found


def _in_order_of_slots(request: GroupRequest, plan: Plan, limit: TimeLimit) -> Plan:
    """Return the plan of a decision as the VMs of its request take its places.

    The first slots depend on how many VMs are placed now.

    :param plan: of a request with as many VMs
    """
    if request.placing >= plan.count and not request.constraints.bounds.change_with_each_vm:
        return plan
    again = decided(request, limit)
    return again if isinstance(again, Plan) and again.count == plan.count else plan


def _counterfactual(
    rebuilt: RebuiltRequest,
    one: Alternative,
    request: GroupRequest,
    before: float | None,
    loads: PlanLoads | None,
    plan: Plan | None,
    limit: TimeLimit,
) -> Counterfactual:
    if one.unknown is not None:
        return Counterfactual(one.without, unknown=one.unknown)
    if limit.has_passed():
        return Counterfactual(one.without, unknown=NO_TIME)
    answer = decided(request, limit)
    if not isinstance(answer, Plan):
        return Counterfactual(one.without)
    cost = cost_of(rebuilt, answer.places)
    # By the links of the decision, also without its objective.
    linked = replace(request, objective=rebuilt.request.objective)
    bottleneck, harm = relative(loads_of(linked, answer.hosts), loads)
    broken = kept = None
    if plan is not None and one.without.startswith(PRICE):
        problem = rebuilt.request.problem()
        broken, kept = broken_slots(problem, answer), broken_slots(problem, plan)
    return Counterfactual(
        one.without,
        hop_bytes=cost,
        less=None if before is None else before - cost,
        leaves=leaves_of(rebuilt.request, answer.places),
        vms=answer.count,
        is_proven=answer.is_proven,
        bottleneck=bottleneck,
        harm=harm,
        broken=broken,
        kept=kept,
    )


def relative(one: PlanLoads | None, other: PlanLoads | None) -> tuple[float | None, float | None]:
    """Return bottleneck and harm of a plan over those of another; None where that has none."""
    if one is None or other is None:
        return None, None
    bottleneck = one.bottleneck / other.bottleneck if other.bottleneck else None
    harm = one.harm / other.harm if other.harm else None
    return None if bottleneck is None else float(bottleneck), None if harm is None else float(harm)
