"""What a flavor asks for: the same from a snapshot as from Nova's own code."""

import random

import os_resource_classes
import pytest
from nova import exception, objects
from nova.scheduler import request_filter, utils
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.snapshot.room.flavor_request import (
    STANDARD_CLASSES,
    demand_of,
    resource_request,
)
from hpc_sched.snapshot.snapshot_model import Flavor

POLICIES = ("none", "isolate")


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


# Extra specs that a drawn flavor may have, each with values to choose from.
SPECS = {
    "hw:cpu_policy": ["dedicated", "shared", "mixed"],
    "hw:cpu_dedicated_mask": ["0-1", "^0", "0-3,^2"],
    "hw:cpu_thread_policy": ["isolate", "require", "prefer"],
    "hw:emulator_threads_policy": ["isolate", "share"],
    "hw:mem_encryption": ["true", "false", "Yes"],
    "hw:mem_encryption_model": ["amd-sev", "amd-sev-es"],
    "hw:pmem": ["4GB", "4GB,16gb, 4GB"],
    "hw:tpm_version": ["1.2", "2.0"],
    "hw:tpm_model": ["tpm-tis", "tpm-crb"],
    "hw:tpm_secret_security": ["host", "user"],
    "hw:pci_numa_affinity_policy": ["socket", "preferred"],
    "hw:maxphysaddr_mode": ["emulate", "passthrough"],
    "hw:virtio_packed_ring": ["on", "0"],
    "hw:ephemeral_encryption": ["true", "no"],
    "hw:ephemeral_encryption_format": ["luks"],
    "hw:sound_model": ["virtio", "ich6"],
    "os:secure_boot": ["required", "optional"],
    "resources:VCPU": ["0", "3"],
    "resources:PCPU": ["2"],
    "resources:MEMORY_MB": ["0", "100"],
    "resources:DISK_GB": ["0", "7"],
    "resources:VGPU": ["1", "-1", "x", " 2 "],
    "resources:CUSTOM_GPU": ["1"],
    "resources:NONSENSE": ["1"],
    "resources1:VGPU": ["1", "0"],
    "resources2:VGPU": ["2"],
    "resources2:DISK_GB": ["2"],
    "resources_X-1:CUSTOM_GPU": ["4"],
    "trait:CUSTOM_A": ["required", "forbidden", "preferred"],
    "trait1:CUSTOM_A": ["required", "forbidden"],
    "trait7:CUSTOM_B": ["required"],
    "group_policy": ["none", "isolate", "other"],
}
REQUEST_FILTERS = [
    request_filter.packed_virtqueue_filter,
    request_filter.ephemeral_encryption_filter,
    request_filter.virtio_sound_filter,
]
# From Nova 33 on.
HAS_TPM_SECRETS = hasattr(request_filter, "tpm_secret_security_filter")
if HAS_TPM_SECRETS:
    REQUEST_FILTERS.append(request_filter.tpm_secret_security_filter)


def test_drawn_flavors_make_the_request_groups_of_nova():
    numbers = random.Random(11)
    sizes = {"vcpus": 8, "memory_mb": 4096, "root_gb": 20, "ephemeral_gb": 5}
    compared = 0
    for _ in range(1500):
        keys = numbers.sample(sorted(SPECS), numbers.randint(1, 7))
        specs = {key: numbers.choice(SPECS[key]) for key in keys}
        spec = objects.RequestSpec(
            flavor=objects.Flavor(**sizes, name="f", swap=1025, extra_specs=specs),
            is_bfv=False,
            image=objects.ImageMeta(
                id=uuids.image,
                name="i",
                properties=objects.ImageMetaProps(
                    hw_firmware_type="uefi", hw_machine_type="q35", hw_video_model="none"
                ),
            ),
            requested_resources=[],
            request_level_params=objects.RequestLevelParams(),
        )
        try:
            for apply in REQUEST_FILTERS:
                apply(None, spec)
            wanted = utils.ResourceRequest.from_request_spec(spec)
        except exception.NovaException:
            continue  # nova-api refuses the flavor
        compared += 1
        found = resource_request(
            Flavor("f", **sizes, swap_mb=1025, extra_specs=specs), has_tpm_secrets=HAS_TPM_SECRETS
        )
        assert {
            group.suffix or None: (
                dict(group.resources),
                {trait for any_of in group.required for trait in any_of},
                set(group.forbidden),
            )
            for group in found.groups
        } == {
            ident: (
                {name: int(amount) for name, amount in group.resources.items()},
                group.required_traits,
                group.forbidden_traits,
            )
            for ident, group in wanted._rg_by_id.items()
        }, specs
        assert {trait for any_of in found.root.required for trait in any_of} == (
            wanted._root_required
        ), specs
        # Nova leaves the policy out where one group needs none.
        several = wanted.get_num_of_suffixed_groups() > 1
        assert wanted.group_policy in ([found.group_policy] if several else [None, *POLICIES])
    assert compared > 700


def test_the_standard_classes_are_those_of_the_installed_library():
    assert set(os_resource_classes.STANDARDS) == STANDARD_CLASSES
