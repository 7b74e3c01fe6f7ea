"""A history: commands, what they lead to, and what must hold.

Commands are texts, so that a history that fails can be read, shortened and replayed. A command
that is not possible, because an earlier one is gone, does nothing.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nova.compute import vm_states

from hpc_sched.nova_glue.claim import hold_followup
from tests.group_histories import call_line, checks, holds, operations
from tests.group_histories.cloud import Group, GroupCloud, Server
from tests.group_histories.fabrics import FABRICS, use
from tests.group_histories.oracle import Wish
from tests.group_histories.requests import Request, View
from tests.protocol.actors import Actor, Call, Wait
from tests.protocol.nova_model import Scheduler, uuid_of

COMMANDS = """\
fabric NAME LEAF=N,N ...  begin: VMs that the first, second, ... node of each leaf takes
group G POLICY [WISH ...] a server group, such as require=leaf group_size=3; POLICY "none": no
                          server group, the VMs of a request are one
placed VM=NODE,...        a request for VMs of one group was served earlier so
create VMS                a request for VMs w1,w2 of group w
evacuate VM, migrate VM, live VM, resize VM, unshelve VM
                          requests for one VM
confirm VM, revert VM     of what was resized
shelve VM, park VM        offloaded; on its host
delete VM, soft_delete VM, restore VM
ungroup G                 the user deletes the server group
down SERVICE HOW          forced, dead, gone or disabled
up SERVICE
time SECONDS              time passes
together SEED: COMMAND; ...
                          at most three at a time, their calls in an order by the seed
