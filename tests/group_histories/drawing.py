"""Draws histories: a fabric, groups, and what happens to them, as commands."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from nova.compute import vm_states

from tests.group_histories.cloud import Group, GroupCloud, Server
from tests.group_histories.fabrics import FABRICS, LEAVES
from tests.group_histories.oracle import Bound, sets_of_leaves

GROUPS = "wxyz"
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
HOWS = ("forced", "forced", "dead", "gone", "disabled")
STEPS = (1, 4)


class Drawing:
    """Draws the commands of one history by a seed; the cloud says what is possible."""

    def __init__(self, seed: int, cloud: GroupCloud) -> None:
        self._draw = random.Random(seed)
        self._cloud = cloud
        self._made = 0  # servers

    def commands(self) -> Iterator[str]:
        """Yield one command after the other; each is carried out before the next is drawn."""
        draw = self._draw
        yield self._fabric()
        wishes = []
        for name in GROUPS[: draw.choice((1, 2, 2, 3, 4))]:
            wishes.append(name)
            yield self._group(name)
        new = []
        for name in wishes:
            # Most histories are about what groups live through after they were created.
            found = self._placed(name) if draw.random() < 0.75 else None
            if found is None:
                new.append(name)
            else:
                yield found
        if new:
            yield self._at_once([self._create(name) for name in new])
        for _ in range(draw.randint(*STEPS)):
            possible = [
                step
                for weight, step, is_possible in (
                    (2, self._grow, True),
                    (5, self._die, self._running()),
                    (2, self._come_back, self._cloud.out),
                    (4, self._shelve, self._running()),
                    (5, self._unshelve, self._shelved()),
                    (3, self._migrate, self._running()),
                    (2, self._replace, self._running()),
                    (2, self._delete, self._running()),
                    (1, self._ungroup, self._groups()),
                )
                if is_possible
                for _ in range(weight)
            ]
            step: Callable[[], Iterator[str]] = draw.choice(possible)
            yield from step()

    def _fabric(self) -> str:
        draw = self._draw
        name = draw.choice(("one", "one", "islands", "islands", "pods", "metal"))
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

    def _one_by_one_or_at_once(self, commands: Sequence[str]) -> Iterator[str]:
        if self._draw.random() < 0.5:
            yield from commands
        elif commands:
            yield self._at_once([[one] for one in commands])

    def _grow(self) -> Iterator[str]:
        names = [name for name, one in self._cloud.groups.items() if not one.is_deleted]
        if names:
            some = self._draw.sample(names, self._draw.randint(1, min(2, len(names))))
            yield self._at_once([self._create(name, self._draw.choice((1, 1, 2))) for name in some])

    def _die(self) -> Iterator[str]:
        """Hosts die, most of them of one leaf; what ran there is evacuated, or not at once."""
        draw, fabric = self._draw, self._cloud.fabric
        servers = self._running()
        used = sorted({fabric.service(one.node or "") for one in servers} - self._cloud.out.keys())
        if not used:
            return
        leaf = draw.choice([one.node or "" for one in servers])[0]
        some = [one for one in used if one.startswith(leaf)] if draw.random() < 0.7 else []
        some = some or draw.sample(used, min(len(used), draw.choice((1, 1, 2))))
        how = draw.choice(HOWS)
        first, *later = [f"down {one} {how}" for one in some]
        yield first
        if draw.random() < 0.5:
            yield from later
            later = []
        if how == "disabled" or fabric.is_metal:
            return
        on_them = [
            f"evacuate {one.name}" for one in servers if fabric.service(one.node or "") in some
        ]
        deaths = [text for one in later for text in (one, f"time {draw.choice((1, 10, 30))}")]
        if draw.random() < 0.3 and not deaths:
            yield from on_them
        elif draw.random() < 0.85 or deaths:
            # What is evacuated first may be refused by the API while its host is up.
            yield self._at_once([deaths, *([one] for one in on_them)])
            if deaths:
                yield from (f"evacuate {one.name}" for one in self._on_dead())

    def _come_back(self) -> Iterator[str]:
        if self._draw.random() < 0.5:
            commands = [f"evacuate {one.name}" for one in self._on_dead()]
            yield from self._one_by_one_or_at_once(commands)
        else:
            yield f"up {self._draw.choice(sorted(self._cloud.out))}"

    def _shelve(self) -> Iterator[str]:
        """Shelve some VMs, or a whole group or two; perhaps unshelve them at once."""
        draw, servers = self._draw, self._running()
        groups = draw.sample(GROUPS, draw.choice((1, 1, 2)))
        some = [one for one in servers if one.group.name in groups]
        if draw.random() < 0.3 or not some:
            some = draw.sample(servers, min(len(servers), 2))
        how = "park" if draw.random() < 0.1 else "shelve"
        for one in some:
            yield f"{how} {one.name}"
        if draw.random() < 0.5:
            yield from self._unshelve()

    def _unshelve(self) -> Iterator[str]:
        some = self._shelved()
        if self._draw.random() < 0.2:
            some = some[:1]
        yield from self._one_by_one_or_at_once([f"unshelve {one.name}" for one in some])

    def _migrate(self) -> Iterator[str]:
        """Migrate one VM, or all of a group."""
        draw, servers = self._draw, self._running()
        one = draw.choice(servers)
        some = [one] if draw.random() < 0.5 else [on for on in servers if on.group is one.group]
        how = draw.choice(("migrate", "live", "resize"))
        yield from self._one_by_one_or_at_once([f"{how} {vm.name}" for vm in some])
        for vm in self._cloud.servers.values():
            if vm.state == vm_states.RESIZED and draw.random() < 0.8:
                yield f"{draw.choice(('confirm', 'revert'))} {vm.name}"

    def _replace(self) -> Iterator[str]:
        """Replace the VMs of a group: all at once, or one new one before an old one goes."""
        draw = self._draw
        group = draw.choice(self._running()).group
        if group.is_deleted:
            return
        old = [one.name for one in self._running() if one.group is group]
        how = draw.choice(("delete", "soft_delete", "soft_delete"))
        if draw.random() < 0.5:
            yield from (f"{how} {name}" for name in old)
            yield self._at_once([self._create(group.name, len(old))])
            return
        for name in old[:3]:
            yield from self._create(group.name, 1)
            yield f"{how} {name}"

    def _delete(self) -> Iterator[str]:
        draw, servers = self._draw, list(self._cloud.servers.values())
        some = [one for one in servers if one.state not in ("deleted", "scheduling")]
        for one in draw.sample(some, min(len(some), draw.choice((1, 2)))):
            is_soft = one.state == vm_states.SOFT_DELETED
            how = draw.choice(("restore", "delete") if is_soft else ("delete", "soft_delete"))
            yield f"{how} {one.name}"

    def _ungroup(self) -> Iterator[str]:
        group = self._draw.choice(self._groups())
        yield f"ungroup {group.name}"
        if self._draw.random() < 0.7 and self._running():
            some = [f"migrate {one.name}" for one in self._running() if one.group is group]
            yield from some[: self._draw.choice((1, 4))]

    def _running(self) -> list[Server]:
        return [one for one in self._cloud.servers.values() if one.state == vm_states.ACTIVE]

    def _shelved(self) -> list[Server]:
        states = (vm_states.SHELVED_OFFLOADED, vm_states.SHELVED)
        return [one for one in self._cloud.servers.values() if one.state == states[0]]

    def _on_dead(self) -> list[Server]:
        out = {name for name, how in self._cloud.out.items() if how != "disabled"}
        service = self._cloud.fabric.service
        return [
            one
            for one in self._cloud.servers.values()
            if one.state in (vm_states.ACTIVE, vm_states.ERROR) and one.node
            if service(one.node) in out
        ]

    def _groups(self) -> list[Group]:
        return [one for one in self._cloud.groups.values() if not one.is_deleted]
