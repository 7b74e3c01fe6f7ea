"""The candidates of many trees of resource providers, and how many of them Placement lists."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.room import candidate_numbers, tree_candidates
from hpc_sched.core.room.candidate_enumeration import MOST, most_by_class, with_repeats
from hpc_sched.core.room.claim_search import claim_order
from hpc_sched.core.room.provider_tree import Provider, ProviderInventory, ProviderTree
from hpc_sched.core.room.resource_request import RequestGroup, ResourceRequest
from hpc_sched.core.room.tree_candidates import TreeCandidates


def tree_of(devices: int, *, name: str = "host", used: int = 0, traits=()) -> ProviderTree:
    """Return a host with devices, the first ones used.

    ::

               host: VCPU 64
              /      |     \\
        gpu0: GPU  gpu1 ...  of which some have the trait RED
    """
    return ProviderTree.of(
        (
            Provider(name, None, {"VCPU": ProviderInventory(64)}),
            *(
                Provider(
                    f"{name}/gpu{number:02}",
                    name,
                    {"GPU": ProviderInventory(1, int(number < used))},
                    ("RED",) if number in traits else (),
                )
                for number in range(devices)
            ),
        ),
        (),
    )


def request_of(devices: int, policy: str = "none", red: int = 0) -> ResourceRequest:
    """Return a request for devices in as many groups, some of them with the trait RED."""
    groups = [
        RequestGroup(str(n), {"GPU": 1}, (frozenset({"RED"}),) if n < red else ())
        for n in range(devices)
    ]
    return ResourceRequest((RequestGroup("", {"VCPU": 1}), *groups), policy)


def room(tree: ProviderTree, request: ResourceRequest) -> int:
    amounts = [one.amounts for one in tree_candidates.candidates(tree, request)]
    return len(claim_order(amounts, tree.free(), 64))


@pytest.mark.parametrize(
    ("devices", "wanted", "vms"),
    [
        pytest.param(16, 8, 2, id="8 of 16: 12,870 candidates, the first 1,000 with one device"),
        pytest.param(16, 5, 3, id="5 of 16: 4,368 candidates"),
        pytest.param(8, 4, 2, id="4 of 8: all 70 candidates"),
    ],
)
def test_a_host_of_many_candidates_takes_as_many_vms_as_it_has_devices_for(devices, wanted, vms):
    assert room(tree_of(devices), request_of(wanted)) == vms


def test_placement_lists_the_candidates_of_equal_amounts_too():
    listed = list(with_repeats(tree_of(8), request_of(4)))
    assert len(listed) == 1680
    assert len({frozenset(one.amounts.items()) for one in listed}) == 70


def test_trees_that_differ_in_uuids_alone_are_enumerated_once(monkeypatch):
    real, asked = tree_candidates.candidates, []

    def counted(tree: ProviderTree, request: ResourceRequest):
        asked.append(tree.root.uuid)
        return real(tree, request)

    monkeypatch.setattr(tree_candidates, "candidates", counted)
    several = TreeCandidates([request_of(2)])
    for name in ("h1", "h2", "h3"):
        found = several.of(tree_of(3, name=name))
        assert {uuid.partition("/")[0] for one in found for uuid, _ in one.amounts} == {name}
    several.of(tree_of(3, name="h4", used=1))
    assert asked == ["h1", "h4"]


drawn_trees = st.builds(
    tree_of, st.integers(0, 5), used=st.integers(0, 2), traits=st.sets(st.integers(0, 4))
)
drawn_requests = st.integers(1, 3).flatmap(
    lambda n: st.builds(
        request_of, st.just(n), st.sampled_from(["none", "isolate"]), st.integers(0, n)
    )
)


@given(drawn_trees, drawn_requests)
def test_repeats_add_no_amounts(tree: ProviderTree, request: ResourceRequest):
    listed = {frozenset(one.amounts.items()) for one in with_repeats(tree, request)}
    found = {frozenset(one.amounts.items()) for one in tree_candidates.candidates(tree, request)}
    assert listed == found
    assert len(found) < MOST


@given(drawn_trees, drawn_requests)
def test_no_more_vms_fit_than_the_bound_by_classes(tree: ProviderTree, request: ResourceRequest):
    assert room(tree, request) <= min(most_by_class(tree, [request]).values())


@given(st.integers(0, 6), st.integers(1, 4))
def test_the_estimate_of_candidates_is_their_number_where_devices_are_alike(devices, wanted):
    estimate = candidate_numbers.estimated(request_of(wanted), {"GPU": {"host": devices}})
    assert estimate == math.perm(devices, wanted)
    assert estimate == len(list(with_repeats(tree_of(devices), request_of(wanted))))


def test_a_request_without_devices_has_no_estimate():
    assert candidate_numbers.estimated(request_of(0), {"GPU": {"host": 8}}) == 0
