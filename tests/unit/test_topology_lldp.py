"""The ``lldp`` driver: which neighbours are switches, and the leaves and levels that follow."""

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.exceptions import TopologyError
from hpc_sched.topology import Topology
from hpc_sched.topology.readers.lldp.lldp_driver import LldpDriver
from hpc_sched.topology.readers.text_driver import Text
from tests.counted_calls import calls_of
from tests.lldp_outputs import BRIDGE, STATION, Network, racks, write


def leaves_of(fabric: Topology) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for leaf, hosts in zip(fabric.switches, fabric.leaf_hosts(), strict=True):
        if hosts:
            found[leaf.name] = tuple(sorted(hosts))
    return found


def read(outputs: dict[str, Any], **options: str) -> Topology:
    content = json.dumps(outputs).encode()
    return LldpDriver(path="x", **options).parse(Text(content, "x"))


def outputs_of(network: Network, *devices: str) -> dict[str, Any]:
    return {device: network.output(device) for device in devices}


def two_racks() -> Network:
    """Return the network of most tests.

    ::

            spine1 spine2
           /             \\
        leaf01a = leaf01b   leaf02a = leaf02b
        node0001 node0002   node0003 node0004
    """
    return racks(2, 2)


ALL = ("node0001", "node0002", "node0003", "node0004")
TWO_LEAVES = {"leaf01a,leaf01b": ALL[:2], "leaf02a,leaf02b": ALL[2:]}


@pytest.mark.parametrize("form", ["json", "json0"])
def test_500_hypervisors_with_two_mlag_leaves_a_rack(tmp_path: Path, form: str):
    network = racks(25, 20, 4)
    for number in range(1, 501, 37):
        network.cut(f"node{number:04}", f"eth{number % 2}")
    write(network, tmp_path, form=form)
    found: list[Topology] = []
    calls = calls_of(lambda: found.append(LldpDriver(path=tmp_path).load()))
    assert calls < 2000 * 500
    [fabric] = found
    assert leaves_of(fabric) == {
        f"leaf{rack:02}a,leaf{rack:02}b": tuple(
            f"node{number:04}" for number in range(20 * rack - 19, 20 * rack + 1)
        )
        for rack in range(1, 26)
    }
    assert fabric.summary() == "500 hosts, 25 leaves, depth 2"
    assert fabric.roots == ("spine[1-4]",)
    assert fabric.switches[1].members == ("leaf01a", "leaf01b")
    assert fabric.switches[1].ids == (network.id_of("leaf01a"), network.id_of("leaf01b"))
    assert not fabric.incomplete
    [remark] = fabric.remarks
    assert remark.startswith("14 hosts are not connected to all switches of the leaf: node[0001,")


def test_no_cable_that_is_pulled_changes_a_leaf_or_a_distance():
    network = racks(3, 4)
    devices = sorted({end for link in network.links for end in (link[0], link[2])})
    before = read(outputs_of(network, *devices))
    for link in network.links:
        rest = Network(network.switches, [one for one in network.links if one != link])
        fabric = read(outputs_of(rest, *devices))
        assert leaves_of(fabric) == leaves_of(before), link
        for host in before.hosts:
            assert fabric.hops("node0001", host) == before.hops("node0001", host), link


def test_pods_below_a_third_level_follow_from_the_files_of_switches(tmp_path: Path):
    """
    ::

                super
              /       \\
        pod1-spine1    pod2-spine1
        |      |          |
        leaf1  leaf2    leaf3
        a      b        c
    """
    network = Network({"super", "pod1", "pod2", "leaf1", "leaf2", "leaf3"})
    for leaf, host in (("leaf1", "a"), ("leaf2", "b"), ("leaf3", "c")):
        network.link(host, "eth0", leaf, "swp1")
        network.link(leaf, "swp9", "pod2" if leaf == "leaf3" else "pod1", leaf)
    for pod in ("pod1", "pod2"):
        network.link(pod, "up", "super", pod)
    write(network, tmp_path)
    fabric = LldpDriver(path=tmp_path).load()
    assert fabric.hops("a", "b") == 3
    assert fabric.hops("a", "c") == 5
    assert fabric.ancestors("a") == ("leaf1", "pod1", "super")


def test_without_files_of_switches_leaves_are_below_one_root():
    fabric = read(outputs_of(two_racks(), *ALL))
    assert leaves_of(fabric) == TWO_LEAVES
    assert fabric.roots == ("fabric",)
    assert fabric.switches[1].members == ("leaf01a", "leaf01b")


def test_files_of_leaf_switches_alone_name_the_hosts():
    network = racks(2, 2, domain=".example.org")
    leaves = [leaf for leaf in sorted(network.switches) if leaf.startswith("leaf")]
    fabric = read(outputs_of(network, *leaves))
    hosts = tuple(f"{host}.example.org" for host in ALL)
    assert leaves_of(fabric) == {"leaf01a,leaf01b": hosts[:2], "leaf02a,leaf02b": hosts[2:]}
    assert fabric.roots == ("spine[1-2]",)


