"""Random decisions of all kinds, and the records that a scheduler would write of them."""

import json
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.counterfactual.costs import decided
from hpc_sched.core.counterfactual.recorded_objective import logged_objective
from hpc_sched.core.counterfactual.recording import LeftOut, RemovedHosts, logged_input
from hpc_sched.core.fragmentation.rates import NO_PRICE, FragmentationRates
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.logged.decision_entry import DecisionEntry
from hpc_sched.core.logged.decision_summary import LoggedPlan, LoggedRejection
from hpc_sched.core.plan.objective import Isolation, LeastBottleneck, Objective
from hpc_sched.core.plan.result import Plan, Refusal, Rejection
from hpc_sched.core.plan.time_limit import NO_LIMIT
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.core.processors.processor_ranking import UNRANKED
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.snapshot.log.logged_decisions import entry_of
from hpc_sched.topology import Topology
from hpc_sched.topology.capacities import Capacities
from tests.unit import small_cases

POLICIES = (None, "affinity", "anti-affinity", "soft-anti-affinity", "soft-affinity")
WHYS = ("failed builds", "SiteWeigher")


@dataclass(frozen=True)
class Links:
    """The objective of a group, with the capacities of links by name, or the used uplinks."""

    tradeoff: Fraction | None = None
    uplinks: dict[str, int] = field(default_factory=dict)
    hosts: dict[str, int] = field(default_factory=dict)  # else as hosts that filters removed
    used: tuple[str, ...] | None = None  # switches; None for a plan by bottleneck

    def objective(self, topology: Topology) -> Objective:
        """Return the objective on a fabric."""
        if self.used is not None:
            return Isolation(np.array([switch.name in self.used for switch in topology.switches]))
        rates = [0 if s.parent < 0 else self.uplinks[s.name] for s in topology.switches]
        return LeastBottleneck(
            Capacities(
                np.array(rates, dtype=np.int64),
                np.array([self.hosts.get(host, 100) for host in topology.hosts]),
            ),
            self.tradeoff,
        )


