"""The plugin's own filters and weighers as policies.

``on_one_type`` is HPCHomogeneityFilter and ``constrained`` HPCGroupFilter, for any policy.
Without HPCRackCapacityFilter, which keeps the leaves of the exact plan and spares: Listing 1 and
the build plan may use other leaves.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.core.classic.build_plan import Selection, build_plan
from hpc_sched.core.classic.listing_1 import group_places
from hpc_sched.core.extra_spec_names import BOTTLENECK, ISOLATED
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan, Refusal, Rejection
from hpc_sched.core.processor_choice import choose_processor
from hpc_sched.core.sharing import mdobp
from hpc_sched.sim.policies import nova_default
from hpc_sched.sim.policies.placement_policy import (
    Place,
    PlacementRequest,
    Places,
    Policy,
    filled,
    refused,
)
from hpc_sched.sim.policies.planned_parts import PlannedParts


def on_one_type(place: Place) -> Place:
    """Return a rule that applies another one to the hosts of one processor type (Gupta2012).

    If no single type holds the group: to all hosts, or a Rejection if one type is required.
    """

    def placed(request: PlacementRequest) -> Places | Rejection:
        def on(group: GroupRequest) -> Places | Rejection:
            if int(group.room.sum()) < group.left:
                return refused(group.problem())
            return place(replace(request, group=group))

        choice = choose_processor(request.group, on, len)
        if isinstance(choice, Refusal):
            return refused(request.problem)
        return place(request) if choice is None else choice.answer

    return placed


def constrained(place: Place) -> Place:
    """Return a rule that applies another one to the hosts that keep the group's constraints."""

    return partial(_constrained, place, packing=None, pack_hosts=True)


def _constrained(place: Place, request: PlacementRequest, **planned: Any) -> Places | Rejection:
    """Return the places of a rule on the hosts, all on one island, that keep the constraints.

    :param planned: fields of the group that is planned, and placed
    """
    group = replace(request.group, **planned)
    if group.constraints.bind_place or len(group.topology.roots) > 1:
        plan = group.decide()
        if not isinstance(plan, Plan):
            return plan
        group = group.among(group.permitted(plan))
        if (parts := group.constraints.bounds.guaranteed_parts) is not None:
            return _filtered(
                place, replace(request, group=group), PlannedParts.of(group, plan, parts)
            )
    return _filtered(place, replace(request, group=group))


def _filtered(
    place: Place, request: PlacementRequest, parts: PlannedParts | None = None
) -> Places | Rejection:
    """Return the places of a rule on the hosts that HPCGroupFilter keeps for each VM.

    Only with bounds at least, and in parts, do these change from one VM to the next.
    """
    group = request.group
    if parts is None and not group.constraints.bounds.least_leaves:
        return place(request)
    places: list[int] = []
    now = group

    def permitted() -> Mask:
        """Return the hypervisors for the next VM. Shape (hypervisors,)."""
        return now.permitted_next() if parts is None else parts.permitted(group, places)

    while now.left:
        answer = place(replace(request, group=now.among(permitted())))
        if isinstance(answer, Rejection):
            return answer
        for host in answer:
            if not permitted()[host]:
                break
            places.append(host)
            now = group.after(np.bincount(places, minlength=len(group.room)))
    return tuple(places)


def _planned(group: GroupRequest) -> Places | Rejection:
    answer = group.decide()
    if isinstance(answer, Plan):
        return tuple(map(group.topology.index_of, answer.places))
    return answer


def _exact(request: PlacementRequest) -> Places | Rejection:
    group = request.group
    if group.packing is not None:
        group = replace(group, packing=None, pack_hosts=True)
    return _planned(group)


def _least_hops(request: PlacementRequest) -> Places | Rejection:
    return _exact(replace(request, group=replace(request.group, price=None)))


def _listing_1(request: PlacementRequest) -> Places | Rejection:
    places = group_places(request.problem)
    return tuple(places) if len(places) >= request.group.left else refused(request.problem)


