"""Servers that move between real computes: hosts that die or are disabled, moves at once."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from nova.scheduler import utils as scheduler_utils

from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.io import loaded_topology
from tests.functional import faults
from tests.functional.tested_cloud import TestedCloud
from tests.functional.trees import write_tree

#: States of a migration that has ended.
ENDED = ("done", "error", "completed")
# Seconds that a claim waits for those of other moves, some of which may be refused.
MEETING = 20


def set_service(cloud: TestedCloud, host: str, **values: object) -> None:
    """Change the nova-compute service of a host, as an operator does."""
    service = cloud.api.get_services(host=host, binary="nova-compute")[0]
    cloud.api.put_service(service["id"], values)


@contextlib.contextmanager
def dead(cloud: TestedCloud, hosts: Sequence[str]) -> Iterator[None]:
    """Take hosts off the fabric; what has left them is cleaned up at the end."""
    for host in hosts:
        cloud.computes[host].stop()
        set_service(cloud, host, forced_down=True)
    try:
        yield
    finally:
        # A compute that starts cleans up after evacuated VMs; before that Nova leaves it down.
        for host in hosts:
            cloud.computes[host].start()
            set_service(cloud, host, forced_down=False)


@contextlib.contextmanager
def disabled(cloud: TestedCloud, hosts: Sequence[str]) -> Iterator[None]:
    """Disable the services of hosts for a block."""
    for host in hosts:
        set_service(cloud, host, status="disabled")
    try:
        yield
    finally:
        for host in hosts:
            set_service(cloud, host, status="enabled")


def only(cloud: TestedCloud, hosts: Iterable[str]) -> contextlib.AbstractContextManager[None]:
    """Disable the services of all other hosts for a block."""
    return disabled(cloud, sorted(cloud.computes.keys() - set(hosts)))


@contextlib.contextmanager
def fabric(cloud: TestedCloud, tree: Mapping[str, Any]) -> Iterator[None]:
    """Put another tree over the hosts of a cloud for a block."""
    path = cloud.folder / "topology.yaml"
    before = path.read_text()
    write_tree(path, tree)
    assert loaded_topology.reload()
    try:
        yield
    finally:
        path.write_text(before)
        assert loaded_topology.reload()


def hosts_after(cloud: TestedCloud, servers: Iterable[str]) -> list[str]:
    """Return the hosts of servers, in their order."""
    shown = [cloud.api.get_server(server) for server in servers]
    return [server["OS-EXT-SRV-ATTR:hypervisor_hostname"] for server in shown]


def evacuate(cloud: TestedCloud, *servers: str) -> list[str]:
    """Evacuate servers without waiting for each; return their hosts when all moves have ended."""

    def ended() -> int:
        moves = [one for one in cloud.api.get_migrations() if one["instance_uuid"] in servers]
        return sum(one["status"] in ENDED for one in moves)

    before = ended()
    for server in servers:
        cloud.api.post_server_action(server, {"evacuate": {}})
    faults.wait_until(lambda: ended() == before + len(servers), 120)
    return hosts_after(cloud, servers)


def unshelve(cloud: TestedCloud, server: str) -> str:
    """Unshelve a server; return its status afterwards, SHELVED_OFFLOADED if it found no host."""
    cloud.api.post_server_action(server, {"unshelve": None})
    task = "OS-EXT-STS:task_state"
    faults.wait_until(lambda: cloud.api.get_server(server)[task] is None)
    return str(cloud.api.get_server(server)["status"])


@contextlib.contextmanager
def decided_at_once(monkeypatch: pytest.MonkeyPatch, count: int) -> Iterator[Callable[[], int]]:
    """Let the first claim of each VM wait for those of the others: all decisions overlap.

    :param count: number of VMs
    :return: how many decisions have overlapped
    """
    real, meeting, seen = scheduler_utils.claim_resources, threading.Barrier(count), set[str]()

    def claim(context: Any, client: Any, spec: Any, uuid: str, *args: Any, **said: Any) -> Any:
        if uuid not in seen:
            seen.add(uuid)
            with contextlib.suppress(threading.BrokenBarrierError):
                meeting.wait(MEETING)
        return real(context, client, spec, uuid, *args, **said)

    with monkeypatch.context() as patch:
        patch.setattr(scheduler_utils, "claim_resources", claim)
        yield lambda: len(seen)


def wait_until_nothing_is_held() -> None:
    """Wait until no place is held for any VM: each has been claimed, or is elsewhere."""
    faults.wait_until(lambda: not store.read().held, MEETING)
