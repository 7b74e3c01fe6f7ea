"""Small random groups of all kinds, for a comparison with all plans that there are."""

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.fragmentation.price import FragmentationPrice
from hpc_sched.core.fragmentation.rates import rates_of
from hpc_sched.core.fragmentation.required_price import where_required
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.topology import Topology
from tests.unit.fabrics import Case

MOST_LEAVES = 8
MOST_VMS = 10

# The most hosts of a leaf, and the most VMs that a host takes.
ROOMS = [(4, 1), (3, 4), (2, 9)]
# Of a leaf and a pod.
RATES = [(0.1, 0.2), (0.1, 0.2), (0.5, 0.0), (0.0, 1.0), (2.0, 1.0), (0.001, 0.002)]
# The room of the leaves of a pod.
THIN = [(1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2)]


class Room(NamedTuple):
    """A fabric, the capacity of its hosts, and how many VMs are to be placed there."""

    tree: dict[str, Any]
    capacity: dict[str, int]
    count: int


def numbers(draw: random.Random) -> Iterator[int]:
    """Return numbers for the names of switches and hosts, in random order."""
    drawn = list(range(200))
    draw.shuffle(drawn)
    return iter(drawn)


def branch(draw: random.Random, level: int) -> Any:
    """Return what is below a switch of a level, as nested lists; None is a leaf.

    The first switch below is one level lower, some of the others are lower still.
    """
    if level == 1:
        return None
    return [
        branch(draw, draw.randint(1, level - 1) if i and draw.random() < 0.25 else level - 1)
        for i in range(draw.choice([1, 1, 2, 2, 3]))
    ]


def leaves_of(shape: Any) -> int:
    """Return the number of leaves of nested lists."""
    return 1 if shape is None else sum(map(leaves_of, shape))


def random_islands(draw: random.Random) -> list[Any]:
    """Return 2 to 5 levels of at most 8 leaves: mostly one island, or some of any depth."""
    depth = draw.randint(2, 5)
    while True:
        number = draw.choice([1, 1, 1, 1, 2, 3])
        shapes = [branch(draw, draw.randint(1, depth) if i else depth) for i in range(number)]
        if 2 <= leaves_of(shapes) <= MOST_LEAVES:
            return shapes


def any_room(draw: random.Random) -> Room:
    """Return a fabric of any shape; leaves are nearly all alike, or of any size."""
    names = numbers(draw)
    most_hosts, most = draw.choice(ROOMS)
    alike = draw.random() < 0.4
    usual = [draw.randint(most > 1, most) for _ in range(draw.randint(1, most_hosts))]
    capacity: dict[str, int] = {}

    def grow(shape: Any) -> Any:
        if shape is not None:
            return {f"s{next(names)}": grow(below) for below in shape}
        rooms = usual
        if not alike or draw.random() < 0.1:
            rooms = [draw.randint(0, most) for _ in range(draw.randint(1, most_hosts))]
        hosts = [f"h{next(names)}" for _ in rooms]
        capacity.update(zip(hosts, rooms, strict=True))
        return hosts

    tree = {f"s{next(names)}": grow(shape) for shape in random_islands(draw)}
    if not alike and draw.random() < 0.2:
        for host in draw.sample(list(capacity), min(2, len(capacity))):
            capacity[host] = draw.randint(5, 15)
    fabric = Topology.from_tree(tree)
    largest = max(sum(capacity[h] for h in fabric.hosts_of(root)) for root in fabric.roots)
    return Room(tree, capacity, draw.randint(0, min(largest + 1, MOST_VMS)))


