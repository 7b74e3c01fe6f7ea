"""The exact plan on hundreds of hosts, against a plain knapsack."""

import itertools
import math
import operator
import random
from dataclasses import replace
from typing import Any

import pytest

from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.fabrics import Case

# One entry a way: cost, leaves, excess per level from the leaves up, then minus the set of used
# leaves as bits, the first leaf highest.
Sums = tuple[int, ...]


def plain_knapsack(case: Case) -> Sums | None:
    """Return the least (cost, leaves, excess per level, -set) by the definition of hops.

    Children are joined one after the other: VMs on the two sides are 2 * level - 1 apart.
    O(hosts * VMs * capacity + switches * VMs^2), all in dicts of (new VMs, leaves) to sums.
    """
    fabric = case.fabric
    bit, nothing = bits_of_leaves(case), (0,) * (3 + fabric.depth)
    level = {switch.name: switch.level for switch in fabric.switches}
    fixed = {
        switch.name: sum(case.members.get(host, 0) for host in fabric.hosts_of(switch.name))
        for switch in fabric.switches
    }
    most_leaves = case.max_leaves or len(fabric.leaves)
    Ways = dict[tuple[int, int], Sums]

    def joined(left: Ways, right: Ways, hops: int, on_left: int, on_right: int) -> Ways:
        both: Ways = {}
        for (a, used_a), x in left.items():
            for (b, used_b), y in right.items():
                state = (a + b, used_a + used_b if case.max_leaves else 0)
                if a + b > case.count or state[1] > most_leaves:
                    continue
                apart = (a + on_left) * (b + on_right) * hops
                sums = (x[0] + y[0] + apart, *map(operator.add, x[1:], y[1:]))
                if state not in both or sums < both[state]:
                    both[state] = sums
        return both

    def below(switch: str) -> Ways:
        if level[switch] > 1:
            ways: Ways = {(0, 0): nothing}
            met = 0
            for child in fabric.children_of(switch):
                there = below(child)
                ways = joined(ways, there, 2 * level[switch] - 1, met, fixed[child])
                met += fixed[child]
            return {(new, used): padded(switch, new, sums) for (new, used), sums in ways.items()}
        ways, met = {(0, 0): nothing}, 0
        for host in fabric.hosts_of(switch):
            here = case.members.get(host, 0)
            room = min(case.capacity.get(host, 0), case.count)
            takes: Ways = {(new, 0): nothing for new in range(room + 1)}
            ways = joined(ways, takes, 1, met, here)
            met += here
        found: Ways = {}
        for (new, _), sums in ways.items():
            used = int(bool(new or fixed[switch]))
            leaf = (sums[0], used, *sums[2:-1], -bit[switch] if new else 0)
            found[new, used if case.max_leaves else 0] = padded(switch, new, leaf)
        return found

    def padded(switch: str, new: int, sums: Sums) -> Sums:
        """Return sums with the excess of a switch on the levels on which it is the highest."""
        upper = fabric.switches[fabric.switch_index(switch)].parent
        end = fabric.depth + 1 if upper < 0 else fabric.switches[upper].level
        excess = list(sums)
        for here in range(level[switch], end):
            excess[1 + here] += room_below(case, switch) - new if new else 0
        return tuple(excess)

    most = fabric.depth if case.require is None else fabric.levels.index(case.require) + 1
    everyone = sum(case.members.values())
    tops = [
        switch.name
        for switch in fabric.switches
        if switch.level <= most
        and (switch.parent < 0 or fabric.switches[switch.parent].level > most)
        and fixed[switch.name] == everyone
    ]
    found = []
    for top in tops:
        above = fabric.ancestors(fabric.hosts_of(top)[0])
        for (new, _), sums in below(top).items():
            if new == case.count:
                for upper in above[above.index(top) + 1 :]:
                    sums = padded(upper, new, sums)
                found.append(sums)
    return min(found, default=None)


def sums_of(case: Case, answer: Plan) -> Sums:
    """Return the sums of a plan, the cost pair by pair."""
    fabric = case.fabric
    everyone = case.together(answer.hosts)
    cost = 0
    hops = {pair: fabric.hops(*pair) for pair in itertools.combinations(everyone, 2)}
    for (a, b), apart in hops.items():
        cost += everyone[a] * everyone[b] * int(apart)
    bit = bits_of_leaves(case)
    used = {fabric.leaf_of(host) for host in answer.hosts}
    before = {fabric.leaf_of(host) for host, count in case.members.items() if count}
    excess = []
    for row in fabric.groups:
        above = {fabric.switches[row[fabric.index_of(host)]].name for host in answer.hosts}
        excess.append(sum(room_below(case, switch) for switch in above) - answer.count)
    return (cost, len(used | before), *excess, -sum(bit[leaf] for leaf in used))


