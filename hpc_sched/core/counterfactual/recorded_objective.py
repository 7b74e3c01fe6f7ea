"""The objective of a decision: its part of the record, and the objective of such a part."""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.counterfactual.host_classes import NONE
from hpc_sched.core.extra_spec_names import BOTTLENECK, ISOLATED
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.logged.logged_objective import LoggedObjective
from hpc_sched.core.objectives.plan_loads import PlanLoads, plan_loads
from hpc_sched.core.plan.objective import Isolation, LeastBottleneck, Objective
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.traffic.stated_pattern import stated_traffic
from hpc_sched.topology.capacities import Capacities
from hpc_sched.topology.model import Topology

_HIGHEST = 1 << 40  # Mb/s that a record may state


def logged_objective(
    request: GroupRequest, answer: Plan | Rejection | None
) -> LoggedObjective | None:
    """Return the part of a record; None for the least Hop-Byte. O(hosts + switches)."""
    objective, topology = request.objective, request.topology
    if objective is None:
        return None
    if isinstance(objective, Isolation):
        used = (topology.switches[s].name for s in np.flatnonzero(objective.is_used).tolist())
        return LoggedObjective(ISOLATED, used=tuple(sorted(used)))
    rates = dict[str, dict[str, int]]()  # by level and switch
    for switch, rate in zip(topology.switches, objective.capacities.switches.tolist(), strict=True):
        if switch.parent >= 0:
            rates.setdefault(topology.levels[switch.level - 1], {})[switch.name] = rate
    uplinks = {level: _usual(of_level.values()) for level, of_level in rates.items()}
    others = {
        name: rate
        for level, of_level in rates.items()
        for name, rate in of_level.items()
        if rate != uplinks[level]
    }
    links, tradeoff = objective.capacities.hosts, objective.tradeoff
    loads = loads_of(request, answer.hosts) if isinstance(answer, Plan) else None
    return LoggedObjective(
        BOTTLENECK,
        tradeoff=None if tradeoff is None else str(tradeoff),
        pattern=objective.pattern,
        bottleneck=None if loads is None else float(loads.bottleneck),
        harm=None if loads is None else float(loads.harm),
        uplinks=uplinks,
        other_uplinks=others,
        host_link=_usual(links.tolist()),
        host_links=_other_links(links),
    )


def loads_of(request: GroupRequest, planned: Mapping[str, int]) -> PlanLoads | None:
    """Return the loads of links by members and planned VMs; None if no link is known.

    :param planned: host to VMs
    """
    objective = request.objective
    if not isinstance(objective, LeastBottleneck):
        return None
    everyone = sum(planned.values()) + int(request.members.sum())
    traffic = stated_traffic(objective.pattern, everyone, objective.pattern_directory).traffic
    return plan_loads(request.topology, objective.capacities, request.members, planned, traffic)


def link_numbers(request: GroupRequest) -> Array | None:
    """Return the number of each host's link in the record, NONE for the usual one.

    Shape (hosts,); None if no host has another one.
    """
    if not isinstance(request.objective, LeastBottleneck):
        return None
    links = request.objective.capacities.hosts
    others = _other_links(links)
    if not others:
        return None
    found = np.searchsorted(others, links)
    return np.where(links == _usual(links.tolist()), NONE, found)


def objective_in(logged: LoggedObjective, topology: Topology, links: Array) -> Objective:
    """Return the objective of a record. A matrix of the operator is not in it: uniform traffic.

    :param topology: of the record
    :param links: number of each host's link. Shape (hosts,)
    :raises ValueError: for an objective or a rate that no record has
    :raises LookupError: for a link that the record does not have
    """
    switches = topology.switches
    if logged.name == ISOLATED:
        used = np.zeros(len(switches), dtype=np.bool_)
        names = set(logged.used)
        used[[i for i, switch in enumerate(switches) if switch.name in names]] = True
        return Isolation(used)
    if logged.name != BOTTLENECK:
        raise ValueError(f"objective {logged.name[:40]!r}: expected {BOTTLENECK} or {ISOLATED}")
    of_levels = [logged.uplinks.get(level, 0) for level in topology.levels]
    rates = [
        logged.other_uplinks.get(switch.name, of_levels[switch.level - 1])
        if switch.parent >= 0
        else 0
        for switch in switches
    ]
    below = [logged.host_link, *logged.host_links]
    if not (min(rates) >= 0 and min(below) > 0 and max(*rates, *below) <= _HIGHEST):
        raise ValueError(f"rates of links: expected at most {_HIGHEST} Mb/s")
    of_hosts = np.array(
        [logged.host_links[i] if i >= 0 else logged.host_link for i in links.tolist()]
    )
    return LeastBottleneck(
        Capacities(np.array(rates, dtype=np.int64), of_hosts.astype(np.int64)),
        logged.bound(),
        logged.pattern,
    )


def _usual(rates: Iterable[int]) -> int:
    """Return the rate that most have; of several the lowest."""
    counts = Counter(rates)
    return min(counts, key=lambda rate: (-counts[rate], rate), default=0)


def _other_links(links: Array) -> tuple[int, ...]:
    usual = _usual(links.tolist())
    return tuple(rate for rate in np.unique(links).tolist() if rate != usual)
