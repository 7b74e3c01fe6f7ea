"""Trees from the labels of Kubernetes nodes."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from hpc_sched import exceptions
from hpc_sched.topology import Topology
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.readers.kubernetes.nodes_driver import KubernetesDriver
from hpc_sched.topology.readers.text_driver import Text
from tests.unit.fabrics import check

TIER = "fabric.topograph.run/tier-"
DOMAIN = "accelerator.topograph.run/domain"
LAYER = "topology.k8s.aws/network-node-layer-"
ZONE = "topology.kubernetes.io/zone"


def node(name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a Node with labels; more of it is not read."""
    every = {"kubernetes.io/os": "linux", **(labels or {})}
    status = {"addresses": [{"address": "10.0.0.1", "type": "InternalIP"}], "images": [{}]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": every, "uid": "u"},
        "status": status,
    }


def nodes(**by_name: Mapping[str, str]) -> dict[str, Any]:
    """Return a list as kubectl prints it."""
    items = [node(name, labels) for name, labels in by_name.items()]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}}


def tiers(*switches: str, **more: str) -> dict[str, str]:
    return {f"{TIER}{number}": switch for number, switch in enumerate(switches)} | more


def read(document: object, node_key: Mapping[str, str] | None = None) -> Topology:
    driver = KubernetesDriver(path="nodes.json", node_key=node_key)
    fabric = driver.parse(Text(json.dumps(document, indent=4).encode(), "nodes.json"))
    check(fabric)
    return fabric


def problems(document: object, node_key: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(exceptions.TopologyError) as caught:
        read(document, node_key)
    return list(caught.value.problems)


def test_tiers_of_topograph_are_counted_from_the_node():
    #          core
    #      s1        s2
    #    l1  l2      l3
    #    a   b c     d
    fabric = read(
        nodes(
            a=tiers("l1", "s1", "core"),
            b=tiers("l2", "s1", "core"),
            c=tiers("l2", "s1", "core"),
            d=tiers("l3", "s2", "core"),
        )
    )
    assert fabric.levels == ("leaf", "pod", "core")
    assert [fabric.hops("b", other) for other in "cad"] == [1, 3, 5]
    assert fabric.remarks == ()


def test_more_than_nine_tiers_are_in_the_order_of_their_numbers():
    fabric = read(nodes(a=tiers(*(f"x{number}" for number in range(12)))))
    assert fabric.ancestors("a") == tuple(f"x{number}" for number in range(12))


def test_domains_of_accelerators_are_below_the_leaf():
    #           l1
    #     d1         d2
    #    a  b        c
    fabric = read(
        nodes(
            a=tiers("l1", **{DOMAIN: "d1"}),
            b=tiers("l1", **{"nvidia.com/gpu.clique": "d1"}),
            c=tiers("l1", **{DOMAIN: "d2"}),
        )
    )
    assert fabric.levels == ("domain", "leaf")
    assert fabric.ancestors("a") == ("d1", "l1")
    assert (fabric.hops("a", "b"), fabric.hops("a", "c")) == (1, 3)


def test_sub_domains_need_be_unique_in_their_domain_only():
    sub = "accelerator.topograph.run/sub-domain"
    fabric = read(
        nodes(
            a=tiers("l1", **{DOMAIN: "d1", sub: "0"}),
            b=tiers("l1", **{DOMAIN: "d1", sub: "1"}),
            c=tiers("l1", **{DOMAIN: "d2", sub: "0"}),
        )
    )
    assert fabric.levels == ("subdomain", "domain", "leaf")
    assert fabric.ancestors("c") == ("d2/0", "d2", "l1")
    assert [fabric.hops("a", other) for other in "bc"] == [3, 5]


def test_domains_that_several_leaves_share_are_left_out_and_that_is_reported():
    fabric = read(
        nodes(a=tiers("l1", **{DOMAIN: "d1"}), b=tiers("l2", **{DOMAIN: "d1"}), c=tiers("l1"))
    )
    assert fabric.leaves == ("l1", "l2")
    assert fabric.remarks == (
        "nodes.json: domain 'd1' of accelerators is below leaf 'l1' and leaf 'l2': domains are "
        "left out",
    )


def test_domains_alone_are_leaves():
    fabric = read(nodes(a={DOMAIN: "d1"}, b={DOMAIN: "d1"}, c={DOMAIN: "d2"}))
    assert (fabric.levels[0], fabric.leaves) == ("domain", ("d1", "d2"))


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(
            [f"network.topology.nvidia.com/{level}" for level in ("leaf", "spine", "core")],
            id="Topograph before its tiers",
        ),
        pytest.param(
            [f"network.topology.nvidia.com/{level}" for level in ("block", "spine", "datacenter")],
            id="Topograph's first release",
        ),
        pytest.param([f"{LAYER}{number}" for number in (3, 2, 1)], id="Amazon"),
        pytest.param(
            [f"cloud.google.com/gce-topology-{level}" for level in ("subblock", "block")],
            id="Google",
        ),
        pytest.param(
            [
                f"oci.oraclecloud.com/rdma.{level}_id"
                for level in ("local_block", "network_block", "hpc_island")
            ],
            id="Oracle",
        ),
        pytest.param(
            [f"cloud.provider.com/topology-{level}" for level in ("rack", "block")],
            id="the examples of Kueue",
        ),
    ],
)
def test_the_labels_of_clouds_are_levels_from_the_node_outwards(labels: list[str]):
    def place(*switches: str) -> dict[str, str]:
        zone = {ZONE: "z", "topology.kubernetes.io/region": "r"}
        return dict(zip(labels, switches, strict=False)) | zone

    fabric = read(
        nodes(
            a=place("l1", "s1", "top"),
            b=place("l1", "s1", "top"),
            c=place("l2", "s1", "top"),
            d=place("l3", "s2", "top"),
        )
    )
    assert fabric.levels == ("leaf", "pod", "core")
    assert [fabric.hops("a", other) for other in "bcd"] == [1, 3, 5]
    assert fabric.roots == ("top" if len(labels) == 3 else "fabric",)


