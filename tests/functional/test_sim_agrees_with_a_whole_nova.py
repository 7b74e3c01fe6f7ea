"""The simulator follows a whole Nova group by group, from the API to the accounts of computes.

::

                               core
                /                |               \\
             pod1               pod2              |
           /      \\           /      \\            |
        leaf1    leaf2      leaf3    leaf4      leaf5
       n01-n03  n04 n05    n06-n09    n10      n11 n12

16 processors each below pod1, 8 in leaf3, 12 elsewhere; leaf3 and leaf4 are of another type.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from nova import context as nova_context
from nova import objects

from hpc_sched.core.fragmentation import rates
from hpc_sched.core.processors.processor_ranking import ProcessorRanking
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.sim.cluster.cluster import HostType, ProcessorTypes, uniform
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.simulation import Simulation
from hpc_sched.sim.simulation_input import SimulationInput
from hpc_sched.topology import Topology
from tests.functional.shared_clouds import CloudKind, cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.functional.trees import write_tree

TREE = {
    "core": {
        "pod1": {"leaf1": ["n01", "n02", "n03"], "leaf2": ["n04", "n05"]},
        "pod2": {"leaf3": ["n06", "n07", "n08", "n09"], "leaf4": ["n10"]},
        "leaf5": ["n11", "n12"],
    }
}
TYPES = {"pod1": "gold", "leaf3": "silver", "leaf4": "silver", "leaf5": "gold"}
MEMORY_MB = 65536
SIZES = {
    16: ["n01", "n02", "n03", "n04", "n05"],
    8: ["n06", "n07", "n08", "n09"],
    12: ["n10", "n11", "n12"],
}
FABRIC = Topology.from_tree(TREE)
BEST_FIRST = ("silver", "gold")
FLAVORS = {"thin": (4, 1024), "wide": (6, 2048), "large": (8, 30000)}
SEED = 4


def options(folder: Path) -> dict[tuple[str, str], Any]:
    return {
        ("hpc_sched", "topology_file"): str(write_tree(folder / "typed.yaml", TREE, TYPES)),
        ("hpc_sched", "processor_order"): list(BEST_FIRST),
        ("hpc_sched", "cell_timeout"): 600,
    }


pytestmark = cloud_mark(
    CloudKind(
        "two types of processors",
        TREE,
        options=options,
        attributes={"memory_mb": MEMORY_MB},
        sizes={host: (vcpus, MEMORY_MB) for vcpus, hosts in SIZES.items() for host in hosts},
    )
)


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    for name, (vcpus, memory_mb) in FLAVORS.items():
        shared_cloud.flavor(name, vcpus=vcpus, memory_mb=memory_mb)
    return shared_cloud


def drawn_jobs(dice: random.Random, groups: int) -> dict[Job, str]:
    """Return jobs that come a second apart, each with its flavor.

    They end half a second before others come, some after few of them and some after many.
    """
    jobs = {}
    for second in range(groups):
        flavor = dice.choice(sorted(FLAVORS))
        vcpus, memory_mb = FLAVORS[flavor]
        job = Job(
            # A uuid of decimal digits: server groups have uuids, jobs have numbers.
            number=dice.randrange(10**31, 10**32),
            submit=second,
            runtime=dice.choice((1, 2, 4, 8, 16)) + 0.5,
            count=dice.choice((1, 1, 1, 2, 2, 3, 3, 4, 5, 8, 12, 16)),
            vcpus=vcpus,
            memory_mb=memory_mb,
        )
        jobs[job] = flavor
    return jobs


def server_group(number: int) -> str:
    """Return a server group whose uuid is a job's number: by it equal places are ordered."""
    made = objects.InstanceGroup(
        nova_context.get_admin_context(),
        uuid=str(number),
        name="job",
        user_id="user",
        project_id="project",
        policy="soft-affinity",
    )
    made.create()
    return made.uuid


class Simulated:
    """A simulation of jobs that go away when there is no room, as requests to Nova do."""

    def __init__(self, jobs: list[Job]) -> None:
        self.placed: dict[int, Counter[str]] = {}  # number to VMs per host
        topology = loaded_topology.current().topology
        others = {host: HostType(vcpus, MEMORY_MB) for vcpus in SIZES for host in SIZES[vcpus]}
        cluster = uniform(topology, HostType(1, 0), others)
        setting = SimulationInput(
            cluster,
            POLICIES.load("exact-plan"),
            rates=rates.DEFAULT,
            types=ProcessorTypes.of(cluster, ProcessorRanking(BEST_FIRST)),
        )
        Simulation(setting, self._at_once, jobs).run()

    def _at_once(self, simulation: Simulation) -> None:
        names = simulation.setting.cluster.topology.hosts
        for job in list(simulation.waiting.values()):
            self.placed[job.number] = Counter()
            if not simulation.start(job):
                del simulation.waiting[job.number]
                continue
            standing = simulation.state.jobs[job.number]
            for host, count in zip(standing.hosts.tolist(), standing.counts.tolist(), strict=True):
                self.placed[job.number][names[host]] = count


@pytest.mark.parametrize(
    "groups", [15, pytest.param(40, marks=pytest.mark.nightly("streams", "some 150 VMs"))]
)
def test_groups_one_after_the_other_get_the_same_hosts(cloud, groups):
    jobs = drawn_jobs(random.Random(SEED), groups)
    simulated = Simulated(list(jobs)).placed
    running: dict[Job, list[str]] = {}
    seen: Counter[str] = Counter()
    try:
        for job, flavor in jobs.items():
            ended = [one for one in running if one.submit + one.runtime < job.submit]
            cloud.remove([server for one in ended for server in running.pop(one)])
            group = server_group(job.number)
            running[job] = cloud.boot(flavor, count=job.count, group=group)
            found = Counter(cloud.hosts_of(running[job]).values())
            assert found == simulated[job.number], f"{job.count} of {flavor} at {job.submit}"
            seen["refused"] += not found
            seen["VMs"] += found.total()
            seen["on several leaves"] += len({FABRIC.leaf_of(host) for host in found}) > 1
    finally:
        cloud.remove([server for servers in running.values() for server in servers])
    assert seen["refused"] >= groups // 13
    assert seen["on several leaves"] >= groups // 13
    assert seen["VMs"] >= 2 * groups
