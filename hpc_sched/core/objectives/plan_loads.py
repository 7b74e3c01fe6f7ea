"""What the traffic of a group loads links with: seconds, if each VM sends 1 GB on average."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.plan.bottleneck.ranks.rank_crossings import (
    Crossings,
    crossings,
    rank_hosts,
)
from hpc_sched.core.plan.problem import host_counts
from hpc_sched.core.plan.switch_rooms import sums_by_switch
from hpc_sched.core.traffic.rank_bytes import Traffic
from hpc_sched.topology.capacities import Capacities
from hpc_sched.topology.fabric_order import in_fabric_order
from hpc_sched.topology.model import Topology

_MEGABITS = 8000  # in a gigabyte


@dataclass(frozen=True, slots=True)
class PlanLoads:
    """The load of links by the traffic of a group, in seconds, exactly.

    With the same traffic, plans compare as by crossing over capacity.
    """

    bottleneck: Fraction  # of the uplinks, or the host's link, that need the longest
    harm: Fraction  # of the uplinks of all switches together


def plan_loads(
    topology: Topology,
    capacities: Capacities,
    members: Array,
    planned: Mapping[str, int],
    traffic: Traffic | None = None,
) -> PlanLoads:
    """Return the loads of members and the VMs of a plan. O(hosts * levels + pairs * levels).

    :param members: VMs of the group by host. Shape (hosts,)
    :param planned: host to new VMs
    :param traffic: of the ranks, members first; None: all send the same to all others
    """
    new = host_counts(topology, planned)
    everyone = int(members.sum() + new.sum())
    if traffic is None:
        crossing, sent = _uniform(topology, members + new), Fraction(max(everyone - 1, 1))
    else:
        order = np.array(in_fabric_order(topology, range(len(new))), dtype=np.int64)
        crossing = crossings(topology, traffic, rank_hosts(members, new, order))
        sent = Fraction(int(traffic.bytes.sum()), max(everyone, 1)) or Fraction(1)
    unit = Fraction(_MEGABITS) / sent
    return PlanLoads(unit * crossing.bottleneck(capacities), unit * crossing.harm(capacities))


def _uniform(topology: Topology, vms: Array) -> Crossings:
    """Return the pairs of VMs apart from each other, each once."""
    below = sums_by_switch(topology.groups, vms, len(topology.switches))
    everyone = int(vms.sum())
    return Crossings(below * (everyone - below), vms * (everyone - vms))
