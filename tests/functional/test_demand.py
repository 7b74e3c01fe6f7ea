"""What a flavor asks for: the same from a snapshot as from Nova's own code."""

import pytest
from nova import objects
from nova.scheduler import utils

from hpc_sched.snapshot.model import Flavor, demand_of


@pytest.mark.parametrize("boots_from_volume", [False, True])
@pytest.mark.parametrize(
    "specs",
    [
        {},
        {"hw:cpu_policy": "shared"},
        {"hw:cpu_policy": "dedicated"},
        {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"},
        {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-1"},
        {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0"},
        {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-3,^2"},
        {"resources:VCPU": "2"},
        {"resources:PCPU": "4"},
        {"resources:MEMORY_MB": "0", "resources:VCPU": "0", "resources:DISK_GB": "0"},
        {"resources:CUSTOM_BAREMETAL": "1", "resources:VCPU": "0"},
        {"resources1:VGPU": "1", "resources2:VGPU": "2", "group_policy": "none"},
        {"resources_GPU:VGPU": "1", "trait:HW_CPU_X86_AVX2": "required"},
        {"resources1:MEMORY_MB": "64"},
        {"hpc:require": "leaf", "resources": "no", "resources:": "1"},
    ],
    ids=str,
)
def test_a_flavor_asks_for_what_nova_asks_placement_for(specs, boots_from_volume):
    numbers = {"vcpus": 8, "memory_mb": 4096, "root_gb": 20, "ephemeral_gb": 5}
    asked = {key: value for key, value in specs.items() if key not in ("resources", "resources:")}
    spec = objects.RequestSpec(
        flavor=objects.Flavor(**numbers, swap=1025, extra_specs=asked),
        is_bfv=boots_from_volume,
        image=None,
        requested_resources=[],
        request_level_params=objects.RequestLevelParams(),
    )
    merged = utils.ResourceRequest.from_request_spec(spec).merged_resources()
    expected = {name: int(amount) for name, amount in merged.items() if amount}
    flavor = Flavor("f", **numbers, swap_mb=1025, extra_specs=specs)
    assert demand_of(flavor, boots_from_volume=boots_from_volume) == expected
