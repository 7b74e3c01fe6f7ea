"""What a cloud could take now: free slots, largest groups and their fragmentation by flavor."""

from dataclasses import dataclass

from hpc_sched.core.extra_spec_names import APP_CLASS
from hpc_sched.snapshot import group_fit, request_builder, what_if
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.host_usage import FabricUsage
from hpc_sched.snapshot.snapshot_model import Flavor
from hpc_sched.topology.model import Topology
from hpc_sched.topology.writers import svg


@dataclass(frozen=True, slots=True)
class FlavorRoom:
    """What a cloud could take of one flavor."""

    flavor: str
    # VMs that the hosts take, each counted alone: more than all together where they share a pool.
    slots: int
    largest: dict[str, int]  # level to VMs under one switch of it, as hpc-sched fits
    empty: dict[str, int]  # the same if there were no VMs

    def fragmentation(self, level: str) -> float:
        """Return the part of a level's best possible group that does not fit, 0 to 1.

        1 - largest group / min(free slots, largest group without any VM). That is the external
        fragmentation of memory, 1 - largest free block / free memory, where a block is no larger
        than a switch. 0 if there is nothing to take, and in an empty cloud.
        """
        best = min(self.slots, self.empty[level])
        return max(0.0, 1 - self.largest[level] / best) if best else 0.0


def of(cloud: Cloud, flavor: Flavor) -> FlavorRoom:
    """Return what a cloud could take of a flavor, as ``hpc-sched fits --flavor`` shows it."""
    query = request_builder.GroupQuery(flavor=flavor, count=1)
    now, empty = (request_builder.of(one, query) for one in (cloud, what_if.emptied(cloud)))
    return FlavorRoom(flavor.name, int(now.group.capacity.sum()), _largest(now), _largest(empty))


def _largest(state: request_builder.SnapshotRequest) -> dict[str, int]:
    return {gang.level: gang.vms for gang in group_fit.largest(state)}


def hpc_flavors(cloud: Cloud) -> list[Flavor]:
    """Return the flavors that name an application class other than none, sorted by name."""
    found = (
        flavor
        for flavor in cloud.snapshot.flavors
        if flavor.extra_specs.get(APP_CLASS, "none") != "none"
    )
    return sorted(found, key=lambda flavor: flavor.name)


def free_leaves(fabric: Topology, usage: FabricUsage) -> tuple[str, ...]:
    """Return the leaves whose hosts all take VMs and have none, in the order of the fabric."""
    states = usage.states()
    return tuple(
        switch.name
        for switch, hosts in zip(fabric.switches, fabric.leaf_hosts(), strict=True)
        if hosts and all(states.get(host) == svg.FREE for host in hosts)
    )
