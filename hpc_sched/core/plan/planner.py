"""The exact plan: the places of a whole group that cost the least Hop-Byte.

plan          the public entry, on counts per host name
solve_sizes   the plan of a group with constraints, at the largest size that fits
attempts      the levels and sizes that it tries
solve         the plan of a number of VMs
  least_hop_byte  the best number of VMs for each leaf, or a good one once the limit has passed
  plan_by_objective  the same where the group has another objective
  rejected      the Rejection
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hpc_sched.core.constraints import UNBOUND, Bounds, level_of
from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.hopbyte import hop_bytes_of_leaves
from hpc_sched.core.plan import leaf_hosts
from hpc_sched.core.plan.exact.least_hop_byte import least_hop_byte
from hpc_sched.core.plan.problem import LeafCounts, Problem
from hpc_sched.core.plan.rejection import largest_gang, rejected
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.switch_rooms import largest_branch_first, switches_with_room
from hpc_sched.core.plan.time_limit import NO_LIMIT, Limit, TimeLimit
from hpc_sched.topology.fabric_order import in_fabric_order
from hpc_sched.topology.model import Topology


def plan(
    *,
    topology: Topology,
    capacity: Mapping[str, int],
    members: Mapping[str, int],
    count: int,
    require: str | None = None,
    max_leaves: int | None = None,
    group_id: str = "",
) -> Plan | Rejection:
    """Return the places of ``count`` VMs that cost the least Hop-Byte together with the members.

    Exact on trees of any depth; a group never spans islands. Equal cost: fewer leaves, members'
    leaves included; then the least excess capacity of the leaves that take VMs, then of the
    switches above them on the next level, and so on up; then the group's tie order.

    nova-scheduler does not call it, but :func:`solve_sizes`: this is the public signature for other
    programs, which docs/support.rst promises.

    :param capacity: host to the number of VMs that it still takes
    :param members: host to the number of the group's VMs on it
    :param require: the level of which one switch must hold the whole group, members included
    :param max_leaves: the most leaf switches of the whole group, members included
    :param group_id: key of the tie order
    :raises ValueError: for a negative number, ``max_leaves`` below 1, or an unknown level
    """
    problem = Problem.from_counts(
        topology=topology, capacity=capacity, members=members, awaiting=count, group_id=group_id
    )
    # Not NumPy's, with which scores overflow in silence.
    return solve(problem, int(count), Bounds(require, None, max_leaves))


def solve_sizes(
    problem: Problem, sizes: Sequence[int], preferred: int = 0, limit: TimeLimit = NO_LIMIT
) -> Plan | Rejection:
    """Return the plan that keeps the group's constraints, at the first size that fits.

    The preferred level comes before a larger size. Without a plan: the Rejection of the last size.

    :param sizes: numbers of VMs to plan for, largest first; the last one must fit
    :param preferred: the fewest VMs for which ``prefer`` holds: any single VM of a group is
        under one switch
    :param limit: of all attempts together, see :func:`solve`
    :raises ValueError: for an unknown level
    """
    for bounds, size in attempts(problem, sizes, preferred):
        answer = solve(problem, size, bounds, limit)
        if isinstance(answer, Plan):
            break
    return answer


def attempts(problem: Problem, sizes: Sequence[int], preferred: int) -> list[tuple[Bounds, int]]:
    """Return bounds and number of VMs of all that :func:`solve_sizes` tries, in order."""
    bounds, topology = problem.constraints.bounds, problem.topology
    if not sizes:
        raise ValueError("sizes: expected at least one number of VMs")
    enough = [size for size in sizes if size >= preferred]
    *preferences, guarantees = replace(bounds, preferred=None).stages()
    tried = [(stage, size) for stage in preferences for size in enough]
    tried += [(guarantees, size) for size in sizes]
    # A preference for the required level, or a wider one, adds nothing.
    if bounds.preferred is None or (
        level_of(topology, bounds.preferred) >= level_of(topology, bounds.level)
    ):
        return tried
    near = [
        (replace(stage, level=bounds.preferred), size)
        for stage in (*preferences, guarantees)
        for size in enough
    ]
    return near + tried


def solve_most(problem: Problem, count: int, limit: TimeLimit = NO_LIMIT) -> Plan | Rejection:
    """Return a plan, without constraints, of the most of ``count`` VMs that fit on one island."""
    gang = largest_gang(problem, level_of(problem.topology, None), with_members=True)
    most = gang.vms if gang is not None else 0
    return solve(problem, min(count, most), limit=limit)


def solve(
    problem: Problem, count: int, bounds: Bounds = UNBOUND, limit: Limit = NO_LIMIT
) -> Plan | Rejection:
    """Return the plan of ``count`` VMs of a problem, as :func:`plan` does.

    The plan may cost more than the least (``is_proven`` is False) if the limit has passed, or if
    the best plan within a number of leaves could not be proven in a fixed number of steps. It keeps
    the bounds, and a Rejection is always proven.

    :param bounds: what this plan keeps, and all that it keeps: ``problem.constraints.bounds`` are
        those that the group states, of which :func:`attempts` makes these, with a preferred level
        as a required one. UNBOUND plans without any constraint
    :raises ValueError: as :func:`plan` does
    """
    level = level_of(problem.topology, bounds.level)
    switches = switches_with_room(problem, count, level, bounds)
    if not len(switches):
        return rejected(problem, count, bounds)
    if problem.objective is not None:
        # Few groups have one: what it needs is loaded for these.
        from hpc_sched.core.plan.bottleneck import plan_by_objective

        answer = plan_by_objective.counts(problem, count, level, switches, bounds, limit)
        return answer if isinstance(answer, Rejection) else plan_of(*answer)
    found = least_hop_byte(problem, count, level, switches, bounds, limit)
    return plan_of(problem, found, bounds.parts)


def plan_of(problem: Problem, found: LeafCounts, parts: Parts | None = None) -> Plan:
    """Return the plan with some numbers of VMs in leaves; ranks go by the parts of a group."""
    topology = problem.topology
    counts = dict(found.counts)
    order = list(counts)
    if len(order) > 1:
        # Those that are taken first, however many they are, are near each other.
        leaves, vms = np.array(sorted(counts.items())).T
        order = largest_branch_first(problem, leaves, vms, problem.members).tolist()
    chosen = leaf_hosts.places_in({leaf: counts[leaf] for leaf in order}, problem)
    now = len(chosen) if problem.placing is None else problem.placing
    later = max(now, problem.awaiting)
    if parts is not None and parts.size > 1:
        from hpc_sched.core.plan.segmented.part_order import in_parts

        places = in_parts(problem, parts, chosen, (now, later))
    else:
        turns = chosen[:now], chosen[now:later], chosen[later:]
        places = [host for turn in turns for host in in_fabric_order(topology, turn)]
    hosts, leaves_of_vms = Counter(places), Counter(topology.leaf_index[places].tolist())
    everyone, by_leaf = hosts, leaves_of_vms
    [with_members] = problem.members.nonzero()
    if len(with_members):
        everyone, by_leaf = hosts.copy(), leaves_of_vms.copy()
        for i in with_members.tolist():
            here = problem.members.item(i)
            everyone[i] += here
            by_leaf[topology.leaf_index.item(i)] += here
    pairs = sum([vms * (vms - 1) // 2 for vms in everyone.values()])
    return Plan(
        hosts={topology.hosts[host]: vms for host, vms in hosts.items()},
        places=tuple([topology.hosts[host] for host in places]),
        leaves={topology.switches[leaf].name: vms for leaf, vms in leaves_of_vms.items()},
        hop_bytes=hop_bytes_of_leaves(topology=topology, counts=by_leaf, pairs=pairs),
        switch=topology.switches[found.top].name,
        is_proven=found.is_proven,
    )
