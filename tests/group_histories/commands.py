"""The commands of a history.

A command that is not possible, because an earlier one is gone, does nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from nova.compute import vm_states

from tests.group_histories.fabrics import FABRICS, use
from tests.group_histories.oracle import Wish
from tests.group_histories.requests import Request
from tests.group_histories.seen_cloud import SeenCloud
from tests.group_histories.servers import Group, Server
from tests.protocol.nova_model import uuid_of

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


class Commands(ABC):
    """Carries out commands on a cloud; each returns whether it was possible."""

    #: What happens to VMs and hosts of this kind of cloud: one function for each thing.
    operations: ModuleType

    def __init__(self, cloud: SeenCloud, topologies: Mapping[str, Any]) -> None:
        self.cloud = cloud
        self.running: dict[str, Request] = {}  # by name
        self._topologies = topologies

    @abstractmethod
    def _send(self, request: Request) -> None:
        """Begin a request, which runs."""

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
        self.cloud.begin(FABRICS[name], sizes)
        return True

    def _do_group(self, name: str, policy: str, *wish: str) -> bool:
        is_none = policy == "none"
        # Without a server group a class makes the VMs of a request one.
        stated = [*wish, "app_class=sync"] if is_none else wish
        group = Group(name, policy, Wish.of(" ".join(stated)), is_deleted=is_none)
        self.cloud.groups[name] = group
        if not group.is_deleted:
            self.operations.add_group(self.cloud, group)
        return True

    def _do_placed(self, *places: str) -> bool:
        node_of = dict(one.split("=") for one in ",".join(places).split(","))
        if not set(node_of.values()) <= self.cloud.sizes.keys():
            return False
        made = self._made(list(node_of))
        if made:
            self.operations.place(self.cloud, made, node_of)
        return bool(made)

    def _made(self, names: Sequence[str]) -> list[Server]:
        """Return the new VMs of a request; none if it is not possible."""
        group = self.cloud.groups.get(names[0][0])
        is_known = any(name in self.cloud.servers for name in names)
        if is_known or group is None:
            return []
        if group.is_deleted and (group.policy != "none" or len(names) == 1):
            return []
        reservation = f"r-{uuid_of(names[0])}"
        made = [self.cloud.new_server(name, group, reservation, len(names)) for name in names]
        self.cloud.servers.update((server.name, server) for server in made)
        self.operations.write_request(self.cloud, made)
        return made

    def _do_create(self, names: str) -> bool:
        made = self._made(names.split(","))
        return bool(made) and self._ask(Request(f"create {names}", "create", made))

    def _do_evacuate(self, name: str) -> bool:
        server = self._idle(name, vm_states.ACTIVE, vm_states.ERROR)
        if server is None or server.node is None:
            return False
        how = self.cloud.out.get(self.cloud.fabric.service(server.node))
        return how not in (None, "disabled") and self._move("evacuate", server)

    def _do_migrate(self, name: str) -> bool:
        return self._leave("migrate", name)

    def _do_live(self, name: str) -> bool:
        return self._leave("live", name)

    def _do_resize(self, name: str) -> bool:
        return self._leave("resize", name)

    def _do_unshelve(self, name: str) -> bool:
        server = self._idle(name, vm_states.SHELVED_OFFLOADED)
        if server is None:
            return False
        return self._ask(Request(f"unshelve {name}", "unshelve", [server]))

    def _leave(self, kind: str, name: str) -> bool:
        """Move a VM from a host that runs."""
        server = self._idle(name, vm_states.ACTIVE)
        return server is not None and self._runs(server) and self._move(kind, server)

    def _move(self, kind: str, server: Server) -> bool:
        return self._ask(Request(f"{kind} {server.name}", kind, [server], ignored=server.node))

    def _do_confirm(self, name: str) -> bool:
        return self._at_once(name, self.operations.confirm, vm_states.RESIZED)

    def _do_revert(self, name: str) -> bool:
        server = self.cloud.servers.get(name)
        if server is None or server.source is None or not self.cloud.is_up(server.source):
            return False
        return self._at_once(name, self.operations.revert, vm_states.RESIZED)

    def _do_shelve(self, name: str) -> bool:
        return self._at_once(name, self.operations.shelve, vm_states.ACTIVE)

    def _do_park(self, name: str) -> bool:
        return self._at_once(name, self.operations.park, vm_states.ACTIVE)

    def _do_soft_delete(self, name: str) -> bool:
        return self._at_once(name, self.operations.soft_delete, vm_states.ACTIVE)

    def _do_restore(self, name: str) -> bool:
        states = (vm_states.SOFT_DELETED, vm_states.SHELVED)
        return self._at_once(name, self.operations.restore, *states)

    def _do_delete(self, name: str) -> bool:
        server = self.cloud.servers.get(name)
        if server is None or server.state in ("deleted", "scheduling") or not self.is_idle(server):
            return False
        self.operations.delete(self.cloud, server)
        return True

    def _do_ungroup(self, name: str) -> bool:
        group = self.cloud.groups.get(name)
        if group is None or group.is_deleted or self.running:
            return False
        self.operations.remove_group(self.cloud, group)
        group.is_deleted = True
        return True

    def _do_down(self, service: str, how: str) -> bool:
        if service in self.cloud.out:
            return False
        self.operations.end_service(self.cloud, service, how)
        return True

    def _do_up(self, service: str) -> bool:
        if service not in self.cloud.out or self.running:
            return False
        self.operations.start_service(self.cloud, service)
        return True

    def _do_time(self, seconds: str) -> bool:
        self.cloud.pass_time(float(seconds))
        return True

    def _at_once(
        self, name: str, function: Callable[[SeenCloud, Server], None], *states: str
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

    def _ask(self, request: Request) -> bool:
        """Start a request for VMs."""
        self.running[request.name] = request
        self._send(request)
        return True