def test_a_file_is_the_device_with_the_same_short_name():
    network = racks(2, 2, domain=".example.org")
    network.announced["leaf01a"] = "leaf01a.net.example.org"
    fabric = read(outputs_of(network, *ALL, *sorted(network.switches)))
    assert fabric.hosts == ALL
    assert fabric.switches[1].members == ("leaf01a.net.example.org", "leaf01b")


def test_leaves_of_a_pair_that_share_no_host_are_two_leaves_whatever_links_them():
    network = two_racks()
    for host in ALL:
        network.cut(host, "eth1" if host in ("node0001", "node0003") else "eth0")
    fabric = read(outputs_of(network, *ALL, *sorted(network.switches)))
    assert len(fabric.leaves) == 4
    assert {fabric.hops("node0001", other) for other in ALL[1:]} == {3}


@pytest.mark.parametrize("capable", [True, False])
def test_what_is_no_switch_is_passed_over(capable: bool):
    network = two_racks()
    network.link("node0001", "eth9", "phone", "port")
    network.capabilities["phone"] = (STATION,)
    outputs = outputs_of(network, *ALL)
    if not capable:
        # The form "summary" does not say what is a switch.
        outputs = {host: network.output(host, capable=False) for host in ALL}
    found = leaves_of(read(outputs, switch_pattern="" if capable else "^(leaf|spine)"))
    assert found == TWO_LEAVES


def test_without_a_link_between_a_host_and_a_switch_the_error_names_the_options():
    network = two_racks()
    # The form "summary" does not say what is a switch.
    outputs = {
        device: network.output(device, capable=False) for device in (*ALL, *network.switches)
    }
    with pytest.raises(TopologyError) as error:
        read(outputs)
    [problem] = error.value.problems
    assert problem.startswith("x: expected hosts that are connected to switches, found 10 hosts, 0")
    assert "topology_switch_pattern" in problem
    assert leaves_of(read(outputs, switch_pattern="^leaf|^spine")) == TWO_LEAVES


def test_a_hypervisor_with_a_bridge_announces_itself_as_a_switch():
    network = two_racks()
    devices = (*ALL, *sorted(network.switches))
    network.capabilities["node0002"] = (BRIDGE,)
    outputs = outputs_of(network, *devices)
    with pytest.raises(TopologyError) as error:
        read(outputs)
    [problem] = error.value.problems
    assert problem.startswith("x: 1 device (node0002) connected as hosts are, which announce")
    assert "set topology_switch_pattern" in problem
    network.capabilities |= dict.fromkeys(ALL, (BRIDGE, STATION))
    outputs = outputs_of(network, *devices)
    with pytest.raises(TopologyError, match=r"x: expected hosts and .*topology_switch_pattern"):
        read(outputs)
    assert leaves_of(read(outputs, switch_pattern="^leaf|^spine")) == TWO_LEAVES
    filed = {name: outputs.pop(name) for name in sorted(network.switches)}
    assert leaves_of(read({**outputs, "switches": filed})) == TWO_LEAVES


def test_a_management_switch_is_remarked_on_and_left_out_by_a_pattern():
    network = racks(3, 2)
    hosts = [f"node{number:04}" for number in range(1, 7)]
    network.switches.add("mgmt")
    for number, host in enumerate(hosts):
        network.link(host, "eno1", "mgmt", f"{number}")
    outputs = outputs_of(network, *hosts)
    assert any(
        "hosts of 3 of 3 leaves are connected to switch 'mgmt'" in remark
        for remark in read(outputs).remarks
    )
    expected = {f"leaf{i:02}a,leaf{i:02}b" for i in (1, 2, 3)}
    for options in ({"port_pattern": "^eth"}, {"switch_pattern": "^leaf"}):
        fabric = read(outputs, **options)
        assert leaves_of(fabric).keys() == expected
        assert not fabric.remarks