def thin_and_dense_pods(draw: random.Random) -> Room:
    """Return a pod of small leaves, and pods of one larger leaf, two with as much room together.

    Costs are often equal: four VMs on 1, 1, 1, 1 cost 6 * 3 hops; on 3 and, in another pod, 1
    they cost 3 + 3 * 5. Constraints often bind: on 2 and, in another pod, 2 they cost 2 + 4 * 5.

    ::

                    (maybe more levels)
                            |
                          switch
               /         |     |      \\
             pod        pod   pod    (pod)
           /  ..  \\     |     |       |
        leaf  ..  leaf  leaf  leaf   leaf
    """
    names = numbers(draw)
    thin = draw.choice(THIN)
    large = draw.randint((sum(thin) + 1) // 2, sum(thin) - 1)
    pods = [thin, (large,), (sum(thin) - large,)]
    if draw.random() < 0.3:
        pods.append((draw.randint(1, 3),))
    has_large_hosts = draw.random() < 0.4
    capacity: dict[str, int] = {}

    def leaf(room: int) -> list[str]:
        rooms = [room] if has_large_hosts else [1] * room
        hosts = [f"h{next(names)}" for _ in rooms]
        capacity.update(zip(hosts, rooms, strict=True))
        return hosts

    tree: dict[str, Any] = {
        f"s{next(names)}": {f"s{next(names)}": leaf(room) for room in pod} for pod in pods
    }
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        tree = {f"s{next(names)}": tree}
    return Room(tree, capacity, sum(thin) - (draw.random() < 0.2))


def random_case(seed: int) -> Case:
    """Return a group of at most 10 VMs on at most 8 leaves, always the same for a seed."""
    draw = random.Random(f"small case {seed}")
    is_thin = draw.random() < 0.25
    tree, capacity, count = thin_and_dense_pods(draw) if is_thin else any_room(draw)
    fabric = Topology.from_tree(tree)
    if len(fabric.leaves) < MOST_LEAVES and draw.random() < 0.1:
        capacity["stray"] = draw.randint(0, 2)
    members = {}
    if draw.random() < (0.2 if is_thin else 0.4):
        members = random_members(draw, fabric, list(capacity))
    require = None
    if draw.random() < 0.4:
        require = fabric.levels[1] if is_thin else draw.choice(fabric.levels)
    max_leaves = None
    if draw.random() < 0.5:
        rooms = [sum(map(capacity.__getitem__, fabric.hosts_of(leaf))) for leaf in fabric.leaves]
        fewest = fewest_leaves(rooms, count)
        max_leaves = draw.choice([fewest, fewest, fewest + 1, draw.randint(1, 3)])
    pack_hosts = draw.random() < 0.75
    min_leaves = draw.choice([0, 0, 2, 3, 4, 6])
    return Case(
        tree=tree,
        capacity=capacity,
        members=members,
        count=count,
        require=require,
        max_leaves=max_leaves,
        min_leaves=min_leaves if max_leaves is None else min(min_leaves, max_leaves),
        group_id=f"group-{seed}",
        pack_hosts=pack_hosts,
        packing=None if pack_hosts or draw.random() < 0.5 else packing(draw, len(capacity)),
    )


def priced_case(seed: int) -> Case:
    """Return a case with a price of free slots, always the same for a seed.

    If the group must be below one switch of a level, with that price.
    """
    case, draw = random_case(seed), random.Random(f"price {seed}")
    rates = rates_of(*draw.choice(RATES))
    price = FragmentationPrice(rates, draw.randint(1, 9), draw.randint(1, 20))
    if case.require is not None:
        price = where_required(price, case.fabric.levels.index(case.require) + 1)
    return replace(case, price=price)


def case_in_parts(seed: int) -> Case:
    """Return a case in segments, or balanced, or both, always the same for a seed."""
    draw = random.Random(f"parts {seed}")
    case = priced_case(seed) if draw.random() < 0.4 else random_case(seed)
    level = draw.choice([None, None, None, *case.fabric.levels])
    size, is_balanced = draw.choice([1, 2, 2, 3, 3, 4, 5]), draw.random() < 0.4
    most = None if level is not None else case.max_leaves
    return replace(
        case, min_leaves=0, max_leaves=most, parts=Parts(size, level, is_balanced or size == 1)
    )


def full_case_in_parts(seed: int) -> Case:
    """Return a case in parts where rooms are near whole parts, always the same for a seed.

    Members are on an island, and often under leaves without room: some begin parts, and some are
    as many as a last part.
    """
    case, draw = case_in_parts(seed), random.Random(f"full {seed}")
    assert case.parts is not None
    fabric, size, members = case.fabric, case.parts.size, dict[str, int]()
    near = [0, 0, 1, size - 1, size, size, size + 1, 2 * size]
    capacity = {host: draw.choice(near) for host in case.capacity}
    hosts = fabric.hosts_of(draw.choice(fabric.roots))
    for host in draw.sample(hosts, draw.choice([0, 1, 1, min(2, len(hosts))])):
        members[host] = draw.choice([1, size - 1, size, size + 1, case.count % size])
        if draw.random() < 0.5:
            capacity |= dict.fromkeys(fabric.hosts_of(fabric.leaf_of(host)), 0)
    return replace(case, capacity=capacity, members=members, packing=None)


def fewest_leaves(rooms: Iterable[int], count: int) -> int:
    """Return the fewest leaves that hold a number of VMs, wherever they are; 1 if none do."""
    sums = itertools.accumulate(sorted(rooms, reverse=True))
    return next((number for number, room in enumerate(sums, 1) if room >= count), 1)


def random_members(draw: random.Random, fabric: Topology, hosts: list[str]) -> dict[str, int]:
    """Return members on some hosts below one switch, or anywhere."""
    near = draw.choice(fabric.hosts)
    below = draw.choice([*fabric.ancestors(near), *fabric.ancestors(near), None])
    around = hosts if below is None else fabric.hosts_of(below)
    return {host: draw.choice([0, 0, 0, 1, 2, 3]) for host in around}


def packing(draw: random.Random, hosts: int) -> MDOBPInput:
    """Return the input of MDOBP for a number of hosts: processors and memory, partly in use."""
    return MDOBPInput(
        demand=np.array([1.0, draw.choice([1, 2, 4])]),
        free=np.array([[draw.randint(1, 16), draw.randint(1, 32)] for _ in range(hosts)], float),
        usable=np.array([[16.0, 32.0]] * hosts),
        members_first=draw.choice([-1, 0, 1]),
    )


def traits(case: Case) -> Iterator[str]:
    """Yield what is special about a case."""
    fabric = case.fabric
    yield f"{fabric.depth} levels"
    switches = fabric.switches
    if any(s.parent >= 0 and switches[s.parent].level > s.level + 1 for s in switches):
        yield "unbalanced"
    roots = [switch.level for switch in switches if switch.parent < 0]
    if len(roots) > 1:
        yield "islands"
    if len(set(roots)) > 1:
        yield "islands of different depth"
    rooms = [
        sorted(case.capacity[host] for host in fabric.hosts_of(leaf)) for leaf in fabric.leaves
    ]
    if len(rooms) > 2 and all(room == rooms[0] for room in rooms):
        yield "equal leaves"
    most = max(case.capacity.values())
    yield next(f"capacity 0..{bound}" for bound in (1, 4, 9, 15) if most <= bound)
    if most >= 5 and sum(case.capacity.values()) <= 2 * most:
        yield "few large hosts"
    if "stray" in case.capacity:
        yield "a host that no switch names"
    if any(case.members.values()):
        yield "members"
    if case.require is not None:
        yield f"require level {fabric.levels.index(case.require) + 1}"
    if case.max_leaves is not None:
        yield "max_leaves"
    if case.min_leaves:
        yield "min_leaves"
    if case.packing is not None:
        yield "packing"
    elif not case.pack_hosts:
        yield "spread"
