"""The simulator gives a group the hosts that Nova gives it: one code, one answer.

Nova's side are real HostStates and RequestSpecs, taken VM by VM through Nova's own handlers and
the real filters and weighers; :mod:`tests.functional.drawn_cases` draws the clouds.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nova.conf
import pytest
from nova import exception, objects
from nova.scheduler import weights

from hpc_sched.core.sharing import interference_file, mdobp_classes
from hpc_sched.filters.dedicated_host import HPCDedicatedHostFilter
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.filters.interference import HPCInterferenceFilter
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.sim.cluster.interference_rules import NO_RULES, InterferenceRules
from hpc_sched.sim.installed import POLICIES
from hpc_sched.weighers.bunch import BunchWeigher
from hpc_sched.weighers.hop_byte import HopByteWeigher
from hpc_sched.weighers.mdobp import MDOBPWeigher
from hpc_sched.weighers.rack_capacity import RackCapacityWeigher
from tests.functional import states
from tests.functional.drawn_cases import (
    Case,
    candidates,
    draw,
    named,
    occupancy_of,
    room,
    running_on,
    simulated,
)
from tests.functional.states import FILTERS
from tests.functional.trees import write_tree

CONF = nova.conf.CONF

# HPCRackCapacityFilter keeps what the exact plan needs; other weighers may have wanted the rest.
UNPRUNED = (HPCHomogeneityFilter, HPCGroupFilter)
STRICT = (HPCDedicatedHostFilter, HPCInterferenceFilter)

SEEDS = [
    pytest.param(range(40), id="forty"),
    pytest.param(
        range(40, 300),
        id="260 more",
        marks=pytest.mark.nightly("streams", "260 clouds a policy"),
    ),
]


@dataclass(frozen=True)
class Side:
    """What is enabled in Nova for a policy of the simulator."""

    policy: str
    filters: Sequence[type]
    weighers: Sequence[type]
    app_class: str = "sync"
    rack_selection: str = "largest"
    classes: Sequence[str] = mdobp_classes.DEFAULT
    has_index: bool = False

    @property
    def name(self) -> str:
        extra = ["without MDOBP"] if self.app_class not in (*self.classes, "extreme") else []
        return ", ".join([self.policy, self.app_class, *extra, *["index"] * self.has_index])


SHARING = (HopByteWeigher, MDOBPWeigher)
ALL_CLASSES = mdobp_classes.CHOICES
SIDES = [
    Side("exact-plan", FILTERS, [HopByteWeigher]),
    Side("dudina2013", UNPRUNED, [BunchWeigher]),
    Side("gupta2012", UNPRUNED, [RackCapacityWeigher]),
    Side("gupta2012-best-fit", UNPRUNED, [RackCapacityWeigher], rack_selection="best_fit"),
    Side("gupta2013", (*STRICT, *FILTERS), SHARING, "extreme"),
    Side("gupta2013", (*STRICT, *FILTERS), SHARING, "sync"),
    Side("gupta2013", (*STRICT, *FILTERS), SHARING, "async"),
    Side("gupta2013", (*STRICT, *FILTERS), SHARING, "sync", classes=("async",)),
    Side("gupta2013", (*STRICT, *FILTERS), SHARING, "none", classes=ALL_CLASSES),
    *(
        Side("gupta2013", (*STRICT, *FILTERS), SHARING, name, classes=ALL_CLASSES, has_index=True)
        for name in ("extreme", "sync", "async", "none")
    ),
]


@pytest.fixture(params=SIDES, ids=lambda side: side.name)
def side(request: pytest.FixtureRequest, two_pods: Path) -> Side:
    """Enable in Nova what a policy stands for."""
    chosen: Side = request.param
    filters = [made.__name__ for made in chosen.filters]
    weighers = [f"{made.__module__}.{made.__name__}" for made in chosen.weighers]
    CONF.set_override("enabled_filters", filters, "filter_scheduler")
    CONF.set_override("weight_classes", weighers, "filter_scheduler")
    CONF.set_override("rack_selection", chosen.rack_selection, "hpc_sched")
    CONF.set_override("mdobp_classes", list(chosen.classes), "hpc_sched")
    return chosen


def spec_of(case: Case, uuid: str) -> objects.RequestSpec:
    """Return the request for the group, in a server group whose policy leaves hosts alone."""
    job = case.job
    said: dict[str, Any] = {
        "app_class": job.application.app_class,
        "cache_score": job.application.score,
        **({"app_name": job.application.name} if job.application.name else {}),
        "homogeneous": case.homogeneous,
        **case.constraints.values,
    }
    made = states.spec(
        group_policy="anti-affinity",
        # More than any host takes: a policy that prefers no hosts and bounds none.
        rules={"max_server_per_host": "1000"},
        count=job.count,
        vcpus=job.vcpus,
        extra_specs=states.wishing(**said),
        uuid=uuid,
    )
    made.flavor.memory_mb = job.memory_mb
    made.instance_group.uuid = case.number
    return made


def by_nova(case: Case, side: Side, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return the VMs per host that Nova gives the group; none where it refuses it."""
    uuids = states.queue_of(case.job.count)
    states.databases_say(monkeypatch, queue=uuids, left=len(uuids))
    states.hosts_have(monkeypatch, running_on(case), occupancy_of(case))
    request = spec_of(case, uuids[0])
    free = {name: room(case, host) for name, host in case.hosts.items()}
    filters = [made() for made in side.filters]
    weighers = [made() for made in side.weighers]
    handler = weights.HostWeightHandler()
    kept, placed = candidates(case), Counter[str]()
    for index, uuid in enumerate(uuids if kept else ()):
        request.instance_uuid = uuid
        try:
            kept = states.run(kept, request, *filters, index=index)
        except exception.NoValidHost:
            assert not placed
            break
        if not kept:
            # Class none is not all or nothing: Nova takes back what it has claimed.
            assert case.job.application.app_class == "none"
            return Counter()
        weighed = handler.get_weighed_objects(weighers, kept, request)
        names = [host.obj.nodename for host in weighed]
        # Placement lets nobody claim what is full.
        order = [name for name in names if placed[name] < free[name]]
        if not order:
            assert case.job.application.app_class == "none"
            return Counter()
        placed[states.place(kept, order, request)] += 1
    return placed


