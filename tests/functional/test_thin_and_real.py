"""Thin computes and real ones are the same to the scheduler.

The same drawn requests and deletions are sent to a cloud of each kind: each VM is on the same host,
with the same allocation, and after each request all HostStates are equal. Identifiers are drawn by
the request's number, since plans break ties by them; each host has another amount of memory, since
Nova orders hosts of equal weight by chance::

               core
           /         \\
        pod1          pod2
       /    \\        /    \\
    leaf1  leaf2  leaf3  leaf4      3 hosts each: h01 ... h12
"""

import dataclasses
import random
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils

from hpc_sched.demo import nova_cloud
from tests.functional.faults import wait_until
from tests.functional.shared_clouds import CloudKind
from tests.functional.states import wishing
from tests.functional.tested_cloud import TestedCloud

HOSTS = [f"h{number:02}" for number in range(1, 13)]
TREE = {
    "core": {
        "pod1": {"leaf1": HOSTS[:3], "leaf2": HOSTS[3:6]},
        "pod2": {"leaf3": HOSTS[6:9], "leaf4": HOSTS[9:]},
    }
}
KINDS = [
    CloudKind("thin computes", TREE, hosts=()),
    CloudKind("real", TREE, hosts=(), is_real=True),
]
FLAVORS: dict[str, dict[str, Any]] = {
    "small": {"vcpus": 1, "memory_mb": 2048},
    "half": {"vcpus": 8, "memory_mb": 1024},
    "whole": {"vcpus": 16, "memory_mb": 1024},
    "leaf": {"vcpus": 4, "memory_mb": 1024, "extra_specs": wishing(require="leaf")},
    "none": {"vcpus": 2, "memory_mb": 4096, "extra_specs": {"hpc:app_class": "none"}},
}
# What differs between any two clouds: identifiers of nodes and cells, and times.
PRIVATE = {"uuid", "cell_uuid", "updated", "_lock_name", "host_ip", "allocation_candidates"}
POLICIES = (None, "anti-affinity", "soft-anti-affinity", "affinity", "soft-affinity")


@dataclasses.dataclass(frozen=True)
class Request:
    """VMs of one flavor, and the number of an earlier request whose VMs are deleted before."""

    flavor: str
    count: int
    policy: str | None
    deleted: int | None


def drawn(seed: int, count: int) -> list[Request]:
    """Return requests that fill the cloud to about a half, the last one too large for a host."""
    numbers, live, made = random.Random(seed), list[int](), list[Request]()
    for number in range(count):
        deleted = live.pop(numbers.randrange(len(live))) if len(live) > 7 else None
        live.append(number)
        flavor = numbers.choice(list(FLAVORS))
        made.append(Request(flavor, numbers.randint(1, 3), numbers.choice(POLICIES), deleted))
    return [*made, Request("whole", 2, "affinity", None)]


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Draw the identifiers that nova-api makes, in the thread of the test, from these numbers."""
    numbers, main, real = random.Random(), threading.get_ident(), uuidutils.generate_uuid

    def generate(dashed: bool = True) -> str:
        if threading.get_ident() != main:
            return real(dashed)
        return str(uuid.UUID(int=numbers.getrandbits(128), version=4))

    monkeypatch.setattr(uuidutils, "generate_uuid", generate)
    return numbers


def host_states(cloud: TestedCloud) -> dict[str, dict[str, Any]]:
    """Return what filters and weighers see of each host, as Nova's host manager reads it."""
    manager = cloud.scheduler.manager.host_manager
    spec = objects.RequestSpec(requested_destination=None, force_hosts=None, force_nodes=None)
    admin = nova_context.get_admin_context()
    found = {}
    for state in manager.get_host_states_by_uuids(admin, None, spec):
        seen = {name: value for name, value in vars(state).items() if name not in PRIVATE}
        seen["instances"] = sorted(seen["instances"])
        seen["pci_stats"] = seen["pci_stats"].pools
        seen["metrics"] = seen["metrics"].obj_to_primitive()
        seen["service"] = {name: seen["service"][name] for name in ("disabled", "host", "topic")}
        found[state.nodename] = seen
    return found


def lived(kind: CloudKind, requests: list[Request], seeded: random.Random, folder: Path) -> list:
    """Return for each request its VMs' hosts and allocations, and the HostStates afterwards."""
    cloud = kind.start(folder)
    try:
        for number, host in enumerate(HOSTS):
            with pytest.MonkeyPatch.context() as patch:
                driver = f"nova.virt.{nova_cloud.DRIVER}.memory_mb"
                patch.setattr(driver, 65536 - 1000 * number)
                cloud.start_computes([host])
        for name, sizes in FLAVORS.items():
            cloud.flavor(name, **sizes)
        names = {found["uuid"]: found["name"] for found in cloud._get_all_providers()}
        placed: list[list[str]] = []
        seen = []
        for number, request in enumerate(requests):
            if request.deleted is not None:
                cloud.remove(placed[request.deleted])
            seeded.seed(number)
            group = (
                cloud.server_group(f"group {number}", request.policy) if request.policy else None
            )
            vms = cloud.boot(request.flavor, count=request.count, group=group)
            placed.append(vms)
            shown = cloud.wait(vms)
            places = [
                (shown[vm]["status"], shown[vm]["OS-EXT-SRV-ATTR:host"]) for vm in sorted(vms)
            ]
            held = [
                {
                    names[provider]: found["resources"]
                    for provider, found in cloud._get_allocations_by_server_uuid(vm).items()
                }
                for vm in sorted(vms)
            ]
            running = sum(status == "ACTIVE" for status, _ in places)
            before = sum(len(state["instances"]) for state in seen[-1][2].values()) if seen else 0
            gone = placed[request.deleted] if request.deleted is not None else []
            ended = sum(vm in state["instances"] for vm in gone for state in seen[-1][2].values())

            def is_told(expected: int = before + running - ended) -> bool:
                states = host_states(cloud).values()
                return sum(len(state["instances"]) for state in states) == expected

            # A real compute reports its instances to the scheduler a little later.
            wait_until(is_told, 60)
            seen.append((places, held, host_states(cloud)))
        return seen
    finally:
        cloud.doCleanups()


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        pytest.param(1, 10, marks=pytest.mark.ci),
        pytest.param(2, 100, marks=pytest.mark.nightly("moves", "200 VMs, built twice")),
    ],
)
def test_drawn_requests_find_thin_computes_and_real_ones_equal(
    running_cloud, seeded, tmp_path_factory, seed, count
):
    requests = drawn(seed, count)
    running_cloud.end()
    thin, real = (lived(kind, requests, seeded, tmp_path_factory.mktemp("cloud")) for kind in KINDS)
    assert {status for places, _, _ in real for status, _ in places} == {"ACTIVE", "ERROR"}
    for number, (one, other) in enumerate(zip(thin, real, strict=True)):
        assert one[:2] == other[:2], (number, requests[number])
        differing = {
            f"{host} {name}": (value, other[2][host][name])
            for host, fields in one[2].items()
            for name, value in fields.items()
            if value != other[2][host][name]
        }
        assert not differing, (number, requests[number])
