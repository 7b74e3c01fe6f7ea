"""Drawn histories of groups that are created, move, come back and change.

A history that fails is shown in its shortest form; its commands are replayed by
``histories.replayed``.
"""

import pytest

from tests.group_histories.faults import FAULTS, SHELVED


def check(histories, seeds):
    """Check some histories; a failing one is shortened and shown."""
    for seed in seeds:
        if (failure := histories.drawn(seed)) is not None:
            found = histories.shortest(failure)
            pytest.fail(f"history {seed}:\n{found}", pytrace=False)


def test_in_40_histories_no_group_is_refused_split_or_left(histories):
    check(histories, range(40))


@pytest.mark.ci
def test_in_2000_histories_no_group_is_refused_split_or_left(histories):
    check(histories, range(2000))


@pytest.mark.nightly("protocol", "20,000 histories take a quarter of an hour")
@pytest.mark.parametrize("start", range(2000, 22_000, 5000))
def test_in_20000_histories_no_group_is_refused_split_or_left(histories, start):
    check(histories, range(start, start + 5000))


@pytest.mark.nightly("protocol", "up to 2,000 histories with each fault of the plugin")
@pytest.mark.parametrize("fault", FAULTS)
def test_histories_find_a_fault_of_the_plugin(histories, fault):
    for seed in range(2000):
        with FAULTS[fault]():
            failure = histories.drawn(seed)
        if failure is not None and histories.replayed(failure.commands) is None:
            return
    pytest.fail(f"{fault} is not found in 2,000 histories")


def test_a_history_is_replayed_by_its_commands_alone(histories):
    with FAULTS["no_followers"]():
        failure = histories.replayed([*SHELVED, "unshelve w1"])
    assert failure is not None
    assert failure.commands == [*SHELVED, "unshelve w1"]
    assert "2 of the group could be placed before (guarantees), 1 can now" in failure.error
    assert histories.replayed([*SHELVED, "unshelve w1", "unshelve w2"]) is None