def bits_of_leaves(case: Case) -> dict[str, int]:
    """Return a bit for each leaf: the first in tie order is the highest, members' come last."""
    fabric = case.fabric
    tie = TieOrder(fabric, case.group_id).ranks
    before = {fabric.leaf_of(host) for host, count in case.members.items() if count}
    in_order = sorted(
        fabric.leaves, key=lambda name: (name in before, int(tie[fabric.switch_index(name)]))
    )
    return {leaf: 1 << place for place, leaf in enumerate(reversed(in_order))}


def room_below(case: Case, switch: str) -> int:
    """Return the capacity of all hosts below a switch."""
    return sum(case.capacity.get(host, 0) for host in case.fabric.hosts_of(switch))


def large_case(
    seed: int,
    *,
    with_members: bool,
    require: str | None = None,
    tight: bool = False,
    alike: bool = False,
) -> Case:
    """Return 40 VMs on some 300 hosts, with one leaf less than they would like if ``tight``.

    Hosts are mostly full, so that many leaves are needed; if ``alike`` all are empty, and
    leaves come in two sizes.

    ::

                          core
               /         |         |       \\
             pod0       pod1      pod2      |
            / .. \\     / .. \\    / .. \\     |
          8 leaves    8 leaves  8 leaves  leaf-core
          9 to 16 hosts in each           12 hosts
    """
    draw = random.Random(seed)
    sizes = (11, 13) if alike else range(9, 17)
    tree: dict[str, Any] = {
        f"pod{p}": {
            f"leaf{p}-{n}": [f"h{p}-{n}-{i}" for i in range(draw.choice(sizes))] for n in range(8)
        }
        for p in range(3)
    }
    tree["leaf-core"] = [f"hc-{i}" for i in range(12)]
    hosts = Topology.from_tree({"core": tree}).hosts
    most = draw.choice([1, 2, 4])
    members: dict[str, int] = {}
    if with_members:
        pod = [host for host in hosts if host.startswith("h1-")]
        members = {host: draw.randint(1, 2) for host in draw.sample(pod, 4)}
    case = Case(
        tree={"core": tree},
        capacity={host: most if alike else max(draw.randint(-2 * most, most), 0) for host in hosts},
        members=members,
        count=40,
        require=require,
        group_id=f"group-{seed}",
    )
    if not tight:
        return case
    answer = case.answer()
    assert isinstance(answer, Plan)
    used = {case.fabric.leaf_of(host) for host in case.together(answer.hosts)}
    return replace(case, max_leaves=len(used) - 1)


LARGE = [
    pytest.param({"with_members": False}, id="no wishes"),
    pytest.param({"with_members": True}, id="members"),
    pytest.param({"with_members": False, "require": "pod"}, id="one pod"),
    pytest.param({"with_members": True, "require": "pod"}, id="the members' pod"),
    pytest.param({"with_members": False, "tight": True}, id="one leaf less"),
    pytest.param({"with_members": True, "tight": True}, id="one leaf less, with members"),
    pytest.param({"with_members": False, "alike": True}, id="leaves of two kinds"),
    pytest.param({"with_members": True, "alike": True}, id="leaves of two kinds, with members"),
]


@pytest.mark.parametrize("constraints", LARGE)
def test_a_plain_knapsack_over_hundreds_of_hosts_finds_nothing_better(constraints: dict[str, Any]):
    plans = 0
    for seed in range(4):
        case = large_case(seed, **constraints)
        assert len(case.fabric.hosts) > 250
        expected, answer = plain_knapsack(case), case.answer()
        if isinstance(answer, Rejection):
            assert expected is None
            continue
        plans += 1
        assert sums_of(case, answer) == expected
        assert answer.hop_bytes == sums_of(case, answer)[0]
    assert plans >= 2


def test_a_fabric_of_a_thousand_hosts_and_a_group_of_128_is_no_burden():
    fabric = fabrics.row_of_leaves({f"leaf{i:02}": 32 for i in range(32)})
    free = dict.fromkeys(fabric.hosts, 4)
    answer = plan(topology=fabric, capacity=free, members={}, count=128)
    assert isinstance(answer, Plan)
    # One leaf takes them all, four on each host.
    assert answer.hop_bytes == math.comb(128, 2) - 32 * math.comb(4, 2)
    assert set(answer.hosts.values()) == {4}
