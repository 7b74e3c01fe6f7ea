"""The VMs on a snapshot's hosts (Gupta2013): room next to them, broken rules, MDOBP's input."""

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from hpc_sched.core import extra_specs
from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.sharing.cache_interference import (
    ALPHA,
    BETA,
    Application,
    Limits,
    attraction,
    dedicated_room,
    limits_in,
    room,
)
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.core.sharing.violations import Violation, violations
from hpc_sched.enabled_plugins import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import Cloud


def rooms(cloud: Cloud, vm: Application, without: frozenset[str] = frozenset()) -> Array:
    """Return the VMs of an application that each hypervisor takes next to those that it has.

    Dedication counts for class ``extreme`` and if HPCDedicatedHostFilter is enabled; cache
    scores and the interference index count if HPCInterferenceFilter is. Shape (hypervisors,).
    Linear in VMs.

    :param without: uuids of VMs to ignore
    """
    snapshot = cloud.snapshot
    enabled = nova_options.enabled(snapshot)
    by_limits = enabled.has_filter(INTERFERENCE_FILTER)
    by_dedication = vm.app_class == "extreme" or enabled.has_filter(DEDICATED_FILTER)
    nodes = snapshot.hypervisors
    found = np.full(len(nodes), UNBOUNDED, dtype=np.int64)
    if not (by_limits or by_dedication):
        return found
    running_at = running(cloud, without)
    limits_at = _limits(cloud)
    apart = nova_options.incompatible(snapshot, vm.name)
    for i, node in enumerate(nodes):
        there = list(running_at.get(node.place, {}).values())
        if by_dedication:
            found[i] = dedicated_room(vm, there)
        if by_limits:
            found[i] = min(int(found[i]), room(vm, there, limits_at(node.host), apart))
    return found


def mdobp_input(
    cloud: Cloud,
    vm: Application,
    demand: Mapping[str, int],
    policy: str | None,
    without: frozenset[str] = frozenset(),
) -> MDOBPInput:
    """Return what MDOBP places an application by. Shapes (hypervisors,). Linear in VMs.

    :param demand: resource class to amount, of one VM
    :param without: uuids of VMs to ignore
    """
    snapshot, nodes = cloud.snapshot, cloud.snapshot.hypervisors
    attractions = None
    if gains := nova_options.attracting(snapshot, vm.name):
        there, apart = running(cloud, without), nova_options.incompatible(snapshot, vm.name)
        attractions = [
            attraction(vm, there.get(node.place, {}).values(), gains, apart) for node in nodes
        ]
    return MDOBPInput.of(
        demand,
        [
            {name: most - node.used.get(name, 0.0) for name, most in node.capacity.items()}
            for node in nodes
        ],
        [node.capacity for node in nodes],
        policy=policy,
        with_disk=nova_options.option(snapshot, "mdobp_disk"),
        attraction=attractions,
    )


def broken_rules(cloud: Cloud) -> list[tuple[tuple[str, str], Violation]]:
    """Return the rules for sharing that do not hold, each with service host and nodename; sorted.

    Cache scores and the interference index count if HPCInterferenceFilter is enabled, or if the
    snapshot does not list the filters.
    """
    snapshot = cloud.snapshot
    by_limits = snapshot.filters is None or nova_options.enabled(snapshot).has_filter(
        INTERFERENCE_FILTER
    )
    limits_at = _limits(cloud)
    apart = functools.cache(functools.partial(nova_options.incompatible, snapshot))
    return [
        (place, found)
        for place, vms in sorted(running(cloud).items())
        for found in violations(vms, limits_at(place[0]), apart, by_limits=by_limits)
    ]


def _limits(cloud: Cloud) -> Callable[[str], Limits]:
    """Return the limits of cache scores by service host."""
    snapshot = cloud.snapshot
    default = Limits(nova_options.option(snapshot, ALPHA), nova_options.option(snapshot, BETA))
    metadata = cloud.aggregate_metadata()
    return lambda host: limits_in(metadata.get(host, ()), default)[0]


def running(
    cloud: Cloud, without: frozenset[str] = frozenset()
) -> dict[tuple[str, str], dict[str, Application]]:
    """Return the applications by (service host, nodename), then VM uuid. Linear in VMs.

    :param without: uuids of VMs to ignore
    """
    snapshot = cloud.snapshot
    together = Counter(server.reservation_id for server in snapshot.servers)
    defaults = nova_options.defaults(snapshot)
    found: dict[tuple[str, str], dict[str, Application]] = {}
    for server in snapshot.servers:
        if (place := server.place) is None or server.uuid in without:
            continue
        group, specs = cloud.group_of.get(server.uuid), server.flavor.extra_specs
        many = server.reservation_id is not None and together[server.reservation_id] > 1
        in_group = group is not None or (
            many and extra_specs.is_implicit_group(specs, {}, defaults)
        )
        # Faults were refused, or logged, when the VM was scheduled.
        runs, _ = extra_specs.application(specs, {}, defaults, in_group=in_group)
        # Without a server group, the VMs of one request are a group.
        key = server.reservation_id if group is None else group.uuid
        found.setdefault(place, {})[server.uuid] = replace(runs, group=key)
    return found
