"""A hold as amounts of resource classes, and back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.nova_glue.claim.holds.hold_numbers import (
    LARGEST,
    amounts_of,
    class_of,
    hold_of,
)
from hpc_sched.nova_glue.read.hold import Hold

INSTANCE = "9f3c1a52-0e9b-4b1c-9d3e-5a8f6d2c7b10"
CLASS = st.from_regex(r"CUSTOM_[A-Z0-9_]{1,50}", fullmatch=True)
LONG = st.integers(225, 248).map(lambda length: f"CUSTOM_{'X' * length}")


@given(
    instance=st.uuids(version=4),
    node=st.text(min_size=1, max_size=255).filter(lambda name: name.isprintable()),
    amounts=st.dictionaries(st.just("VCPU") | CLASS | LONG, st.integers(1, LARGEST), max_size=4),
    until=st.integers(1, LARGEST),
    is_moving=st.booleans(),
)
def test_a_hold_is_read_as_it_was_written(instance, node, amounts, until, is_moving):
    hold = Hold(str(instance), node, amounts, until, is_moving=is_moving)
    written = amounts_of(hold)
    assert all(1 <= amount <= LARGEST for amount in written.values())
    assert all(re.fullmatch(r"CUSTOM_[A-Z0-9_]{1,248}", name) for name in written)
    names = {class_of(name): name for name in amounts}
    assert hold_of(written, names) == hold


@pytest.mark.parametrize(
    ("node", "digits"),
    [("n1", 1), ("cn0123", 2), ("cn001.hpc.example.org", 4), (INSTANCE, 7), ("a" * 255, 44)],
)
def test_a_nodename_takes_few_amounts(node, digits):
    assert len(amounts_of(Hold(INSTANCE, node, {}, 1))) == 1 + 5 + digits


def test_all_instances_take_the_same_classes():
    """A class that is new takes calls to Placement: its inventory is added."""
    small = amounts_of(Hold("00000000-0000-4000-8000-000000000001", "n1", {}, 1))
    assert small.keys() == amounts_of(Hold("f" * 32, "n1", {}, 1)).keys()


@given(first=st.text(min_size=1, max_size=9), second=st.text(min_size=1, max_size=9))
def test_two_nodenames_are_never_the_same_number(first, second):
    written = [amounts_of(Hold(INSTANCE, name, {}, 1)) for name in (first, second)]
    assert (written[0] == written[1]) is (first == second)


@pytest.mark.parametrize("missing", ["UNTIL", "NODE_0", "INSTANCE_0"])
def test_what_lacks_a_part_is_no_hold(missing):
    hold = Hold("00000000-0000-4000-8000-000000000001", "n", {"VCPU": 1}, 5)
    amounts = amounts_of(hold)
    assert hold_of(amounts) == hold
    del amounts[f"CUSTOM_HPC_SCHED_{missing}"]
    assert hold_of(amounts) is None


def test_what_is_no_hold_is_none():
    assert hold_of({}) is None
    assert hold_of({"CUSTOM_HPC_SCHED_UNTIL": 5, "VCPU": 1}) is None
    assert hold_of({"CUSTOM_HPC_SCHED_NODE_0": 5, "CUSTOM_HPC_SCHED_INSTANCE_0": 7}) is None
