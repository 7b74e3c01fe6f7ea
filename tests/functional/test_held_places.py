"""VMs that lose their claimed place: what is held for the others of the request is not theirs.

Nova claims VM by VM, the claimed host first. Here its claims fail as they do where a host changes
too often; Placement accepts the gang claim, the edge that has no server here. Hosts n01 to n04 of
:mod:`tests.functional.pods` take two VMs each.
"""

from collections.abc import Callable, Collection

import pytest
from nova import objects

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.io import placement
from hpc_sched.nova_glue.io.placement import ProviderStocks, Stock
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional import states
from tests.functional.pods import states_of
from tests.functional.states import States, claims_succeed, known, queue_of, run, spec, weigh

pytestmark = pytest.mark.usefixtures("two_pods")

COUNT, VCPUS = 3, 8
# What Nova sees: the number of a VM, and the hosts in the order of their weights.
Refuses = Callable[[int, list[str]], Collection[str]]


class Request:
    """A group of three, placed VM by VM."""

    def __init__(self, hosts: States, policy: str) -> None:
        self.hosts = hosts
        self.queue = queue_of(COUNT)
        self.spec: objects.RequestSpec = spec(
            count=COUNT, uuid=self.queue[0], vcpus=VCPUS, group_policy=policy
        )
        self.planned: list[str] = []
        self.orders: list[list[str]] = []

    def held(self) -> list[str]:
        """Return the hosts that Placement holds for VMs that Nova has not placed."""
        places = known(self.spec).group.held_places().values()
        return [self.hosts[place.position].nodename for place in places]

    def place(self, refuses: Refuses) -> list[str]:
        """Place all VMs; return their hosts."""
        kept, placed = self.hosts, []
        for number, uuid in enumerate(self.queue):
            self.spec.instance_uuid = uuid
            kept = run(kept, self.spec, HPCGroupFilter(), index=number)
            self.planned = self.planned or self.held()
            order = weigh(HopByteWeigher(), kept, self.spec)
            self.orders.append(order)
            placed.append(states.place(kept, order, self.spec, lose=refuses(number, order)))
        return placed


@pytest.fixture
def request_of(group, monkeypatch) -> Callable[[str], Request]:
    """Return what makes a request for a group of a policy, without members."""

    def request_(policy: str) -> Request:
        group(queue=queue_of(COUNT), left=COUNT)
        claims_succeed(monkeypatch, queue_of(COUNT))
        hosts = states_of("leaf1")
        for host in hosts:
            amounts = {host.uuid: {"resources": {"VCPU": VCPUS}}}
            host.allocation_candidates = [{"allocations": amounts, "mappings": {}}]
        return Request(hosts, policy)

    return request_


def first_of_first(number: int, order: list[str]) -> Collection[str]:
    return order[:1] if number == 0 else ()


def test_with_soft_anti_affinity_a_vm_that_lost_its_place_takes_a_host_that_holds_none(request_of):
    request = request_of("soft-anti-affinity")
    placed = request.place(first_of_first)
    assert request.planned == ["n01", "n02", "n03"]
    assert placed == ["n04", "n02", "n03"]


def test_the_others_stay_where_they_are_claimed_though_a_host_refused_one_of_them(request_of):
    """n01 refuses the first VM and is held for the second; n02 refuses it, held for the third."""
    request = request_of("soft-affinity")
    placed = request.place(lambda number, order: order[:2] if number == 0 else ())
    assert request.planned == ["n01", "n01", "n02"]
    assert placed == ["n03", "n01", "n02"]
    # What refuses a VM beside what it holds comes after the hosts with room.
    assert request.orders[1] == ["n01", "n03", "n04", "n02"]


def test_what_the_request_holds_is_room_for_it_where_placement_is_read_later(
    request_of, monkeypatch
):
    request = request_of("soft-affinity")
    reads = []

    def read(uuids: Collection[str]) -> ProviderStocks:
        reads.append([host.nodename for host in request.hosts if host.uuid in uuids])
        held = request.held()
        return ProviderStocks(
            stocks={
                host.uuid: {
                    "VCPU": Stock(16, host.vcpus_used + VCPUS * held.count(host.nodename), 0)
                }
                for host in request.hosts
                if host.uuid in uuids
            }
        )

    monkeypatch.setattr(placement, "read_providers", lambda uuids: read(list(uuids)))
    monkeypatch.setattr(
        placement, "read_trees", lambda _: read([host.uuid for host in request.hosts])
    )
    placed = request.place(first_of_first)
    assert placed == ["n02", "n01", "n02"]
    # Not all hosts: none has less than its HostState says.
    assert reads == [["n01"], ["n02"]]