@dataclass(frozen=True)
class Group:
    """A group, and all that a scheduler knows of its hosts."""

    topology: Topology
    places: list[tuple[str, str]]  # service host and host of each hypervisor
    room: list[int]
    free: list[int]  # without the VMs of others
    members: dict[tuple[str, str], int]
    left: int
    awaiting: int
    orphans: int = 0
    constraints: Constraints = NO_CONSTRAINTS
    policy: str | None = None
    max_per_host: int | None = None
    homogeneous: str = "false"
    types: list[str] = field(default_factory=list)  # of each hypervisor; empty without a filter
    shunned: dict[str, list[bool]] = field(default_factory=dict)
    removed: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  # leaf and room
    packing: MDOBPInput | None = None  # if MDOBP chooses the hosts inside leaves
    links: Links | None = None  # with an objective
    rates: FragmentationRates = NO_PRICE

    def fabric(self) -> Topology:
        """Return the topology with the hosts that filters removed: by filter and number."""
        tree = self.topology.to_tree()
        leaves = small_by_name(tree)
        for why, hosts in self.removed.items():
            for number, (leaf, _) in enumerate(hosts):
                leaves[leaf].append(f"{why} {number}")
        return Topology.from_tree(tree, self.topology.levels) if self.removed else self.topology

    def request(self, *, with_removed: str | None = None) -> GroupRequest:
        """Return the request of the scheduler.

        :param with_removed: a filter whose hosts are candidates
        """
        topology, places, room = self.fabric(), list(self.places), list(self.room)
        shunned = [np.array(mask) for mask in self.shunned.values()]
        types = list(self.types)
        if with_removed is not None:
            for number, (_, size) in enumerate(self.removed[with_removed]):
                name = f"{with_removed} {number}"
                places.append((name, name))
                room.append(size)
            more = len(places) - len(self.places)
            shunned = [np.append(mask, np.zeros(more, dtype=bool)) for mask in shunned]
            types += [""] * more if types else []
        specs = HPCSpecs("sync", self.constraints, self.homogeneous, (), ())
        made = GroupRequest.of(
            topology,
            specs,
            group_id="job",
            policy=self.policy,
            max_per_host=self.max_per_host,
            places=places,
            names=[host for _, host in places],
            room=np.array(room, dtype=np.int64),
            members=self.members,
            left=self.left,
            awaiting=self.awaiting,
            orphans=self.orphans,
            shunned=np.logical_or.reduce(shunned) if shunned else None,
            processors=processors(types, places, self.members),
            packing=self.packing,
            rates=self.rates,
            empty=np.array([*self.free, *room[len(self.free) :]], dtype=np.int64),
        )
        if self.links is not None:
            made = replace(made, objective=self.links.objective(topology))
        return made if types else replace(made, homogeneous="false")

    def record(self) -> dict[str, Any]:
        """Return the record of the decision, as JSON has it."""
        request = self.request()
        answer = decided(request, NO_LIMIT)
        index_of = request.topology.index_of
        removed = {
            why: RemovedHosts(
                [index_of(f"{why} {number}") for number in range(len(hosts))],
                [room for _, room in hosts],
            )
            for why, hosts in self.removed.items()
        }
        left_out = LeftOut(
            free=np.array(self.free, dtype=np.int64),
            shunned={why: np.array(mask) for why, mask in self.shunned.items()},
            removed=removed,
            processors=request.processors,
            homogeneous=self.homogeneous,
            by_mdobp=self.packing is not None,
        )
        plan = rejection = None
        if isinstance(answer, Plan):
            plan = LoggedPlan(dict(answer.leaves), dict(answer.hosts), answer.hop_bytes)
        elif isinstance(answer, Rejection):
            rejection = LoggedRejection(answer.operator, answer.count, answer.best, answer.gangs)
        entry = DecisionEntry(
            time="t1",
            request_id="req-1",
            instance="vm",
            group="job",
            policy=self.policy,
            app_class="sync",
            wishes=wishes(self.constraints, self.homogeneous),
            left=request.left,
            awaiting=request.awaiting,
            removed={why: len(hosts) for why, hosts in self.removed.items()},
            decision="planned" if plan else "refused",
            plan=plan,
            proven=not isinstance(answer, Plan) or answer.is_proven,
            rejection=rejection,
            reason=answer.operator if isinstance(answer, Refusal) else None,
            input=logged_input(request, left_out),
            objective=logged_objective(request, answer if isinstance(answer, Plan) else None),
        )
        written: dict[str, Any] = json.loads(json.dumps(entry.as_json()))
        return written

    def entry(self) -> DecisionEntry:
        """Return the record as the decision log is read."""
        return entry_of(self.record())


def wishes(constraints: Constraints, homogeneous: str) -> dict[str, Any]:
    return {**constraints.as_logged(), "homogeneous": homogeneous}


def small_by_name(tree: dict[str, Any]) -> dict[str, list[str]]:
    """Return the hosts of each leaf of a nested tree."""
    found: dict[str, list[str]] = {}
    for name, below in tree.items():
        found |= small_by_name(below) if isinstance(below, dict) else {name: below}
    return found


def processors(
    types: list[str], places: list[tuple[str, str]], members: dict[tuple[str, str], int]
) -> HostProcessors | None:
    """Return the processor types of hypervisors; None without types."""
    if not types:
        return None
    at = dict(zip(places, types, strict=True))
    of_members = Counter[str | None]()
    for place, count in members.items():
        of_members[at.get(place) or None] += count
    return HostProcessors.of(
        [name or None for name in types],
        [None] * len(types),
        [len(name) for name in types],
        np.arange(len(types)),
        {name: count for name, count in of_members.items() if count},
        UNRANKED,
    )


