"""The cloud of a history on a whole Nova: what the API takes, and what the databases say then.

API, conductor, scheduler, Placement and computes are Nova's, with its fake driver. A node that a
history does not have is disabled; one that takes a single VM has one VCPU in place of two.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from nova import context as nova_context

from hpc_sched import clock
from hpc_sched.clock import SystemClock
from hpc_sched.nova_glue.claim.holds import store
from tests.functional import faults, placement_state
from tests.functional.moving_servers import set_service
from tests.functional.nova_histories import nova_rows
from tests.functional.nova_histories.nova_kind import VCPUS
from tests.functional.tested_cloud import TestedCloud
from tests.group_histories.fabrics import NODES, Fabric
from tests.group_histories.seen_cloud import Rows, SeenCloud
from tests.group_histories.servers import Group, Server

#: The trait of a host whose service is disabled.
DISABLED = "COMPUTE_STATUS_DISABLED"
#: Seconds until what Nova was requested to do is done: a guard against hanging.
LIMIT = 120.0
_POLL = 0.05


@dataclass(eq=False)
class NovaServer(Server):
    """An instance with the uuids that Nova has given to it and to its last migration."""

    given: str = ""
    given_migration: str = ""
    has_other: bool = False  # flavor, of two that are equal

    @property
    def uuid(self) -> str:
        """Its uuid; none before Nova has accepted it."""
        return self.given

    @property
    def migration(self) -> str:
        """The uuid of its migration."""
        return self.given_migration


class ShiftedClock(SystemClock):
    """The system's clock, some seconds later."""

    shift = 0.0

    def monotonic(self) -> float:  # type: ignore[override]
        """Return the seconds of this clock."""
        return time.monotonic() + self.shift

    def unix_time(self) -> float:  # type: ignore[override]
        """Return the same, since 1970."""
        return time.time() + self.shift


