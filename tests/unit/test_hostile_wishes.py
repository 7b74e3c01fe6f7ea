"""What tenants may write into hints and rules to do harm: read in bounds, told back in bounds."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hpc_sched.core import extra_specs
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.constraints import group_size, max_leaves, server_group_policy
from hpc_sched.core.constraints.extra_spec import MAX_VALUE
from hpc_sched.core.extra_spec_names import (
    APP_CLASS,
    MAX_REPORTED,
    MAX_SHOWN,
)
from hpc_sched.core.extra_specs import Defaults
from hpc_sched.core.hpc_specs import HPCSpecs
from tests.counted_calls import calls_of

LEVELS = ("leaf", "pod", "core")
KEYS = (
    APP_CLASS,
    extra_specs.APP_NAME,
    extra_specs.CACHE_SCORE,
    "hpc:group_size",
    "hpc:require",
    "hpc:prefer",
    "hpc:max_leaves",
    extra_specs.HOMOGENEOUS,
    "hpc:pattern",
)
# A key, its value and the longest sentence of what was expected.
MAX_FAULT = 30 + MAX_SHOWN + 100


def read(hints: dict[str, Any], specs: dict[str, Any] | None = None) -> HPCSpecs:
    return extra_specs.read(specs or {}, hints, LEVELS, Defaults(user_hints=True))


def check(hpc_specs: HPCSpecs) -> None:
    """Assert that whatever was said ends in numbers within bounds and in short plain texts."""
    assert hpc_specs.app_class in ("extreme", "sync", "async", "none")
    constraints = hpc_specs.constraints
    assert constraints.bounds.level in (None, *LEVELS)
    assert constraints.bounds.preferred in (None, *LEVELS)
    assert (
        constraints.bounds.most_leaves is None
        or 1 <= constraints.bounds.most_leaves <= max_leaves.MOST
    )
    assert constraints.group_size is None or 1 <= constraints.group_size <= group_size.MOST
    assert len(hpc_specs.faults) <= len(KEYS)
    for fault in hpc_specs.faults:
        assert fault.isprintable(), repr(fault)
        assert len(fault) <= MAX_FAULT, fault


HOSTILE = {
    "a number of 5,000 digits": 10**5000,
    "5,000 digits": "1" * 5000,
    "a negative number": -(10**30),
    "a billion": 10**9,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "the largest float": 1e308,
    "digits that no float holds": "9" * 310,
    "a text below every float": "1e-400",
    "digits of another script": "٣",
    "a superscript": "²",
    "a megabyte": "x" * 1_000_000,
    "a megabyte of blanks": " " * 1_000_000,
    "control characters": "a\nERROR root: forged\r\x1b[2J\x00\x7f\x85\u2028\u202e",
    "a lone surrogate": "\ud800",
    "letters beyond the plane": "\U0010ffff" * 200,
    "a list of 100,000": ["x"] * 100_000,
    "a list in a list": [["leaf"]],
    "a dictionary": {"leaf": {"deep": []}},
    "a dictionary in a list": [{"leaf": 1}],
    "a list of nothing": [None],
    "bytes": b"leaf",
    "a format": "%s %(x)s {0} {x}",
    "a percent sign": "%",
}


# An application may be called 1e-400, and a cache score may be too large for every host.
GOOD_ALL_THE_SAME = {
    extra_specs.APP_NAME: {
        "a negative number",
        "a billion",
        "not a number",
        "infinite",
        "the largest float",
        "a text below every float",
    },
    extra_specs.CACHE_SCORE: {"a billion"},
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("key", KEYS)
def test_a_hostile_value_is_a_short_plain_fault_and_no_number(key: str, what: str):
    value = HOSTILE[what]
    for hints, specs in (({key: value}, {}), ({}, {key: value})):
        asked = read(hints, specs)
        check(asked)
        said, faults = extra_specs.application(
            specs, hints, Defaults(user_hints=True), in_group=True
        )
        assert 0 <= said.score < float("inf")
        assert bool(asked.faults) == (what not in GOOD_ALL_THE_SAME.get(key, ()))
        assert set(faults) <= set(asked.faults)
        assert asked.constraints == extra_specs.Constraints()


def test_a_value_of_very_deep_lists_is_a_fault():
    value: list[Any] = ["leaf"]
    for _ in range(100_000):
        value = [value]
    asked = read({"hpc:require": value})
    assert asked.faults == ("hpc:require: expected a text, found a list",)
    assert asked.is_unclear


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(KEYS), values), st.dictionaries(st.sampled_from(KEYS), values)
)
@example({"hpc:group_size": [10**5000]}, {})
def test_whatever_is_said_is_read_without_an_exception_and_told_in_bounds(
    hints: dict[str, Any], specs: dict[str, Any]
):
    check(read(hints, specs))


@given(st.text(min_size=1))
def test_a_value_that_cannot_be_read_is_told_on_one_line_without_control_characters(text: str):
    check(read({key: [text] for key in KEYS}))


def test_the_longest_value_is_read_and_one_longer_is_not():
    level = "l" * MAX_VALUE
    levels = (level, "l" * (MAX_VALUE + 1))
    defaults = Defaults(user_hints=True)
    for name, faults in zip(levels, (0, 1), strict=True):
        asked = extra_specs.read({}, {"hpc:require": [name]}, levels, defaults)
        assert len(asked.faults) == faults
    assert asked.is_unclear


def test_a_group_has_a_largest_size_and_leaves_a_largest_number():
    for key, most in (
        ("hpc:group_size", group_size.MOST),
        ("hpc:max_leaves", max_leaves.MOST),
    ):
        assert not read({key: [str(most)]}).faults
        [fault] = read({key: [str(most + 1)]}).faults
        assert fault == f"{key}='{most + 1}': expected a whole number from 1 to {most}"


def test_a_hundred_thousand_hints_cost_no_more_than_those_that_are_known():
    few, hints = (
        {f"hpc:{number}": ["x" * 100] for number in range(most)} | {"hpc:require": ["pod"]}
        for most in (1000, 100_000)
    )
    assert calls_of(lambda: read(hints)) < 1.5 * calls_of(lambda: read(few)) < 50_000
    tracemalloc.start()
    asked = read(hints)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert asked.constraints.bounds.level == "pod"
    assert asked.faults == ()
    assert len(asked.ignored) == MAX_REPORTED
    assert most < 100_000


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        (None, UNBOUNDED),
        (1, 1),
        (0, 0),
        (-(10**30), 0),
        (2**63 - 1, UNBOUNDED),
        (2**63, UNBOUNDED),
        (10**4000, UNBOUNDED),
    ],
    ids=["no rule", "1", "0", "negative", "an int64", "beyond an int64", "4,000 digits"],
)
def test_a_groups_rule_is_counted_in_bounds(rule: int | None, most: int):
    assert server_group_policy.most_per_host(rule) == most
