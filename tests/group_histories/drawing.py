"""Draws histories: a fabric, groups, and what happens to them, as commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nova.compute import vm_states

from tests.group_histories.beginnings import GROUPS, Beginning
from tests.group_histories.servers import Group, Server

HOWS = ("forced", "forced", "dead", "gone", "disabled")
STEPS = (1, 4)


class Drawing(Beginning):
    """Draws the commands of one history by a seed; the cloud says what is possible."""

    def commands(self) -> Iterator[str]:
        """Yield one command after the other; each is carried out before the next is drawn."""
        draw = self._draw
        yield from self._begin()
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
