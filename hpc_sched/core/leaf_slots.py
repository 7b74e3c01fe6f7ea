"""The places of a plan that VMs take if bounds at least require leaves that the group does not use.

A plan may be for more VMs than its request has. It keeps the bounds with all of its places, and not
yet with those of the request.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.placement_input import PlacementInput
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology.fabric_order import in_fabric_order


def used_leaves(request: PlacementInput) -> Array:
    """Return the numbers of the leaves that the group uses. Shape (leaves,)."""
    return np.unique(request.topology.leaf_index[request.members > 0])


def new_leaves_first(request: PlacementInput, plan: Plan) -> Plan:
    """Return a plan whose first slots use the leaves that are missing, for requests in parallel.

    One on each of the first such leaves; all others are in the order of the fabric behind them.
    """
    if plan.count == request.left or not request.constraints.bounds.least_leaves:
        return plan
    order = range(plan.count)
    slots = dict.fromkeys([*_on_missing_leaves(request, plan, order, plan.count), *order])
    places = tuple(plan.places[slot] for slot in slots)
    leaves = Counter(map(request.topology.leaf_of, places))
    return replace(plan, places=places, leaves=dict(leaves))


def own_slots(request: PlacementInput, plan: Plan, first: int, numbers: Sequence[int]) -> list[int]:
    """Return the slots of a plan that VMs of the request take, in the order of the fabric.

    Those of their numbers, as long as these VMs keep bounds at least there without any others.
    Slots that do not help to keep them are exchanged for the first ones on leaves that are missing.
    A slot beyond the plan counts from its begin, and the VMs of a request remain next to each
    other: those that are placed one after the other take what they take at once.

    :param first: slot of the request's first VM
    :param numbers: of the VMs within the request, from 0, in their order
    """
    first %= max(plan.count - numbers[-1], 1)
    own = [first + number for number in numbers]
    if not request.constraints.bounds.least_leaves:
        return own
    order = list(dict.fromkeys([*own, *range(plan.count)]))
    needed = _on_missing_leaves(request, plan, order, len(own))
    taken = list(dict.fromkeys([*needed, *own]))[: len(own)]
    hosts = {slot: request.topology.index_of(plan.places[slot]) for slot in taken}
    in_order = in_fabric_order(request.topology, [*hosts.values()])
    return sorted(taken, key=lambda slot: (in_order.index(hosts[slot]), slot))


def _on_missing_leaves(
    request: PlacementInput, plan: Plan, order: Iterable[int], vms: int
) -> list[int]:
    """Return the first slot, in an order, on each leaf that some VMs must use in addition."""
    topology, used = request.topology, set(used_leaves(request).tolist())
    missing = request.constraints.bounds.missing_leaves(len(used), vms)
    leaf = topology.leaf_index[[topology.index_of(host) for host in plan.places]].tolist()
    found: dict[int, int] = {}
    for slot in order:
        if leaf[slot] not in used:
            found.setdefault(leaf[slot], slot)
    return list(found.values())[:missing]
