"""Uplinks and links of hosts from neighbours: each cable once, with the rate that is announced."""

import pytest

from hpc_sched.topology import Topology
from hpc_sched.topology.compare import uplinks
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.readers.lldp.neighbours import neighbours_of
from tests.lldp_outputs import Network, racks
from tests.unit.test_topology_lldp import ALL, outputs_of, read


def with_kinds(network: Network, hosts: str, others: str) -> Network:
    """Return a network in which each port announces its kind: that of hosts' links or others."""
    for a, port_a, b, port_b in network.links:
        kind = hosts if a.startswith("node") else others
        network.kinds |= {(a, port_a): kind, (b, port_b): kind}
    return network


def links_of(fabric: Topology) -> dict[str, Links]:
    return {one.name: one.links for one in fabric.switches if one.links is not None}


#        spine1  spine2              each leaf 100 Gb/s to each spine
#       /               \
#  leaf01a = leaf01b   leaf02a = leaf02b
#  node0001 node0002   node0003 node0004     25 Gb/s to both
def fast_racks() -> Network:
    return with_kinds(racks(2, 2), "25GbaseCR - 25GBASE-R PCS/PMA", "100GbaseSR4 - over fiber")


@pytest.mark.parametrize("form", ["json", "json0"])
def test_cables_that_both_ends_report_count_once(form: str):
    network = fast_racks()
    fabric = read({one: network.output(one, form=form) for one in (*ALL, *network.switches)})
    pair = Links(100, Cables.of([100] * 4))
    assert links_of(fabric) == {
        "spine[1-2]": Links(800, Cables()),
        "leaf01a,leaf01b": pair,
        "leaf02a,leaf02b": pair,
    }
    assert fabric.host_links == dict.fromkeys(ALL, Cables.of([25, 25]))


@pytest.mark.parametrize("silent", ["spine1", "leaf02a", "node0003"])
def test_cables_that_one_end_reports_count_too(silent: str):
    network = fast_racks()
    devices = [one for one in (*ALL, *sorted(network.switches)) if one != silent]
    whole = read(outputs_of(network, *ALL, *network.switches))
    fabric = read(outputs_of(network, *devices))
    assert fabric.leaves == whole.leaves
    leaf = fabric.leaves[1]
    assert links_of(fabric)[leaf].uplinks == links_of(whole)[leaf].uplinks


def test_parallel_cables_count_one_by_one():
    network = fast_racks()
    network.link("leaf01a", "swp60", "spine1", "swp60")
    network.kinds |= dict.fromkeys(
        [("leaf01a", "swp60"), ("spine1", "swp60")], "40GbaseCR4 - copper"
    )
    fabric = read(outputs_of(network, *ALL, *network.switches))
    assert links_of(fabric)["leaf01a,leaf01b"].uplinks == Cables.of([100] * 4 + [40])


def test_a_cable_that_is_down_does_not_count():
    network = with_kinds(racks(2, 3), "25GbaseCR", "100GbaseSR4")
    network.cut("leaf01a", "swp49")
    network.cut("node0001", "eth0")
    fabric = read(outputs_of(network, *(f"node000{i}" for i in range(1, 7)), *network.switches))
    assert links_of(fabric)["leaf01a,leaf01b"] == Links(125, Cables.of([100] * 3))
    assert fabric.host_links["node0001"] == Cables.of([25])


def test_where_no_kind_is_announced_cables_are_counted():
    network = racks(2, 2)
    fabric = read(outputs_of(network, *ALL, *network.switches))
    assert links_of(fabric)["leaf01a,leaf01b"] == Links(None, Cables.of([None] * 4))
    assert fabric.host_links["node0001"] == Cables.of([None, None])
    assert uplinks.ratios(fabric) == [None] * 3


def test_of_two_ends_the_one_that_sees_more_cables_counts():
    network = fast_racks()
    outputs = outputs_of(network, *ALL, *network.switches)
    seen = outputs["spine1"]["lldp"]["interface"]
    outputs["spine1"]["lldp"]["interface"] = seen[:1]
    fabric = read(outputs)
    assert links_of(fabric)["leaf02a,leaf02b"].uplinks == Cables.of([100] * 4)


def test_an_interface_with_two_neighbours_of_one_device_is_one_cable():
    network = fast_racks()
    outputs = outputs_of(network, *ALL)
    interfaces = outputs["node0001"]["lldp"]["interface"]
    outputs["node0001"]["lldp"]["interface"] = [*interfaces, {"eth0": interfaces[0]["eth0"]}]
    assert read(outputs).host_links["node0001"] == Cables.of([25, 25])


@pytest.mark.parametrize(
    ("kind", "rate"),
    [
        ("10BaseT - UTP MAU", 0.01),
        ("100BaseTXFD - 2 pair category 5 UTP, full duplex mode", 0.1),
        ("1000BaseTFD - Four-pair Category 5 UTP, full duplex mode", 1),
        ("2p5GigT - 2.5GBASE-T Four-pair twisted-pair balanced copper cabling PHY", 2.5),
        ("10GigBaseSR - R fiber over 850 nm optics", 10),
        ("10GbaseT - Four-pair Category 6A", 10),
        ("100GbaseCR2 - 100GBASE-R PCS/PMA over 2 lane shielded copper", 100),
        ("400GbaseDR4 - 400GBASE-R PCS/PMA", 400),
        ("10G1GbasePRXD1 - One single-mode fiber asymmetric-rate OLT", None),
        ("unknown", None),
        ("0GbaseR", None),
        ("", None),
    ],
)
def test_the_kind_of_a_link_is_its_rate(kind: str, rate: float | None):
    network = Network({"leaf"})
    network.link("node", "eth0", "leaf", "swp1")
    network.kinds["leaf", "swp1"] = kind
    for form in ("json", "json0"):
        found = neighbours_of(network.output("node", form=form))
        assert found is not None
        assert [one.rate for one in found] == [rate]
