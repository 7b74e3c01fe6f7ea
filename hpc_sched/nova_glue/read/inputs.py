"""What a group's request is decided from: all that was read of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import nova.conf
import numpy as np
from nova.scheduler import host_manager

from hpc_sched import conf
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.extra_spec_names import HOPS, ISOLATED
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.objective import Objective
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.nova_glue import failures
from hpc_sched.nova_glue.io.fabric import Fabric
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.hold import Holds
from hpc_sched.nova_glue.read.instances import group_members, mdobp_input
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.read.room.host_rooms import HostRooms, empty_of
from hpc_sched.topology.model import Topology

if TYPE_CHECKING:
    from hpc_sched.nova_glue.read.isolated_instances import IsolatedInstances

CONF = nova.conf.CONF


@dataclass(frozen=True, slots=True, eq=False)
class ReadRequest:
    """What was read of a request, its group and its hosts. Arrays are over its HostStates."""

    request: request_spec.RequestedGroup
    membership: group_members.GroupMembership
    states: Sequence[host_manager.HostState]  # of the first call
    fabric: Fabric
    rooms: HostRooms
    colocated: ColocatedInstances | None  # None if VMs of others do not matter
    shunned: Mapping[str, Mask]  # reason to the HostStates that are shunned
    colocation_room: Array  # VMs that each HostState takes next to those of others
    holds: Holds  # places of VMs that follow others, when they were read last
    # Of other isolated groups, read after the holds; None if the request has another objective.
    isolated: IsolatedInstances | None

    def group_request(self) -> GroupRequest:
        """Return the group on a topology that has all its hosts."""
        request, found, fabric = self.request, self.membership, self.fabric
        places = [(state.host, state.nodename) for state in self.states]
        names, unknown = fabric.names.find_all(places)
        fabric.report_unknown(unknown)
        # A candidate has the same name as the place of a member.
        name_at = dict(zip(places, names, strict=True))
        members, leaving = (_named(at, name_at, fabric) for at in (found.members, found.leaving))
        hosts = dict.fromkeys([*names, *(name for _, name in (*members, *leaving))])
        demand, policy, packing = request.demand, request.policy, None
        if request.by_mdobp and self.colocated is not None:
            packing = mdobp_input.packing(demand, policy, self.states, self.colocated)
        topology = self._topology(hosts)
        rates = conf.fragmentation_rates(CONF)
        made = GroupRequest.of(
            topology,
            request.hpc_specs,
            group_id=request.group_id,
            policy=policy,
            max_per_host=request.max_per_host,
            places=places,
            names=names,
            room=np.minimum(self.rooms.left, self.colocation_room),
            members=members,
            leaving=leaving,
            left=found.left,
            awaiting=found.awaiting,
            orphans=found.orphans,
            followers=found.followers,
            is_move=found.is_move,
            packing=packing,
            check=self.rooms,
            shunned=np.logical_or.reduce([*self.shunned.values()]) if self.shunned else None,
            objective=self._objective(topology),
            rates=rates,
            empty=empty_of(self.rooms) if rates else None,
        )
        return self._gathered(made, name_at) if conf.flag(CONF, "gather_groups") else made

    def _topology(self, hosts: Collection[str]) -> Topology:
        if self.request.hpc_specs.is_flat:
            # One leaf where the fabric does not matter.
            return Topology.from_tree({"cloud": list(hosts)})
        return self.fabric.topology.including(hosts)

    def _objective(self, topology: Topology) -> Objective | None:
        stated = self.request.hpc_specs.objective
        if stated == HOPS:
            return None
        try:
            from hpc_sched.nova_glue.read import objective

            return objective.of(self.request, topology, self.fabric, self.isolated)
        except Exception:
            if stated == ISOLATED:
                raise
            failures.log(f"hpc:objective={stated} failed: planned by hops", "hpc:objective")
            return None

    def _gathered(self, made: GroupRequest, name_at: Mapping[tuple[str, str], str]) -> GroupRequest:
        from hpc_sched.core.plan.gathering import Gathering

        found = self.membership
        youngest = _named(Counter(filter(None, [found.youngest])), name_at, self.fabric)
        host = next((name for _, name in youngest), None)
        return replace(made, gathering=Gathering.of(made.problem(), host, is_move=found.is_move))


@dataclass(frozen=True, slots=True, eq=False)
class Inputs(ReadRequest):
    """A group before its request has placed a VM.

    What changes with each VM is elsewhere: Nova's claims in an ``Event``, and :attr:`rooms`, which
    are bounds until a plan uses them.
    """

    first: GroupRequest
    # What HPCHomogeneityFilter chose from, and how; None if it did not choose.
    processors: HostProcessors | None = None
    homogeneous: str = "false"

    def with_members(self, found: group_members.GroupMembership) -> Self:
        """Return the same with members that were read again."""
        if found is self.membership:
            return self
        read = replace(self, membership=found, request=self.request.knowing(found.uuids))
        return replace(read, first=replace(read.group_request(), preferred=self.first.preferred))

    def on_type(self, hypervisors: Mask) -> Self:
        """Return the same with one processor type preferred. Shape (HostStates,)."""
        return replace(self, first=replace(self.first, preferred=hypervisors))

    def without_final_size(self) -> Self:
        """Return the same without the VMs of ``hpc:group_size`` that have no request yet."""
        return replace(self, first=replace(self.first, missing=0))

    def by_hops(self) -> Self:
        """Return the same without an objective."""
        return replace(self, first=replace(self.first, objective=None))

    @property
    def topology(self) -> Topology:
        """The fabric with all hosts of the group."""
        return self.first.topology

    @property
    def host_index(self) -> Array:
        """Index in ``topology.hosts`` of each HostState."""
        return self.first.hosts_of_rows

    @property
    def members(self) -> Counter[str]:
        """Members when the request came, by host of the topology."""
        hosts, members = self.topology.hosts, self.first.members
        return Counter({hosts[i]: int(members[i]) for i in np.flatnonzero(members)})

    def name_of(self, position: int) -> str:
        """Return the name of a HostState in the topology."""
        return str(self.topology.hosts[self.host_index[position]])

    @property
    def has_known_members(self) -> bool:
        """True if the known members alone determine how to keep the group's guarantees.

        One member fixes the switch and the processor type, not the number of leaves.
        """
        bounds = self.request.hpc_specs.constraints.bounds
        return bool(self.membership.members) and not bounds.count_leaves

    def room(self, placed: Array) -> Array:
        """Return the VMs that each HostState takes, before the server group's policy."""
        room: Array = np.maximum(np.minimum(self.rooms.left, self.colocation_room - placed), 0)
        return room

    def full_of_others(self, placed: Array) -> Mask:
        """Return whether each HostState is full because of the VMs of others."""
        return (self.rooms.room > placed) & (self.colocation_room <= placed)

    def full_hosts(self, placed: Array) -> dict[str, int]:
        """Return the reason and number of hosts that are full because of the VMs of others."""
        if self.colocated is None:
            return {}
        removed = self.colocated.removed_hosts.items()
        found = Counter({why: len(hosts) for why, hosts in removed})
        # The hosts that a filter has removed are not among the candidates.
        found["the VMs of others"] += int(self.full_of_others(placed).sum())
        return dict(+found)


def _named(
    counts: Counter[tuple[str, str | None]],
    name_at: Mapping[tuple[str, str], str],
    fabric: Fabric,
) -> Counter[tuple[str, str]]:
    """Return VMs by service host and name of the host in the topology."""
    named: Counter[tuple[str, str]] = Counter()
    for (host, node), count in counts.items():
        named[host, name_at.get((host, node or "")) or fabric.name_of(host, node)] += count
    return named