def test_a_management_switch_of_the_switches_is_remarked_on():
    """
    ::

             super              oob is linked to all switches
            /      \\
        pod1        pod2
        |   |       |
      leaf1 leaf2 leaf3
        a     b     c
    """
    network = Network({"super", "pod1", "pod2", "leaf1", "leaf2", "leaf3"})
    for leaf, host in (("leaf1", "a"), ("leaf2", "b"), ("leaf3", "c")):
        network.link(host, "swp1", leaf, "swp1")
        network.link(leaf, "swp9", "pod2" if leaf == "leaf3" else "pod1", leaf)
    for pod in ("pod1", "pod2"):
        network.link(pod, "up", "super", pod)
    devices = ("a", "b", "c", *sorted(network.switches))
    assert not read(outputs_of(network, *devices)).remarks
    for number, switch in enumerate(sorted(network.switches)):
        network.link(switch, "eth0", "oob", str(number))
    network.switches.add("oob")
    outputs = outputs_of(network, *devices)
    fabric = read(outputs)
    assert fabric.hops("a", "c") == 3
    [remark] = fabric.remarks
    assert remark.startswith("switch 'oob' is linked to leaf switches, and to 2 of the switches")
    fabric = read(outputs, switch_pattern="^(leaf|pod|super)")
    assert (fabric.hops("a", "b"), fabric.hops("a", "c")) == (3, 5)
    [remark] = fabric.remarks
    assert remark.endswith("left out: oob")


def test_a_pair_of_spines_that_are_linked_is_no_management_switch():
    network = two_racks()
    network.link("spine1", "swp1", "spine2", "swp1")
    assert not read(outputs_of(network, *ALL, *sorted(network.switches))).remarks


def test_hosts_without_a_file_that_switches_see_are_remarked_on():
    network = two_racks()
    outputs = outputs_of(network, *ALL[:2], *sorted(network.switches))
    fabric = read(outputs)
    assert fabric.hosts == ALL[:2]
    assert fabric.remarks == (
        "x: connected to the switches, without a file of their own, and left out: node[0003-0004]",
    )


def test_what_is_filed_as_a_switch_is_no_host_though_it_matches_no_pattern():
    network = two_racks()
    outputs = outputs_of(network, *ALL)
    outputs["switches"] = outputs_of(network, *sorted(network.switches))
    fabric = read(outputs, switch_pattern="^leaf")
    assert leaves_of(fabric) == TWO_LEAVES
    assert fabric.roots == ("fabric",)


def test_the_interfaces_of_hosts_count_in_the_files_of_switches_too():
    network = two_racks()
    leaves = [leaf for leaf in sorted(network.switches) if leaf.startswith("leaf")]
    fabric = read(outputs_of(network, *leaves), port_pattern="^eth1$")
    assert leaves_of(fabric) == {"leaf01b": ALL[:2], "leaf02b": ALL[2:]}


def test_two_switches_of_one_name_are_known_by_their_ids():
    network = Network({"x", "y", "z"}, announced=dict.fromkeys("xy", "sonic"))
    network.ids = {"x": "0c:00:00:00:00:01", "y": "0c:00:00:00:00:02"}
    for host in ("a", "b"):
        network.link(host, "eth0", "x", host)
        network.link(host, "eth1", "y", host)
    network.link("c", "eth0", "z", "c")
    fabric = read(outputs_of(network, "a", "b", "c"))
    members = ("sonic-0c:00:00:00:00:01", "sonic-0c:00:00:00:00:02")
    assert {switch.members for switch in fabric.switches} == {(), members}
    assert fabric.remarks == (
        "x: 2 switches are called 'sonic', read as 'sonic-0c:00:00:00:00:01' (and 1 more)",
    )


def test_a_switch_that_announces_itself_by_two_protocols_is_one():
    network = two_racks()
    outputs = outputs_of(network, *ALL)
    for output in outputs.values():
        interfaces = output["lldp"]["interface"]
        for interface in list(interfaces):
            [(port, found)] = interface.items()
            [name] = found["chassis"]
            chassis = {name: {"id": {"type": "local", "value": name}}}
            interfaces.append({port: {"via": "CDPv2", "chassis": chassis}})
    assert leaves_of(read(outputs)) == TWO_LEAVES


def test_a_switch_without_a_name_is_known_by_its_id():
    network = Network({"x"}, announced={"x": ""}, ids={"x": "0C:00:00:00:00:0A"})
    network.link("a", "eth0", "x", "1")
    assert leaves_of(read(outputs_of(network, "a"))) == {"0c:00:00:00:00:0a": ("a",)}


def test_hosts_without_neighbours_are_left_out_with_a_remark():
    outputs = outputs_of(two_racks(), *ALL)
    outputs |= {"node0005": {"lldp": {}}, "node0006": "", "node0007": {"lldp": [{}]}}
    fabric = read(outputs)
    assert fabric.hosts == ALL
    assert fabric.remarks == ("x: hosts without a switch, which are left out: node[0005-0007]",)
    assert not fabric.incomplete


def test_results_of_ansible_are_outputs(tmp_path: Path):
    network = two_racks()
    for host in ALL:
        output = json.dumps(network.output(host))
        result = {"changed": True, "rc": 0, "stdout": output, "stdout_lines": output.split("\n")}
        (tmp_path / f"{host}.example.org").write_text(json.dumps(result))
    fabric = LldpDriver(path=tmp_path).load()
    assert fabric.hosts == tuple(f"{host}.example.org" for host in ALL)
