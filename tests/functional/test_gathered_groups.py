"""Where the weigher sends a VM of a group that is apart, with gather_groups."""

import nova.conf
import pytest

from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.pods import FABRIC, states_of
from tests.functional.states import FILTERS, queue_of, schedule, spec, wishing

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")

# leaf1: n01 and n02 of the group, n03 free; leaf2: n05 of the group, n06 and n07 free
MEMBERS = {"n01": 1, "n02": 1, "n05": 1}
FREE = {"n03", "n06", "n07"}


def leaf_of_next(group, free: set[str], *, is_move: bool = False, youngest: str = "n05") -> str:
    """Return the leaf of the next VM of the group."""
    states = states_of()
    for state in states:
        state.vcpus_used = 0 if state.host in free else 16
    queue = queue_of(1)
    group(MEMBERS, queue=queue, is_move=is_move, youngest=(youngest, youngest))
    request = spec(uuid=queue[0], extra_specs=wishing(prefer="leaf"))
    placed, _ = schedule(states, request, queue, HopByteWeigher(), [made() for made in FILTERS])
    return FABRIC.leaf_of(placed[0])


def test_a_new_vm_starts_under_the_leaf_of_the_youngest_where_both_can_hold_the_group(group):
    assert leaf_of_next(group, FREE) == "leaf1"
    CONF.set_override("gather_groups", True, "hpc_sched")
    assert leaf_of_next(group, FREE) == "leaf2"
    assert leaf_of_next(group, FREE, youngest="n02") == "leaf1"


def test_a_vm_that_moves_is_one_of_the_group_for_which_there_must_be_a_place(group):
    CONF.set_override("gather_groups", True, "hpc_sched")
    # It replaces none: neither leaf can hold all four.
    assert leaf_of_next(group, FREE, is_move=True) == "leaf1"
    free = FREE | {"n17", "n18", "n19", "n20"}
    assert leaf_of_next(group, free, is_move=True) == "leaf5"
    CONF.set_override("gather_groups", False, "hpc_sched")
    assert leaf_of_next(group, free, is_move=True) == "leaf1"