def test_of_amazons_instances_those_with_three_layers_have_their_leaf_on_the_third():
    #                 n1
    #       n2                n3
    #   n4     n5          pod n6
    #  l7 l8   l9            n6
    #  a  b    c            d  e
    fabric = read(
        nodes(
            **{
                host: {f"{LAYER}{at}": f"n{part}" for at, part in enumerate(path, 1)}
                for host, path in (
                    ("a", "1247"),
                    ("b", "1248"),
                    ("c", "1259"),
                    ("d", "136"),
                    ("e", "136"),
                )
            }
        )
    )
    assert fabric.leaf_of("d") == fabric.leaf_of("e") == "n6"
    assert [fabric.hops("a", other) for other in "bcd"] == [3, 5, 7]
    assert fabric.hops("d", "e") == 1
    assert fabric.remarks == ()


def test_zones_are_no_leaf_switches():
    fabric = read(nodes(a={ZONE: "z1"}, b={ZONE: "z1"}, c={ZONE: "z2"}))
    assert fabric.levels[0] == "zone"
    assert fabric.remarks == (
        "nodes.json: the labels name zones, no switches: all nodes of a zone are read as equally "
        "near",
    )


def test_the_sites_own_labels_replace_the_known_ones():
    labels = {"rack": "example.com/rack", "row": "example.com/row"}
    fabric = read(
        nodes(
            a={"example.com/rack": "1", "example.com/row": "x"} | tiers("other"),
            b={"example.com/rack": "1", "example.com/row": "y"},
        ),
        labels,
    )
    assert fabric.levels[:2] == ("rack", "row")
    assert fabric.leaves == ("x/1", "y/1")
    assert problems(nodes(a={"example.com/rack": "1"}), labels) == [
        "nodes.json: no node has label example.com/row ([hpc_sched] topology_node_key, level row): "
        "set it, or leave the level out"
    ]


def test_nodes_without_labels_are_leaves_of_their_own_and_that_is_reported():
    fabric = read(nodes(a=tiers("l1"), c1={}, c2={f"{TIER}0": ""}))
    assert fabric.hops("a", "c1") == 3
    assert fabric.remarks == (
        "nodes.json: nodes without label fabric.topograph.run/tier-0 are leaves of their own: "
        "c[1-2]",
    )