def random_group(seed: int) -> Group:
    """Return a group of at most 10 VMs, always the same for a seed."""
    draw = random.Random(f"recorded group {seed}")
    tree, capacity, count = (
        small_cases.thin_and_dense_pods(draw) if draw.random() < 0.2 else small_cases.any_room(draw)
    )
    fabric = Topology.from_tree(tree)
    hosts = list(fabric.hosts)
    if draw.random() < 0.15:
        hosts.append("stray")
        capacity["stray"] = draw.randint(0, 2)
        fabric = fabric.including(["stray"])
    is_bare_metal = draw.random() < 0.25
    services = [f"ironic{draw.randint(1, 3)}" if is_bare_metal else host for host in hosts]
    places = list(zip(services, hosts, strict=True))
    count = max(count, 1)
    at = small_cases.random_members(draw, fabric, hosts) if draw.random() < 0.4 else {}
    members = {(service, host): at[host] for service, host in places if at.get(host)}
    # Some hosts with members are no candidates, nor are some others.
    places = [place for place in places if draw.random() < 0.85] or places[:1]
    room = [min(capacity[host], 1 if is_bare_metal else 99) for _, host in places]
    free = list(room)
    if draw.random() < 0.3:
        room = [draw.randint(0, most) for most in free]
    wanted = Constraints()
    if draw.random() < 0.7:
        wanted = Constraints(
            require=draw.choice([None, *fabric.levels]),
            prefer=draw.choice([None, None, *fabric.levels]),
            max_leaves=draw.choice([None, None, 1, 2, 3]),
            group_size=draw.choice([None, None, None, count + 2]),
        )
    types, homogeneous = [], "false"
    if draw.random() < 0.3:
        homogeneous = draw.choice(["true", "prefer"])
        by_leaf = draw.random() < 0.5
        names = ["older", "newest type", ""]
        kinds = {leaf: draw.choice(names[:2]) for leaf in fabric.leaves}
        types = [
            kinds[fabric.leaf_of(host)] if by_leaf else draw.choice(names) for _, host in places
        ]
        if not any(types):
            types = []
    shunned = {}
    if draw.random() < 0.3:
        for why in WHYS[: draw.randint(1, 2)]:
            shunned[why] = [draw.random() < 0.4 for _ in places]
    removed = {}
    if draw.random() < 0.3 and not types:
        leaves = [leaf for leaf in fabric.leaves if draw.random() < 0.5] or [fabric.leaves[0]]
        removed["dedicated hosts"] = [
            (draw.choice(leaves), draw.randint(0, 3)) for _ in range(draw.randint(1, 4))
        ]
        for number in range(len(removed["dedicated hosts"])):
            if at and draw.random() < 0.3:
                name = f"dedicated hosts {number}"
                members[name, name] = 1
    mdobp = None
    if draw.random() < 0.15 and not removed:
        mdobp = small_cases.packing(draw, len(places))
    return Group(
        packing=mdobp,
        topology=fabric,
        places=places,
        room=room,
        free=free,
        members=members,
        left=count,
        awaiting=count + draw.choice([0, 0, 0, 1, 2]),
        orphans=draw.choice([0, 0, 0, 1]),
        constraints=wanted,
        policy=draw.choice(POLICIES),
        max_per_host=draw.choice([1, 1, 2, None]),
        homogeneous=homogeneous,
        types=types,
        shunned=shunned,
        removed=removed,
    )


def with_objective(group: Group, seed: int) -> Group:
    """Return a group by bottleneck or isolated, always the same for a seed."""
    draw = random.Random(f"objective {seed}")
    switches = [switch.name for switch in group.topology.switches]
    if draw.random() < 0.3:
        used = tuple(name for name in switches if draw.random() < 0.4)
        return replace(group, links=Links(used=used))
    rates = draw.choice([(100,), (100, 200), (50, 100, 150, 400)])
    below = draw.choice([(100,), (100,), (50, 100, 200)])
    links = Links(
        draw.choice([None, Fraction(0), Fraction(3, 10), Fraction(1)]),
        {name: draw.choice(rates) for name in switches},
        {host: draw.choice(below) for host in group.topology.hosts},
    )
    return replace(group, links=links)
