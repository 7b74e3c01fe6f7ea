"""How many VMs fewer a host takes for what is held there."""

import pytest

from hpc_sched.nova_glue.read.room import held_room
from tests.functional.states import host_state

DEMAND = {"VCPU": 4, "MEMORY_MB": 1024, "CUSTOM_GPU": 2}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({}, 0),
        ({"VCPU": 4}, 1),
        ({"VCPU": 5}, 2),
        # The GPUs are Placement's alone: rounded up.
        ({"VCPU": 4, "CUSTOM_GPU": 3}, 2),
        ({"CUSTOM_FPGA": 9}, 0),
        # More than the host takes at all.
        ({"VCPU": 99}, 4),
    ],
)
def test_what_is_held_is_lost_to_others(held, expected):
    states = [host_state("n1"), host_state("n2")]
    assert held_room.lost(states, DEMAND, {"n2": held}).tolist() == [0, expected]


@pytest.mark.parametrize("missing", [None, float("nan"), float("inf"), "many"])
def test_a_host_with_an_invalid_number_loses_as_much_as_is_held(missing):
    states = [host_state("n1"), host_state("n2")]
    states[0].vcpus_used = missing
    taken = {"n1": {"VCPU": 8}, "n2": {"VCPU": 4}}
    assert held_room.lost(states, DEMAND, taken).tolist() == [2, 1]
