"""Draws how a history begins: a fabric, groups, and their first VMs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tests.group_histories.fabrics import FABRICS, LEAVES
from tests.group_histories.oracle import Bound, sets_of_leaves
from tests.group_histories.seen_cloud import SeenCloud

GROUPS = "wxyz"
FABRICS_TO_DRAW = ("one", "one", "islands", "islands", "pods", "metal")
WISHES = (
    *("require=leaf",) * 4,
    "require=leaf group_size=3",
    "require=leaf group_size=2",
    "max_leaves=1",
    "max_leaves=2",
    "max_leaves=2 group_size=3",
    *("prefer=leaf",) * 2,
    *("",) * 3,
    "group_size=3",
)
POLICIES = ("soft-affinity", "soft-affinity", "soft-anti-affinity", "anti-affinity")


class Beginning:
    """Draws the first commands of a history; the cloud says what is possible."""

    def __init__(
        self, seed: int, cloud: SeenCloud, fabrics: Sequence[str] = FABRICS_TO_DRAW
    ) -> None:
        self._draw = random.Random(seed)
        self._cloud, self._fabrics = cloud, fabrics
        self._made = 0  # servers

    def _begin(self) -> Iterator[str]:
        """Yield commands up to the first VMs."""
        draw, new = self._draw, list[str]()
        yield self._fabric()
        for name in GROUPS[: draw.choice((1, 2, 2, 3, 4))]:
            yield self._group(name)
            # Most histories are about what groups live through after they were created.
            found = self._placed(name) if draw.random() < 0.75 else None
            if found is None:
                new.append(name)
            else:
                yield found
        if new:
            yield self._at_once([self._create(name) for name in new])

    def _fabric(self) -> str:
        draw = self._draw
        name = draw.choice(self._fabrics)
        leaves = LEAVES[: draw.choice((2, 3, 3, 4))]
        if name == "islands":
            leaves = "abcd"[: draw.choice((3, 4))] if draw.random() < 0.5 else "acd"
        sizes = draw.choice(((1,), (1, 1, 2), (1, 2), (2,))) if name != "metal" else (1,)
        numbers = {
            leaf: [str(draw.choice(sizes)) for _ in range(draw.choice((1, 2, 2, 3)))]
            for leaf in leaves
        }
        return " ".join(["fabric", name, *(f"{at}={','.join(n)}" for at, n in numbers.items())])

    def _group(self, name: str) -> str:
        draw = self._draw
        policy = draw.choice(POLICIES) if not self._cloud.fabric.is_metal else "soft-affinity"
        wish = draw.choice(WISHES)
        if self._cloud.fabric is FABRICS["pods"]:
            wish = wish.replace("leaf", draw.choice(("leaf", "pod"))) if "=leaf" in wish else wish
        if draw.random() < 0.08:
            policy = "none"
        return " ".join(["group", name, policy, wish]).strip()

    def _create(self, name: str, count: int | None = None) -> list[str]:
        """Return one request, or one for each VM."""
        draw, group = self._draw, self._cloud.groups[name]
        number = count or draw.choice((1, 2, 2, 3, 4))
        if group.policy == "none":
            number = max(number, 2)
        first = self._made + 1
        self._made += number
        vms = [f"{name}{first + n}" for n in range(number)]
        if group.policy == "none" or draw.random() < 0.7:
            return [f"create {','.join(vms)}"]
        return [f"create {vm}" for vm in vms]

    def _placed(self, name: str) -> str | None:
        """Return a group that was created earlier, within its guarantees; None without room."""
        draw, cloud = self._draw, self._cloud
        group = cloud.groups[name]
        room = {
            node: size - sum(server.node == node for server in cloud.servers.values())
            for node, size in cloud.sizes.items()
        }
        if group.policy == "anti-affinity":
            room = {node: min(size, 1) for node, size in room.items()}
        bound = Bound.of(group.wish, one_root=True)
        leaves = draw.choice(list(sets_of_leaves(cloud.fabric, bound, ())))
        slots = [node for node, size in room.items() for _ in range(size) if node[0] in leaves]
        number = draw.choice((1, 2, 2, 3, 4))
        if len(slots) < number or (group.policy == "none" and number == 1):
            return None
        vms = [f"{name}{self._made + n}" for n in range(1, number + 1)]
        self._made += number
        nodes = draw.sample(slots, number)
        return f"placed {','.join(f'{vm}={at}' for vm, at in zip(vms, nodes, strict=True))}"

    def _at_once(self, sequences: Sequence[Sequence[str]]) -> str:
        """Return one command for some sequences of them, each in its order."""
        left = [list(some) for some in sequences if some]
        found = []
        while left:
            some = self._draw.choice(left)
            found.append(some.pop(0))
            left = [some for some in left if some]
        if len(found) == 1:
            return found[0]
        return f"together {self._draw.randrange(1000)}: {'; '.join(found)}"
