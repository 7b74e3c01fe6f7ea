"""The allocation candidates of one VM on one host, enumerated as Placement does it.

The comparison with the real Placement is in tests/functional/test_rooms_by_placement.py.
"""

import itertools

import pytest

from hpc_sched.core.room.candidate_enumeration import MOST, candidates
from hpc_sched.core.room.provider_tree import SHARES, Provider, ProviderInventory, ProviderTree
from hpc_sched.core.room.resource_request import RequestGroup, ResourceRequest

#              host: VCPU 8
#         /         |           \
#   pgpu0: VGPU 2  pgpu1: VGPU 4  nics
#   RED            BLUE          /     \
#                            pf0: VF 4  pf1: VF 4 FAST
OWN = (
    Provider("host", None, {"VCPU": ProviderInventory(8)}, ("NODE",), ("rack",)),
    Provider("pgpu0", "host", {"VGPU": ProviderInventory(2)}, ("RED",)),
    Provider("pgpu1", "host", {"VGPU": ProviderInventory(4)}, ("BLUE",)),
    Provider("nics", "host"),
    Provider("pf0", "nics", {"VF": ProviderInventory(4)}),
    Provider("pf1", "nics", {"VF": ProviderInventory(4)}, ("FAST",)),
)
POOL = Provider("pool", None, {"DISK": ProviderInventory(100, 40)}, (SHARES,), ("rack",))
FAR = Provider("far", None, {"DISK": ProviderInventory(100)}, (SHARES,), ("elsewhere",))
TREE = ProviderTree.of(OWN, (POOL, FAR))


def group(suffix: str = "", *required: str, no: str = "", **resources: int) -> RequestGroup:
    return RequestGroup(
        suffix,
        resources,
        tuple(frozenset(one.split("|")) for one in required),
        frozenset(filter(None, [no])),
    )


def found(*groups: RequestGroup, tree: ProviderTree = TREE, policy="none", **kwargs) -> list[str]:
    """Return the candidates as texts: ``host.VCPU=1 pgpu0.VGPU=2``."""
    answer = candidates(tree, ResourceRequest(groups, policy, **kwargs))
    return [
        " ".join(f"{uuid}.{name}={n}" for (uuid, name), n in sorted(one.amounts.items()))
        for one in answer
    ]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param([group(VCPU=9)], [], id="no more than a provider has"),
        pytest.param(
            [group(VCPU=1, VGPU=2)],
            ["host.VCPU=1 pgpu0.VGPU=2", "host.VCPU=1 pgpu1.VGPU=2"],
            id="each class of the unsuffixed group from any one provider",
        ),
        pytest.param(
            [group(VGPU=6)], [], id="an amount is not divided between providers of the tree"
        ),
        pytest.param(
            [group("", "RED", VCPU=1, VGPU=1)],
            ["host.VCPU=1 pgpu0.VGPU=1"],
            id="the traits of the providers in use count together",
        ),
        pytest.param(
            [group("", "RED|BLUE", "NODE", VCPU=1, VGPU=1)],
            ["host.VCPU=1 pgpu0.VGPU=1", "host.VCPU=1 pgpu1.VGPU=1"],
            id="any one trait of a set",
        ),
        pytest.param([group("", "RED", VCPU=1)], [], id="traits of providers not in use do not"),
        pytest.param(
            [group("", no="RED", VCPU=1, VGPU=1)],
            ["host.VCPU=1 pgpu1.VGPU=1"],
            id="a forbidden trait leaves out its provider alone",
        ),
        pytest.param([group("1", "RED", VGPU=4)], [], id="a suffixed group from one provider"),
        pytest.param(
            [group("1", "NODE", VGPU=1)], [], id="which has all the traits of the group itself"
        ),
        pytest.param(
            [group("1", VGPU=1), group("2", VGPU=1)],
            ["pgpu0.VGPU=2", "pgpu0.VGPU=1 pgpu1.VGPU=1", "pgpu1.VGPU=2"],
            id="equal groups in one order only",
        ),
        pytest.param(
            [group("1", VGPU=2), group("2", VGPU=2)],
            ["pgpu0.VGPU=2 pgpu1.VGPU=2", "pgpu1.VGPU=4"],
            id="two groups share a provider as far as it has enough for both",
        ),
        pytest.param(
            [group(VCPU=1, DISK=60)],
            ["host.VCPU=1 pool.DISK=60"],
            id="disk of the pool in an aggregate of the host, as far as it is free",
        ),
        pytest.param([group(VCPU=1, DISK=61)], [], id="not the pool of another aggregate"),
        pytest.param([group("", "RED")], [], id="no traits without resources"),
        pytest.param([], [], id="nothing requested"),
    ],
)
def test_candidates(groups, expected):
    assert found(*groups) == expected


