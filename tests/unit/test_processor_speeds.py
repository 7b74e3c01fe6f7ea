"""Speeds of processor types: how they are stated, which of them a type has, what they order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.processors import processor_speeds
from hpc_sched.core.processors.processor_ranking import ProcessorRanking, best_first, speeds_of
from hpc_sched.exceptions import ConfigError

LABEL = "Intel Icelake-Server 2x32x2"
# Gupta2012, section 4.1: the servers of the test bed, with their frequencies in MHz.
E5450, X3370, X3210 = "Xeon E5450 1x4x1", "Xeon X3370 1x4x1", "Xeon X3210 1x4x1"
FREQUENCIES = {E5450: 3000.0, X3370: 3000.0, X3210: 2130.0}


@pytest.mark.parametrize(
    ("text", "speeds"),
    [
        ("", {}),
        (" ", {}),
        ("gold=1", {"gold": 1}),
        (" silver = 0.8 ,\n gold=1e0,", {"gold": 1, "silver": 0.8}),
        (f"{LABEL} +avx512f=3000", {f"{LABEL} +avx512f": 3000}),
        ("a:b=c=2.5", {"a:b=c": 2.5}),
    ],
    ids=["nothing", "a blank", "one", "two lines", "features", "a colon and an equals sign"],
)
def test_speeds_are_numbers_behind_the_last_equals_sign(text: str, speeds: dict[str, float]):
    assert processor_speeds.read(text) == speeds


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("gold", "expected TYPE=NUMBER,..., found 'gold'"),
        ("gold:3", "expected TYPE=NUMBER,..., found 'gold:3'"),
        ("=3", "expected TYPE=NUMBER,..., found '=3'"),
        ("a=1,,b=2", "expected TYPE=NUMBER,..., found ''"),
        ("gold, silver=2", "expected TYPE=NUMBER,..., found 'gold'"),
        ("gold=1\nsilver=2", "expected TYPE=NUMBER,..., found 'gold=1\\nsilver=2'"),
        ("gold=", "gold: expected a number above 0, found nothing"),
        ("gold=fast", "gold: expected a number above 0, found fast"),
        ("gold=0", "gold: expected a number above 0, found 0"),
        ("gold=-3", "gold: expected a number above 0, found -3"),
        ("gold=nan", "gold: expected a number above 0, found nan"),
        ("gold=inf", "gold: expected a number above 0, found inf"),
        ("gold=1e400", "gold: expected a number above 0, found 1e400"),
        ("gold=1,silver=2,gold=1", "expected each type once, found gold again"),
    ],
)
def test_what_states_no_speeds_is_refused_by_name(text: str, error: str):
    with pytest.raises(ConfigError) as caught:
        processor_speeds.read(text)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    "number", [0, -1, float("nan"), float("inf"), True, "3000", None, [], 10**400], ids=str
)
def test_a_mapping_with_another_value_than_a_number_above_0_is_refused(number: object):
    with pytest.raises(ConfigError, match=r"^gold: expected a number above 0, found"):
        processor_speeds.checked({"silver": 1, "gold": number})
    with pytest.raises(ConfigError, match="expected the name of a type, found 3"):
        processor_speeds.checked({3: 1.0})


@given(
    st.dictionaries(
        st.text(st.sampled_from("ab:= +x2"), min_size=1).map(str.strip).filter(bool),
        st.floats(0, exclude_min=True, allow_infinity=False),
    )
)
def test_speeds_that_are_written_are_read_again(speeds: dict[str, float]):
    text = ",".join(f"{name}={number!r}" for name, number in speeds.items())
    assert processor_speeds.read(text) == processor_speeds.checked(speeds) == speeds


def order(speeds: dict[str, float], *types: str, by: tuple[str, ...] = (), **cores: int) -> str:
    """Return the types, those named alone with one core a host."""
    numbers = dict.fromkeys(types, 1) | cores
    return " > ".join(best_first(numbers, ProcessorRanking(by, speeds)))


def test_the_types_of_gupta2012_come_by_frequency_then_by_name():
    assert order(FREQUENCIES, X3210, X3370, E5450) == f"{E5450} > {X3370} > {X3210}"


@pytest.mark.parametrize(
    ("speeds", "by", "expected"),
    [
        ({}, (), "large > middle > small"),
        ({"small": 3, "middle": 2, "large": 1}, (), "small > middle > large"),
        ({"small": 3}, (), "small > large > middle"),
        ({"small": 1e-9}, (), "small > large > middle"),
        ({"small": 3, "middle": 3, "large": 3}, (), "large > middle > small"),
        ({"small": 3, "middle": 2}, ("large",), "large > small > middle"),
        ({"small": 3, "elsewhere": 9}, ("middle", "large"), "middle > large > small"),
    ],
    ids=[
        "no speeds: by cores",
        "fastest first",
        "those without a speed come later",
        "behind a slow one too",
        "equal speeds: by cores",
        "the operator's order first",
        "an order of all others",
    ],
)
def test_speeds_decide_between_the_operators_order_and_cores(
    speeds: dict[str, float], by: tuple[str, ...], expected: str
):
    assert order(speeds, by=by, small=1, middle=2, large=4) == expected


def test_the_types_of_members_come_before_faster_ones():
    ranking = ProcessorRanking(speeds={"fast": 9, "slow": 1})
    assert best_first({"fast": 8, "slow": 8}, ranking, {"slow": 1}) == ["slow", "fast"]


def test_speeds_decide_between_types_of_one_entry_of_the_order():
    speeds = {f"{LABEL} +b": 2.0}
    assert order(speeds, f"{LABEL} +a", f"{LABEL} +b", "x", by=(LABEL,)) == (
        f"{LABEL} +b > {LABEL} +a > x"
    )


@pytest.mark.parametrize(
    ("entries", "speed"),
    [
        ({LABEL: 1}, 1),
        ({f"{LABEL} +a": 2, LABEL: 1}, 2),
        ({f"{LABEL} +a": 2, f"{LABEL} +a +b": 1}, 1),
        ({f"{LABEL} +a": 2, f"{LABEL} +b": 3}, 3),
        ({f"{LABEL} +b": 3, f"{LABEL} +a": 2}, 3),
        ({f"{LABEL} +a +hidden": 5, f"{LABEL} +a": 2}, 5),
        ({f"{LABEL} +a +b +c": 1, f"{LABEL} +a +b +c +hidden": 5}, 1),
        ({f"{LABEL} +d": 1}, None),
        ({"Intel Icelake-Server": 1}, None),
    ],
    ids=[
        "the label",
        "features before the label",
        "most features",
        "of equals the fastest",
        "in either order",
        "a feature that all types have",
        "the type's own name before more features",
        "another feature",
        "a part of the label",
    ],
)
def test_the_entry_with_most_features_is_the_speed_of_a_type(
    entries: dict[str, float], speed: float | None
):
    name = f"{LABEL} +a +b +c"
    found = speeds_of([name, "other"], entries, {name: frozenset(("a", "b", "c", "hidden"))})
    assert found == ({} if speed is None else {name: speed})


def test_a_type_whose_features_all_hosts_have_keeps_the_speed_of_its_features():
    entries = {f"{LABEL} +a": 3.0, LABEL: 1.0}
    assert speeds_of([LABEL], entries, {LABEL: frozenset("a")}) == {LABEL: 3.0}
    assert speeds_of([LABEL], entries, {LABEL: frozenset("b")}) == {LABEL: 1.0}


NAMES = st.sampled_from(["X", "X +a", "X +b", "X +a +b", "Y", "Y +a"])


@given(
    st.dictionaries(NAMES, st.integers(1, 3)),
    st.lists(NAMES, max_size=2),
    st.dictionaries(NAMES, st.integers(1, 4)),
    st.dictionaries(NAMES, st.integers(0, 1), max_size=2),
    st.sampled_from([2.0**-30, 0.5, 1024.0]),
    st.data(),
)
def test_the_order_depends_on_no_unit_and_on_no_order_of_what_is_given(
    cores: dict[str, int],
    by: list[str],
    speeds: dict[str, float],
    members: dict[str, int],
    unit: float,
    data: st.DataObject,
):
    found = best_first(cores, ProcessorRanking(by, speeds), members)
    assert sorted(found) == sorted(cores)
    turned = {name: cores[name] for name in data.draw(st.permutations(list(cores)))}
    other = {name: speeds[name] * unit for name in data.draw(st.permutations(list(speeds)))}
    assert best_first(turned, ProcessorRanking(by, other), members) == found
    # Between types that neither members nor the operator's order tell apart: fastest first.
    own = speeds_of(cores, speeds)
    alone = best_first(cores, ProcessorRanking(speeds=speeds))
    numbers = [own.get(name, 0.0) for name in alone]
    assert numbers == sorted(numbers, reverse=True)
