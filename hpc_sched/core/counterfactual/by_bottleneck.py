"""What plan of a recorded decision by hops the least bottleneck would have chosen.

A record of hops has no links. They are those of a topology at hand, if that is the one by which the
group was placed.
"""

from dataclasses import dataclass, replace

import numpy as np

from hpc_sched import digests
from hpc_sched.core.counterfactual.costs import cost_of, decided, leaves_of, relative
from hpc_sched.core.counterfactual.rebuilt_request import RebuiltRequest, of_size
from hpc_sched.core.counterfactual.recorded_objective import loads_of
from hpc_sched.core.logged.decision_entry import DecisionEntry
from hpc_sched.core.objectives.stated_objective import ObjectiveOptions
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import TimeLimit
from hpc_sched.topology import canonical_text
from hpc_sched.topology.capacities import Capacities, capacities, states_uplinks
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class KnownLinks:
    """A topology whose uplinks are known, with the options on objectives."""

    topology: Topology
    options: ObjectiveOptions
    digest: str

    @classmethod
    def of(cls, topology: Topology, options: ObjectiveOptions) -> "KnownLinks | None":
        """Return the links of a topology, or None if neither it nor an option states uplinks."""
        if not states_uplinks(topology, options.links.oversubscription):
            return None
        return cls(topology, options, digests.of(canonical_text.lines_of(topology)))

    def is_of_another(self, entry: DecisionEntry) -> bool:
        """True if a decision by hops was made with another topology, or if that is not recorded."""
        is_by_hops = entry.plan is not None and entry.objective is None
        return is_by_hops and (entry.scheduler is None or entry.scheduler.topology != self.digest)

    def under(self, record: Topology) -> Capacities | None:
        """Return the capacities in the part of the fabric that a record has, or None.

        None as well if hosts of one leaf have different links: those of a record have no names.
        """
        known, topology = capacities(self.topology, self.options.links), self.topology
        at = {switch.name: i for i, switch in enumerate(topology.switches)}
        if any(switch.name not in at for switch in record.switches):
            return None
        of_leaf = dict[str, set[int]]()
        for leaf, rate in zip(topology.leaf_index.tolist(), known.hosts.tolist(), strict=True):
            of_leaf.setdefault(topology.switches[leaf].name, set()).add(rate)
        leaves = [of_leaf.get(record.leaf_of(host), set()) for host in record.hosts]
        if any(len(rates) != 1 for rates in leaves):
            return None
        return Capacities(
            np.array([known.switches.item(at[s.name]) for s in record.switches], dtype=np.int64),
            np.array([next(iter(rates)) for rates in leaves], dtype=np.int64),
        )


@dataclass(frozen=True, slots=True)
class ByBottleneck:
    """The plan by bottleneck of a group that was planned by hops. Links are relative to that."""

    hop_bytes: float
    more: float  # than the decision's plan costs
    leaves: int
    bottleneck: float | None  # None if no link carries anything in the decision's plan
    harm: float | None
    is_proven: bool = True


def by_bottleneck(
    rebuilt: RebuiltRequest,
    entry: DecisionEntry,
    plan: Plan | None,
    links: KnownLinks,
    limit: TimeLimit,
) -> ByBottleneck | None:
    """Return what the least bottleneck would have chosen; None if that is not known.

    :param plan: of the decision, planned again
    """
    request = rebuilt.request
    is_by_hops = entry.objective is None and request.objective is None
    if plan is None or not is_by_hops or limit.has_passed():
        return None
    if links.is_of_another(entry):
        return None
    known = links.under(request.topology)
    if known is None:
        return None
    objective = LeastBottleneck(known, links.options.tradeoff)
    group = replace(of_size(request, plan.count), objective=objective)
    answer = decided(group, limit)
    if not isinstance(answer, Plan):
        return None
    ratios = relative(loads_of(group, answer.hosts), loads_of(group, plan.hosts))
    cost = cost_of(rebuilt, answer.places)
    return ByBottleneck(
        cost,
        cost - cost_of(rebuilt, plan.places),
        leaves_of(request, answer.places),
        *ratios,
        answer.is_proven,
    )
