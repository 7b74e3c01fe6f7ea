"""The objectives of a snapshot's groups, and the uplinks that isolated ones use."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

import numpy as np

from hpc_sched.core import extra_specs
from hpc_sched.core.arrays import Mask
from hpc_sched.core.extra_spec_names import HOPS, ISOLATED
from hpc_sched.core.objectives.used_uplinks import used_uplinks
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Flavor
from hpc_sched.topology.model import Topology


def uplinks_of_others(cloud: Cloud, own: Collection[str], topology: Topology) -> Mask:
    """Return whether any other isolated group uses the uplinks of each switch. Linear in VMs.

    A group is a server group, or the VMs of one request without one. Shape (switches,).

    :param own: uuids of the group's own VMs
    """
    return used_uplinks(topology, _others(cloud, own).values())


def users_of_uplinks(cloud: Cloud, own: Collection[str], topology: Topology) -> dict[str, str]:
    """Return the switches whose uplinks other isolated groups use, each with a group that does.

    :param own: uuids of the group's own VMs
    """
    found: dict[str, str] = {}
    for name, hosts in sorted(_others(cloud, own).items()):
        for switch in np.flatnonzero(used_uplinks(topology, [hosts])).tolist():
            found.setdefault(topology.switches[switch].name, name)
    return found


def objective_of(cloud: Cloud, flavor: Flavor) -> str:
    """Return the objective of a flavor's groups; hops where the fabric does not matter."""
    specs = extra_specs.read(
        flavor.extra_specs,
        {},
        cloud.description.request_levels,
        nova_options.defaults(cloud.snapshot),
    )
    return HOPS if specs.is_flat else specs.objective


def _others(cloud: Cloud, own: Collection[str]) -> Mapping[str, Counter[str]]:
    """Return the VMs by host of each other isolated group, by its name, or a VM's without one."""
    left_out = frozenset(own)
    is_isolated: dict[int, bool] = {}  # by flavor: many VMs have the same
    names: dict[str, str] = {}
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for server in cloud.snapshot.servers:
        host, flavor = cloud.host_of.get(server.uuid), server.flavor
        if host is None or server.uuid in left_out:
            continue
        if id(flavor) not in is_isolated:
            is_isolated[id(flavor)] = objective_of(cloud, flavor) == ISOLATED
        if is_isolated[id(flavor)]:
            group = cloud.group_of.get(server.uuid)
            key = (group.uuid if group is not None else server.reservation_id) or server.uuid
            groups[key][host] += 1
            names.setdefault(key, f"{(group or server).name} ({key})")
    return {names[key]: hosts for key, hosts in groups.items()}
