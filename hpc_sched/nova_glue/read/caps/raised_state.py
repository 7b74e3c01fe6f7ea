"""A HostState as it is once VMs of a request have been placed on it."""

from __future__ import annotations

import copy
import functools

from nova import objects
from nova.scheduler import host_manager
from oslo_utils import timeutils, uuidutils

MB_PER_GB = 1024
# VMs on one host of which a filter may see stubs.
_MOST_STUBS = 1024


def raised(
    state: host_manager.HostState, spec: objects.RequestSpec, added: int
) -> host_manager.HostState:
    """Return a copy with the counters of ``HostState.consume_from_request``, called some times.

    NUMA cells and PCI devices are left as they are: these are fitted by Nova's code. What a filter
    may set on the copy is not seen by Nova. Takes some 6 us; with a server group linear in the
    instances.

    :param added: VMs that are placed, as the next one of the request is tried
    """
    found = copy.copy(state)
    found.limits = dict(state.limits or {})
    if (stats := getattr(state, "stats", None)) is not None:
        found.stats = dict(stats)
    found.allocation_candidates = list(state.allocation_candidates)
    if not added:
        return found
    found.free_ram_mb -= added * spec.memory_mb
    found.free_disk_mb -= added * (spec.root_gb + spec.ephemeral_gb) * MB_PER_GB
    found.vcpus_used += added * spec.vcpus
    found.num_instances += added
    found.num_io_ops += added
    found.updated = timeutils.utcnow()
    if "instance_group" in spec and spec.instance_group is not None:
        # Nova adds a stub for each VM of a server group.
        stubs = map(_stub, range(min(added, _MOST_STUBS)))
        found.instances = {**state.instances, **{stub.uuid: stub for stub in stubs}}
    return found


@functools.lru_cache(maxsize=_MOST_STUBS)
def _stub(_number: int) -> objects.Instance:
    return objects.Instance(uuid=uuidutils.generate_uuid())
