"""Seeded clouds with VMs on them and one group to place: for the simulator, and for Nova."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from hpc_sched.core.capacity import host_capacity
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.fragmentation import rates
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.core.sharing.cache_interference import Application, InterferenceIndex, Limits
from hpc_sched.nova_glue.read.instances.host_instances import HostInstances
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance
from hpc_sched.sim.cluster.cluster import Cluster, ProcessorTypes
from hpc_sched.sim.cluster.interference_rules import NO_RULES, InterferenceRules
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.placement_policy import Policy
from hpc_sched.sim.queues.in_order import Fcfs
from hpc_sched.sim.simulation import Simulation
from hpc_sched.sim.simulation_input import SimulationInput
from hpc_sched.topology import Topology
from tests.functional.pods import cpu
from tests.functional.states import States, host_state

LIMITS = Limits(alpha=100.0, beta=60.0)
# Cores and memory of hosts; MB that a host keeps to itself.
SIZES = ((8, 32768), (16, 65536), (16, 32768), (24, 49152), (32, 131072))
RESERVED_MB = 512
FLAVORS = ((1, 1024), (2, 2048), (2, 8192), (4, 4096), (8, 4096), (8, 30000))
CLASSES = ("none", "async", "sync", "extreme")
SCORES = (0.0, 2.5, 16.5, 29.3, 31.7)
APPLICATIONS = ("LU.C", "ChaNGa", "EP.B", "IS.B")


@dataclass(frozen=True)
class Case:
    """A cloud as it is when a group comes."""

    tree: dict[str, Any]
    stated: dict[str, str]  # switch to the processor type that the fabric's description states
    hosts: dict[str, "Host"]
    job: Job
    limits: Limits = LIMITS
    constraints: Constraints = NO_CONSTRAINTS
    homogeneous: str = "prefer"

    @property
    def number(self) -> str:
        """The job's number, which is the uuid of the server group too."""
        return str(self.job.number)


@dataclass(frozen=True)
class Host:
    """A host and the VMs of others that it has."""

    vcpus: int
    memory_mb: int
    cpu_info: str | None
    processor: str | None  # the name of its type
    vms: tuple[tuple[int, int, Application], ...]  # vcpus and MB of each, and what it runs

    @property
    def used(self) -> tuple[int, int]:
        """What its VMs take, vcpus and MB."""
        return sum(vm[0] for vm in self.vms), sum(vm[1] for vm in self.vms)


def tree_of(dice: random.Random, *, islands: bool = False) -> dict[str, Any]:
    """Return an unbalanced fabric of two or three levels, or two of them apart."""
    leaves, pods = count(1), count(1)
    names = [f"n{number:03}" for number in range(1, 120)]
    dice.shuffle(names)

    def leaf() -> list[str]:
        return [names.pop() for _ in range(dice.randint(1, 5))]

    def row(most: int) -> dict[str, Any]:
        return {f"leaf{next(leaves)}": leaf() for _ in range(dice.randint(1, most))}

    def root() -> dict[str, Any]:
        if dice.random() < 0.4:
            return row(5)
        below: dict[str, Any] = {f"pod{next(pods)}": row(3) for _ in range(dice.randint(1, 3))}
        # Some leaves are below the core itself.
        return below | (row(2) if dice.random() < 0.3 else {})

    return {"core": root()} | ({"core2": root()} if islands else {})


