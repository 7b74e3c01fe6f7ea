"""The commands of a history.

A command that is not possible, because an earlier one is gone, does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nova.compute import vm_states

from tests.group_histories import call_line, holds, operations
from tests.group_histories.cloud import GroupCloud
from tests.group_histories.fabrics import FABRICS, use
from tests.group_histories.oracle import Wish
from tests.group_histories.requests import Request
from tests.group_histories.servers import Group, Server
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


class Commands:
    """Carries out commands on a cloud; each returns whether it was possible."""

    def __init__(self, cloud: GroupCloud, topologies: Mapping[str, Any]) -> None:
        self.cloud = cloud
        self.running: dict[str, Request] = {}  # by name
        self._topologies = topologies
        self._number = 0  # of requests

    def carry_out(self, command: str) -> bool:
        """Carry out a command as far as it waits for nothing; False if it is not possible."""
        name, *arguments = command.split()
        is_possible: bool = getattr(self, f"_do_{name}")(*arguments)
        return is_possible

    def is_idle(self, server: Server) -> bool:
        """True if no request is about a VM."""
        return not any(server in request.servers for request in self.running.values())

    def _do_fabric(self, name: str, *leaves: str) -> bool:
        sizes = {}
        for leaf, _, numbers in (one.partition("=") for one in leaves):
            for number, size in enumerate(numbers.split(","), 1):
                if int(size):
                    sizes[f"{leaf}{number}"] = int(size)
        use(self._topologies[name])
        self.cloud.begin(FABRICS[name], sizes, call_line.answer)
        holds.forget()
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
        if group is None or group.is_deleted or self.running:
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
        if service not in self.cloud.out or self.running:
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

    def _ask(self, request: Request, function: Callable[[Scheduler], None]) -> bool:
        """Start a request for VMs."""
        self.running[request.name] = request
        processes = list(self.cloud.schedulers.values())
        process = processes[self._number % len(processes)]
        self._number += 1
        request.actor = self.cloud.stage.start(request.name, process, lambda: function(process))
        return True
