"""The room of a snapshot's hosts is the scheduler's, and their candidates are Placement's.

Drawn clouds of mixed devices, see :mod:`tests.functional.drawn_providers`, in the real Placement.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from nova import context as nova_context
from nova import objects
from nova.pci import request as pci_request
from nova.scheduler import host_manager, utils
from oslo_utils import uuidutils

from hpc_sched.core.arrays import Array
from hpc_sched.core.room import candidate_enumeration
from hpc_sched.nova_glue.read.room.host_rooms import HostRooms
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery
from hpc_sched.snapshot.room import flavor_request, pci_aliases, provider_trees
from hpc_sched.snapshot.room.snapshot_rooms import SnapshotRooms
from hpc_sched.snapshot.snapshot_model import Flavor, Hypervisor, Snapshot
from hpc_sched.snapshot.source import placement_providers
from tests.functional import nova_objects, provider_rows
from tests.functional.cloud_kinds import EMPTY
from tests.functional.drawn_providers import ALIAS, FLAVORS, DrawnCloud
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

Amounts = frozenset[tuple[tuple[str, str], int]]

SIZE = {"vcpus": 2, "memory_mb": 2048, "root_gb": 8, "ephemeral_gb": 2}
OPTIONS = {
    ("filter_scheduler", "pci_in_placement"): True,
    ("pci", "alias"): [ALIAS],
    ("hpc_sched", "cell_timeout"): 300,
}


class Api:
    """Placement's API as the commands read it."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def get(self, path: str, **query: str) -> Any:
        text = "&".join(f"{key}={value}" for key, value in query.items())
        answer = self._client.get(f"{path}?{text}" if text else path, version="1.36")
        assert answer.status == 200, (path, query, answer.body)
        return answer.body


class Written:
    """Clouds in Placement, and what a snapshot has of them."""

    def __init__(self, cloud: TestedCloud, seeds: Sequence[int]) -> None:
        self.cloud = cloud
        clouds = [DrawnCloud(seed) for seed in seeds]
        self._providers = [found for drawn in clouds for found in drawn.providers]
        self._consumers = provider_rows.write(self._providers)
        self.hosts = [uuid for drawn in clouds for uuid in drawn.hosts]
        self.roots = {
            found.uuid: found
            for drawn in clouds
            for found in drawn.providers
            if found.uuid in drawn.hosts
        }
        totals = {
            uuid: {
                name: stock["total"]
                for name, stock in root.inventories.items()
                if name in ("VCPU", "MEMORY_MB", "DISK_GB")
            }
            for uuid, root in self.roots.items()
        }
        trees, shared = placement_providers.read(Api(cloud.placement), totals, lambda _text: None)
        self.snapshot = Snapshot(
            taken="now",
            hypervisors=tuple(
                Hypervisor(uuid, uuid, True, True, {"VCPU": 1}, {}, providers=trees[uuid])
                for uuid in self.hosts
            ),
            servers=(),
            groups=(),
            flavors=(),
            shared_providers=shared,
            pci_aliases=(ALIAS,),
            pci_in_placement=True,
        )

    def remove(self) -> None:
        """Remove the providers and what is used of them."""
        provider_rows.release(self._consumers)
        provider_rows.remove([found.uuid for found in self._providers])

    def spec(self, extra_specs: dict[str, str]) -> objects.RequestSpec:
        flavor = nova_objects.flavor(
            vcpus=SIZE["vcpus"],
            memory_mb=SIZE["memory_mb"],
            disk_gb=SIZE["root_gb"],
            extra_specs=extra_specs,
        )
        flavor.ephemeral_gb = SIZE["ephemeral_gb"]
        spec = nova_objects.request_spec(flavor, None, count=1, uuid=uuidutils.generate_uuid())
        spec.pci_requests = pci_request.get_pci_requests_from_flavor(flavor)
        spec.generate_request_groups_from_pci_requests()
        return spec

    def allocation_requests(self, spec: objects.RequestSpec) -> dict[str, list[Any]]:
        """Return the allocation requests of each host, as Nova has them from Placement."""
        wanted = utils.resources_from_request_spec(nova_context.get_admin_context(), spec, None)
        wanted._limit = None
        url = f"/allocation_candidates?{wanted.to_querystring()}"
        answer = self.cloud.placement.get(url, version="1.36")
        if answer.status == 400:
            assert "group_policy" in str(answer.body)
            return {}
        assert answer.status == 200, answer.body
        found = defaultdict(list)
        for request in answer.body["allocation_requests"]:
            for provider in request["allocations"]:
                if provider in self.roots:
                    found[provider].append(request)
        return found

    def rooms(self, extra_specs: dict[str, str]) -> SnapshotRooms:
        flavor = Flavor("f", **SIZE, extra_specs=extra_specs)
        nodes = self.snapshot.hypervisors
        return SnapshotRooms(
            nodes,
            provider_trees.of(self.snapshot),
            flavor_request.resource_request(
                flavor, devices=pci_aliases.groups_of(flavor, self.snapshot)
            ),
            among=np.ones(len(nodes), dtype=np.bool_),
            least=np.zeros(len(nodes), dtype=np.int64),
        )

    def state(self, uuid: str, candidates: list[Any]) -> host_manager.HostState:
        """Return the HostState of a host, as its nova-compute would report it."""
        state = host_manager.HostState(uuid, uuid, uuid)
        root = self.roots[uuid]
        state.uuid = uuid
        state.vcpus_total = root.inventories["VCPU"]["total"]
        state.vcpus_used = root.used.get("VCPU", 0)
        state.total_usable_ram_mb = root.inventories["MEMORY_MB"]["total"]
        state.free_ram_mb = state.total_usable_ram_mb - root.used.get("MEMORY_MB", 0)
        state.total_usable_disk_gb, state.disk_mb_used = 10**6, 0
        state.cpu_allocation_ratio = root.inventories["VCPU"]["allocation_ratio"]
        state.ram_allocation_ratio = state.disk_allocation_ratio = 1.0
        state.allocation_candidates = candidates
        return state