@dataclass(eq=False)
class NovaGroupCloud(SeenCloud):
    """A whole Nova, and what was read of it last."""

    nova: TestedCloud
    clock: ShiftedClock
    groups: dict[str, Group] = field(default_factory=dict)
    servers: dict[str, Server] = field(default_factory=dict)
    out: dict[str, str] = field(default_factory=dict)
    #: Held where what was read is used or changed: schedulers read, too.
    lock: Any = field(default_factory=threading.RLock)
    #: Server groups by name, with the uuids that Nova has given
    group_uuids: dict[str, str] = field(default_factory=dict)
    _allocations: dict[str, Rows] = field(default_factory=dict)

    @property
    def now(self) -> float:
        """The time of the plugin's clock, in seconds since 1970."""
        return clock.current.unix_time()

    @property
    def allocations(self) -> Mapping[str, Rows]:
        """What each consumer has in Placement."""
        return self._allocations

    def begin(self, fabric: Fabric, sizes: Mapping[str, int]) -> None:
        """Begin a history with nodes that take some VMs each."""
        self.fabric, self.sizes = fabric, sizes
        self.demand = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
        self._use(sizes)
        faults.start_afresh()
        self.read()

    def clear(self) -> None:
        """End all that a history has left."""
        for service in list(self.out):
            self.set_up(service)
        self.clock.shift = 0.0
        # A history that has failed may have left requests.
        self.wait(lambda: not any(map(_is_busy, self.servers.values())))
        there = [one for one in self.servers.values() if one.uuid and one.state != "deleted"]
        for server in there:
            self.nova.api.delete_server(server.uuid)
        self.wait(lambda: all(one.state == "deleted" for one in there))
        for uuid in self.group_uuids.values():
            self.nova.api.delete_server_group(uuid)
        store.release(store.read().held)
        self.wait(lambda: not self._allocations)
        for found in (self.groups, self.servers, self.group_uuids):
            found.clear()

    def end(self) -> None:
        """Leave the nodes as they were found."""
        self._use(dict.fromkeys(NODES, VCPUS))

    def pass_time(self, seconds: float) -> None:
        """Let time pass for the plugin."""
        self.clock.shift += seconds

    def provider(self, node: str) -> str:
        """Return the name of a node."""
        return node

    def name_of(self, uuid: str) -> str:
        """Return the name of a VM."""
        return next((one.name for one in self.servers.values() if one.uuid == uuid), uuid)

    def new_server(self, name: str, group: Group, reservation: str, number: int) -> Server:
        """Return a VM that is to be scheduled; ``number`` VMs are in its request."""
        return NovaServer(name, group, reservation, number)

    def read(self) -> None:
        """Read the states of all VMs, and what Placement holds. Three queries."""
        with self.lock:
            servers = [one for one in self.servers.values() if one.uuid]
            found = nova_rows.instances(self.nova, [one.uuid for one in servers])
            for server in servers:
                _update(server, found.get(server.uuid))
            self._allocations = nova_rows.allocations(self.nova)

    def act(self, server: Server, action: Mapping[str, Any]) -> None:
        """Send an action on a VM to the API."""
        self.nova.api.post_server_action(server.uuid, action)

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Wait until something is done, by what is read."""
        deadline = time.monotonic() + LIMIT
        while True:
            self.read()
            if is_done():
                return
            states = [f"{one.name} {one.state} {one.task}" for one in self.servers.values()]
            assert time.monotonic() < deadline, f"Nova does not end it: {', '.join(states)}"
            time.sleep(_POLL)

    def set_out(self, service: str, how: str) -> None:
        """Let a compute service be out."""
        # First for the checks: what is placed meanwhile may use the host, and need not.
        self.out[service] = how
        if how == "dead":
            nova_rows.set_silent(self.nova, service, is_silent=True)
        elif how == "disabled":
            set_service(self.nova, service, status="disabled")
        else:
            set_service(self.nova, service, forced_down=True)

    def set_up(self, service: str) -> None:
        """Let a compute service be up: at its start it removes what was evacuated from it."""
        how = self.out[service]
        if how == "disabled":
            set_service(self.nova, service, status="enabled")
        else:
            compute = self.nova.computes[service]
            with self._in_cell() as context:
                compute.service_ref._context = context
                compute.manager.init_host(compute.service_ref)
                compute.manager.pre_start_hook(compute.service_ref)
        if how == "dead":
            nova_rows.set_silent(self.nova, service, is_silent=False)
        elif how != "disabled":
            set_service(self.nova, service, forced_down=False)
        del self.out[service]

    def _use(self, sizes: Mapping[str, int]) -> None:
        """Give nodes their sizes, and disable all others; both until Placement has it."""
        deadline = time.monotonic() + LIMIT
        while self._change(sizes):
            assert time.monotonic() < deadline, "Placement does not have what computes report"

    def _change(self, sizes: Mapping[str, int]) -> bool:
        """Change what differs; return whether anything did."""
        is_changed = False
        found, reported = placement_state.providers(self.nova), nova_rows.nodes(self.nova)
        for node in NODES:
            is_disabled = any(DISABLED in has for has in found[node])
            if is_disabled != (node not in sizes):
                status = "enabled" if node in sizes else "disabled"
                set_service(self.nova, node, status=status)
                is_changed = True
            [vcpus] = [has[1] for has in found[node] if has[0] == "VCPU"]
            size = sizes.get(node, VCPUS)
            if vcpus != size or reported[node] != (size, 0):
                self._resize(node, size)
                is_changed = True
        return is_changed

    def _resize(self, node: str, vcpus: int) -> None:
        """Change the VCPUs that a node reports."""
        manager = self.nova.computes[node].manager
        manager.driver.vcpus = manager.driver.resources.vcpus = vcpus
        with self._in_cell() as context:
            manager.update_available_resource(context)

    @contextmanager
    def _in_cell(self) -> Iterator[nova_context.RequestContext]:
        mapping = self.nova.cell_mappings["cell1"]
        with nova_context.target_cell(nova_context.get_admin_context(), mapping) as context:
            yield context


def _is_busy(server: Server) -> bool:
    is_scheduled = bool(server.uuid) and server.state == "scheduling"
    return is_scheduled or server.task is not None


def _update(server: Server, row: nova_rows.Row | None) -> None:
    """Let a server be as its row says; without one it is not in a cell yet, or deleted."""
    if row is None:
        if server.state != "scheduling":
            server.state, server.task, server.node = "deleted", None, None
        return
    server.state = "failed" if row.is_buried else row.vm_state
    server.task, server.node = row.task_state, row.node
