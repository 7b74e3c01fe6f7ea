"""The drawn histories of ``tests/group_histories`` on a whole Nova, through its API.

A history that fails is shown in its shortest form; its commands are replayed by
``histories.replayed``, here and on a cloud in memory.
"""

import pytest

from tests.functional.nova_histories.nova_kind import LIVES
from tests.functional.shared_clouds import cloud_mark
from tests.group_histories.faults import FAULTS, SHELVED

pytestmark = cloud_mark(LIVES)

#: Seeds for each night, and how many of them one test has.
SEEDS, CHUNK = range(200), 20
#: Of a history that fails, to shorten it.
MOST_REPLAYS = 40


def check(histories, seeds):
    """Check some histories; a failing one is shortened and shown."""
    for seed in seeds:
        if (failure := histories.drawn(seed)) is not None:
            found = histories.shortest(failure, MOST_REPLAYS)
            pytest.fail(f"history {seed}:\n{found}", pytrace=False)


@pytest.mark.ci
def test_in_3_histories_no_group_is_refused_split_or_left(histories):
    """They create, evacuate and unshelve VMs."""
    check(histories, (5, 8, 19))


@pytest.mark.nightly("lives", "200 histories on real computes take half an hour")
@pytest.mark.parametrize("start", SEEDS[::CHUNK])
def test_in_200_histories_no_group_is_refused_split_or_left(histories, start):
    check(histories, SEEDS[start : start + CHUNK])


@pytest.mark.nightly("lives", "histories on real computes with a fault of the plugin")
def test_histories_find_that_the_rest_of_a_group_is_forgotten(histories):
    for seed in SEEDS:
        with FAULTS["no_followers"]():
            failure = histories.drawn(seed)
        if failure is not None and histories.replayed(failure.commands) is None:
            return
    pytest.fail(f"it is not found in {len(SEEDS)} histories")


@pytest.mark.nightly("lives", "a history of one group on real computes")
def test_a_history_is_replayed_by_its_commands_alone(histories):
    with FAULTS["no_followers"]():
        failure = histories.replayed([*SHELVED, "unshelve w1"])
    assert failure is not None
    assert "2 of the group could be placed before (guarantees), 1 can now" in failure.error
    assert histories.replayed([*SHELVED, "unshelve w1", "unshelve w2"]) is None