def hosts_of(dice: random.Random, topology: Topology, *, alike: bool) -> dict[str, Host]:
    """Return hosts of several sizes and processor types, more or less full.

    :param alike: whether all hosts are of one size and type
    """
    models = ("Broadwell", "Icelake", "Zen4")
    kinds = [(*dice.choice(SIZES), dice.choice(models)) for _ in range(1 if alike else 3)]
    found = {}
    for name in topology.hosts:
        vcpus, memory_mb, model = dice.choice(kinds)
        usable = memory_mb - RESERVED_MB
        vms: list[tuple[int, int, Application]] = []
        # A third of the hosts are empty, some are full.
        for _ in range(dice.choice((0, 0, 0, 1, 1, 2, 3, 9))):
            size = dice.choice(FLAVORS)
            free = vcpus - sum(vm[0] for vm in vms), usable - sum(vm[1] for vm in vms)
            if size[0] <= free[0] and size[1] <= free[1]:
                app = Application(dice.choice(CLASSES), None, dice.choice(SCORES), f"g{name}")
                vms.append((*size, app))
        # Nobody knows the processors of some hosts.
        known = alike or dice.random() < 0.9
        found[name] = Host(
            vcpus,
            usable,
            cpu(model, cores=vcpus // 2) if known else None,
            f"Intel {model} 2x{vcpus // 2}x2" if known else None,
            tuple(vms),
        )
    return found


def draw(seed: int, app_class: str = "sync") -> Case:
    """Return the case of a seed: half of the groups have wishes.

    :param app_class: of the group
    """
    dice = random.Random(f"{app_class} {seed}")
    wishing = dice.random() < 0.5
    tree = tree_of(dice, islands=dice.random() < 0.1)
    topology = Topology.from_tree(tree)
    constraints, homogeneous = NO_CONSTRAINTS, dice.choice(("prefer", "prefer", "true", "false"))
    if wishing:
        constraints = Constraints(
            require=dice.choice((None, None, *topology.levels)),
            prefer=dice.choice((None, None, *topology.levels)),
            max_leaves=(most := dice.choice((None, None, 1, 2, 3))),
            min_leaves=(least := dice.choice((None, None, 2, 3))) and min(least, most or least),
        )
        if least is None:
            constraints = constraints.changed(**parts_of(dice, topology, with_level=most is None))
    stated = {
        switch.name: dice.choice(("gold", "silver"))
        for switch in topology.switches
        if switch.level == 1 and dice.random() < 0.15
    }
    vcpus, memory_mb = dice.choice(FLAVORS)
    score = 0.0 if app_class == "extreme" else dice.choice(SCORES)
    job = Job(
        # A uuid of decimal digits: server groups have uuids, jobs have numbers.
        number=dice.randrange(10**31, 10**32),
        submit=0.0,
        runtime=1.0,
        count=dice.randint(1, 16),
        vcpus=vcpus,
        memory_mb=memory_mb,
        application=Application(app_class, None, score),
    )
    hosts = hosts_of(dice, topology, alike=dice.random() < 0.3)
    return Case(tree, stated, hosts, job, constraints=constraints, homogeneous=homogeneous)


def parts_of(
    dice: random.Random, topology: Topology, *, with_level: bool
) -> dict[str, str | int | None]:
    """Return constraints on the parts of a group, none for half of the groups.

    :param with_level: whether the parts may be below other switches than leaves
    """
    if dice.random() < 0.5:
        return {}
    sizes = (None, 2, 3, 4, "prefer:3")
    return {
        "segment": dice.choice(sizes),
        "segment_level": dice.choice((None, *topology.levels)) if with_level else None,
        "balance": dice.choice((None, None, "true", "prefer", "false")),
    }


def named(case: Case, seed: int) -> tuple[Case, InterferenceIndex]:
    """Return a case in which most VMs run an application of an index, and the index."""
    dice = random.Random(f"names {seed}")

    def with_name(runs: Application) -> Application:
        return replace(runs, name=dice.choice((None, *APPLICATIONS)))

    hosts = {
        name: replace(
            host, vms=tuple((vcpus, memory, with_name(runs)) for vcpus, memory, runs in host.vms)
        )
        for name, host in case.hosts.items()
    }
    # Few pairs lose: a host that is left out attracts nobody.
    index = InterferenceIndex(
        {
            (one, other): dice.choice((0.8, 0.97, 1.0, 1.0, 1.04, 1.25, 2.2))
            for one in APPLICATIONS
            for other in APPLICATIONS
        }
    )
    job = replace(case.job, application=replace(case.job.application, name="LU.C"))
    return replace(case, hosts=hosts, job=job), index


def cluster_of(case: Case, topology: Topology) -> Cluster:
    """Return the cloud of a case as the simulator has it."""
    hosts = [case.hosts[name] for name in topology.hosts]
    return Cluster(
        topology=topology,
        total=np.array([(host.vcpus, host.memory_mb) for host in hosts]),
        processors=tuple(
            topology.processor_of(name) or case.hosts[name].processor for name in topology.hosts
        ),
        used=np.array([host.used for host in hosts]),
        running={i: [vm[2] for vm in host.vms] for i, host in enumerate(hosts) if host.vms},
    )


def simulated(
    case: Case,
    topology: Topology,
    policy: Policy,
    classes: Sequence[str] = mdobp_classes.DEFAULT,
    interference: InterferenceRules = NO_RULES,
) -> Counter[str]:
    """Return the VMs per host that the simulator gives the group; none where it has no places.

    :param topology: the case's fabric with its stated processor types
    """
    cluster = cluster_of(case, topology)
    setting = SimulationInput(
        cluster,
        policy,
        rates=rates.DEFAULT,
        limits=case.limits,
        interference=interference,
        mdobp_classes=frozenset(classes),
        constraints=case.constraints,
        types=None if case.homogeneous == "false" else ProcessorTypes.of(cluster),
        one_type=case.homogeneous == "true",
    )
    simulation = Simulation(setting, Fcfs(), [case.job])
    simulation.run(until=0.0)
    standing = simulation.state.jobs.get(case.job.number)
    if standing is None:
        return Counter()
    names = [topology.hosts[host] for host in standing.hosts.tolist()]
    return Counter(dict(zip(names, standing.counts.tolist(), strict=True)))


def candidates(case: Case) -> States:
    """Return the HostStates that Placement would offer: those with room for one VM."""
    states = []
    for name, host in case.hosts.items():
        vcpus, memory_mb = host.used
        if room(case, host):
            states.append(
                host_state(
                    name,
                    vcpus_total=host.vcpus,
                    vcpus_used=vcpus,
                    total_usable_ram_mb=host.memory_mb + RESERVED_MB,
                    free_ram_mb=host.memory_mb - memory_mb,
                    cpu_info=host.cpu_info,
                    num_instances=len(host.vms),
                )
            )
    return states


def room(case: Case, host: Host) -> int:
    """Return how many VMs of the group a host has room for, whoever its neighbours are."""
    free = {
        "VCPU": host.vcpus - host.used[0],
        "MEMORY_MB": host.memory_mb - host.used[1],
    }
    return host_capacity(free, {"VCPU": case.job.vcpus, "MEMORY_MB": case.job.memory_mb})


def occupancy_of(case: Case) -> HostInstances:
    """Return the VMs of others as Nova's databases tell of them."""
    at: dict[tuple[str, str | None], list[PlacedInstance]] = {
        (name, name): [
            PlacedInstance(f"{name}-{i}", name, name, None, None, vcpus, memory_mb, 1)
            for i, (vcpus, memory_mb, _) in enumerate(host.vms)
        ]
        for name, host in case.hosts.items()
    }
    return HostInstances(at)


def running_on(case: Case) -> dict[str, Sequence[Application]]:
    """Return what those VMs run."""
    return {name: [vm[2] for vm in host.vms] for name, host in case.hosts.items()}
