"""The ``ironic`` driver on saved lists: nodes, switches of their ports, and levels above."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.exceptions import TopologyError
from hpc_sched.topology import Topology
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.readers.ironic.ironic_driver import IronicDriver
from hpc_sched.topology.readers.text_driver import Text
from tests.ironic_lists import BareMetal, link_to, pods, titled

PODS = {"pod": "CUSTOM_POD_"}


def read(metal: BareMetal | str, **options: Any) -> Topology:
    content = metal if isinstance(metal, str) else metal.api()
    return IronicDriver(path="x", **options).parse(Text(content.encode(), "x"))


def problems_of(metal: BareMetal | str, **options: Any) -> tuple[str, ...]:
    with pytest.raises(TopologyError) as error:
        read(metal, **options)
    assert all(problem.startswith("x: ") for problem in error.value.problems)
    return tuple(error.value.problems)


def leaves_of(fabric: Topology) -> dict[str, tuple[str, ...]]:
    pairs = zip(fabric.switches, fabric.leaf_hosts(), strict=True)
    return {leaf.name: tuple(hosts) for leaf, hosts in pairs if hosts}


@pytest.mark.parametrize("form", ["api", "printed", "titled"])
def test_a_thousand_nodes_under_40_leaves_in_4_pods(form: str):
    metal = pods(4, 10, 25)
    texts = {"api": metal.api, "printed": metal.printed, "titled": lambda: metal.printed(titled)}
    fabric = read(texts[form](), node_key=PODS)
    assert fabric.summary() == "1000 hosts, 40 leaves, depth 3"
    assert fabric.levels == ("leaf", "pod", "core")
    assert fabric.ancestors("node0251") == ("leaf11a,leaf11b", "POD_2", "fabric")
    assert leaves_of(fabric)["leaf11a,leaf11b"] == tuple(f"node{n:04}" for n in range(251, 276))
    leaf = fabric.switches[fabric.switch_index("leaf11a,leaf11b")]
    assert leaf.members == ("leaf11a", "leaf11b")
    assert leaf.ids == tuple(link_to(name)["switch_id"].lower() for name in leaf.members)
    names = HostNames(fabric)
    assert all(names.find("service", node["uuid"]) == node["name"] for node in metal.nodes)
    assert not fabric.remarks
    assert not fabric.incomplete


def test_pages_and_nodes_shown_alone_are_read_in_any_order():
    metal = pods(1, 2, 2)
    text = "\n".join(
        [
            json.dumps({"ports": metal.ports[4:], "next": None}),
            json.dumps({"nodes": metal.nodes[:1], "next": "http://x/v1/nodes?marker=a"}),
            json.dumps({"nodes": metal.nodes[1:3]}),
            json.dumps(metal.nodes[3]),
            json.dumps(metal.ports[:4]),
        ]
    )
    fabric = read(text)
    assert leaves_of(fabric) == {
        "leaf01a,leaf01b": ("node0001", "node0002"),
        "leaf02a,leaf02b": ("node0003", "node0004"),
    }
    assert not fabric.incomplete


def test_a_lost_link_moves_no_node():
    metal = pods(1, 2, 4)
    del metal.ports[2]
    fabric = read(metal)
    assert len(fabric.leaves) == 2
    assert fabric.hops("node0001", "node0002") == 1
    [remark] = fabric.remarks
    assert remark == "x: 1 host is not connected to all switches of the leaf: node0002"


def test_a_node_without_a_name_is_called_by_its_uuid():
    metal = pods(1, 1, 2)
    node = metal.node(None)
    metal.port(node, link_to("leaf01a"))
    metal.port(node, link_to("leaf01b"))
    fabric = read(metal)
    assert node in fabric
    assert node not in fabric.host_ids


def test_names_that_are_not_unique_are_not_used():
    metal = pods(1, 1, 2)
    metal.nodes[1]["name"] = "node0001"
    assert read(metal).hosts == tuple(sorted(node["uuid"] for node in metal.nodes))


def test_ports_count_by_physical_network_and_by_switch():
    metal = pods(3, 1, 2)
    for node in metal.nodes:
        metal.port(node["uuid"], link_to("mgmt"), "oob")
    [remark] = read(metal).remarks
    assert remark.startswith("x: hosts of 3 of 3 leaves are connected to switch 'mgmt': if it is")
    for options in ({"port_pattern": "^physnet"}, {"switch_pattern": "^leaf"}):
        fabric = read(metal, **options)
        assert leaves_of(fabric).keys() == {f"leaf0{i}a,leaf0{i}b" for i in (1, 2, 3)}
        assert not fabric.remarks
    by_id = link_to("leaf02a")["switch_id"].lower()
    assert leaves_of(read(metal, switch_pattern=by_id)) == {"leaf02a": ("node0003", "node0004")}
    [problem] = problems_of(metal, port_pattern="^none$")
    assert "found 6 nodes, 18 ports, 18 of them with a switch, and none that topology_p" in problem


def test_nodes_without_a_switch_are_left_out_or_leaves_of_their_own():
    metal = pods(2, 1, 2)
    metal.port(metal.node("spare1"), {})
    smart = metal.node("spare2", traits=["CUSTOM_POD_2"])
    metal.port(smart, {"port_id": "rep0-0", "hostname": "dpu"})
    fabric = read(metal)
    assert fabric.remarks == ("x: nodes without a switch, which are left out: spare[1-2]",)
    fabric = read(metal, node_key=PODS)
    assert fabric.ancestors("spare2")[1] == "POD_2"
    assert fabric.remarks == (
        "x: nodes without a switch, which are left out: spare1",
        "x: nodes without a leaf switch are leaves of their own: spare2",
    )


@pytest.mark.parametrize("where", ["properties", "extra"])
def test_properties_and_extra_name_switches(where: str):
    metal = pods(2, 2, 2)
    for number, node in enumerate(metal.nodes):
        node[where] = {"room": f"hall{number // 4}", "rack": number // 2}
    fabric = read(metal, node_key={"room": "room"})
    assert fabric.ancestors("node0001") == ("leaf01a,leaf01b", "hall0", "fabric")
    metal.ports = []
    fabric = read(metal, node_key={"leaf": "rack", "room": "room"})
    assert fabric.ancestors("node0008") == ("3", "hall1", "fabric")


def test_traits_that_contradict_each_other_name_the_nodes():
    metal = pods(2, 1, 2)
    metal.nodes[0]["traits"] = ["CUSTOM_POD_2"]
    metal.nodes[3]["traits"] = ["CUSTOM_POD_1", "CUSTOM_POD_2"]
    assert problems_of(metal, node_key=PODS) == (
        "x: host 'node0004' is under pod 'POD_1' (node node0004: trait CUSTOM_POD_1) and under pod "
        "'POD_2' (node node0004: trait CUSTOM_POD_2)",
        "x: leaf 'leaf01a,leaf01b' is under pod 'POD_2' (node node0001: trait CUSTOM_POD_2) and "
        "under pod 'POD_1' (node node0002: trait CUSTOM_POD_1)",
        "x: leaf 'leaf02a,leaf02b' is under pod 'POD_2' (node node0003: trait CUSTOM_POD_2) and "
        "under pod 'POD_1' (node node0004: trait CUSTOM_POD_1)",
    )


def test_a_key_that_no_node_has_is_an_error():
    first, second = problems_of(pods(1, 1, 1), node_key={"pod": "CUSTOM_ROW_", "room": "room"})
    assert first.startswith("x: no node has a trait that begins with 'CUSTOM_ROW_' ([hpc_sched] to")
    assert second.startswith("x: no node has a property or extra 'room'")
    with pytest.raises(TopologyError, match=r"lowest level, 'leaf', first, found pod, leaf"):
        IronicDriver(path="x", node_key={"pod": "a", "leaf": "b"})


def test_a_switch_is_one_id_whatever_its_case_and_name():
    metal = BareMetal()
    links = [
        {"switch_id": "00:1B:21:00:00:01", "port_id": "1", "switch_info": "leaf1"},
        {"switch_id": "00:1b:21:00:00:01", "port_id": "2"},
        {"switch_id": "00:1b:21:00:00:01", "port_id": "3", "switch_info": '{"dn": "paths-101"}'},
        {"switch_id": "00:1b:21:00:00:02", "port_id": "1", "switch_info": "switch"},
        {"switch_id": "00:1b:21:00:00:03", "port_id": "1", "switch_info": "switch"},
        {"switch_id": "00:00:00:00:00:00", "port_id": "1", "switch_info": "leaf5"},
        {"switch_id": "0x0000000000000000", "port_id": "1"},
    ]
    for number, link in enumerate(links):
        metal.port(metal.node(f"n{number}"), link)
    fabric = read(metal)
    assert leaves_of(fabric) == {
        "leaf1": ("n0", "n1", "n2"),
        "leaf5": ("n5",),
        "switch-00:1b:21:00:00:02": ("n3",),
        "switch-00:1b:21:00:00:03": ("n4",),
    }
    assert fabric.remarks == ("x: nodes without a switch, which are left out: n6",)


def test_switches_that_share_an_id_are_known_by_their_names():
    metal = BareMetal()
    for name in ("leaf1", "leaf2"):
        metal.port(metal.node(f"on-{name}"), link_to(name, id_="02:00:00:00:00:01"))
    fabric = read(metal)
    assert leaves_of(fabric) == {"leaf1": ("on-leaf1",), "leaf2": ("on-leaf2",)}
    assert fabric.remarks == (
        "x: switch_id 02:00:00:00:00:01 has several names, read as different switches: leaf1, "
        "leaf2",
    )


@pytest.mark.parametrize(("kind", "sign"), [("nodes", "ports of others"), ("ports", "nodes with")])
def test_a_list_of_a_thousand_that_lacks_others_is_incomplete(kind: str, sign: str):
    metal = pods(1, 24, 50, ("",))
    del getattr(metal, kind)[1000:]
    [sentence] = read(metal.printed()).incomplete
    assert sentence.startswith(f"x: the list has 1000 {kind}, and there are {sign}")
    assert sentence.endswith("add '--limit 0'")
    assert not read(pods(1, 20, 50, ("",)).printed()).incomplete


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "x: expected nodes and ports of Ironic, as 'openstack baremetal node list --lon"),
        ('{"servers": []}', "found an object with 'servers'"),
        ("7", "x: expected nodes and ports of Ironic"),
        ('[{"UUID": "a", "Address": "52:54:00:00:00:01"}]', "x: port a: local_link_connection is"),
        ('[{"Name": "a", "Traits": []}]', "x: node: uuid: expected text, found none"),
        ('[{"uuid": "a", "traits": "CUSTOM_A"}]', "x: node a: traits: expected texts, found 'CUS"),
        ('{"nodes": [1]}', "x: nodes: expected objects, found 1"),
        ('{"nodes": [{"uuid": "a", "extra": [1]}]}', "extra: expected an object, found a list of"),
    ],
)
def test_what_is_no_list_of_nodes_or_ports_is_an_error(text: str, problem: str):
    assert any(problem in found for found in problems_of(text))


def test_one_source_is_expected(tmp_path: Path):
    with pytest.raises(TopologyError, match="topology_command"):
        IronicDriver()
    with pytest.raises(TopologyError, match="topology_cloud"):
        IronicDriver(path=tmp_path, cloud="metal")


def test_a_cloud_needs_openstacksdk(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "openstack", None)
    with pytest.raises(TopologyError, match=r"cloud 'metal': needs openstacksdk: pip install"):
        IronicDriver(cloud="metal").load()


def test_a_broken_clouds_yaml_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    for text in ("clouds: [", "clouds: {other: {}}", "clouds: {metal: 7}"):
        path.write_text(text)
        with pytest.raises(TopologyError, match="bare-metal service of cloud 'metal': "):
            IronicDriver(cloud="metal").load()


class _Proxy(BaseHTTPRequestHandler):
    """Knows the versions of the API, and has nothing to say but the status of other calls."""

    def do_GET(self) -> None:
        link = {"rel": "self", "href": f"http://{self.headers['Host']}/v1/"}
        version = {"id": "v1", "status": "CURRENT", "links": [link]}
        version |= {"version": "1.90", "min_version": "1.1"}
        is_known = self.path in ("/", "/v1", "/v1/")
        body = json.dumps({"versions": [version]}).encode() if is_known else b""
        self.send_response(200 if is_known else 502)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_an_error_of_a_proxy_without_text_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    with HTTPServer(("127.0.0.1", 0), _Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        cloud = {"auth_type": "none", "auth": {"endpoint": url}, "baremetal_endpoint_override": url}
        (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"metal": cloud}}))
        with pytest.raises(TopologyError, match=r"/v1/nodes: HTTP 502: Bad Gateway$"):
            IronicDriver(cloud="metal").load()
        server.shutdown()
