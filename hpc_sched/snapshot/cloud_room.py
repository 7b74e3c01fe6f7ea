"""What a cloud could take now: free slots, largest groups and their fragmentation by flavor."""

from dataclasses import dataclass

import numpy as np

from hpc_sched.core import extra_specs
from hpc_sched.snapshot import group_fit, request_builder
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.host_usage import FabricUsage
from hpc_sched.snapshot.model import Flavor
from hpc_sched.topology.model import Topology
from hpc_sched.topology.writers import svg


@dataclass(frozen=True, slots=True)
class FlavorRoom:
    """What a cloud could take of one flavor."""

    flavor: str
    # VMs that the hosts take, each counted alone: more than all together where they share a pool.
    slots: int
    largest: dict[str, int]  # level to VMs under one switch of it, as hpc-sched fits
    empty: dict[str, int]  # level to VMs under its largest switch if there were none

    def fragmentation(self, level: str) -> float:
        """Return the part of a level's best possible group that does not fit, 0 to 1.

        1 - largest group / min(free slots, VMs under an empty switch). That is the external
        fragmentation of memory, 1 - largest free block / free memory, where a block is no larger
        than a switch. 0 if there is nothing to take.
        """
        best = min(self.slots, self.empty[level])
        return max(0.0, 1 - self.largest[level] / best) if best else 0.0


def of(cloud: Cloud, flavor: Flavor) -> FlavorRoom:
    """Return what a cloud could take of a flavor, as ``hpc-sched fits --flavor`` shows it."""
    state = request_builder.of(cloud, request_builder.GroupQuery(flavor=flavor, count=1))
    largest = {gang.level: gang.vms for gang in group_fit.largest(state)}
    topology, room = state.group.topology, state.empty_room()
    empty = {
        level: int(np.bincount(switches, weights=room).max(initial=0))
        for level, switches in zip(topology.levels, topology.groups, strict=True)
    }
    return FlavorRoom(flavor.name, int(state.group.capacity.sum()), largest, empty)


def hpc_flavors(cloud: Cloud) -> list[Flavor]:
    """Return the flavors that name an application class other than none, sorted by name."""
    found = (flavor for flavor in cloud.snapshot.flavors if _is_hpc(flavor))
    return sorted(found, key=lambda flavor: flavor.name)


def _is_hpc(flavor: Flavor) -> bool:
    return flavor.extra_specs.get(extra_specs.APP_CLASS, "none") != "none"


def free_leaves(fabric: Topology, usage: FabricUsage) -> int:
    """Return the number of leaves whose hosts all take VMs and have none."""
    states = usage.states()
    return sum(
        bool(hosts) and all(states.get(host) == svg.FREE for host in hosts)
        for hosts in fabric.leaf_hosts()
    )
