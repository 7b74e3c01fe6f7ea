"""The caps of Nova's filters that count VMs, on the hypervisors of a snapshot."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.room.host_caps import HostCaps, RequestCaps
from hpc_sched.enabled_plugins import COUNTING_FILTERS
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Server, Snapshot

# Statuses of VMs that nova-compute counts as I/O operations. Snapshots, backups and rescues of VMs
# do not show in the status.
_IO_OPS = ("BUILD", "REBUILD", "RESIZE")


def of(cloud: Cloud, moves: Iterable[Server] = (), *, is_whole: bool = True) -> RequestCaps | None:
    """Return the caps on each hypervisor, None if no filter that counts is enabled.

    A snapshot has the VMs on its hosts, not what nova-compute reports of them. Linear in
    hypervisors and VMs.

    :param moves: VMs that do not count
    :param is_whole: whether all VMs that are planned are created at once
    """
    limits = dict(_limits(cloud.snapshot))
    if not limits:
        return None
    snapshot, without = cloud.snapshot, {vm.uuid for vm in moves}
    there = [vm for vm in snapshot.servers if vm.place is not None and vm.uuid not in without]
    counted = {
        nova_options.MAX_INSTANCES: Counter(vm.place for vm in there),
        nova_options.MAX_IO_OPS: Counter(vm.place for vm in there if vm.status in _IO_OPS),
    }
    metadata = cloud.aggregate_metadata()
    found: dict[str, dict[str, Array]] = {key: {} for key in counted}
    for name, key in limits.items():
        default = int(nova_options.option(snapshot, key))
        left = [
            (
                _of_aggregates(metadata.get(node.host, ()), key, default)
                if name.startswith("Aggregate")
                else default
            )
            - counted[key][node.place]
            for node in snapshot.hypervisors
        ]
        label = f"{name} ({COUNTING_FILTERS[name]})"
        found[key][label] = np.maximum(np.array(left, dtype=np.int64), 0)
    number = len(snapshot.hypervisors)
    return RequestCaps(
        HostCaps.known(found[nova_options.MAX_INSTANCES], number),
        HostCaps.known(found[nova_options.MAX_IO_OPS], number),
        counts_operations=is_whole,
    )


def unknown(snapshot: Snapshot) -> list[str]:
    """Return the enabled filters that count VMs in a way that is not known here, by name."""
    of_site = nova_options.option(snapshot, "counting_filters")
    names = [name for name in snapshot.filters or () if name in of_site]
    known = dict(_limits(snapshot))
    names += _enabled(snapshot)
    return sorted({name for name in names if name not in known})


def _enabled(snapshot: Snapshot) -> Iterator[str]:
    """Yield the enabled filters of Nova that count; JsonFilter does with a query alone."""
    for name in snapshot.filters or ():
        if name in COUNTING_FILTERS and name != "JsonFilter":
            yield name


def _limits(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield the enabled filters with the options of their limits, as far as these were read."""
    for name in _enabled(snapshot):
        key = nova_options.MAX_IO_OPS if "IoOps" in name else nova_options.MAX_INSTANCES
        if snapshot.options.get(key) is not None:
            yield name, key


def _of_aggregates(metadata: Iterable[Mapping[str, str]], key: str, default: int) -> int:
    """Return the least value of some aggregates, as Nova's filters read it."""
    try:
        return min((int(one[key]) for one in metadata if key in one), default=default)
    except ValueError:
        return default
