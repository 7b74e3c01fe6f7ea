"""The exact plan against every other way to place a small group."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from hpc_sched.core.plan.problem import tie_order
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.fabrics import Case

# What the planner minimises: Hop-Byte, leaves, excess capacity, the new leaves in tie order.
Key = tuple[float, int, int, tuple[int, ...]]


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


@pytest.mark.parametrize(
    "number",
    [1_000, pytest.param(10_000, marks=pytest.mark.slow("ten thousand exhaustive searches"))],
)
def test_no_placement_of_a_random_group_is_better_than_the_plan(number: int):
    seen = Counter[tuple[str, str]]()
    decided_by = Counter[str]()
    for seed in range(number):
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
        assert min(seen[trait, "Plan"], seen[trait, "Rejection"]) >= number / 100, (trait, seen)
    # Equal cost, where fewer leaves, then less excess, then the order of leaves had to decide.
    assert min(decided_by[name] for name in ("leaves", "excess", "order")) >= number / 100, (
        decided_by
    )