def test_isolated_groups_have_providers_of_their_own():
    groups = [group("1", VGPU=1), group("2", VGPU=1)]
    assert found(*groups, policy="isolate") == ["pgpu0.VGPU=1 pgpu1.VGPU=1"]
    # The group without a suffix is not isolated from them.
    groups = [group(VGPU=1), group("1", VGPU=1)]
    assert len(found(*groups, policy="isolate")) == 3


def test_several_groups_without_a_policy_are_refused():
    assert found(group("1", VGPU=1), group("2", VGPU=1), policy=None) == []
    assert len(found(group(VCPU=1), group("1", VGPU=1), policy=None)) == 2


def test_traits_of_the_root_decide_on_the_whole_tree():
    assert found(group(VCPU=1), root=group("", "NODE")) == ["host.VCPU=1"]
    assert found(group(VCPU=1), root=group("", "RED")) == []
    assert found(group(VCPU=1), root=group(no="NODE")) == []


def test_groups_of_one_subtree_have_a_provider_above_all_others():
    groups = [group("nic"), group("vf", VF=1)]
    below = (frozenset({"nic", "vf"}),)
    mappings = [
        dict(one.mappings)
        for one in candidates(TREE, ResourceRequest(tuple(groups), "none", below))
    ]
    # One of several mappings of the same amounts is kept; each has a common subtree.
    assert {one["vf"] for one in mappings} == {("pf0",), ("pf1",)}
    two = [group("a", VF=1), group("b", VGPU=1)]
    assert found(*two, same_subtree=(frozenset({"a", "b"}),)) == []
    assert len(found(*two)) == 4


@pytest.mark.parametrize(
    ("stock", "amounts"),
    [
        (ProviderInventory(8, 3), [1, 2, 3, 4, 5]),
        (ProviderInventory(8, 0, min_unit=3), [3, 4, 5, 6, 7, 8]),
        (ProviderInventory(8, 0, max_unit=2), [1, 2]),
        (ProviderInventory(8, 1, step_size=3), [3, 6]),
        (ProviderInventory(2, 5), []),
        (ProviderInventory(8, 0, step_size=0), [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_units_bound_what_a_group_gets(stock, amounts):
    tree = ProviderTree((Provider("host", None, {"VCPU": stock}),))
    assert [n for n in range(1, 10) if found(group(VCPU=n), tree=tree)] == amounts


def test_the_largest_unit_bounds_what_all_groups_get_of_a_provider():
    stock = ProviderInventory(8, max_unit=3, min_unit=2)
    tree = ProviderTree((Provider("host", None, {"VCPU": stock}),))
    assert found(group("1", VCPU=2), group("2", VCPU=2), tree=tree) == []


def test_the_number_of_candidates_is_bounded_in_a_total_order():
    # 8 devices for each of 6 groups: C(13, 6) = 1716 ways.
    own = [Provider("host", None, {"VCPU": ProviderInventory(8)})]
    own += [Provider(f"gpu{n}", "host", {"GPU": ProviderInventory(8)}) for n in range(8)]
    groups = [group(str(n), GPU=1) for n in range(6)]
    answer = found(*groups, tree=ProviderTree(tuple(own)))
    assert len(answer) == len(set(answer)) == MOST
    assert answer[0] == "gpu0.GPU=6"
    assert answer == found(*groups, tree=ProviderTree(tuple(own)))


def test_a_search_that_finds_nothing_ends():
    own = [Provider("host", None, {"VCPU": ProviderInventory(8)})]
    names = [f"C{n}" for n in range(12)]
    stocks = {name: ProviderInventory(1) for name in names}
    own += [Provider(f"p{n}", "host", stocks) for n in range(12)]
    wanted = group("", "RED", **dict.fromkeys(names, 1))
    assert found(wanted, tree=ProviderTree(tuple(own))) == []


def test_a_parent_that_is_its_own_ancestor_ends_too():
    own = (
        Provider("a", "b", {"VF": ProviderInventory(1)}),
        Provider("b", "a", {"VGPU": ProviderInventory(1)}),
    )
    groups = [group("1", VF=1), group("2", VGPU=1)]
    subtree = (frozenset({"1", "2"}),)
    assert len(found(*groups, tree=ProviderTree(own), same_subtree=subtree)) == 1


def test_the_order_of_groups_and_providers_changes_no_candidate():
    groups = [group("1", VGPU=1), group("2", "BLUE", VGPU=2), group(VCPU=2, VF=1)]
    expected = set(found(*groups))
    assert len(expected) > 2
    for order in itertools.permutations(groups):
        tree = ProviderTree(TREE.own[:1] + TREE.own[:0:-1], TREE.shared)
        assert set(found(*order, tree=tree)) == expected