@pytest.mark.parametrize("seeds", SEEDS)
def test_hundreds_of_drawn_groups_get_the_same_hosts(side, seeds, tmp_path, monkeypatch):
    policy, seen = POLICIES.load(side.policy), Counter[str]()
    for seed in seeds:
        case, rules = draw(seed, side.app_class), NO_RULES
        if side.has_index:
            case, index = named(case, seed)
            rules = InterferenceRules.of(index, CONF.hpc_sched.interference_tolerance)
            file = str(tmp_path / f"{seed}.csv")
            interference_file.write_index(file, index)
            CONF.set_override("interference_file", file, "hpc_sched")
        path = write_tree(tmp_path / f"{seed}.yaml", case.tree, case.stated)
        CONF.set_override("topology_file", str(path), "hpc_sched")
        topology = loaded_topology.load().topology
        with monkeypatch.context() as patch:
            nova_says = by_nova(case, side, patch)
        sim_says = simulated(case, topology, policy, side.classes, rules)
        assert sim_says == nova_says, f"seed {seed}"
        if side.has_index and side.app_class != "extreme":
            seen["elsewhere"] += sim_says != simulated(case, topology, policy, side.classes)
        seen["refused"] += not nova_says
        seen["on several leaves"] += len({topology.leaf_of(host) for host in nova_says}) > 1
        seen["VMs"] += nova_says.total()
    # The groups were such that there was something to choose, and some were too large.
    assert seen["refused"] > len(seeds) / 20
    assert seen["on several leaves"] > len(seeds) / 20
    assert seen["VMs"] > 3 * len(seeds)
    if side.has_index and side.app_class != "extreme":
        assert seen["elsewhere"] > len(seeds) / 20
