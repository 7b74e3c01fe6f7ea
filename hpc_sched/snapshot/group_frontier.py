"""The plans of a group on a snapshot from the least Hop-Byte to the least bottleneck."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched import exceptions
from hpc_sched.core.arrays import Mask
from hpc_sched.core.counterfactual.costs import decided
from hpc_sched.core.extra_spec_names import BOTTLENECK
from hpc_sched.core.objectives import frontier
from hpc_sched.core.objectives.frontier import FrontierPlan
from hpc_sched.core.objectives.plan_loads import PlanLoads, plan_loads
from hpc_sched.core.objectives.stated_objective import stated_objective
from hpc_sched.core.plan.objective import LeastBottleneck, Objective
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import NO_LIMIT
from hpc_sched.core.traffic.patterns import RING
from hpc_sched.core.traffic.stated_pattern import StatedTraffic, stated_traffic
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.request_builder import SnapshotRequest
from hpc_sched.topology.capacities import states_uplinks
from hpc_sched.topology.compare import lint
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class LinkLoads:
    """What plans of a group load links with."""

    state: SnapshotRequest
    objective: LeastBottleneck

    @classmethod
    def of(cls, state: SnapshotRequest) -> "LinkLoads":
        """Return the loads of a query, whatever its objective.

        :raises exceptions.RequestError: for a class that is not placed by topology
        """
        if state.is_flat:
            raise exceptions.RequestError(
                f"class {state.hpc_specs.app_class} is not placed by topology: links do not count"
            )
        by_bottleneck = stated_objective(
            replace(state.hpc_specs, objective=BOTTLENECK),
            state.group.topology,
            nova_options.objective_options(state.cloud.snapshot),
            _not_called,
        )
        assert isinstance(by_bottleneck, LeastBottleneck)
        return cls(state, by_bottleneck)

    def traffic(self, count: int) -> StatedTraffic:
        """Return what members and planned VMs send each other.

        :param count: planned VMs
        """
        objective, everyone = self.objective, count + int(self.state.group.members.sum())
        return stated_traffic(objective.pattern, everyone, objective.pattern_directory)

    def of_plan(self, plan: Plan) -> PlanLoads:
        """Return the loads of a plan."""
        group, traffic = self.state.group, self.traffic(plan.count).traffic
        capacities = self.objective.capacities
        return plan_loads(group.topology, capacities, group.members, plan.hosts, traffic)


def of(
    state: SnapshotRequest, loads: LinkLoads, progress: Callable[[], None]
) -> frontier.Frontier | None:
    """Return the plans of a group, or None if it has none.

    :param progress: called before each plan
    """

    def plan_by(objective: Objective | None) -> Plan | None:
        progress()
        answer = decided(replace(state.group, objective=objective), NO_LIMIT)
        return answer if isinstance(answer, Plan) else None

    is_searched = loads.traffic(state.group.whole).traffic is not None
    most = frontier.MOST_BY_PATTERN if is_searched else frontier.MOST_PLANS
    return frontier.frontier(plan_by, loads.of_plan, loads.objective, most)


def with_own(found: frontier.Frontier, own: FrontierPlan) -> tuple[list[FrontierPlan], int]:
    """Return the plans with that of the group's own objective, and which one that is.

    An isolated plan may be worse than all others.
    """
    plans = list(found.plans)
    at = len(plans)
    for i, one in enumerate(plans):
        if one.costs == own.costs:
            return plans, i
        if one.costs[:2] == own.costs[:2]:
            # It does less harm, which no objective minimises: the group does not get it.
            at = i + 1
    return [*plans[:at], own, *plans[at:]], at


def vms_by_leaf(state: SnapshotRequest, plan: Plan) -> list[int]:
    """Return the VMs of each leaf of the group, members included; largest first."""
    topology, members = state.group.topology, state.group.members
    vms = np.bincount(topology.leaf_index, members, len(topology.switches)).astype(np.int64)
    for leaf, count in plan.leaves.items():
        vms[topology.switch_index(leaf)] += count
    return sorted(vms[vms > 0].tolist(), reverse=True)


def notes_on_own(state: SnapshotRequest) -> Iterator[str]:
    """Yield the notes of a group by bottleneck, whose plan depends on what is assumed."""
    if isinstance(state.group.objective, LeastBottleneck):
        yield from notes(state, LinkLoads(state, state.group.objective))


def notes(state: SnapshotRequest, loads: LinkLoads) -> Iterator[str]:
    """Yield a sentence for everything that is assumed of links and traffic."""
    ratios = nova_options.objective_options(state.cloud.snapshot).links.oversubscription
    topology = state.cloud.description
    yield from lint.unknown_levels(topology, ratios)
    if not states_uplinks(state.cloud.topology, ratios):
        yield (
            "no uplinks are stated, so 1 : 1 is assumed: state uplinks or oversubscription in the "
            "topology, uplink_oversubscription in nova.conf, or --oversubscription"
        )
    if remark := loads.traffic(state.group.whole).remark:
        yield remark
    if loads.objective.pattern == RING:
        yield (
            "a ring has the plan of least Hop-Byte, which has the least bottleneck where uplinks "
            "are equal; halo1 is planned by those that differ"
        )


def _not_called(topology: Topology) -> Mask:
    raise AssertionError(topology)
