"""Drawn clouds of bare metal, each with a set of leaves made first that holds a group.

::

                 core
        /         |        \\
      pod0       pod1 ..   pod9
     /  | \\
   l000 l001 ..              10 to 36 nodes each, of which some are free
    s3   s0  ..              any service owns nodes below any leaf
"""

import random
from collections import Counter
from dataclasses import dataclass

from hpc_sched.core.constraints import Constraints
from hpc_sched.topology import Topology
from tests.unit.recorded_groups import Group

PODS = 10


@dataclass(frozen=True)
class Cloud:
    """A group that fits."""

    group: Group
    leaves: tuple[str, ...]  # of the set that holds it: the witness
    kind: str


class _Drawing:
    """The free nodes of each service below each leaf, while they are drawn."""

    def __init__(self, seed: int, nodes: int) -> None:
        self.draw = draw = random.Random(f"bare metal {nodes} {seed}")
        self.per_leaf = draw.choice([10, 16, 20, 36])
        self.leaves = nodes // self.per_leaf
        self.services = draw.choice([4, 8, 16, 32, 64, 200])
        self.most_per_host = draw.randint(2, 8)
        self.kind = draw.choice(["mixed", "mixed", "in rows", "few a leaf", "exact cover"])
        free = draw.choice([0.2, 0.5, 0.8, 1.0])
        self.free = [
            Counter(
                self._service(leaf, homes) for _ in range(self.per_leaf) if draw.random() < free
            )
            for leaf in range(self.leaves)
            for homes in [draw.sample(range(self.services), draw.randint(1, 4))]
        ]

    def _service(self, leaf: int, homes: list[int]) -> int:
        """Return the service of a node."""
        if self.kind == "few a leaf":
            return self.draw.choice(homes)
        if self.kind == "in rows" and self.draw.random() < 0.7:
            return leaf * self.services // self.leaves
        return self.draw.randrange(self.services)

    def taken(self, leaves: list[int]) -> int:
        """Return the VMs that leaves take together."""
        total: Counter[int] = sum((self.free[leaf] for leaf in leaves), Counter())
        return sum(min(nodes, self.most_per_host) for nodes in total.values())

    def witness(self, among: list[int], number: int) -> list[int]:
        """Return leaves that hold the group: any, good ones, or those of an exact cover."""
        chosen = self.draw.sample(among, number)
        if self.kind == "exact cover":
            places = [s for s in range(self.services) for _ in range(self.most_per_host)]
            if self.draw.random() < 0.5:
                self.draw.shuffle(places)
            for at, leaf in enumerate(chosen):
                first = at * self.per_leaf
                self.free[leaf] = Counter(places[first : first + self.per_leaf])
        elif self.draw.random() < 0.5:
            chosen = chosen[:1]
            while len(chosen) < number:
                others = [leaf for leaf in among if leaf not in chosen]
                chosen.append(max(others, key=lambda leaf: self.taken([*chosen, leaf])))
        return chosen


def cloud(seed: int, nodes: int) -> Cloud:
    """Return a cloud, always the same for a seed. The group uses all places of its witness.

    A fourth of the groups require one pod, a fourth have members.
    """
    drawn = _Drawing(seed, nodes)
    draw, pod_of = drawn.draw, [leaf * PODS // drawn.leaves for leaf in range(drawn.leaves)]
    tree: dict[str, dict[str, list[str]]] = {}
    for leaf, pod in enumerate(pod_of):
        names = [f"n{leaf:03}-{node}" for node in range(drawn.per_leaf)]
        tree.setdefault(f"pod{pod}", {})[f"l{leaf:03}"] = names
    fabric = Topology.from_tree({"core": tree})
    require, pod = (None, "pod")[draw.random() < 0.25], draw.randrange(PODS)
    among = [leaf for leaf in range(drawn.leaves) if require is None or pod_of[leaf] == pod]
    witness = drawn.witness(among, min(draw.randint(2, 10), len(among)))
    places, room = [], []
    for leaf, free in enumerate(drawn.free):
        services = [*free.elements()]
        full = [draw.randrange(drawn.services) for _ in range(drawn.per_leaf - len(services))]
        names = tree[f"pod{pod_of[leaf]}"][f"l{leaf:03}"]
        places += [(f"s{s}", n) for s, n in zip(services + full, names, strict=True)]
        room += [1] * len(services) + [0] * len(full)
    vms = drawn.taken(witness)
    members: dict[tuple[str, str], int] = {}
    if draw.random() < 0.25:
        # Some of the group run there already.
        used = [at for at, place in enumerate(places) if int(place[1][1:4]) == witness[0]]
        for at in [at for at in used if room[at]][: draw.randint(1, 3)]:
            if sum(service == places[at][0] for service, _ in members) < drawn.most_per_host - 1:
                members[places[at]], room[at] = 1, 0
                vms -= 1
    return Cloud(
        group=Group(
            topology=fabric,
            places=places,
            room=room,
            free=room,
            members=members,
            left=vms,
            awaiting=vms,
            policy="anti-affinity",
            max_per_host=drawn.most_per_host,
            constraints=Constraints(require=require, max_leaves=len(witness)),
        ),
        leaves=tuple(f"l{leaf:03}" for leaf in witness),
        kind=drawn.kind,
    )
