"""Clusters that are generated, stated, or taken from a saved cloud."""

import pytest
from msgspec.structs import replace

from hpc_sched import exceptions
from hpc_sched.core.room.provider_tree import Provider, ProviderInventory
from hpc_sched.sim.cluster import fat_tree, snapshot_cluster
from hpc_sched.sim.cluster.cluster import HostType, host_types, uniform
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.fat_tree import FatTree
from hpc_sched.sim.jobs.job import Job
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.topology import Topology
from hpc_sched.topology.readers.text_driver import Text
from hpc_sched.topology.readers.yaml_file import YamlFileDriver
from tests import snapshots
from tests.unit.fabrics import check, two_leaves
from tests.unit.simulated import Simulated


def test_a_fat_tree_has_the_shape_that_its_switches_give_it():
    """Eight ports, three of four of them down.

    ::

                 sw3-0001                 8 switches below it
              /            \\
         sw2-0001  ..   sw2-0008          6 leaves below each
          /    \\
      sw1-0001 ..                         6 hosts below each
      n001-6
    """
    tree = FatTree(levels=3, radix=8, oversubscription=3)
    assert (tree.down, tree.most) == (6, 288)
    topology = tree.topology()
    check(topology)
    assert (len(topology.hosts), len(topology.leaves), topology.depth) == (288, 48, 3)
    assert topology.hosts_of("sw1-0001") == tuple(f"n{i:03}" for i in range(1, 7))
    assert topology.hops("n001", "n006") == 1
    assert topology.hops("n001", "n007") == 3
    assert topology.hops("n001", "n288") == 5


@pytest.mark.parametrize(
    ("hosts", "leaves", "depth"), [(1, 1, 3), (6, 1, 3), (7, 2, 3), (40, 7, 3)]
)
def test_a_fat_tree_is_built_only_as_far_as_its_hosts_need(hosts: int, leaves: int, depth: int):
    topology = fat_tree.read(f"levels=3,radix=8,oversubscription=3,hosts={hosts}", "x").topology()
    check(topology)
    assert (len(topology.hosts), len(topology.leaves), topology.depth) == (hosts, leaves, depth)


def test_one_level_is_one_leaf_switch():
    topology = FatTree(levels=1, radix=4).topology()
    assert topology.hosts == ("n1", "n2", "n3", "n4")
    assert topology.depth == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("levels=0", "levels: expected 1 to 8, found 0"),
        ("radix=1", "radix: expected 2 to 1000000 ports"),
        (f"radix={10**400}", "radix: expected 2 to 1000000 ports"),
        ("oversubscription=0", "expected a ratio above 0"),
        ("oversubscription=nan", "expected a ratio above 0"),
        ("radix=4,oversubscription=99", "leaves a port up and one down of 4"),
        ("hosts=0", "hosts: expected 1 to 11664, which is all it holds"),
        ("radix=4,hosts=99", "hosts: expected 1 to 16"),
        ("levels=8,radix=96", "hosts: expected at most 1000000"),
        ("levels=3,levels=2", "with each name once, found 'levels again'"),
        ("levels=three", "levels: expected a number, found 'three'"),
        (
            "pods=3",
            "expected levels=3,radix=48,oversubscription=2,hosts=10000 with names of levels, "
            "radix, oversubscription, hosts, found 'pods'",
        ),
    ],
)
def test_an_impossible_fabric_is_told(text: str, said: str):
    with pytest.raises(exceptions.ConfigError, match=said):
        fat_tree.read(text, "--generate")


def test_host_types_hold_for_all_or_for_those_that_are_named():
    texts = ["vcpus=8,memory=100", "vcpus=4,processor=old:b[1-2]", "vcpus=2:b2"]
    there = uniform(two_leaves(), *host_types(texts, "--host"))
    assert there.total.tolist() == [[8, 100], [8, 100], [4, 65536], [2, 65536], [8, 100]]
    assert there.processors == (None, None, "old", None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory=5", "found no vcpus in 'memory=5'"),
        ("vcpus=0", "vcpus: expected a whole number >= 1, found '0'"),
        ("vcpus=x", "vcpus: expected a whole number >= 1, found 'x'"),
        ("vcpus=4,memory=-1", "memory: expected a whole number >= 0"),
        ("cores=4", "expected vcpus=N"),
        ("vcpus=4:n[1-", "--host"),
        ("vcpus=4:zz", "host type for 'zz': there is no such host in the fabric"),
    ],
)
def test_a_host_type_that_cannot_be_understood_is_told(text: str, said: str):
    with pytest.raises(exceptions.ConfigError) as told:
        uniform(two_leaves(), *host_types([text], "--host"))
    assert said in str(told.value)


