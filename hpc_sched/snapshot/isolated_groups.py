"""The uplinks that isolated groups of a snapshot use."""

from collections import Counter, defaultdict
from collections.abc import Collection

from hpc_sched.core import extra_specs
from hpc_sched.core.arrays import Mask
from hpc_sched.core.extra_spec_names import ISOLATED
from hpc_sched.core.objectives.used_uplinks import used_uplinks
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.topology.model import Topology


def uplinks_of_others(cloud: Cloud, own: Collection[str], topology: Topology) -> Mask:
    """Return whether any other isolated group uses the uplinks of each switch. Linear in VMs.

    A group is a server group, or the VMs of one request without one. Shape (switches,).

    :param own: uuids of the group's own VMs
    """
    defaults = nova_options.defaults(cloud.snapshot)
    levels = cloud.description.request_levels
    is_isolated: dict[int, bool] = {}  # by flavor: many VMs have the same
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for server in cloud.snapshot.servers:
        host, flavor = cloud.host_of.get(server.uuid), server.flavor
        if host is None or server.uuid in own:
            continue
        if id(flavor) not in is_isolated:
            specs = extra_specs.read(flavor.extra_specs, {}, levels, defaults)
            is_isolated[id(flavor)] = specs.objective == ISOLATED and not specs.is_flat
        if is_isolated[id(flavor)]:
            group = cloud.group_of.get(server.uuid)
            key = group.uuid if group is not None else server.reservation_id
            groups[key or server.uuid][host] += 1
    return used_uplinks(topology, groups.values())
