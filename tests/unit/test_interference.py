"""Who may share a host: dedication, cache scores within alpha and beta, bad company."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.sharing.cache_interference import (
    Application,
    InterferenceIndex,
    Limits,
    dedicated_room,
    room,
)

LIMITS = Limits(alpha=100.0, beta=60.0)


def vm(app_class: str = "async", score: float = 0.0, name=None, group=None) -> Application:
    return Application(app_class, name, score, group)


# Dedicated hosts.


@pytest.mark.parametrize(
    ("newcomer", "neighbours", "expected"),
    [
        pytest.param(vm("extreme", group="g"), [], UNBOUNDED, id="extreme on an empty host"),
        pytest.param(vm("extreme", group="g"), [vm("none")], 0, id="extreme beside a stranger"),
        pytest.param(
            vm("extreme", group="g"),
            [vm("extreme", group="g")],
            UNBOUNDED,
            id="extreme beside its own group",
        ),
        pytest.param(
            vm("extreme", group="g"),
            [vm("extreme", group="g"), vm("none")],
            0,
            id="extreme beside its own group and a stranger",
        ),
        pytest.param(
            vm("extreme", group="g"), [vm("extreme", group="h")], 0, id="extreme beside extreme"
        ),
        pytest.param(
            vm("extreme"), [vm("extreme")], 0, id="extreme without a group beside another such"
        ),
        pytest.param(vm("none"), [vm("extreme", group="g")], 0, id="none beside extreme"),
        pytest.param(vm("sync"), [vm("async"), vm("none")], UNBOUNDED, id="no extreme at all"),
        pytest.param(
            vm("sync", group="g"),
            [vm("extreme", group="g")],
            UNBOUNDED,
            id="another class of an extreme VM's own group",
        ),
    ],
)
def test_an_extreme_vm_shares_a_host_with_its_own_group_alone(newcomer, neighbours, expected):
    assert dedicated_room(newcomer, neighbours) == expected


# Cache scores.


def test_ten_times_a_tenth_fill_a_limit_of_one():
    limits = Limits(alpha=1.0, beta=1.0)
    assert room(vm(score=0.1), [], limits) == 10
    assert room(vm(score=0.1), [vm(score=0.1)] * 9, limits) == 1
    assert room(vm(score=0.1), [vm(score=0.1)] * 10, limits) == 0


def test_a_score_just_above_what_is_left_does_not_fit():
    assert room(vm(score=40.001), [vm(score=60.0)], LIMITS) == 0
    assert room(vm(score=40.0), [vm(score=60.0)], LIMITS) == 1


def test_a_vm_without_a_score_always_fits_below_the_limit():
    assert room(vm(score=0.0), [vm(score=100.0)], LIMITS) == UNBOUNDED


def test_a_sync_vm_without_a_score_does_not_join_more_than_beta():
    assert room(vm("sync"), [vm(score=60.0)], LIMITS) == UNBOUNDED
    assert room(vm("sync"), [vm(score=60.5)], LIMITS) == 0


def test_a_sync_newcomer_lowers_the_limit():
    assert room(vm("async", 20.0), [], LIMITS) == 5
    assert room(vm("sync", 20.0), [], LIMITS) == 3


def test_a_sync_neighbour_lowers_the_limit_for_others():
    assert room(vm("async", 20.0), [vm("sync", 20.0)], LIMITS) == 2


def test_a_beta_above_alpha_does_not_raise_the_limit():
    assert room(vm("sync", 10.0), [], Limits(alpha=50.0, beta=80.0)) == 5


def test_a_host_that_is_over_its_limit_takes_nobody():
    assert room(vm(score=1.0), [vm(score=150.0)], LIMITS) == 0
    assert room(vm(score=0.0), [vm(score=150.0)], LIMITS) == 0


def test_limits_and_bad_company_do_not_count_for_extreme():
    newcomer = vm("extreme", 500.0, "WRF", "g")
    assert room(newcomer, [vm(score=100.0, name="LU")], LIMITS, {"LU", "WRF"}) == UNBOUNDED


# Bad company.


def test_bad_company_leaves_no_room():
    assert room(vm(name="WRF"), [vm(name="LU")], LIMITS, {"LU"}) == 0
    assert room(vm(name="WRF"), [vm(name="EP")], LIMITS, {"LU"}) == UNBOUNDED


def test_an_application_that_is_bad_company_to_itself_has_one_vm_a_host():
    assert room(vm(name="WRF"), [], LIMITS, {"WRF"}) == 1
    assert room(vm(name="WRF", score=1.0), [], LIMITS, {"WRF"}) == 1
    assert room(vm(name="WRF"), [vm(name="WRF")], LIMITS, {"WRF"}) == 0


def test_a_vm_without_an_application_is_nobodys_bad_company():
    assert room(vm(), [vm(name="LU")], LIMITS) == UNBOUNDED
    assert room(vm(name="LU"), [vm()], LIMITS, {"LU"}) == 1


INDEX = InterferenceIndex(
    {
        ("WRF", "LU"): 0.85,
        ("LU", "WRF"): 0.99,
        ("WRF", "EP"): 1.01,
        ("EP", "WRF"): 1.0,
        ("LU", "LU"): 0.9,
    }
)


def test_one_of_two_that_loses_keeps_both_apart():
    assert INDEX.bad_company(0.12) == {"WRF": {"LU"}, "LU": {"WRF"}}


def test_a_loss_of_exactly_the_tolerance_keeps_apart():
    # 1 - 0.9 is a little less than 0.1.
    assert INDEX.bad_company(0.1)["LU"] == {"WRF", "LU"}


def test_at_a_tolerance_of_zero_only_those_that_lose_are_kept_apart():
    assert INDEX.bad_company(0.0) == {"WRF": {"LU"}, "LU": {"WRF", "LU"}}


def test_at_a_tolerance_of_one_nobody_is_kept_apart():
    assert INDEX.bad_company(1.0) == {}


def test_the_index_knows_its_applications():
    assert INDEX.applications == {"WRF", "LU", "EP"}


# Properties.

NAMES = st.sampled_from([None, "WRF", "LU", "EP"])
TENTHS = st.integers(0, 400).map(lambda number: number / 10)
VMS = st.builds(Application, st.sampled_from(["sync", "async", "none"]), NAMES, TENTHS, st.none())
BAD = st.sets(st.sampled_from(["WRF", "LU", "EP"]))
ANY_LIMITS = st.builds(Limits, TENTHS, TENTHS)


def admits(newcomer: Application, there: list[Application], limits: Limits, bad: set[str]) -> bool:
    """Decide for one VM, in exact decimals."""
    if any(neighbour.name in bad for neighbour in there):
        return False
    limit = Decimal(str(limits.alpha))
    if any(each.app_class == "sync" for each in [newcomer, *there]):
        limit = min(limit, Decimal(str(limits.beta)))
    return sum(Decimal(str(each.score)) for each in [newcomer, *there]) <= limit


@given(VMS, st.lists(VMS, max_size=6), ANY_LIMITS, BAD)
def test_the_room_is_how_many_are_admitted_one_by_one(newcomer, neighbours, limits, bad):
    found = room(newcomer, neighbours, limits, bad)
    there, admitted = list(neighbours), 0
    while admitted < 500 and admits(newcomer, there, limits, bad):
        there.append(newcomer)
        admitted += 1
    assert min(found, 500) == admitted


@given(
    VMS,
    st.lists(VMS, max_size=8).flatmap(lambda vms: st.tuples(st.just(vms), st.permutations(vms))),
    ANY_LIMITS,
    BAD,
)
def test_the_order_of_the_neighbours_changes_nothing(newcomer, both, limits, bad):
    neighbours, permuted = both
    assert room(newcomer, neighbours, limits, bad) == room(newcomer, permuted, limits, bad)
    assert dedicated_room(newcomer, neighbours) == dedicated_room(newcomer, permuted)


@given(
    st.dictionaries(st.tuples(*[st.sampled_from("abc")] * 2), st.floats(0.01, 2.0)), st.floats(0, 1)
)
def test_bad_company_is_mutual(performance, tolerance):
    bad = InterferenceIndex(performance).bad_company(tolerance)
    assert all(name in bad[other] for name, others in bad.items() for other in others)