def test_a_processor_type_of_the_topology_is_that_of_its_hosts():
    topology = Topology.from_tree(
        {"core": {"leaf1": ["a1"], "leaf2": ["b1"]}}, processors={"leaf2": "gold"}
    )
    assert uniform(topology, HostType(1, 0)).processors == (None, "gold")


def saved_cluster(*servers, **fields):
    """Return the cluster of a saved cloud of 16 hosts; see :mod:`tests.snapshots`."""
    taken = snapshots.snapshot(servers, **fields)
    fabric = YamlFileDriver(path="x").parse(Text(snapshots.FABRIC.encode(), "x"))
    return snapshot_cluster.cluster_of(Cloud.of(taken, fabric))


def test_a_saved_cloud_has_what_its_vms_leave_free():
    there, notes = saved_cluster(snapshots.server("a", "n01"), snapshots.server("b", "n02"))
    assert there.free_at_start[:3].tolist() == [[8, 64512], [8, 64512], [16, 65536]]
    assert notes == ()
    # leaf01 has room for 12 VMs too, but on four hosts.
    found = Simulated("exact-plan", [Job(1, 0, 1, 12, 4)], on=there)
    assert found.starts == ["0 start 1: n05*4 n06*4 n07*4"]
    assert (found.simulation.state.free == there.free_at_start).all()


def test_vms_of_a_saved_cloud_keep_newcomers_away_as_the_filters_do():
    dedicated = snapshots.flavor("own", 4, app_class="extreme")
    there, _ = saved_cluster(snapshots.server("a", "n01", dedicated))
    found = Simulated("gupta2013", [Job(1, 0, 1, 16, 4)], on=there)
    assert "n01" not in found.starts[0]


def test_hosts_that_are_down_or_unknown_take_no_job():
    there, notes = saved_cluster(hosts=snapshots.HOSTS[:15], down=("n03",))
    assert notes == ("2 hosts of the fabric take no VM: down, disabled or unknown",)
    found = Simulated("first-fit", [Job(1, 0, 1, 14, 16), Job(2, 1, 1, 15, 16)], on=there)
    assert [record.outcome for record in found.records] == ["done", "refused"]
    assert "n03" not in found.starts[0]
    # 14 hosts are all in use; the two others count for nothing.
    assert found.simulation.measures.series.leaves[0] == [1.0, 1.0, 1.0, 1.0]


def test_a_job_s_vm_gets_no_more_of_a_host_than_one_provider_gives_it():
    stocks = {"VCPU": ProviderInventory(64, max_unit=16), "MEMORY_MB": ProviderInventory(1 << 16)}
    taken = snapshots.snapshot(capacity={"VCPU": 64, "MEMORY_MB": 1 << 16})
    nodes = [
        replace(node, providers=(Provider(node.nodename, None, stocks),))
        for node in taken.hypervisors
    ]
    half = {"MEMORY_MB": ProviderInventory(1 << 15), "VCPU": ProviderInventory(32)}
    parts = tuple(Provider(f"numa{n}", "root", half) for n in (0, 1))
    nodes[0] = replace(nodes[0], providers=(Provider("root"), *parts))
    fabric = YamlFileDriver(path="x").parse(Text(snapshots.FABRIC.encode(), "x"))
    changed = replace(taken, hypervisors=tuple(nodes))
    there, notes = snapshot_cluster.cluster_of(Cloud.of(changed, fabric))
    state = ClusterState(there)
    assert state.capacity(16, 1024)[:2].tolist() == [4, 4]
    assert state.capacity(17, 1024)[:2].tolist() == [3, 0]
    assert state.capacity(33, 1024)[:2].tolist() == [0, 0]
    assert notes == (
        "1 hosts have vcpus or memory in several resource providers: a VM may take parts of "
        "several in the simulation",
    )
