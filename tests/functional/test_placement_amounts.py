"""What is free in Placement: its amounts, what differs from HostStates, and a silent Placement."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from nova.scheduler.client import report

from hpc_sched.core.room.resource_request import RequestGroup, ResourceRequest
from hpc_sched.nova_glue.io import placement
from hpc_sched.nova_glue.io.placement import ProviderStocks, Stock
from hpc_sched.nova_glue.read.room import compared_hosts
from hpc_sched.nova_glue.read.room.placement_amounts import PlacementAmounts
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery
from hpc_sched.nova_glue.read.room.providers.offered_candidates import OfferedCandidates
from tests.functional import faults
from tests.functional.pods import states_of
from tests.functional.states import States, host_state

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    """Forget what earlier tests have compared, and which sources have not answered."""
    compared_hosts.forget_all()
    faults.forget()
    yield
    compared_hosts.forget_all()


class Answer:
    """An answer of Placement."""

    status_code = 200

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def json(self) -> dict[str, Any]:
        return self._content


class Client:
    """A client of a Placement with one inventory."""

    def get(self, url: str, **_said: Any) -> Answer:
        if url.endswith("/usages"):
            return Answer({"usages": {"VCPU": 3}})
        inventory = {"total": 10, "reserved": 2, "allocation_ratio": 1.5}
        return Answer({"inventories": {"VCPU": inventory}})


def test_what_is_reserved_is_not_overcommitted(monkeypatch):
    """Placement's capacity is (total - reserved) * allocation_ratio."""
    monkeypatch.setattr(report, "report_client_singleton", Client)
    found = placement.read_providers(["provider"])
    assert found == ProviderStocks({"provider": {"VCPU": Stock(12, 3, 2)}})


@pytest.mark.parametrize(
    ("vcpus_used", "is_compared"),
    [
        pytest.param(4, True, id="used by instances"),
        pytest.param(6, True, id="reserved ones too, as nova-compute counts them"),
        pytest.param(5, False, id="an instance is in flight"),
    ],
)
def test_a_host_with_reserved_processors_is_compared(vcpus_used: int, is_compared: bool):
    state = host_state("n01", vcpus_used=vcpus_used)
    compared_hosts.compare(state, {"VCPU": Stock(14, 4, reserved=2)})
    assert (compared_hosts.find(state) is not None) is is_compared


def test_nothing_is_missing_on_a_host_whose_reserved_processors_count_as_used():
    state = host_state("n01", vcpus_used=6)
    compared_hosts.compare(state, {"VCPU": Stock(14, 4, reserved=2)})
    assert compared_hosts.excess_of(state) == {}


def with_candidates(states: States) -> States:
    for state in states:
        resources = {state.uuid: {"resources": {"VCPU": 4}}}
        state.allocation_candidates = [{"allocations": resources, "mappings": {}}]
    return states


def test_a_placement_that_has_not_answered_is_not_asked_again(monkeypatch):
    asked: list[Sequence[str]] = []

    def read(uuids: Sequence[str]) -> ProviderStocks:
        asked.append(uuids)
        return ProviderStocks(problem="Placement: no answer within 2 s")

    monkeypatch.setattr(placement, "read_providers", read)
    states = with_candidates(states_of("leaf1"))
    query = NovaQuery((ResourceRequest((RequestGroup("", {"VCPU": 4}),)),))
    amounts = PlacementAmounts(states, query, OfferedCandidates(states))
    amounts.read_hosts([0, 1])
    amounts.read_hosts([2, 3])
    assert asked == [[states[0].uuid, states[1].uuid]]
