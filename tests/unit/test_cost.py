"""Core-hours, their prices, and the savings that Gupta2013 has of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.core.cost import Prices, Usage, prices_in
from hpc_sched.core.extra_spec_names import APP_CLASSES

# Gupta2013, Table I: EC2 compute units and dollars an hour.
UNITS, PRICE = 88, 2.4  # Cluster Compute, which has a host of its own
SMALL_UNITS, SMALL_PRICE = 13, 0.9  # High-Memory

amounts = st.floats(0, 1e6)
by_class = st.dictionaries(st.sampled_from(APP_CLASSES), amounts)


def table_1() -> Prices:
    """Return the prices of Table I, those of a compute unit as those of a vcpu."""
    return Prices({"extreme": PRICE / UNITS, "sync": PRICE / UNITS, "async": 0.9 / SMALL_UNITS})


def test_a_host_that_shares_the_memory_left_earns_23_percent_more_as_in_table_1_of_gupta2013():
    dedicated = Usage({"extreme": UNITS}, 1, UNITS).revenue_per_host_hour(table_1())
    shared = Usage({"sync": UNITS - SMALL_UNITS, "async": SMALL_UNITS}, 1, UNITS)
    earned = shared.revenue_per_host_hour(table_1())
    assert dedicated == pytest.approx(PRICE)
    # The paper's own formula: one instance has 13 units less, the other is added.
    assert earned == pytest.approx(PRICE - PRICE / (UNITS / SMALL_UNITS) + SMALL_PRICE)
    assert earned / dedicated - 1 == pytest.approx(0.2273, abs=1e-4)
    assert f"{earned / dedicated - 1:.0%}" == "23%"


def test_a_dedicated_vm_pays_for_its_own_vcpus_and_the_host_is_in_use_as_a_whole():
    small = Usage({"extreme": 8}, 1, 32)
    assert small.revenue(Prices(others=0.5)) == 4
    assert small.revenue_per_host_core_hour(Prices(others=0.5)) == 0.125
    # A price of the class may cover the cores that no other VM gets.
    assert small.revenue_per_host_core_hour(Prices({"extreme": 2.0}, others=0.5)) == 0.5


def test_without_a_host_in_use_there_is_no_revenue_per_hour():
    nothing = Usage({}, 0, 0)
    assert (nothing.all_core_hours, nothing.revenue(Prices(others=1))) == (0, 0)
    assert nothing.revenue_per_host_hour(Prices(others=1)) is None
    assert nothing.revenue_per_host_core_hour(Prices(others=1)) is None


@given(by_class, amounts)
def test_with_one_price_the_classes_do_not_matter(hours, price):
    usage = Usage(hours, 1, 1)
    assert usage.revenue(Prices(others=price)) == pytest.approx(price * usage.all_core_hours)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.05", Prices(others=0.05)),
        ("0", Prices(others=0.0)),
        ("sync=0.0273,async=0.0692", Prices({"sync": 0.0273, "async": 0.0692})),
        (" 0.05 , sync = 1e-2 ", Prices({"sync": 0.01}, 0.05)),
        ("none=0,3", Prices({"none": 0.0}, 3.0)),
    ],
)
def test_prices_are_one_number_or_one_per_class_with_one_for_the_others(text, found):
    assert prices_in(text, "--price") == found


@given(by_class, st.none() | amounts)
def test_prices_are_written_as_they_are_read(named, others):
    stated = Prices(named, others)
    if str(stated):
        assert prices_in(str(stated), "price") == stated


def test_the_price_without_a_class_is_that_of_the_classes_not_named():
    stated = prices_in("0.05,sync=0.03", "--price")
    assert [stated.of(name) for name in APP_CLASSES] == [0.05, 0.03, 0.05, 0.05]
    assert stated.notes(APP_CLASSES) == []


def test_classes_without_a_price_are_free_and_named_in_a_note():
    stated = prices_in("sync=0.03", "--price")
    assert [stated.of(name) for name in APP_CLASSES] == [0, 0.03, 0, 0]
    assert stated.notes(["sync"]) == []
    assert stated.notes(["none", "sync", "async"]) == [
        "no price for class async, none: counted as 0"
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "expected PRICE or CLASS=PRICE,..., each PRICE a number from 0 to 1e+09, found ''"),
        ("-1", "each PRICE a number from 0 to 1e+09, found '-1'"),
        ("nan", "each PRICE a number from 0 to 1e+09, found 'nan'"),
        ("sync=", "each PRICE a number from 0 to 1e+09, found 'sync='"),
        ("sync=1e10", "each PRICE a number from 0 to 1e+09, found 'sync=1e10'"),
        ("0.1,", "each PRICE a number from 0 to 1e+09, found ''"),
        ("web=1", "with classes of extreme, sync, async, none, found 'web'"),
        ("=1", "with classes of extreme, sync, async, none, found ''"),
        ("1=sync", "with classes of extreme, sync, async, none, found '1'"),
        ("sync=1,sync=2", "expected sync once, found 'sync=1,sync=2'"),
        ("1,2", "expected a price without a class once, found '1,2'"),
    ],
)
def test_what_is_no_price_is_an_error_that_names_option_and_part(text, error):
    with pytest.raises(exceptions.ConfigError) as found:
        prices_in(text, "--price")
    assert str(found.value).startswith("--price: expected ")
    assert error in str(found.value)
