"""The least bottleneck of a small group with a pattern: all numbers of VMs on all hosts.

Of hpc_sched it uses the names and levels of switches only. Ranks are masks over a matrix of bytes.
"""

import itertools
import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds, Constraints, level_of
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import Problem, host_counts
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.plan.time_limit import NO_LIMIT
from hpc_sched.core.traffic import rank_bytes
from hpc_sched.core.traffic.patterns import PATTERNS
from hpc_sched.core.traffic.rank_bytes import Traffic
from hpc_sched.topology.capacities import Capacities
from hpc_sched.topology.model import Topology

MOST_PLANS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class PatternCase:
    """A group with a pattern on a small fabric."""

    name: str  # of the pattern
    problem: Problem
    links: Capacities
    fabric_order: Array
    traffic: Traffic
    hops_plan: Array  # VMs per host
    bounds: Bounds  # that the hops plan keeps
    tradeoff: Fraction | None
    member_hosts: Array  # of each member, in the order of the group

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments of the search from the plan of least Hop-Byte alone."""
        return (
            *(self.problem, self.links, self.fabric_order, self.traffic),
            *([self.hops_plan], self.bounds, self.tradeoff, NO_LIMIT, self.member_hosts),
        )


def fabric_order(topology: Topology) -> Array:
    """Return the hosts depth first, switches and hosts by name. Shape (hosts,)."""
    paths = [(*topology.ancestors(host)[::-1], host) for host in topology.hosts]
    return np.array(sorted(range(len(paths)), key=paths.__getitem__), dtype=np.int64)


NAMES = (*(name for name in PATTERNS if name != "none"), "matrix")


def drawn(seed: int) -> PatternCase:
    """Return a drawn case whose group fits and has few plans. Patterns follow each other."""
    dice = random.Random(seed)
    while True:
        case = _drawn(dice, f"group {seed}", NAMES[seed % len(NAMES)])
        if case is not None:
            return case


def _drawn(dice: random.Random, group: str, pattern: str) -> PatternCase | None:
    """Return the next case, or None where the group does not fit or has too many plans."""
    tree = {"root": _drawn_tree(dice, dice.choice((1, 1, 2, 2, 3)), itertools.count(10))}
    topology = Topology.from_tree(tree)
    vms, most = dice.randint(2, 9), dice.choice((1, 2, 3, 4, 9))
    members = dict.fromkeys(topology.hosts, 0)
    for _ in range(dice.choice((0, 0, 0, 1, 2, 3)) if vms > 3 else 0):
        members[dice.choice(topology.hosts)] += 1
    new = vms - sum(members.values())
    room = {host: dice.choice((0, dice.randint(1, most), most)) for host in topology.hosts}
    problem = Problem(
        topology,
        host_counts(topology, room),
        host_counts(topology, members),
        new,
        TieOrder(topology, group),
        _drawn_constraints(dice, topology),
    )
    bounds = problem.constraints.bounds
    plan = solve(problem, new, bounds)
    if not isinstance(plan, Plan) or count_plans(problem.capacity, new) > MOST_PLANS:
        return None
    return PatternCase(
        pattern,
        problem,
        _drawn_links(dice, topology),
        fabric_order(topology),
        _drawn_traffic(dice, pattern, vms),
        host_counts(topology, plan.hosts),
        bounds,
        dice.choice((Fraction(3, 10), Fraction(3, 10), Fraction(0), Fraction(1), None)),
        _drawn_members(dice, problem, fabric_order(topology)),
    )


def _drawn_members(dice: random.Random, problem: Problem, order: Array) -> Array:
    """Return the host of each member: of one request in the order of the fabric, else in any."""
    hosts = np.repeat(order, problem.members[order]).tolist()
    several = dice.sample(hosts, len(hosts))
    return np.array(dice.choice((hosts, several)), dtype=np.int64)


def _drawn_links(dice: random.Random, topology: Topology) -> Capacities:
    """Return capacities that are uneven on each level; a root has none."""
    uplinks = [
        0 if switch.parent < 0 else dice.choice((50, 100, 100, 150, 200, 400))
        for switch in topology.switches
    ]
    hosts = [dice.choice((50, 100, 100, 100, 200)) for _ in topology.hosts]
    return Capacities(np.array(uplinks, np.int64), np.array(hosts, np.int64))


def _drawn_constraints(dice: random.Random, topology: Topology) -> Constraints:
    return Constraints(
        require=dice.choice((None, None, None, dice.choice(topology.levels))),
        max_leaves=dice.choice((None, None, None, None, 2, 3)),
        min_leaves=dice.choice((None, None, None, None, 2)),
    )


def _drawn_traffic(dice: random.Random, pattern: str, ranks: int) -> Traffic:
    if pattern != "matrix":
        return rank_bytes.of_steps(ranks, PATTERNS[pattern](ranks))
    flat = [dice.choice((0.0, 0.0, dice.random())) for _ in range(ranks * ranks)]
    return rank_bytes.of_matrix(np.array(flat).reshape(ranks, ranks))


def _drawn_tree(dice: random.Random, levels: int, counter: "itertools.count[int]") -> Any:
    """Return switches above leaves of 1 to 3 hosts; a branch may be shorter."""
    if levels == 0:
        return [f"h{dice.randint(0, 9)}{next(counter)}" for _ in range(dice.randint(1, 3))]
    return {
        f"s{dice.randint(0, 9)}{next(counter)}": _drawn_tree(
            dice, levels - 1 if dice.random() < 0.85 else 0, counter
        )
        for _ in range(dice.randint(2, 4 if levels == 1 else 3))
    }


def count_plans(capacity: Array, vms: int) -> int:
    """Return in how many ways hosts of these capacities take some VMs."""
    ways = [1] + [0] * vms
    for room in capacity.tolist():
        ways = [sum(ways[max(0, n - room) : n + 1]) for n in range(vms + 1)]
    return ways[vms]


def all_plans(capacity: Array, vms: int) -> Array:
    """Return all of them. Shape (plans, hosts)."""
    found = np.zeros((1, 0), dtype=np.int64)
    for index, room in enumerate(capacity.tolist()):
        after = int(capacity[index + 1 :].sum())
        parts = []
        for here in range(min(room, vms) + 1):
            left = vms - found.sum(1) - here
            kept = found[(left >= 0) & (left <= after)]
            parts.append(np.hstack([kept, np.full((len(kept), 1), here)]))
        found = np.vstack(parts)
    return found


def loads(case: PatternCase, plans: Array) -> tuple[Array, Array]:
    """Return what crosses hosts and switches. Shapes (plans, hosts), (plans, switches)."""
    sent = case.traffic.matrix()
    order, old = case.fabric_order, case.member_hosts
    ends = plans[:, order].cumsum(1)
    rank = np.arange(int(plans[0].sum()))
    new = order[(rank[None, :, None] >= ends[:, None, :]).sum(2)]
    host = np.hstack([np.tile(old, (len(plans), 1)), new])

    def crossing(inside: Array) -> Array:
        out = ((inside @ sent) * (1 - inside)).sum(1)
        into = ((inside @ sent.T) * (1 - inside)).sum(1)
        return np.maximum(out, into)

    topology = case.problem.topology
    of_hosts = [crossing((host == h).astype(np.int64)) for h in range(len(topology.hosts))]
    of_switches = []
    for switch in topology.switches:
        below = [topology.index_of(name) for name in topology.hosts_of(switch.name)]
        of_switches.append(crossing(np.isin(host, below).astype(np.int64)))
    return np.stack(of_hosts, 1), np.stack(of_switches, 1)


def scale(case: PatternCase) -> int:
    """Return a number that all capacities divide: loads are whole in its parts."""
    return math.lcm(*(int(c) for c in (*case.links.switches, *case.links.hosts) if c))


def measures(case: PatternCase, plans: Array) -> tuple[Array, Array]:
    """Return bottleneck and harm of plans, in parts of :func:`scale`. Shapes (plans,)."""
    of_hosts, of_switches = loads(case, plans)

    def weights(capacity: Array) -> Array:
        return np.array([scale(case) // c if c else 0 for c in capacity.tolist()], dtype=np.int64)

    by_switch = of_switches * weights(case.links.switches)
    by_host = of_hosts * weights(case.links.hosts)
    return np.hstack([by_switch, by_host]).max(1), by_switch.sum(1)


def keeps_bounds(case: PatternCase, plans: Array) -> Array:
    """Return which plans keep the bounds of the group. Shape (plans,)."""
    topology, bounds = case.problem.topology, case.bounds
    row = topology.groups[level_of(topology, bounds.level) - 1]
    everyone = plans + case.problem.members
    under_one = np.zeros(len(plans), dtype=np.bool_)
    for top in np.unique(row):
        under_one |= everyone[:, row != top].sum(1) == 0
    leaves = np.unique(topology.leaf_index)
    old = np.array([case.problem.members[topology.leaf_index == s].sum() > 0 for s in leaves])
    new = np.stack([plans[:, topology.leaf_index == s].sum(1) > 0 for s in leaves], 1)
    used = (old | new).sum(1)
    most = bounds.most_leaves if bounds.most_leaves is not None else len(leaves)
    missing = bounds.missing_leaves(int(old.sum()), case.problem.awaiting)
    kept: Array = under_one & (used <= most) & ((new & ~old).sum(1) >= missing)
    return kept


def least_bottleneck(case: PatternCase) -> Fraction:
    """Return the least of all plans that keep the bounds of the group and of the harm."""
    plans = all_plans(case.problem.capacity, case.problem.awaiting)
    plans = plans[keeps_bounds(case, plans)]
    loads_of, harms = measures(case, plans)
    if case.tradeoff is not None:
        [_], [by_hops] = measures(case, case.hops_plan[None])
        most = (1 + case.tradeoff) * int(by_hops)
        loads_of = loads_of[[each <= most for each in harms.tolist()]]
    return Fraction(int(loads_of.min()), scale(case))


def bottleneck(case: PatternCase, plan: Array) -> Fraction:
    """Return the highest load of a plan."""
    [found], _ = measures(case, plan[None])
    return Fraction(int(found), scale(case))


def harm(case: PatternCase, plan: Array) -> Fraction:
    """Return the sum of the loads of switches of a plan."""
    _, [found] = measures(case, plan[None])
    return Fraction(int(found), scale(case))
