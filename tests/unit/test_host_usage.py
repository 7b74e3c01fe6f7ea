"""What runs on the hosts of a fabric, and which of them Nova knows."""

from hpc_sched.snapshot import host_usage
from hpc_sched.snapshot.snapshot_model import Flavor, Hypervisor, Server, Snapshot
from hpc_sched.topology import Topology
from hpc_sched.topology.writers import svg

FLAVOR = Flavor("hpc", vcpus=8, memory_mb=1024)

#        spine
#       /     \
#    leaf1    leaf2
#   n1 n2 n3  n4 n5
TOPOLOGY = Topology.from_tree({"spine": {"leaf1": ["n1", "n2", "n3"], "leaf2": ["n4", "n5"]}})


def node(
    name: str, used: float = 0, *, host: str | None = None, enabled: bool = True, up: bool = True
) -> Hypervisor:
    return Hypervisor(host or name, name, enabled, up, {"VCPU": 16}, {"VCPU": used})


def vm(number: int, host: str | None, nodename: str | None) -> Server:
    return Server(f"u{number}", f"vm{number}", "p", "ACTIVE", host, nodename, FLAVOR, "2026-01-01")


def cloud(hypervisors: list[Hypervisor], servers: list[Server]) -> Snapshot:
    return Snapshot("2026-01-01T00:00:00+00:00", tuple(hypervisors), tuple(servers), (), ())


def test_vms_and_vcpus_are_counted_on_their_hosts():
    uses = host_usage.of(
        TOPOLOGY,
        cloud(
            [node("n1", 16), node("n2", 8), node("n3"), node("n4", up=False), node("n5")],
            [vm(1, "n1", "n1"), vm(2, "n1", "n1"), vm(3, "n2", None), vm(4, None, None)],
        ),
    )
    assert [uses.hosts[host].vms for host in TOPOLOGY.hosts] == [2, 1, 0, 0, 0]
    assert uses.totals(TOPOLOGY.hosts_of("leaf1")) == host_usage.Totals(3, 24, 48, 1, 0, 0, 0)
    assert uses.totals(TOPOLOGY.hosts_of("leaf2")) == host_usage.Totals(0, 0, 32, 1, 0, 1, 0)
    assert (uses.absent, uses.unnamed, uses.doubled) == ((), (), {})
    assert uses.states() == {
        "n1": svg.USED,
        "n2": svg.USED,
        "n3": svg.FREE,
        "n4": svg.OFF,
        "n5": svg.FREE,
    }
    assert uses.notes()["n2"] == "1 VM, 8 of 16 vcpus used"
    assert uses.notes()["n4"] == "0 VMs, 0 of 16 vcpus used, down"


def test_a_host_that_is_disabled_and_down_is_counted_once():
    uses = host_usage.of(TOPOLOGY, cloud([node("n1", enabled=False, up=False)], []))
    totals = uses.totals(["n1"])
    assert (totals.disabled, totals.down, totals.off, totals.free) == (1, 0, 1, 0)


def test_hosts_that_only_one_side_has_are_listed():
    uses = host_usage.of(TOPOLOGY, cloud([node("n1"), node("gpu2"), node("gpu1")], []))
    assert uses.absent == ("n2", "n3", "n4", "n5")
    assert uses.unnamed == ("gpu1", "gpu2")
    assert uses.totals(["n1", "n2"]).absent == 1


def test_names_are_matched_as_the_scheduler_does():
    uses = host_usage.of(
        TOPOLOGY,
        cloud(
            [node("n1.example.org"), node("8d0c3a6e", host="n2"), node("n3", host="other")],
            [vm(1, "n1.example.org", "n1.example.org"), vm(2, "n2", "8d0c3a6e")],
        ),
    )
    assert uses.unnamed == ()
    assert {host: use.vms for host, use in uses.hosts.items()} == {"n1": 1, "n2": 1, "n3": 0}


def test_a_host_with_several_nodes_adds_them_up_and_is_listed():
    uses = host_usage.of(
        TOPOLOGY,
        cloud(
            [node("bm-b", 16, host="n1"), node("bm-a", host="n1", enabled=False)],
            [vm(1, "n1", "bm-b"), vm(2, "n1", None)],
        ),
    )
    assert uses.doubled == {"n1": ("bm-a", "bm-b")}
    # The VM without a node is on either, and both are one host of the topology.
    assert (uses.hosts["n1"].vms, uses.hosts["n1"].vcpus) == (2, 32)
    assert uses.hosts["n1"].state == svg.OFF


def test_dedicated_processors_count_and_bare_metal_has_none():
    pinned = Hypervisor("n1", "n1", True, True, {"VCPU": 4, "PCPU": 8}, {"PCPU": 8})
    bare = Hypervisor("n2", "n2", True, True, {"CUSTOM_HPC": 1}, {"CUSTOM_HPC": 1})
    uses = host_usage.of(TOPOLOGY, cloud([pinned, bare], [vm(1, "n2", "n2")]))
    assert (uses.hosts["n1"].vcpus, uses.hosts["n1"].vcpus_used) == (12, 8)
    assert uses.notes()["n2"] == "1 VM"