"""
MOST_AT_ONCE = 3
# Calls that one makes before another one goes on; 0: all.
_TURNS = (1, 1, 1, 2, 3, 5, 8, 0)

_Check = tuple[Request, View, Mapping[str, str]]


class History:
    """A cloud in memory, driven by commands; ``lines`` says what has happened."""

    def __init__(self, cloud: GroupCloud, topologies: Mapping[str, Any]) -> None:
        self.cloud = cloud
        self.lines: list[str] = []
        self.commands: list[str] = []
        self.logged: list[str] = []  # by the plugin, since the last line
        self.errors: list[str] = []
        self.refused: list[Request] = []
        self.placed: list[Request] = []
        self._topologies = topologies
        self._running: dict[str, Request] = {}
        self._number = 0

    def do(self, command: str) -> None:
        """Carry out a command.

        :raises checks.BrokenError: if something does not hold afterwards
        """
        self.commands.append(command)
        self.lines.append(f"> {command}")
        seed, separator, some = command.removeprefix("together ").partition(":")
        if separator:
            self._together(random.Random(int(seed)), [one.strip() for one in some.split(";")])
        else:
            self._together(random.Random(0), [command])

    def is_idle(self, server: Server) -> bool:
        """True if no request is about a VM."""
        return not any(server in request.servers for request in self._running.values())

    def _together(self, choice: random.Random, commands: list[str]) -> None:
        """Carry out commands at once, and check what must hold once all are over."""
        waiting, ended = list(commands), list[_Check]()
        is_alone = len(commands) == 1
        refused: set[str] = set()
        while waiting or self._running:
            able = [one for one in self._running.values() if self._can_go_on(one)]
            may_start = bool(waiting) and len(self._running) < MOST_AT_ONCE
            if may_start and (not able or choice.random() < 0.3):
                self._start(waiting.pop(0))
            elif able:
                self._go_on(
                    choice.choice(able), choice.choice(_TURNS) if waiting or len(able) > 1 else 0
                )
            else:
                self._pass_time()
            for request in [one for one in self._running.values() if _actor(one).is_over]:
                del self._running[request.name]
                self._end(request, ended, refused)
            if is_alone or choice.random() < 0.5:
                self._look()
        self._look()
        self._check(ended, refused)
        if is_alone:
            checks.check_holds(self.cloud)

    def _look(self) -> None:
        """Let the thread of each scheduler remove the holds of moves that are over."""
        for name, process in self.cloud.schedulers.items():
            if process.moves:
                actor = self.cloud.stage.start(f"{name} looks", process, hold_followup.look)
                while not actor.is_over:
                    if isinstance(actor.waits_for, Wait):
                        self.cloud.stage.now = max(self.cloud.stage.now, actor.waits_for.until)
                        self.cloud.stage.resume(actor)
                    else:
                        self._answer(actor, actor.name)
                assert actor.error is None, f"a look fails: {actor.error!r}"

    def _start(self, command: str) -> None:
        name, *arguments = command.split()
        if not getattr(self, f"_do_{name}")(*arguments):
            self._say(f"{command}: not possible")
        elif len(self.lines) and not self.lines[-1].endswith(command):
            self._say(f"- {command}")
        self._observe()

    def _ask(self, request: Request, function: Callable[[Scheduler], None]) -> bool:
        """Start a request for VMs."""
        self._running[request.name] = request
        processes = list(self.cloud.schedulers.values())
        process = processes[self._number % len(processes)]
        self._number += 1
        request.actor = self.cloud.stage.start(request.name, process, lambda: function(process))
        return True

    def _go_on(self, request: Request, calls: int) -> None:
        """Let a request make some calls, 0: all that it can."""
        actor, number = _actor(request), 0
        while not actor.is_over and self._can_go_on(request) and (number < calls or not calls):
            number += 1
            call = actor.waits_for
            if isinstance(call, Wait):
                self.cloud.stage.resume(actor)
            else:
                assert isinstance(call, Call)
                if request.rooms is None and call.path.startswith("/allocation_candidates"):
                    request.observe(self.cloud)
                self._answer(actor, request.name)
            self._observe()

    def _answer(self, actor: Actor, name: str) -> None:
        call = actor.waits_for
        assert isinstance(call, Call)
        text = call_line.text(self.cloud, call)
        said = self.cloud.network.carry(actor, "ok")
        if call.method != "GET":
            self._say(f"{name}: {text} {said}")

    def _observe(self) -> None:
        """Note for each request what is true now."""
        for request in self._running.values():
            others = [one for one in self._running.values() if one is not request]
            request.is_beside_creates |= any(not one.is_move for one in others)
            if request.rooms is not None and not _actor(request).is_over:
                request.observe(self.cloud)
        for text in self.logged:
            self._say(call_line.named(text))
        self.logged.clear()
        if self.errors:
            raise checks.BrokenError(self.errors[0])

    def _can_go_on(self, request: Request) -> bool:
        return self.cloud.stage.is_ready(_actor(request))

    def _pass_time(self) -> None:
        """Let time pass until a request can go on."""
        waits = [_actor(request).waits_for for request in self._running.values()]
        self.cloud.stage.now = min(wait.until for wait in waits if isinstance(wait, Wait))

    def _end(self, request: Request, ended: list[_Check], refused: set[str]) -> None:
        """Check a request that is over."""
        error = _actor(request).error
        if error is not None:
            self._say(f"{request.name} fails: {type(error).__name__}: {error}")
            self.refused.append(request)
            refused.update(server.name for server in request.servers)
            checks.check_refusal(self.cloud, request, error)
            return
        self.placed.append(request)
        places = {server.name: server.node or "" for server in request.servers}
        self._say(", ".join(f"{name} on {node}" for name, node in places.items()))
        ended.append((request, request.views[-1], places))
        checks.check_choice(self.cloud, request, places)

    def _check(self, ended: Sequence[_Check], refused: set[str]) -> None:
        # What was claimed for the others may have been claimed elsewhere since.
        last = {name: node for *_, places in ended for name, node in places.items()}
        for request, view, places in ended:
            kept = {
                name: last.get(name, node)
                for name, node in view.members.items()
                if name not in refused
            }
            seen = View(kept, view.awaiting, view.taken)
            checks.check_constraints(self.cloud, request, seen, places)
        checks.check_placement(self.cloud)

    def _say(self, text: str) -> None:
        self.lines.append(f"  {text}")

    # Commands: each returns whether it was possible.

    def _do_fabric(self, name: str, *leaves: str) -> bool:
        sizes = {}
        for leaf, _, numbers in (one.partition("=") for one in leaves):
            for number, size in enumerate(numbers.split(","), 1):
                if int(size):
                    sizes[f"{leaf}{number}"] = int(size)
        use(self._topologies[name])
        self.cloud.begin(FABRICS[name], sizes, call_line.answer)
        if sum(sizes.values()) % 4:
            holds.prepare(self.cloud)
        return True

    def _do_group(self, name: str, policy: str, *wish: str) -> bool:
        is_none = policy == "none"
        # Without a server group a class makes the VMs of a request one.
        stated = [*wish, "app_class=sync"] if is_none else wish
        group = Group(name, policy, Wish.of(" ".join(stated)), is_deleted=is_none)
        self.cloud.groups[name] = group
        if not group.is_deleted:
            self.cloud.rows.add_group(group.uuid)
        return True

    def _do_placed(self, *places: str) -> bool:
        node_of = dict(one.split("=") for one in ",".join(places).split(","))
        if not set(node_of.values()) <= self.cloud.sizes.keys():
            return False
        made = self._made(list(node_of))
        for server in made:
            self.cloud.hold(server.uuid, [node_of[server.name]])
            operations.settle(self.cloud, server, node_of[server.name])
        return bool(made)

    def _made(self, names: Sequence[str]) -> list[Server]:
        """Write what nova-api does for the VMs of a request; return them, none if it refuses."""
        group = self.cloud.groups.get(names[0][0])
        is_known = any(name in self.cloud.servers for name in names)
        if is_known or group is None:
            return []
        if group.is_deleted and (group.policy != "none" or len(names) == 1):
            return []
        reservation = f"r-{uuid_of(names[0])}"
        made = [Server(name, group, reservation, len(names)) for name in names]
        self.cloud.servers.update((server.name, server) for server in made)
        operations.write_request(self.cloud, made)
        return made

    def _do_create(self, names: str) -> bool:
        made = self._made(names.split(","))
        if not made:
            return False
        request = Request(f"create {names}", "create", made)
        return self._ask(request, lambda process: operations.create(self.cloud, process, made))

    def _do_evacuate(self, name: str) -> bool:
        server = self._idle(name, vm_states.ACTIVE, vm_states.ERROR)
        if server is None or server.node is None:
            return False
        how = self.cloud.out.get(self.cloud.fabric.service(server.node))
        return how not in (None, "disabled") and self._move("evacuate", server, operations.evacuate)

    def _do_migrate(self, name: str) -> bool:
        return self._leave("migrate", name, operations.migrate)

    def _do_live(self, name: str) -> bool:
        return self._leave("live", name, operations.live_migrate)

    def _do_resize(self, name: str) -> bool:
        return self._leave("resize", name, operations.resize)

    def _do_unshelve(self, name: str) -> bool:
        server = self._idle(name, vm_states.SHELVED_OFFLOADED)
        if server is None:
            return False
        request = Request(f"unshelve {name}", "unshelve", [server])
        return self._ask(request, lambda one: operations.unshelve(self.cloud, one, server))

    def _leave(self, kind: str, name: str, operation: operations.Operation) -> bool:
        """Move a VM from a host that runs."""
        server = self._idle(name, vm_states.ACTIVE)
        return server is not None and self._runs(server) and self._move(kind, server, operation)

    def _move(self, kind: str, server: Server, operation: operations.Operation) -> bool:
        request = Request(f"{kind} {server.name}", kind, [server], ignored=server.node)
        return self._ask(request, lambda process: operation(self.cloud, process, server))

    def _do_confirm(self, name: str) -> bool:
        return self._at_once(name, operations.confirm, vm_states.RESIZED)

    def _do_revert(self, name: str) -> bool:
        server = self.cloud.servers.get(name)
        if server is None or server.source is None or not self.cloud.is_up(server.source):
            return False
        return self._at_once(name, operations.revert, vm_states.RESIZED)

    def _do_shelve(self, name: str) -> bool:
        return self._at_once(name, operations.shelve, vm_states.ACTIVE)

    def _do_park(self, name: str) -> bool:
        def park(cloud: GroupCloud, server: Server) -> None:
            operations.shelve(cloud, server, offload=False)

        return self._at_once(name, park, vm_states.ACTIVE)

    def _do_soft_delete(self, name: str) -> bool:
        return self._at_once(name, operations.soft_delete, vm_states.ACTIVE)

    def _do_restore(self, name: str) -> bool:
        states = (vm_states.SOFT_DELETED, vm_states.SHELVED)
        return self._at_once(name, operations.restore, *states)

    def _do_delete(self, name: str) -> bool:
        server = self.cloud.servers.get(name)
        if server is None or server.state in ("deleted", "scheduling") or not self.is_idle(server):
            return False
        operations.delete(self.cloud, server)
        return True

    def _do_ungroup(self, name: str) -> bool:
        group = self.cloud.groups.get(name)
        if group is None or group.is_deleted or self._running:
            return False
        self.cloud.rows.remove_group(group.uuid)
        group.is_deleted = True
        return True

    def _do_down(self, service: str, how: str) -> bool:
        if service in self.cloud.out:
            return False
        operations.end_service(self.cloud, service, how)
        return True

    def _do_up(self, service: str) -> bool:
        if service not in self.cloud.out or self._running:
            return False
        operations.start_service(self.cloud, service)
        return True

    def _do_time(self, seconds: str) -> bool:
        self.cloud.stage.now += float(seconds)
        return True

    def _at_once(
        self, name: str, function: Callable[[GroupCloud, Server], None], *states: str
    ) -> bool:
        """Let a compute do something with a VM on a host that runs."""
        server = self._idle(name, *states)
        if server is None or not self._runs(server):
            return False
        function(self.cloud, server)
        return True

    def _idle(self, name: str, *states: str) -> Server | None:
        server = self.cloud.servers.get(name)
        is_able = server is not None and server.state in states and self.is_idle(server)
        return server if is_able else None

    def _runs(self, server: Server) -> bool:
        if server.node is None:
            return False
        return self.cloud.out.get(self.cloud.fabric.service(server.node)) in (None, "disabled")


def _actor(request: Request) -> Actor:
    assert request.actor is not None
    return request.actor


class _Log(logging.Handler):
    def __init__(self, history: History) -> None:
        super().__init__(logging.WARNING)
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.levelname}: {record.getMessage()}"
        if record.exc_info is not None and record.exc_info[0] is not None:
            text += f" ({record.exc_info[0].__name__}: {record.exc_info[1]})"
        self._history.logged.append(text)
        if record.levelno >= logging.ERROR:
            self._history.errors.append(text)


@contextmanager
def logged(history: History) -> Iterator[History]:
    """Let a history see what the plugin logs."""
    handler, logger = _Log(history), logging.getLogger("hpc_sched")
    logger.addHandler(handler)
    try:
        yield history
    finally:
        logger.removeHandler(handler)