def amounts_of(request: Any) -> Amounts:
    return frozenset(
        ((provider, name), amount)
        for provider, found in request["allocations"].items()
        for name, amount in found["resources"].items()
    )


def verified(rooms: HostRooms | SnapshotRooms) -> Array:
    """Return the rooms once plans that use all of them hold."""
    room = rooms.room
    while True:
        lower = np.minimum(room, rooms.verified(room))
        if (lower == room).all():
            return room
        room = lower


pytestmark = cloud_mark(EMPTY)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(range(12), id="12 clouds"),
        pytest.param(
            range(12, 40), id="28 clouds", marks=pytest.mark.nightly("rooms", "28 clouds more")
        ),
        *(
            pytest.param(
                range(first, first + 100),
                id=f"100 clouds from {first}",
                marks=pytest.mark.nightly("rooms", "a hundred clouds more"),
            )
            for first in (1000, 2000, 3000)
        ),
    ],
)
def written(request: pytest.FixtureRequest, cloud_of_module: TestedCloud) -> Iterator[Written]:
    for (section, name), value in OPTIONS.items():
        cloud_of_module.flags(**{name: value}, group=section)
    pci_request.get_alias_from_config.cache_clear()
    written = Written(cloud_of_module, request.param)
    yield written
    written.remove()
    pci_request.get_alias_from_config.cache_clear()


@pytest.mark.parametrize("extra_specs", FLAVORS, ids=str)
def test_candidates_and_rooms_are_those_of_the_scheduler(
    written: Written, extra_specs: dict[str, str]
):
    spec = written.spec(extra_specs)
    requests = written.allocation_requests(spec)
    rooms = written.rooms(extra_specs)
    for i, uuid in enumerate(written.hosts):
        expected = {amounts_of(request) for request in requests.get(uuid, ())}
        found = {frozenset(one.amounts.items()) for one in rooms.candidates(i)}
        assert found == expected, uuid
        assert len(found) < candidate_enumeration.MOST
    # Hosts with a pool of their own cloud are verified alone: what one takes, others do not get.
    own = {p.uuid for node in written.snapshot.hypervisors for p in node.providers}
    shares = {
        uuid
        for uuid, found in requests.items()
        if any(provider not in own for one in found for provider in one["allocations"])
    }
    alone = [uuid for uuid in written.hosts if uuid in shares]
    together = [uuid for uuid in written.hosts if uuid in requests and uuid not in shares]
    query = NovaQuery.of(spec)
    expected_rooms = dict.fromkeys(written.hosts, 0)
    for hosts in [together, *([uuid] for uuid in alone)]:
        states = [written.state(uuid, requests[uuid]) for uuid in hosts]
        theirs = HostRooms(states, query, None)
        theirs.read_all()
        expected_rooms |= dict(zip(hosts, verified(theirs).tolist(), strict=True))
    assert dict(zip(written.hosts, rooms.room.tolist(), strict=True)) == expected_rooms
