"""The exact plan: brute force on small trees, a plain knapsack on large ones, worked examples."""

import itertools
import math
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.core.answers import Plan, Rejection
from hpc_sched.core.bunch import listing1
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.planner import plan, solve
from hpc_sched.core.problem import Problem, tie_order
from hpc_sched.topology import Topology
from tests.unit import fabrics

ROOT = Path(__file__).resolve().parents[2]

# What the planner minimises: Hop-Byte, leaves, excess capacity, the new leaves in tie order.
Key = tuple[float, int, int, tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """The arguments of one plan, all by name."""

    tree: dict[str, Any]
    capacity: dict[str, int]
    members: dict[str, int]
    count: int
    require: str | None = None
    max_leaves: int | None = None
    group_id: str = ""
    pack_hosts: bool = True

    @property
    def described(self) -> Topology:
        return Topology.from_tree(self.tree)

    @property
    def fabric(self) -> Topology:
        """The fabric with the hosts that only the counts name."""
        return self.described.including([*self.capacity, *self.members])

    def answer(self) -> Plan | Rejection:
        if self.pack_hosts:
            return plan(
                topology=self.described,
                capacity=self.capacity,
                members=self.members,
                count=self.count,
                require=self.require,
                max_leaves=self.max_leaves,
                group_id=self.group_id,
            )
        problem = Problem.from_counts(
            topology=self.described,
            capacity=self.capacity,
            members=self.members,
            awaiting=self.count,
            group_id=self.group_id,
        )
        return solve(
            replace(problem, pack_hosts=False),
            self.count,
            require=self.require,
            max_leaves=self.max_leaves,
        )

    def together(self, new: Mapping[str, int]) -> dict[str, int]:
        """Return members plus new VMs by host, without hosts that have none."""
        return dict(+(Counter(self.members) + Counter(new)))


class Judge:
    """What a placement is worth by the definitions, for one case."""

    def __init__(self, case: Case):
        fabric = case.fabric
        self.case = case
        self.hops = {
            (a, b): fabrics.hops_by_names(fabric, a, b)
            for a, b in itertools.combinations_with_replacement(fabric.hosts, 2)
        }
        self.hops |= {(b, a): hops for (a, b), hops in self.hops.items()}
        if not case.pack_hosts:
            # One host is no nearer than one leaf.
            self.hops |= {(a, a): 1 for a in fabric.hosts}
        self.leaf = {host: fabric.leaf_of(host) for host in fabric.hosts}
        self.place = {
            leaf: int(tie_order(fabric, case.group_id)[fabric.switch_index(leaf)])
            for leaf in fabric.leaves
        }
        self.room = Counter[str]()
        for host, room in case.capacity.items():
            self.room[self.leaf[host]] += room
        self.domain = {host: fabric.ancestors(host)[-1] for host in fabric.hosts}
        if case.require is not None:
            level = {switch.name: switch.level for switch in fabric.switches}
            most = fabric.levels.index(case.require) + 1
            self.domain = {
                host: [name for name in fabric.ancestors(host) if level[name] <= most][-1]
                for host in fabric.hosts
            }

    def key(self, new: Mapping[str, int]) -> Key | None:
        """Return the key of new VMs by host, None where the members with them break a wish."""
        everyone = self.case.together(new)
        cost: float = sum(
            everyone[a] * everyone[b] * self.hops[a, b]
            for a, b in itertools.combinations(everyone, 2)
        )
        cost += sum(math.comb(everyone[host], 2) * self.hops[host, host] for host in everyone)
        leaves = {self.leaf[host] for host in everyone}
        limit = self.case.max_leaves
        if (
            len({self.domain[host] for host in everyone}) > 1
            or cost == math.inf
            or (limit is not None and len(leaves) > limit)
        ):
            return None
        used = {self.leaf[host] for host, count in new.items() if count}
        before = {self.leaf[host] for host, count in self.case.members.items() if count}
        return (
            cost,
            len(leaves),
            sum(self.room[leaf] for leaf in used) - sum(new.values()),
            tuple(sorted(self.place[leaf] for leaf in used - before)),
        )

    def all_keys(self) -> Iterator[Key]:
        """Yield the key of every way to place the VMs that breaks no wish."""
        hosts = [host for host, room in self.case.capacity.items() if room]
        for split in splits([self.case.capacity[host] for host in hosts], self.case.count):
            new = {host: count for host, count in zip(hosts, split, strict=True) if count}
            key = self.key(new)
            if key is not None:
                yield key


def splits(room: list[int], count: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to put ``count`` VMs into ``room``."""
    if not room:
        if not count:
            yield ()
        return
    for here in range(min(room[0], count) + 1):
        for rest in splits(room[1:], count - here):
            yield (here, *rest)


def random_switch(draw: random.Random, level: int, names: Iterator[int]) -> Any:
    """Return what stands below a switch of a level: 1 to 3 of everything, some branches short."""
    if level == 1:
        return [f"h{next(names)}" for _ in range(draw.randint(1, 3))]
    short = [draw.random() < 0.2 for _ in range(draw.randint(1, 3))]
    return {
        f"s{next(names)}": random_switch(
            draw, draw.randint(1, level - 1) if s else level - 1, names
        )
        for s in short
    }


def thin_and_dense_pods(draw: random.Random, names: Iterator[int]) -> Any:
    """Return pods of many small leaves and pods of one large leaf, where costs are often equal.

    Four VMs on 1, 1, 1, 1 cost 6 * 3 hops; on 3 and, in another pod, 1 they cost 3 + 3 * 5.
    """
    pods = [draw.choice([(1, 1, 1, 1), (3,)]), draw.choice([(3,), (1, 1, 1, 1), (2, 1), (1,)])]
    return {
        f"s{next(names)}": {f"s{next(names)}": [f"h{next(names)}" for _ in range(n)] for n in pod}
        for pod in pods
    }


def random_case(seed: int) -> Case:
    """Return a case of at most 9 hosts and 5 VMs."""
    draw = random.Random(seed)
    thin = draw.random() < 0.3
    while True:
        numbers = list(range(200))
        draw.shuffle(numbers)
        names = iter(numbers)
        depth = draw.randint(2, 4)
        tree = {
            f"r{i}": random_switch(draw, depth - 1 if i else depth, names)
            for i in range(draw.choice([1, 1, 1, 2]))
        }
        if thin:
            tree = {"r0": thin_and_dense_pods(draw, names)}
        fabric = Topology.from_tree(tree)
        if len(fabric.hosts) <= 9:
            break
    hosts = [*fabric.hosts, *(["stray"] if draw.random() < 0.1 else [])]
    members: dict[str, int] = {}
    if draw.random() < (0.2 if thin else 0.5):
        near = draw.choice(fabric.hosts)
        below = draw.choice([*fabric.ancestors(near), None])
        around = hosts if below is None else list(fabric.hosts_of(below))
        members = {host: draw.choice([0, 0, 1, 2]) for host in around}
    most = draw.choice([1, 2, 3])
    return Case(
        tree=tree,
        capacity={
            host: int(draw.random() < 0.95) if thin else draw.randint(0, most) for host in hosts
        },
        members=members,
        count=4 if thin else draw.randint(0, 5),
        require=draw.choice([None, None, *fabric.levels]),
        max_leaves=draw.choice([None, None, 1, 2, 3]),
        group_id=f"group-{seed}",
        pack_hosts=draw.random() < 0.8,
    )


def traits(case: Case) -> Iterator[str]:
    """Yield what is special about a case."""
    fabric = case.described
    yield f"{fabric.depth} levels"
    level = {switch.name: switch.level for switch in fabric.switches}
    parents = {switch.name: switch.parent for switch in fabric.switches}
    if any(p >= 0 and fabric.switches[p].level > level[s] + 1 for s, p in parents.items()):
        yield "an unbalanced branch"
    if len(fabric.roots) > 1:
        yield "islands"
    if "stray" in case.capacity:
        yield "a host that no switch names"
    if any(case.members.values()):
        yield "members"
    if max(case.capacity.values()) > 1:
        yield "capacity above 1"
    if case.require is not None:
        yield "require"
    if case.max_leaves is not None:
        yield "max_leaves"
    if not case.pack_hosts:
        yield "hosts are no level"


def test_no_placement_of_ten_thousand_random_groups_is_better_than_the_plan():
    seen = Counter[tuple[str, str]]()
    decided_by = Counter[str]()
    for seed in range(10_000):
        case = random_case(seed)
        judge = Judge(case)
        keys = set(judge.all_keys())
        answer = case.answer()
        seen.update((trait, type(answer).__name__) for trait in traits(case))
        assert isinstance(answer, Plan) == bool(keys), (seed, case, answer)
        if isinstance(answer, Rejection):
            continue
        best = min(keys)
        assert judge.key(answer.hosts) == best, (seed, case, answer)
        assert sum(answer.hosts.values()) == case.count, (seed, case, answer)
        assert all(answer.hosts[h] <= case.capacity[h] for h in answer.hosts), (seed, case, answer)
        if case.pack_hosts:
            assert answer.hop_bytes == best[0], (seed, case, answer)
        for criterion, at in (("leaves", 1), ("excess", 2), ("order", 3)):
            if len({key[at] for key in keys if key[:at] == best[:at]}) > 1:
                decided_by[criterion] += 1
    for trait in (
        *("2 levels", "3 levels", "4 levels", "islands", "an unbalanced branch"),
        *("a host that no switch names", "members", "capacity above 1"),
        *("require", "max_leaves", "hosts are no level"),
    ):
        assert min(seen[trait, "Plan"], seen[trait, "Rejection"]) >= 100, (trait, seen)
    # Equal cost, where fewer leaves, then less excess, then the order of leaves had to decide.
    assert min(decided_by[name] for name in ("leaves", "excess", "order")) >= 100, decided_by


# One entry a way: (cost, leaves, excess, minus the set of new leaves as bits, first leaf highest).
Sums = tuple[int, int, int, int]


def plain_knapsack(case: Case) -> Sums | None:
    """Return the least (cost, leaves, excess, -set) by the definition of hops, pair by pair.

    Children are joined one after the other: VMs on the two sides are 2 * level - 1 apart.
    O(hosts * VMs * capacity + switches * VMs^2), all in dicts of (new VMs, leaves) to sums.
    """
    fabric = case.fabric
    tie = tie_order(fabric, case.group_id)
    in_order = sorted(fabric.leaves, key=lambda name: int(tie[fabric.switch_index(name)]))
    bit = {leaf: 1 << place for place, leaf in enumerate(reversed(in_order))}
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
                sums = (x[0] + y[0] + apart, x[1] + y[1], x[2] + y[2], x[3] + y[3])
                if state not in both or sums < both[state]:
                    both[state] = sums
        return both

    def below(switch: str) -> Ways:
        if level[switch] > 1:
            ways: Ways = {(0, 0): (0, 0, 0, 0)}
            met = 0
            for child in fabric.children_of(switch):
                there = below(child)
                ways = joined(ways, there, 2 * level[switch] - 1, met, fixed[child])
                met += fixed[child]
            return ways
        ways, met = {(0, 0): (0, 0, 0, 0)}, 0
        for host in fabric.hosts_of(switch):
            here = case.members.get(host, 0)
            room = min(case.capacity.get(host, 0), case.count)
            takes: Ways = {(new, 0): (0, 0, 0, 0) for new in range(room + 1)}
            ways = joined(ways, takes, 1, met, here)
            met += here
        total = sum(case.capacity.get(host, 0) for host in fabric.hosts_of(switch))
        found: Ways = {}
        for (new, _), sums in ways.items():
            used = int(bool(new or fixed[switch]))
            is_first = bool(new) and not fixed[switch]
            found[new, used if case.max_leaves else 0] = (
                sums[0],
                used,
                total - new if new else 0,
                -bit[switch] if is_first else 0,
            )
        return found

    most = fabric.depth if case.require is None else fabric.levels.index(case.require) + 1
    everyone = sum(case.members.values())
    tops = [
        switch.name
        for switch in fabric.switches
        if switch.level <= most
        and (switch.parent < 0 or fabric.switches[switch.parent].level > most)
        and fixed[switch.name] == everyone
    ]
    found = [sums for top in tops for (new, _), sums in below(top).items() if new == case.count]
    return min(found, default=None)


def sums_of(case: Case, answer: Plan) -> Sums:
    """Return the sums of a plan, the cost pair by pair."""
    fabric = case.fabric
    everyone = case.together(answer.hosts)
    cost = 0
    hops = {pair: fabric.hops(*pair) for pair in itertools.combinations(everyone, 2)}
    for (a, b), apart in hops.items():
        cost += everyone[a] * everyone[b] * int(apart)
    tie = tie_order(fabric, case.group_id)
    in_order = sorted(fabric.leaves, key=lambda name: int(tie[fabric.switch_index(name)]))
    bit = {leaf: 1 << place for place, leaf in enumerate(reversed(in_order))}
    used = {fabric.leaf_of(host) for host in answer.hosts}
    before = {fabric.leaf_of(host) for host, count in case.members.items() if count}
    room = sum(case.capacity.get(host, 0) for leaf in used for host in fabric.hosts_of(leaf))
    return (
        cost,
        len(used | before),
        room - sum(answer.hosts.values()),
        -sum(bit[leaf] for leaf in used - before),
    )


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


@pytest.mark.parametrize("wishes", LARGE)
def test_a_plain_knapsack_over_hundreds_of_hosts_finds_nothing_better(wishes: dict[str, Any]):
    plans = 0
    for seed in range(4):
        case = large_case(seed, **wishes)
        assert len(case.fabric.hosts) > 250
        expected, answer = plain_knapsack(case), case.answer()
        if isinstance(answer, Rejection):
            assert expected is None
            continue
        plans += 1
        assert sums_of(case, answer) == expected
        assert answer.hop_bytes == sums_of(case, answer)[0]
    assert plans >= 2


@st.composite
def cases(draw: st.DrawFn) -> Case:
    group = draw(fabrics.groups(max_members=0))
    topology = group.topology
    # Members on few hosts, or hardly a case could keep its wishes.
    with_members = draw(st.lists(st.sampled_from(topology.hosts), max_size=2))
    return Case(
        tree=group.tree,
        capacity=group.capacity,
        members={host: draw(st.integers(1, 3)) for host in with_members},
        count=group.awaiting,
        require=draw(st.sampled_from([None, None, *topology.levels])),
        max_leaves=draw(st.one_of(st.none(), st.integers(1, 4))),
        group_id=draw(st.sampled_from(["", "one", "two", "three"])),
    )


def planned(case: Case) -> Plan:
    """Return the plan of a drawn case; cases without one are drawn again."""
    answer = case.answer()
    assume(isinstance(answer, Plan))
    assert isinstance(answer, Plan)
    return answer


@given(cases())
def test_a_plan_holds_exactly_the_vms_asked_for_and_never_more_than_fit(case: Case):
    answer = planned(case)
    assert sum(answer.hosts.values()) == case.count
    for host, count in answer.hosts.items():
        assert 1 <= count <= case.capacity[host]


@given(cases())
def test_a_plan_says_the_same_thing_by_place_by_host_and_by_leaf(case: Case):
    answer = planned(case)
    fabric = case.fabric
    assert Counter(answer.places) == answer.hosts
    leaf_by_leaf = [fabric.leaf_of(host) for host in answer.places]
    assert Counter(leaf_by_leaf) == answer.leaves
    # One leaf after the other, those with most of the group first.
    assert [leaf for leaf, _ in itertools.groupby(leaf_by_leaf)] == list(answer.leaves)
    everyone = case.together(answer.hosts)
    here = [sum(everyone.get(h, 0) for h in fabric.hosts_of(leaf)) for leaf in answer.leaves]
    assert here == sorted(here, reverse=True)
    assert answer.hop_bytes == fabrics.naive_hop_bytes(fabric, Counter(everyone).elements())


@given(cases())
def test_require_and_max_leaves_hold_with_the_members_included(case: Case):
    answer = planned(case)
    fabric = case.fabric
    everyone = case.together(answer.hosts)
    assert everyone.keys() <= set(fabric.hosts_of(answer.switch))
    if case.require is not None:
        level = fabric.switches[fabric.switch_index(answer.switch)].level
        assert level <= fabric.levels.index(case.require) + 1
    if case.max_leaves is not None:
        assert len({fabric.leaf_of(host) for host in everyone}) <= case.max_leaves


@given(cases(), st.data())
def test_the_order_of_the_description_and_of_the_dicts_changes_nothing(
    case: Case, data: st.DataObject
):
    def turned(counts: dict[str, int]) -> dict[str, int]:
        return {host: counts[host] for host in data.draw(st.permutations(list(counts)))}

    other = replace(
        case,
        tree=fabrics.shuffled(data.draw, case.tree),
        capacity=turned(case.capacity),
        members=turned(case.members),
    )
    one, two = case.answer(), other.answer()
    assert one == two
    if isinstance(one, Plan) and isinstance(two, Plan):
        assert list(one.hosts.items()) == list(two.hosts.items())
        assert list(one.leaves.items()) == list(two.leaves.items())


@given(cases(), st.data())
def test_more_room_never_costs_more(case: Case, data: st.DataObject):
    answer = planned(case)
    more = Counter(case.capacity)
    more.update(data.draw(st.lists(st.sampled_from(case.described.hosts), min_size=1)))
    roomy = replace(case, capacity=dict(more)).answer()
    assert isinstance(roomy, Plan)
    assert roomy.hop_bytes <= answer.hop_bytes


@given(cases(), st.data())
def test_a_planned_vm_that_has_become_a_member_leaves_the_cost_as_it_was(
    case: Case, data: st.DataObject
):
    answer = planned(replace(case, count=case.count + 1))
    host = data.draw(st.sampled_from(answer.places))
    later = replace(
        case,
        capacity=case.capacity | {host: case.capacity[host] - 1},
        members=case.members | {host: case.members.get(host, 0) + 1},
    ).answer()
    assert isinstance(later, Plan)
    assert later.hop_bytes == answer.hop_bytes


@given(fabrics.groups(), st.data())
def test_any_way_to_fill_the_room_costs_at_least_as_much(group: fabrics.Group, data: st.DataObject):
    room = list(Counter(group.capacity).elements())
    answer = Case(group.tree, group.capacity, group.members, group.awaiting).answer()
    if len(room) < group.awaiting:
        assert isinstance(answer, Rejection)
        return
    counts = Counter(group.members)
    counts.update(data.draw(st.permutations(room))[: group.awaiting])
    cost = fabrics.naive_hop_bytes(group.topology, counts.elements())
    if isinstance(answer, Plan):
        assert answer.hop_bytes <= cost
    else:
        assert cost == math.inf


ANOTHER_PROCESS = """
from hpc_sched.core.planner import plan
from tests.unit import fabrics
fabric = fabrics.row_of_leaves({f"leaf{i:02}": 4 for i in range(12)})
answer = plan(
    topology=fabric,
    capacity={host: 1 for host in set(fabric.hosts)},
    members={"leaf03-00": 1},
    count=20,
    group_id="group-1",
)
print(answer.places, list(answer.hosts), list(answer.leaves))
"""


def test_the_same_input_gives_the_same_plan_whatever_the_hash_seed():
    said = {
        subprocess.run(
            [sys.executable, "-c", ANOTHER_PROCESS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(said) == 1
    assert "leaf03" in said.pop()


def test_two_groups_on_an_empty_fabric_mostly_start_in_different_leaves():
    fabric = fabrics.row_of_leaves({f"leaf{i:02}": 4 for i in range(20)})
    chosen = Counter[str]()
    for group in range(100):
        answer = plan(
            topology=fabric,
            capacity=dict.fromkeys(fabric.hosts, 1),
            members={},
            count=4,
            group_id=f"group-{group}",
        )
        assert isinstance(answer, Plan)
        [leaf] = answer.leaves
        chosen[leaf] += 1
    assert len(chosen) >= 15
    assert max(chosen.values()) <= 20


def worked(
    topology: Topology,
    capacity: Mapping[str, int],
    count: int,
    members: Mapping[str, int] | None = None,
    **wishes: Any,
) -> Plan | Rejection:
    return plan(topology=topology, capacity=capacity, members=members or {}, count=count, **wishes)


EVERYWHERE = dict.fromkeys(fabrics.two_pods().hosts, 1)


@pytest.mark.parametrize(
    ("capacity", "members", "count", "cost"),
    [
        pytest.param(EVERYWHERE, {}, 0, 0, id="nobody costs nothing"),
        pytest.param({}, {}, 0, 0, id="nobody needs no room"),
        pytest.param(EVERYWHERE, {}, 1, 0, id="one VM costs nothing"),
        pytest.param(EVERYWHERE, {}, 2, 1, id="two share a leaf"),
        pytest.param(EVERYWHERE, {}, 4, 2 + 4 * 3, id="four share a pod"),
        pytest.param(EVERYWHERE, {}, 5, 2 + 4 * 3 + 4 * 5, id="the fifth is in the other pod"),
        pytest.param(EVERYWHERE, {}, 9, None, id="nine do not fit"),
        pytest.param({"a1": 4, "b1": 4}, {}, 4, 0, id="four share a host"),
        pytest.param({"d2": 1}, {"a1": 1}, 1, 5, id="where there is room, however far"),
        pytest.param(EVERYWHERE, {"a1": 1, "d1": 1}, 0, 5, id="members alone have their cost"),
        pytest.param(
            {"a2": 1, "b1": 1, "c1": 1},
            {"a1": 1},
            2,
            1 + 3 + 3,
            id="as near to the member as can be",
        ),
        pytest.param(
            {"a2": 1, "b1": 2}, {"a1": 1}, 2, 3 + 3, id="two on one host, though one fits nearer"
        ),
    ],
)
def test_worked_examples_on_three_levels(
    capacity: dict[str, int], members: dict[str, int], count: int, cost: float | None
):
    answer = worked(fabrics.two_pods(), capacity, count, members)
    assert (answer.hop_bytes if isinstance(answer, Plan) else None) == cost


def test_nobody_to_place_is_an_empty_plan_with_the_cost_of_the_members():
    answer = worked(fabrics.two_pods(), EVERYWHERE, 0, {"a1": 1, "b1": 1})
    assert answer == Plan(hosts={}, places=(), leaves={}, hop_bytes=3, switch="core")


def test_a_branch_without_a_pod_is_as_far_away_as_another_pod():
    near = worked(fabrics.lopsided(), {"a1": 1, "b1": 1, "c1": 1, "d1": 1}, 2)
    far = worked(fabrics.lopsided(), {"c1": 1, "d1": 1}, 2)
    assert isinstance(near, Plan)
    assert isinstance(far, Plan)
    assert (near.hop_bytes, set(near.hosts)) == (3, {"a1", "b1"})
    assert (far.hop_bytes, set(far.hosts)) == (5, {"c1", "d1"})


def test_a_leaf_beside_the_pods_counts_as_a_pod_of_its_own():
    # c1 and c2 stand under leaf3, which hangs at the core.
    answer = worked(fabrics.lopsided(), {"a1": 1, "c1": 1, "c2": 1, "d1": 1}, 2, require="pod")
    assert isinstance(answer, Plan)
    assert (answer.switch, set(answer.hosts)) == ("leaf3", {"c1", "c2"})
    assert isinstance(worked(fabrics.lopsided(), {"c1": 1, "d1": 1}, 2, require="pod"), Rejection)


@pytest.mark.parametrize(
    ("capacity", "members", "count", "cost"),
    [
        pytest.param({"a1": 1, "e1": 1}, {}, 2, None, id="no island holds both"),
        pytest.param({"a1": 1, "e1": 1, "e2": 1}, {}, 2, 1, id="the smaller island holds both"),
        pytest.param({"a2": 1, "e2": 1}, {"e1": 1}, 1, 1, id="on the island of the member"),
        pytest.param({"a1": 9, "a2": 9}, {"e1": 1}, 1, None, id="only away from the member"),
        pytest.param({}, {"a1": 1, "e1": 1}, 0, None, id="members on two islands already"),
        pytest.param(
            dict.fromkeys(fabrics.islands().hosts, 1), {}, 5, None, id="larger than every island"
        ),
        pytest.param({"x": 2, "a1": 1}, {}, 2, 0, id="a host nobody described is an island"),
    ],
)
def test_a_group_is_never_spread_over_islands(
    capacity: dict[str, int], members: dict[str, int], count: int, cost: float | None
):
    answer = worked(fabrics.islands(), capacity, count, members)
    assert (answer.hop_bytes if isinstance(answer, Plan) else None) == cost


def test_the_plan_sees_that_two_leaves_are_neighbours_where_listing_1_takes_the_largest():
    """Four VMs, one a host.

    ::

                 core
               /      \\
            pod1        pod2
              |        /    \\
            leaf1   leaf2  leaf3
          a1 a2 a3  b1 b2  c1 c2
    """
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {"leaf1": ["a1", "a2", "a3"]},
                "pod2": {"leaf2": ["b1", "b2"], "leaf3": ["c1", "c2"]},
            }
        }
    )
    free = dict.fromkeys(fabric.hosts, 1)
    answer = worked(fabric, free, 4)
    assert isinstance(answer, Plan)
    assert set(answer.hosts) == {"b1", "b2", "c1", "c2"}
    assert answer.hop_bytes == 2 + 4 * 3
    weights = listing1(topology=fabric, capacity=free, members={}, awaiting=4)
    assert max(weights, key=weights.__getitem__) == "leaf1"
    alone = {"a1": 1, "a2": 1, "a3": 1, "b1": 1}
    assert hop_bytes_of_counts(topology=fabric, counts=alone) == 3 + 3 * 5


def test_of_equal_costs_the_plan_that_leaves_whole_leaves_whole_is_taken():
    """Two VMs, one a host; leaf2 has just the room.

    ::

                 core
               /   |   \\
          leaf1  leaf2  leaf3
          3 free 2 free 4 free
    """
    fabric = fabrics.row_of_leaves({"leaf1": 3, "leaf2": 2, "leaf3": 4})
    for group in range(20):
        free = dict.fromkeys(fabric.hosts, 1)
        answer = worked(fabric, free, 2, group_id=f"group-{group}")
        assert isinstance(answer, Plan)
        assert answer.leaves == {"leaf2": 2}


def test_the_leaf_of_a_member_has_no_say_in_the_order_of_equal_plans():
    """Two VMs beside the member of m: one there and one in x, or both in y; 2 * 3 + 1 hops each.

    ::

                   core
               /    |    \\
              m     x     y
           m1 m2   x1   y1 y2
    """
    fabric = Topology.from_tree({"core": {"m": ["m1", "m2"], "x": ["x1"], "y": ["y1", "y2"]}})
    free = {"m2": 1, "x1": 1, "y1": 1, "y2": 1}
    seen = set()
    for group in range(20):
        tie = tie_order(fabric, f"group-{group}")
        x_first = tie[fabric.switch_index("x")] < tie[fabric.switch_index("y")]
        answer = worked(fabric, free, 2, {"m1": 1}, group_id=f"group-{group}")
        assert isinstance(answer, Plan)
        assert answer.hop_bytes == 7
        assert answer.leaves == ({"m": 1, "x": 1} if x_first else {"y": 2})
        seen.add(bool(x_first))
    assert seen == {True, False}


def test_the_slots_begin_in_the_leaf_with_most_of_the_group_members_included():
    free = {"a1": 1, "b1": 1, "b2": 1}
    answer = worked(fabrics.two_leaves(), free, 3, {"a1": 3})
    assert isinstance(answer, Plan)
    assert answer.places == ("a1", "b1", "b2")


def test_of_equal_costs_the_plan_on_fewer_leaves_is_taken():
    """Four VMs, one a host: 6 * 3 hops in pod1, 3 * 1 + 3 * 5 with three of them in pod2.

    ::

                   core
               /          \\
             pod1         pod2
          /  |  |  \\        |
         l1  l2 l3 l4       l5
         a1  b1 c1 d1    e1 e2 e3
    """
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {"l1": ["a1"], "l2": ["b1"], "l3": ["c1"], "l4": ["d1"]},
                "pod2": {"l5": ["e1", "e2", "e3"]},
            }
        }
    )
    answer = worked(fabric, dict.fromkeys(fabric.hosts, 1), 4)
    assert isinstance(answer, Plan)
    assert answer.hop_bytes == 18
    assert sorted(answer.leaves.values()) == [1, 3]
    assert answer.leaves["l5"] == 3


def test_a_bound_on_leaves_is_kept_where_more_leaves_would_cost_less():
    """Three VMs, one a host: pod1 costs 9, the two leaves of pod2 and pod3 cost 11.

    ::

                      core
              /         |        \\
            pod1       pod2      pod3
          / | \\         |         |
         l1 l2 l3       l4        l5
         a1 b1 c1      d1 d2      e1
    """
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {"l1": ["a1"], "l2": ["b1"], "l3": ["c1"]},
                "pod2": {"l4": ["d1", "d2"]},
                "pod3": {"l5": ["e1"]},
            }
        }
    )
    free = dict.fromkeys(fabric.hosts, 1)
    for bound, cost, leaves in ((3, 9, 3), (2, 11, 2)):
        answer = worked(fabric, free, 3, max_leaves=bound)
        assert isinstance(answer, Plan)
        assert (answer.hop_bytes, len(answer.leaves)) == (cost, leaves)
    assert isinstance(worked(fabric, free, 3, max_leaves=1), Rejection)
    # The leaf of a member is one of them.
    assert isinstance(worked(fabric, {"d1": 1, "a1": 1}, 1, {"b1": 1}, max_leaves=1), Rejection)


def test_a_host_that_the_topology_does_not_name_is_a_leaf_at_the_root():
    free = {"a1": 1, "x": 1}
    answer = worked(fabrics.two_pods(), free, 2)
    assert isinstance(answer, Plan)
    assert answer.hop_bytes == 5
    assert answer.leaves == {"leaf1": 1, "x": 1}
    assert isinstance(worked(fabrics.two_pods(), free, 2, require="pod"), Rejection)
    assert isinstance(worked(fabrics.two_pods(), free, 1, {"y": 1}), Plan)


def test_a_level_is_one_of_the_topology_that_was_given():
    # Under the only leaf x is a second one, with a switch of level 2 above both.
    fabric = Topology.from_tree({"sw": ["n1"]})
    with pytest.raises(exceptions.RequestError, match=r"no level 'pod': expected one of leaf$"):
        worked(fabric, {"n1": 1, "x": 1}, 2, require="pod")
    answer = worked(fabric, {"n1": 1, "x": 1}, 2)
    assert isinstance(answer, Plan)
    assert answer.hop_bytes == 3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param({"capacity": {"a1": -1}}, "capacity of host 'a1'", id="capacity below 0"),
        pytest.param({"members": {"a1": -1}}, "members of host 'a1'", id="members below 0"),
        pytest.param({"count": -1}, "negative: -1", id="count below 0"),
        pytest.param({"max_leaves": 0}, "max_leaves is 0: expected at least 1", id="no leaf"),
        pytest.param(
            {"require": "rack"},
            r"no level 'rack': expected one of leaf, pod, core$",
            id="a level that is none of leaf, pod, core",
        ),
    ],
)
def test_a_bad_argument_is_named(arguments: dict[str, Any], error: str):
    good: dict[str, Any] = {"capacity": EVERYWHERE, "members": {}, "count": 2}
    with pytest.raises(ValueError, match=error):
        plan(topology=fabrics.two_pods(), **(good | arguments))


def test_a_fabric_of_a_thousand_hosts_and_a_group_of_128_is_no_burden():
    fabric = fabrics.row_of_leaves({f"leaf{i:02}": 32 for i in range(32)})
    answer = worked(fabric, dict.fromkeys(fabric.hosts, 4), 128)
    assert isinstance(answer, Plan)
    # One leaf takes them all, four on each host.
    assert answer.hop_bytes == math.comb(128, 2) - 32 * math.comb(4, 2)
    assert set(answer.hosts.values()) == {4}


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 4))
def test_a_group_that_fills_whole_leaves_leaves_nothing_over(leaves: int, each: int):
    fabric = fabrics.row_of_leaves({f"leaf{i:02}": 5 for i in range(60)})
    answer = worked(fabric, dict.fromkeys(fabric.hosts, each), 5 * each * leaves)
    assert isinstance(answer, Plan)
    assert set(answer.leaves.values()) == {5 * each}
    assert len(answer.leaves) == leaves