def test_nova_may_know_a_node_by_its_label_with_the_name_of_its_host():
    hostname = "kubernetes.io/hostname"
    fabric = read(
        nodes(
            a=tiers("l1", **{hostname: "cn01.example.com"}),
            b=tiers("l1", **{hostname: "b"}),
            c=tiers("l1", **{hostname: "a"}),
            d=tiers("l1", **{hostname: "same"}),
            e=tiers("l1", **{hostname: "same"}),
        )
    )
    assert fabric.host_ids == {"a": "cn01.example.com"}
    assert HostNames(fabric).find("cn01.example.com") == "a"


def test_a_single_node_and_a_list_of_the_api_are_read_too():
    assert read(node("a", tiers("l1"))).hosts == ("a",)
    listed = {"kind": "NodeList", "items": [{"metadata": node("a", tiers("l1"))["metadata"]}]}
    assert read(listed).hosts == ("a",)


def test_a_list_of_the_api_that_goes_on_is_incomplete():
    listed = nodes(a=tiers("l1")) | {"metadata": {"continue": "xyz", "remainingItemCount": 7}}
    assert read(listed).incomplete == (
        "nodes.json: the list of nodes goes on (metadata.continue): expected all nodes",
    )


def test_the_graph_that_topograph_prints_is_read():
    graph = {
        "instances": [
            {"id": "I21", "type": "H100", "network_layers": ["l1", "s1"], "attributes": {}},
            {"id": "I22", "network_layers": ["l2", "s1"], "labels": {DOMAIN: "d1"}},
        ]
    }
    fabric = read(graph)
    assert fabric.ancestors("I22") == ("d1", "l2", "s1")


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param(nodes(), "none", id="an empty list"),
        pytest.param({"kind": "PodList", "items": []}, "'PodList'", id="another list"),
        pytest.param(
            {"kind": "List", "items": [{"kind": "Pod"}]}, "'Pod' in the list", id="another object"
        ),
        pytest.param({"a": 1}, "an object without a kind", id="other JSON"),
        pytest.param(
            {"kind": "ConfigMap", "data": {"topology.conf": "SwitchName=s1 Nodes=a"}},
            "'ConfigMap'; a topology of Slurm in it is read by driver slurm from the output of "
            r"kubectl get configmap NAME -o jsonpath='{.data.topology\.conf}'",
            id="a ConfigMap of Slinky",
        ),
    ],
)
def test_what_is_no_node_is_named(document: object, found: str):
    expected = "expected Nodes, as kubectl get nodes -o json prints them"
    assert problems(document) == [f"nodes.json: {expected}, found {found}"]


def test_all_that_is_wrong_with_nodes_is_reported():
    wrong = nodes(a=tiers("l1"), b={})
    wrong["items"][1]["metadata"]["labels"] = {"x": 1}
    wrong["items"] += [{"kind": "Node"}, node("a b")]
    assert problems(wrong) == [
        "nodes.json: node 'b': labels: Expected `str`, got `int` - at `$[...]`",
        "nodes.json: metadata.name: expected a node's name of letters, digits, '.', '_' and '-', "
        "found None",
        "nodes.json: metadata.name: expected a node's name of letters, digits, '.', '_' and '-', "
        "found 'a b'",
    ]


def test_one_node_with_two_sets_of_labels_is_an_error():
    twice = nodes(a=tiers("l1"))
    twice["items"].append(node("a", tiers("l2")))
    assert problems(twice) == [
        "nodes.json: host 'a' is under leaf 'l1' (node 'a') and under leaf 'l2' (node 'a')"
    ]


def test_nodes_without_any_label_of_a_network_are_an_error_that_lists_the_known_ones():
    [problem] = problems(nodes(a={}, b={"example.com/rack": "1"}))
    assert problem.startswith("nodes.json: no node has a label that names a switch: expected ")
    assert "fabric.topograph.run/tier-N" in problem
    assert problem.endswith("or name the site's own in [hpc_sched] topology_node_key")


def test_the_order_of_nodes_does_not_matter():
    given = {f"n{i}": tiers(f"l{i % 7}", f"s{i % 3}") for i in range(40)}
    turned = dict(reversed(given.items()))
    assert read(nodes(**given)).switches == read(nodes(**turned)).switches
