"""A history: commands, what they lead to, and what must hold.

Commands are texts, so that a history that fails is one to read and to replay; see ``COMMANDS``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import nova.conf
from nova import exception

from hpc_sched.nova_glue.claim import abandoned_claims, claim_followup
from tests.protocol import calls_text
from tests.protocol.actors import Actor, Call, Wait
from tests.protocol.nova_model import HOSTS, LEAF_OF, VM, NovaModel, Scheduler, name_of, uuid_of

CONF = nova.conf.CONF

COMMANDS = """\
hosts N N N N             begin: VMs that each host takes
other NAME HOST           a VM of another user runs there
group NAME [POLICY]       a server group (soft-affinity)
create VMS SCHEDULER [group=G] [require=leaf]
                          a request for VMs a1 a2 ...: its name is a
step NAME [FATE [STEPS]]  the next call of a request or look has a fate
run NAME                  all its further calls are answered, until it waits for others
claim NAME                its calls are answered up to its next transaction
deliver CALL [STEPS]      a late call is made, or goes on by some steps
drop CALL                 a late call that has not begun is lost
time SECONDS              time passes
look SCHEDULER            its thread looks at the claims of requests; its name is the scheduler's
scan SCHEDULER            its thread looks for claims of dead requests; likewise
retry VM                  the build fails; its conductor takes an alternate
delete VM                 the user deletes it
ungroup NAME              the user deletes the group
evacuate VM SCHEDULER     its host is down
migrate VM SCHEDULER      to another host
unshelve VM SCHEDULER     after it was shelved
kill SCHEDULER            its requests die with it
restart SCHEDULER         after its requests are over, as by SIGHUP
database lost|ok          whether the API database answers
conflicts retried         Placement writes again what others have got in the way of
end                       all goes on to its end; then everything must be in order
"""
# Seconds after which each instance is looked at again for a claim of a dead request.
_ALL_DUE = 3600.0
# Seconds between two looks at the end.
_LOOK_EVERY = 30.0


@dataclass(eq=False)
class Request:
    """A request that is served, or was."""

    name: str
    vms: Sequence[VM]
    actor: Actor | None = None
    # The room for its VMs on each candidate, at the worst moment since it has read these.
    rooms: dict[str, int] = field(default_factory=dict)
    is_excused: bool = False  # a fault was Nova's own, or lasts too long
    is_move: bool = False
    is_judged: bool = False  # whether it is over, and its rooms are not of interest any more
    number: int = 0  # in the order in which they began
    began: float = 0.0  # a time of the stage


class BrokenError(AssertionError):
    """Something does not hold that must."""


class World:
    """A cloud in memory, driven by commands; ``lines`` tells what happens."""

    def __init__(self, nova: NovaModel) -> None:
        self.nova = nova
        self.lines: list[str] = []
        self.requests: dict[str, Request] = {}
        self.looks: dict[str, Actor] = {}
        self.lost: set[str] = set()  # VMs of requests whose ledgers are lost
        self.claimed_by_nova: set[str] = set()
        # Those of them whose requests died so that Nova releases nothing.
        self.left_by_nova: set[str] = set()
        self.moved: set[str] = set()  # VMs that do not stand where their requests have placed them
        # Consumers of moves that died with their scheduler, or of claims that nothing fences.
        self.unsure: set[str] = set()
        self.warnings: list[str] = []
        # VMs that Nova claims without a claim before: those that are claimed later do not see them.
        self.unclaimed: set[str] = set()
        self.named: set[str] = set()  # VMs that a warning names
        self.ungrouped: set[str] = set()
        # VMs with which a host may hold too much, where Placement writes again what others got in
        # the way of: not claimed ahead of Nova, or alone, or with faults, or while another
        # transaction was written.
        self.unchecked: set[str] = set()
        self._others: dict[str, str] = {}
        self._held = "nothing"

    @property
    def placement(self):
        return self.nova.placement

    @property
    def actors(self) -> dict[str, Actor]:
        """What can go on, by name."""
        running = {one.name: one.actor for one in self.requests.values() if one.actor}
        return {name: actor for name, actor in (running | self.looks).items() if not actor.is_over}

    def do(self, command: str) -> None:
        """Carry out a command.

        :raises BrokenError: if something does not hold afterwards
        """
        self.lines.append(f"> {command}")
        name, *arguments = command.split()
        getattr(self, f"_do_{name}")(*arguments)
        held = calls_text.held_text(self.placement)
        if held != self._held:
            self._held = held
            self._say(f"Placement: {held}")
        self._check()

    def _say(self, text: str) -> None:
        self.lines.append(f"  {text}")

    # Commands.

    def _do_hosts(self, *sizes: str) -> None:
        self.nova.begin([int(size) for size in sizes], calls_text.answer_text)

    def _do_other(self, name: str, host: str) -> None:
        vm = VM(uuid_of(name), None, {}, "r-other", "active", host)
        self.nova.vms[name] = vm
        body = {
            "allocations": {uuid_of(host): {"resources": {"VCPU": 1, "MEMORY_MB": 64}}},
            "project_id": "another",
            "user_id": "another",
            "consumer_generation": None,
        }
        assert self.placement.send("PUT", f"/allocations/{vm.uuid}", body)
        self._others[name] = host

    def _do_group(self, name: str, policy: str = "soft-affinity") -> None:
        self.nova.policies[uuid_of(name)] = policy
        self.nova.rows.add_group(uuid_of(name))

    def _do_ungroup(self, name: str) -> None:
        self.ungrouped.add(name)
        self.nova.rows.remove_group(uuid_of(name))

    def _do_create(self, vms: str, scheduler: str, *options: str) -> None:
        stated = dict(option.split("=") for option in options)
        group = stated.pop("group", None)
        constraint = {f"hpc:{key}": value for key, value in stated.items()}
        made = self.nova.create(vms.split(","), group, constraint)
        process = self.nova.schedulers[scheduler]
        request = Request(made[0].name.rstrip("0123456789"), made)
        self._start(request, process, lambda: self.nova.build(process, made))

    def _do_step(self, name: str, fate: str = "ok", steps: str = "0") -> None:
        self._step(name, self.actors[name], fate, int(steps))

    def _do_run(self, name: str) -> None:
        actor = self._known(name)
        while not actor.is_over and not self._is_blocked(actor):
            self._step(name, actor, "ok", 0)

    def _do_claim(self, name: str) -> None:
        actor = self._known(name)
        while not (actor.is_over or self._is_blocked(actor) or is_transaction(actor)):
            self._step(name, actor, "ok", 0)

    def _known(self, name: str) -> Actor:
        """Return what goes on under a name, or did last."""
        request = self.requests.get(name)
        found = self.looks.get(name) if request is None else request.actor
        assert found is not None, f"nothing is called {name}"
        return found

    def _do_deliver(self, name: str, steps: str | None = None) -> None:
        before = self.nova.network.late[name]
        call = before.call
        if before.at.startswith("make") and call.method == "POST":
            # Limits: it has looked for that consumer, and takes it for its own if it was made
            # since; but for the others of the claim, which users may have deleted by now. And if
            # what made it fails, being under way itself, that removes it.
            own = before.at.removeprefix("make ")
            made = self.placement.consumers.get(own)
            others = [uuid for uuid in call.body if uuid != own]
            is_pending = made is not None and not made.generation
            if is_pending or not any(uuid in self.placement.consumers for uuid in others):
                self.unsure.add(own)
        self._say(calls_text.call_text(call))
        answer = self.nova.network.advance(name, None if steps is None else int(steps))
        late = self.nova.network.late.get(name)
        self._say(calls_text.named(answer or f"next: {late.at if late else ''}"))

    def _do_drop(self, name: str) -> None:
        self.nova.network.drop(name)

    def _do_time(self, seconds: str) -> None:
        self.nova.stage.now += float(seconds)

    def _do_look(self, scheduler: str) -> None:
        self._look(scheduler, claim_followup.look)

    def _do_scan(self, scheduler: str) -> None:
        self._look(scheduler, abandoned_claims.look)

    def _look(self, scheduler: str, function: Callable[[], None]) -> None:
        process = self.nova.schedulers[scheduler]
        before = self.looks.get(scheduler)
        assert before is None or before.is_over, f"{scheduler} looks still"
        self.looks[scheduler] = self.nova.stage.start(scheduler, process, function)
        self._after(scheduler, self.looks[scheduler])

    def _do_retry(self, name: str) -> None:
        vm = self.nova.vms[name]
        self._move(name, None, lambda: self.nova.retry(vm))

    def _do_delete(self, name: str) -> None:
        vm = self.nova.vms[name]
        self._move(name, None, lambda: self.nova.delete(vm))

    def _do_evacuate(self, name: str, scheduler: str) -> None:
        vm, process = self.nova.vms[name], self.nova.schedulers[scheduler]
        assert vm.host is not None
        self.nova.down.add(vm.host)
        self.nova.rows.set_service(vm.host, is_down=True)
        self._move(name, process, lambda: self.nova.evacuate(process, vm))

    def _do_migrate(self, name: str, scheduler: str) -> None:
        vm, process = self.nova.vms[name], self.nova.schedulers[scheduler]
        self._move(name, process, lambda: self.nova.migrate(process, vm))

    def _do_unshelve(self, name: str, scheduler: str) -> None:
        vm, process = self.nova.vms[name], self.nova.schedulers[scheduler]
        self._move(name, process, lambda: self.nova.unshelve(process, vm))

    def _do_database(self, state: str) -> None:
        self.nova.rows.is_lost = state == "lost"

    def _do_conflicts(self, how: str) -> None:
        assert how == "retried"
        self.placement.is_retrying = True

    def _do_kill(self, scheduler: str) -> None:
        process = self.nova.schedulers[scheduler]
        for name, actor in self.actors.items():
            if actor.process is process:
                self.nova.network.abandon(actor)
                self.nova.stage.kill(actor)
                request = self.requests.get(name)
                if request is not None and request.actor is actor:
                    request.is_excused = True
                    own = {vm.uuid for vm in request.vms}
                    self.unchecked |= own
                    self.left_by_nova |= self.claimed_by_nova & own
                    for vm in request.vms:
                        if request.is_move:
                            # What its migration holds stays, as without the plugin.
                            self.unsure.update((vm.uuid, uuid_of(f"m{vm.name}")))
                        else:
                            self.nova.fail(vm)
                    self._say(f"{name} dies")
        self._lose(process)

    def _do_restart(self, scheduler: str) -> None:
        process = self.nova.schedulers[scheduler]
        for name, actor in self.actors.items():
            while actor.process is process and not actor.is_over:
                self._step(name, actor, "ok", 0)
        self._lose(process)

    def _lose(self, process: Scheduler) -> None:
        """Note the VMs whose ledgers are lost with a process."""
        if process.followed:
            for request in self.requests.values():
                if request.actor is not None and request.actor.process is process:
                    self.lost.update(vm.uuid for vm in request.vms)
        process.forget()

    def _do_end(self) -> None:
        while self.actors or self.nova.network.late:
            free = [one for one in self.actors.items() if not self._is_blocked(one[1])]
            for name, actor in free or list(self.actors.items()):
                if not actor.is_over:
                    self._step(name, actor, "ok", 0)
            if not self.actors or self._has_pending():
                for name in list(self.nova.network.late):
                    self._do_deliver(name)
        until = self.nova.stage.now + claim_followup.IDLE + 2 * claim_followup.LATE
        while self.nova.stage.now < until and any(self._following()):
            for scheduler in self._following():
                self._look_quietly(scheduler, claim_followup.look)
            self.nova.stage.now += _LOOK_EVERY
        self.nova.stage.now += _ALL_DUE
        self._look_quietly("s1", abandoned_claims.look)
        self._check_end()

    def _look_quietly(self, scheduler: str, function: Callable[[], None]) -> None:
        """Let a scheduler look without a fault; say nothing of it if it only reads."""
        before = len(self.lines)
        self._look(scheduler, function)
        while scheduler in self.actors:
            self._step(scheduler, self.actors[scheduler], "ok", 0)
        if not any("POST" in line or "WARN" in line for line in self.lines[before:]):
            del self.lines[before:]

    # What they have in common.

    def _move(self, name: str, process: Scheduler | None, function) -> None:
        """Let something happen to a VM that is placed."""
        vm = self.nova.vms[name]
        self.moved.add(vm.uuid)
        self._start(Request(name, [vm], is_move=True), process, function)

    def _start(self, request: Request, process: Scheduler | None, function) -> None:
        self.requests[request.name] = request
        request.number = len(self.requests)
        request.began = self.nova.stage.now
        request.actor = self.nova.stage.start(request.name, process, function)
        self._after(request.name, request.actor)

    def _step(self, name: str, actor: Actor, fate: str, steps: int) -> None:
        waits_for = actor.waits_for
        if isinstance(waits_for, Wait):
            if not self.nova.stage.is_ready(actor):
                self._say(f"{name} waits {waits_for.until - self.nova.stage.now:.3g} s")
                self.nova.stage.now = waits_for.until
            self.nova.stage.resume(actor)
        else:
            assert isinstance(waits_for, Call)
            self._excuse(name, waits_for, fate)
            said = self.nova.network.carry(actor, fate, steps)
            self._say(f"{name}: {calls_text.call_text(waits_for)}")
            self._say(f"   {calls_text.named(said)}")
            self._note(name, waits_for, said)
        self._after(name, actor)

    def _after(self, name: str, actor: Actor) -> None:
        for text in self.warnings:
            self._say(calls_text.named(text))
            if "is not claimed at once" in text and name in self.requests:
                self.unclaimed.update(vm.uuid for vm in self.requests[name].vms)
            if "may hold a host" in text:
                self.named.update(calls_text.UUID.findall(text))
        self.warnings.clear()
        for request in self.requests.values():
            if request.actor is not None and not (request.actor.is_over and request.is_judged):
                request.is_judged = request.actor.is_over
                self._note_rooms(request)
        if not actor.is_over:
            return
        request = self.requests.get(name)
        if request is None or request.actor is not actor:
            assert actor.error is None, f"a look fails: {actor.error!r}"
            return
        is_unseen = any(
            one.actor in self.nova.network.begun and one.number < request.number
            for one in self.requests.values()
        )
        if is_unseen or self._is_late(request):
            # A claim that is written does not see who began after it was planned and is over; nor
            # does one whose time is over look for others.
            self.unchecked.update(vm.uuid for vm in request.vms)
        if actor.error is None:
            places = ", ".join(f"{vm.name} {vm.host or vm.state}" for vm in request.vms)
            self._say(f"{name} is over: {places}")
        else:
            self._say(f"{name} fails: {type(actor.error).__name__}: {actor.error}")
            if not isinstance(actor.error, exception.NoValidHost):
                self.left_by_nova |= self.claimed_by_nova & {vm.uuid for vm in request.vms}
            self._check_failure(request, actor.error)

    def _excuse(self, name: str, call: Call, fate: str) -> None:
        """Note a fault for which the plugin is not to blame."""
        request = self.requests.get(name)
        if request is None:
            return
        if len(request.vms) == 1 or fate not in ("ok", "twice", "begun"):
            self.unchecked.update(vm.uuid for vm in request.vms)
        if not call.is_plugins and fate not in ("ok", "twice"):
            request.is_excused = True
        if call.path.startswith("/allocation_candidates") and not request.rooms:
            rooms = {host: self._room(host, ()) for host in HOSTS if host not in self.nova.down}
            request.rooms = {host: room for host, room in rooms.items() if room > 0}

    def _note(self, name: str, call: Call, said: str) -> None:
        """Note what Nova itself has claimed."""
        if name in self.requests and call.method == "PUT" and said.startswith("204"):
            self.claimed_by_nova.add(call.path.rpartition("/")[2])

    def _is_blocked(self, actor: Actor) -> bool:
        """True if an actor waits for a lock that another one holds."""
        wait = actor.waits_for
        return isinstance(wait, Wait) and wait.is_lock and not self.nova.stage.is_ready(actor)

    def _has_pending(self) -> bool:
        return any(late.steps is not None for late in self.nova.network.late.values())

    def _following(self) -> list[str]:
        return [name for name, process in self.nova.schedulers.items() if process.followed]

    # What must hold.

    def _check(self) -> None:
        if not self.placement.is_retrying:
            self._check_room()
        for name, host in self._others.items():
            vm = self.nova.vms[name]
            if vm.state == "active" and self._hosts_of(vm.uuid) != [host]:
                raise BrokenError(f"{name} of another user was on {host}")

    def _check_room(self, unchecked: Collection[str] = ()) -> None:
        for uuid, provider in self.placement.providers.items():
            for name, total in provider.totals.items():
                used = self.placement.used(uuid, name)
                if used > total and not any(uuid in self._providers_of(vm) for vm in unchecked):
                    raise BrokenError(f"{provider.name} has {used} {name} of {total} in use")

    def _check_failure(self, request: Request, error: BaseException) -> None:
        """Check that stock Nova would have failed as well."""
        consumers = self.placement.consumers
        is_inside = any(
            vm.uuid in consumers and not consumers[vm.uuid].generation for vm in request.vms
        )
        is_bound = any(vm.constraint for vm in request.vms)
        if request.is_excused or is_inside or request.is_move or self._is_late(request):
            return
        if not isinstance(error, exception.NoValidHost):
            raise BrokenError(f"{request.name} dies: {error!r}")
        room = sum(request.rooms.values())
        if self._is_hard(request.vms[0]):
            # Others of the group take hosts too.
            mates = [vm for vm in self.nova.vms.values() if vm.group == request.vms[0].group]
            is_bound = is_bound or len(mates) > len(request.vms)
            room = sum(min(room, 1) for room in request.rooms.values())
        if not is_bound and room >= len(request.vms):
            raise BrokenError(f"{request.name} is refused; there was always room for {room} VMs")

    def _check_end(self) -> None:
        self._check_room(self.unchecked)
        if unlisted := set(self.placement.unlisted) - self.unsure:
            raise BrokenError(
                f"usage without a consumer: {', '.join(map(name_of, sorted(unlisted)))}"
            )
        vms = {vm.uuid: vm for vm in self.nova.vms.values()}
        for uuid in (self.placement.consumers.keys() | vms.keys()) - self.unsure:
            hosts, vm = self._hosts_of(uuid), vms.get(uuid)
            if vm is None:
                raise BrokenError(f"{name_of(uuid)} is left on {'+'.join(hosts) or 'nothing'}")
            # What Nova has placed elsewhere is repaired when it is seen, for which a scheduler that
            # ends at that moment has no time; and not if others have changed it before.
            is_doubled = vm.host in hosts and uuid in self.lost | self.named
            if vm.state == "active" and vm.host and hosts != [vm.host] and not is_doubled:
                at = "+".join(hosts) or "nothing"
                raise BrokenError(f"{vm.name} runs on {vm.host}, and holds {at}")
            is_left = bool(hosts) and vm.state in ("error", "deleted")
            # What is claimed late for a VM that was deleted, no row says any more.
            is_unknown = uuid in self.lost and not self.nova.rows.is_in_cell0(uuid)
            if is_left and uuid not in self.left_by_nova and not is_unknown:
                raise BrokenError(f"{vm.name} is {vm.state}, and holds {'+'.join(hosts)}")

        for group in {vm.group for vm in vms.values() if vm.constraint}:
            hosts_of = {
                vm.name: vm.host
                for vm in vms.values()
                if vm.group == group and vm.constraint and vm.host
                if vm.uuid not in self.moved | self.unclaimed
            }
            leaves = {LEAF_OF[host] for host in hosts_of.values()}
            if len(leaves) > 1 and name_of(group or "") not in self.ungrouped:
                raise BrokenError(f"VMs that require one leaf are on {hosts_of}")
        self._check_policies()

    def _check_policies(self) -> None:
        """Check that anti-affine VMs are apart, as far as they were claimed without faults."""
        seen: dict[tuple[str, str], str] = {}
        for vm in self.nova.vms.values():
            is_theirs = name_of(vm.group or "") not in self.ungrouped
            if self._is_hard(vm) and is_theirs and vm.host and vm.state == "active":
                other = seen.setdefault((vm.group or "", vm.host), vm.uuid)
                if other != vm.uuid and not {other, vm.uuid} & (self.unchecked | self.moved):
                    raise BrokenError(f"{vm.name} and {name_of(other)} are on {vm.host}")

    def _is_late(self, request: Request) -> bool:
        """True if a request has no time left to settle what is not known."""
        return self.nova.stage.now - request.began >= 2 * CONF.hpc_sched.cell_timeout

    def _is_hard(self, vm: VM) -> bool:
        return self.nova.policies.get(vm.group or "") == "anti-affinity"

    def _hosts_of(self, uuid: str) -> list[str]:
        return sorted(self.placement.providers[at].name for at in self._providers_of(uuid))

    def _providers_of(self, uuid: str) -> set[str]:
        return {at for at, _ in self.placement.allocations.get(uuid, {})}

    def _note_rooms(self, request: Request) -> None:
        own = {vm.uuid for vm in request.vms}
        for host, room in request.rooms.items():
            if room:
                now = 0 if host in self.nova.down else self._room(host, own)
                request.rooms[host] = min(room, now)

    def _room(self, host: str, own) -> int:
        provider = self.placement.providers[uuid_of(host)]
        used = sum(
            held.get((uuid_of(host), "VCPU"), 0)
            for uuid, held in self.placement.allocations.items()
            if uuid not in own
        )
        return max(provider.totals["VCPU"] - used, 0)


def is_transaction(actor: Actor) -> bool:
    """True if an actor has sent a transaction of the plugin."""
    call = actor.waits_for
    return isinstance(call, Call) and call.is_plugins and call.method == "POST"


class _Warnings(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.warnings.append(f"{record.levelname}: {record.getMessage()}")


@contextmanager
def watched(world: World) -> Iterator[World]:
    """Let a world see what the plugin warns of."""
    handler, logger = _Warnings(world), logging.getLogger("hpc_sched")
    logger.addHandler(handler)
    try:
        yield world
    finally:
        logger.removeHandler(handler)
