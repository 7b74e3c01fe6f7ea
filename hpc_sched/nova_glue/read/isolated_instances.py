"""The instances of other isolated groups, whose uplinks a request must leave alone.

They are those whose flavor says ``hpc:objective=isolated``, by server group, or by the request that
created them: in cells, and in flight where Placement has claimed a host for them. An instance that
migrates is on both hosts. What is not known makes it impossible to say which uplinks are used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from nova.conf import CONF
from nova.scheduler import host_manager

from hpc_sched.core.arrays import Mask
from hpc_sched.core.objectives.used_uplinks import used_uplinks
from hpc_sched.nova_glue.io.fabric import Fabric
from hpc_sched.nova_glue.read.hold import Holds
from hpc_sched.nova_glue.read.instances import colocated_instances
from hpc_sched.nova_glue.read.instances.host_instances import HostInstances
from hpc_sched.nova_glue.read.instances.kept.host_vms import Place
from hpc_sched.nova_glue.read.request_spec import RequestedGroup
from hpc_sched.topology.model import Topology

# Most instances that an error names.
MAX_SHOWN = 5


@dataclass(frozen=True, slots=True)
class IsolatedInstances:
    """Where the instances of other isolated groups are."""

    groups: Sequence[Mapping[Place, int]]  # instances of each by host and nodename
    in_flight: bool  # whether any of them may still be claimed elsewhere
    unverified: str | None  # why there may be others; None if all are known
    is_committed: bool = False  # whether no others were claimed until the request's own claim

    def used_uplinks(self, topology: Topology, fabric: Fabric) -> Mask:
        """Return whether they use the uplinks of each switch. Shape (switches,)."""
        named = []
        for group in self.groups:
            by_name: Counter[str] = Counter()
            for (host, node), number in group.items():
                by_name[fabric.name_of(host, node)] += number
            named.append(by_name)
        return used_uplinks(topology, named)


def read(
    request: RequestedGroup,
    own: Collection[str],
    states: Sequence[host_manager.HostState],
    holds: Holds,
) -> IsolatedInstances:
    """Return the instances of other isolated groups.

    Queries: those of :func:`colocated_instances.read_hosts`. An instance that moves is also where
    it is being placed, as its hold says.

    :param own: uuids of the group's instances
    """
    found = colocated_instances.read_hosts(request.instance_uuid, states)
    own_key = request.group_uuid or found.reservation_id
    groups: defaultdict[str, Counter[Place]] = defaultdict(Counter)
    key_of: dict[str, str] = {}
    unknown, in_flight = 0, False
    unseen = _unshelving(holds) - {*own, request.instance_uuid}
    for place, instances in found.at.items():
        for vm in instances:
            application = vm.application
            if vm.uuid in own or vm.uuid == request.instance_uuid:
                continue
            unseen.discard(vm.uuid)
            unknown += application is None
            if application is None or not application.is_isolated:
                continue
            key = application.group or vm.reservation_id or vm.uuid
            if key != own_key:
                groups[key][place] += 1
                key_of[vm.uuid] = key
                in_flight |= vm.in_flight
    host_of = {state.nodename: state.host for state in states}
    for uuid, node in holds.destinations.items():
        if uuid in key_of:
            groups[key_of[uuid]][host_of.get(node, node), node] += 1
            in_flight = True
    return IsolatedInstances(list(groups.values()), in_flight, _unverified(found, unknown, unseen))


def _unshelving(holds: Holds) -> set[str]:
    """Return the instances without a host in their cell that are being placed, as holds say."""
    last = colocated_instances.reads.last
    if last is None or not holds.destinations:
        return set()
    return {vm.uuid for vm in last.awaiting} & holds.destinations.keys()


def _unverified(found: HostInstances, unknown: int, unseen: Collection[str]) -> str | None:
    """Return why instances of isolated groups may be missing, or None.

    :param unknown: number of instances whose flavor or request could not be read
    :param unseen: instances that unshelve, and that Placement does not have yet
    """
    if found.down_cells or unknown:
        return "; ".join(found.problems) or f"{unknown} VMs cannot be read"
    if unseen:
        return f"VMs that unshelve are on no host yet: {', '.join(sorted(unseen)[:MAX_SHOWN])}"
    if not CONF.hpc_sched.in_flight_lookups:
        return "[hpc_sched] in_flight_lookups is 0"
    return found.in_flight_unknown