def _build_plan(selection: Selection) -> Place:
    def place(request: PlacementRequest) -> Places | Rejection:
        # Built once, for the first VM.
        order = build_plan(request.problem, selection)
        return _filtered(lambda now: filled(now.problem, order), request)

    return on_one_type(constrained(place))


def _mdobp(request: PlacementRequest) -> Places | Rejection:
    problem = request.problem
    hosts = np.flatnonzero(problem.capacity)
    if problem.packing is None or int(problem.capacity.sum()) < problem.awaiting:
        return refused(problem)
    return tuple(
        mdobp.places(
            *(problem.packing, problem.members, problem.topology.name_rank),
            *(problem.capacity, hosts, problem.awaiting),
        )
    )


def _loose(place: Place) -> Place:
    """Return a rule that applies another one as class ``async`` is placed: without a plan."""

    def placed(request: PlacementRequest) -> Places | Rejection:
        if not request.group.constraints.bind_place:
            return place(request)
        return _constrained(place, request, pack_hosts=False)

    return on_one_type(placed)


# By application class, and whether MDOBP places it.
_BY_CLASS = {
    ("extreme", False): on_one_type(_exact),
    # A plan of leaves in which MDOBP chooses the hosts.
    ("sync", True): on_one_type(lambda request: _planned(replace(request.group, pack_hosts=False))),
    ("sync", False): on_one_type(_exact),
    ("async", True): _loose(_mdobp),
    ("async", False): _loose(nova_default.DEFAULT.place),
    # Without constraints, on any processor type.
    ("none", True): _mdobp,
    ("none", False): nova_default.DEFAULT.place,
}


EXACT = Policy(
    "exact-plan",
    "the exact plan: least Hop-Byte and fragmentation price (HopByteWeigher, HPCGroupFilter)",
    on_one_type(_exact),
    draws=False,
    packs=False,
)
LEAST_HOPS = Policy(
    "least-hops",
    "the same with fragmentation_price = 0: each plan is best for its group alone",
    on_one_type(_least_hops),
    draws=False,
    packs=False,
)
LEAST_BOTTLENECK = Policy(
    "bottleneck",
    "the plan of least bottleneck (hpc:objective=bottleneck)",
    on_one_type(_exact),
    draws=False,
    packs=False,
    objective=BOTTLENECK,
)
LEAST_BOTTLENECK_BY_PATTERN = Policy(
    "bottleneck-pattern",
    "the same for the pattern by which each job communicates (hpc:pattern)",
    on_one_type(_exact),
    draws=False,
    packs=False,
    objective=BOTTLENECK,
    follows_pattern=True,
)
ISOLATION = Policy(
    "isolated",
    "the plan of least Hop-Byte without an uplink of another job (hpc:objective=isolated)",
    on_one_type(_exact),
    draws=False,
    packs=False,
    objective=ISOLATED,
)
LISTING_1 = Policy(
    "dudina2013",
    "leaf switches by Listing 1 of Dudina2013 (BunchWeigher)",
    on_one_type(constrained(_listing_1)),
    draws=False,
    packs=False,
)
BUILD_PLAN = Policy(
    "gupta2012",
    "racks by capacity, the build plan of Gupta2012 (RackCapacityWeigher)",
    _build_plan("largest"),
    draws=False,
    packs=False,
)
BUILD_PLAN_BEST_FIT = Policy(
    "gupta2012-best-fit",
    "the racks with the least excess capacity, Gupta2012's future work",
    _build_plan("best_fit"),
    draws=False,
    packs=False,
)
MDOBP = Policy(
    "mdobp",
    "the host whose free resources are shaped like the VM (Gupta2013)",
    _mdobp,
    draws=False,
)
CLASSES = Policy(
    "gupta2013",
    "by application class: dedicated, planned or packed hosts, cache scores kept in limits "
    "(Gupta2013; all our filters, HopByteWeigher and MDOBPWeigher)",
    lambda request: _BY_CLASS[request.application.app_class, request.by_mdobp](request),
    bounded_by_neighbours=True,
    draws=False,
)
