"""Texts that the parsers read, from which mutations are made, and the words of their formats."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.ib_dumps import port_report_of, rails, three_levels
from tests.ironic_lists import pods, titled
from tests.lldp_outputs import racks

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts of one format."""

    texts: tuple[bytes, ...]
    words: tuple[bytes, ...]


def _corpus(texts: list[str], words: str) -> Corpus:
    return Corpus(
        tuple(text.encode() for text in texts), tuple(word.encode() for word in words.split(" "))
    )


# Of all formats: ranges, and what ends a line, a name or a text.
_RANGES = (
    "[1-4] [001-018] [1-3,7] [1-10/3] [4-1] [01-010] [1-999999999] [1-99999999999999999999] [] "
    "[1 1] [-1-3] [[1-2]] [1-2][1-2] n[1-2000]x[1-2000] , ,, - / @ @all & ! ^ * ? % ~ \\ \\# "
    "\t \r \r\n \n \x00 \x0b \x85 \u2028 \u202e \ufeff schränk 🖧 0123 null yes"
)

YAML = _corpus(
    [
        (ROOT / "etc" / "topology.yaml.sample").read_text(),
        "levels: [leaf, pod, core]\nswitches:\n- name: core1\n  switches:\n  - name: pod1\n"
        "    switches:\n    - name: leaf01\n      hosts: node[001-018]\n      processor: gold\n"
        '    - name: leaf02\n      hosts: [node019, node020, "gpu[1-4]"]\n',
        "switches:\n- {name: west, switches: [{name: l1, hosts: 'a[1-2]'}, {name: l2, hosts: b}]}\n"
        "- {name: east, hosts: [{name: 'e[1-2]', processor: &p gold}, {name: f, processor: *p}]}\n",
        "oversubscription: {pod: 2}\nuplinks: {leaf: &u 4 x 100}\nhost_links: 1 x 25\nswitches:\n"
        "- name: core\n  switches:\n  - name: pod1\n    uplinks: [2 x 100, 1 x 400, 2]\n"
        "    switches: [{name: l1, hosts: a, uplinks: *u}, {name: l2, host_links: 8 x 400, "
        "hosts: [b, {name: c, links: 2 x 2.5}]}]\n",
    ],
    _RANGES + " levels: switches: name: hosts: processor: uplinks: host_links: links: 4 x 100 - {} "
    "[] {name: x} &a *a << ? | > --- ... !!str !!binary %YAML ' \" # : leaf pod core ~",
)

SLURM_CONF = _corpus(
    [
        "# leaves\nSwitchName=s0 Nodes=tux[0-1]\nSwitchName=s1 Nodes=tux[2-3],gpu[1-2]\n"
        "SwitchName=s2 Nodes=tux[4-5] LinkSpeed=900\nSwitchName=s3 Nodes=tux[6-7]\n"
        "SwitchName=s4 Switches=s[0-1]\nSwitchName=s5 Switches=s[2-3]\n"
        "SwitchName=s6 Switches=s[4-5] # top\n",
        "".join(f"SwitchName=l{i} Nodes=n[{4 * i}-{4 * i + 3}]\r\n" for i in range(4))
        + "".join(f"switchname = spine{i}\tSwitches=l[0-3]\r\n" for i in range(4)),
        "SwitchName=a Level=0 LinkSpeed=1 Nodes=h[1-2]\nSwitchName=b Level=0 LinkSpeed=1 "
        "Nodes=h[3-4]\nSwitchName=c Level=1 LinkSpeed=1 Nodes=h[1-4] Switches=a,b\n",
        'SwitchName="x" \\\n  Nodes="m1, m2" # two\nSwitchName=y Nodes=m3\nSwitchName=z Switches=y'
        "\nSwitchName=w Switches=x,y\n",
    ],
    _RANGES + " SwitchName= Nodes= Switches= LinkSpeed= Level= BlockName= BlockSizes= Include = "
    'SwitchName=s0 Switches=s6 Switches=s[0-6] Nodes=tux0 Level=1 UNLIMITED " # \\\n s0 s6 a b',
)

SLURM_YAML = _corpus(
    [
        "---\n- topology: topo1\n  cluster_default: true\n  tree:\n    switches:\n"
        "      - switch: sw_root\n        children: s[1-2]\n      - switch: s1\n"
        "        nodes: node[01-02]\n      - switch: s2\n        nodes: node[03-04]\n"
        "- topology: topo2\n  block:\n    block_sizes: [4, 16]\n    blocks:\n"
        "      - block: b1\n        nodes: node[01-04]\n- topology: topo3\n  flat: true\n",
        "- topology: t\n  tree: {switches: [{switch: a, nodes: h1}, {switch: b, nodes: h2}, "
        "{switch: s1, children: 'a,b'}, {switch: s2, children: 'a,b'}]}\n",
    ],
    _RANGES + " topology: cluster_default: tree: block: flat: switches: switch: children: nodes: "
    "true false - {} [] {switch: x} &a *a << ? | > --- ... !!str ' \" # : s1 s2 sw_root a b",
)

SLURM_BLOCKS_CONF = _corpus(
    [
        "# block001=B1\nBlockName=block001 Nodes=Node[104-105]\n# block002=B1\n"
        "BlockName=block002 Nodes=Node106\nBlockName=block003 Nodes=Node[201,205]\n"
        "BlockName=block004\nBlockName=block005 Nodes=Node[301-302]\nBlockSizes=2,4,8\n",
        "".join(f"blockname = b{i}\tNodes=n[{2 * i}-{2 * i + 1}]\r\n" for i in range(9)),
        "BlockName=a BlockIndex=0 Nodes=h[1-2] BlockSize=2\nBlockName=b BlockIndex=1 Nodes= "
        "BlockSize=2\nBlockName=c BlockIndex=2 Nodes=h3 BlockSize=2\nAggregatedBlock=a,b "
        "BlockIndex=3 Nodes=h[1-2] BlockSize=4\nAggregatedBlock=[a-c] BlockIndex=4 Nodes=h[1-3] "
        "BlockSize=8\n",
    ],
    _RANGES + " BlockName= BlockSizes= BlockIndex= BlockSize= AggregatedBlock= Nodes= SwitchName= "
    "BlockSizes=1,2 BlockSizes=4,4,64 BlockSizes=0 BlockSizes=32768 Nodes=Node104 RingName= = "
    '" # \\\n a b block001 2 3 65536',
)

SLURM_BLOCKS_YAML = _corpus(
    [
        "- topology: topo1\n  cluster_default: true\n  block:\n    block_sizes:\n        - 2\n"
        "        - 4\n    blocks:\n        - block: block1\n          nodes: Node[301-302]\n"
        "        - block: block2\n          nodes: Node303\n        - block: block3\n"
        "- topology: topo2\n  tree:\n    switches:\n        - switch: S1\n"
        "          nodes: Node[301-303]\n- topology: topo3\n  flat: true\n",
        "- topology: t\n  block: {blocks: [{block: a, nodes: h1}, {block: b, nodes: 'h[2-3]'}, "
        "{block: c}, {block: d, nodes: h4}, {block: e, nodes: ''}, {block: f, nodes: h5}]}\n",
    ],
    _RANGES + " topology: cluster_default: tree: block: flat: block_sizes: blocks: block: nodes: "
    "true false - {} [] [2] [1,65536] {block: x} &a *a << ? | > --- ... !!str ' \" # : 0 2 3 a b",
)

IBNETDISCOVER = _corpus(
    [
        "#\n# Topology file: generated on Mon Jan  1 00:00:00 2024\n#\n"
        "# Initiated from node 0000000000100001 port 0000000000100002\n\n"
        "vendid=0x2c9\ndevid=0xbd36\nsysimgguid=0x200000\nswitchguid=0x200000(200000)\n"
        'Switch\t8 "S-0000000000200000"\t\t# "leaf1" base port 0 lid 3 lmc 0\n'
        '[1]\t"H-0000000000100001"[1](100002) \t\t# "node0001 HCA-1" lid 4 4xQDR\n'
        '[2]\t"H-0000000000100003"[1](100004) \t\t# "node0002 HCA-1" lid 5 4xQDR\n'
        '[8]\t"S-0000000000200002"[1]\t\t# "spine1" lid 7 4xQDR\n\n'
        "vendid=0x2c9\nswitchguid=0x200001(200001)\n"
        'Switch\t8 "S-0000000000200001"\t\t# "leaf2" base port 0 lid 6 lmc 0\n'
        '[1]\t"H-0000000000100005"[1](100006) \t\t# "node0003 mlx5_0" lid 8 4xHDR\n'
        '[8]\t"S-0000000000200002"[2]\t\t# "spine1" lid 7 4xQDR\n\n'
        "switchguid=0x200002(200002)\n"
        'Switch\t8 "S-0000000000200002"\t\t# "spine1" enhanced port 0 lid 7 lmc 0\n'
        '[1]\t"S-0000000000200000"[8]\t\t# "leaf1" lid 3 4xQDR\n'
        '[2]\t"S-0000000000200001"[8]\t\t# "leaf2" lid 6 4xQDR\n'
        '[5]\t"H-0000000000100009"[1](100010) \t\t# "Mellanox Technologies Aggregation Node" '
        "lid 9 4xQDR\n\n"
        "vendid=0x2c9\ncaguid=0x100001\n"
        'Ca\t1 "H-0000000000100001"\t\t# "node0001 HCA-1"\n'
        '[1](100002) \t"S-0000000000200000"[1]\t\t# lid 4 lmc 0 "leaf1" lid 3 4xQDR\n\n'
        "caguid=0x100003\n"
        'Ca\t1 "H-0000000000100003"\t\t# "node0002 HCA-1"\n'
        '[1](100004) \t"S-0000000000200000"[2]\t\t# lid 5 lmc 0 "leaf1" lid 3 4xQDR\n\n'
        "caguid=0x100005\n"
        'Ca\t2 "H-0000000000100005"\t\t# "node0003 mlx5_0"\n'
        '[1](100006) \t"S-0000000000200001"[1]\t\t# lid 8 lmc 0 "leaf2" lid 6 4xHDR\n',
        rails(2, 2, 2).text(),
        three_levels(2, 2, 1).text(),
        port_report_of(rails(2, 2, 2)),
    ],
    _RANGES + ' Switch Ca Rt "S-0000000000200000" "H-0000000000100001" "S- "H- [1] [8] [32](32) '
    '(100002) # ; " lid lmc 4xQDR 4xHDR 2xNDR base port enhanced vendid= switchguid= caguid= '
    "HCA-1 mlx5_0 leaf1 spine1 node0001 SW CA 0x 4x ( ' - ' )",
)

NAME_MAP = _corpus(
    [
        "# hosts\nnode0001   4f0c6a1e-7d0b-4a6e-9d43-2f1f6a9c3b10\n"
        "node0002\t4f0c6a1e-7d0b-4a6e-9d43-2f1f6a9c3b11 # bare metal\n"
        '0x0002c90300a1b2c3 "node0003"   # an adapter\n\n"node 4" "node 0004"\n',
        '0x100001 "n1"\r\n0X0000000000100001 n1\r\n100001 n2\r\n',
    ],
    _RANGES + ' " # 0x 0x1 0x100001 0xffffffffffffffffff node0001 node0002 "" "a b"',
)


def _node(name: str, **labels: str) -> dict[str, object]:
    metadata = {"name": name, "uid": f"u-{name}", "labels": labels}
    return {"kind": "Node", "metadata": metadata, "status": {"images": [{"sizeBytes": 1}]}}


_TIER, _LAYER = "fabric.topograph.run/tier-", "topology.k8s.aws/network-node-layer-"
_TIERS = [
    _node(
        f"n{i}",
        **{"kubernetes.io/hostname": f"n{i}.example", "nvidia.com/gpu.clique": f"d.{i // 2}"},
        **{f"{_TIER}0": f"l{i // 4}", f"{_TIER}1": f"s{i // 8}"},
    )
    for i in range(10)
]
_LAYERS = [
    _node(
        f"ip-{i}",
        **{"topology.kubernetes.io/zone": "z", f"{_LAYER}1": "nn-1"},
        **{f"{_LAYER}2": f"nn-2{i // 4}", f"{_LAYER}3": f"nn-3{i // 2}"},
    )
    for i in range(8)
]

KUBERNETES = _corpus(
    [
        json.dumps({"items": _TIERS, "kind": "List", "metadata": {}}, indent=0),
        json.dumps({"kind": "NodeList", "metadata": {"continue": "x"}, "items": _LAYERS}, indent=0),
        '{"kind":"Node","metadata":{"name":"a","labels":{"cloud.provider.com/topology-rack":"1",\n'
        '"cloud.provider.com/topology-block":"x"}}}\n{"kind":"Node","metadata":{"name":"b",\n'
        '"labels":{"cloud.provider.com/topology-rack":"1","cloud.provider.com/topology-block":"y"}}}'
        '\n{"kind":"Node","metadata":{"name":"c","labels":{"topology.kubernetes.io/zone":"z"}}}',
        '{"instances":[{"id":"I1","network_layers":["l1","s1"]},\n{"id":"I2","type":"x",'
        '"network_layers":["l2","s1"],\n"labels":{"accelerator.topograph.run/domain":"d1"}}]}',
    ],
    _RANGES + ' { } [ ] : , " \\u0000 \\ud800 null true 1e999 "" {} [] "kind" "items" "metadata" '
    '"labels" "name" "continue" "instances" "id" "network_layers" Node List NodeList ConfigMap n1 '
    "fabric.topograph.run/tier-0 fabric.topograph.run/tier-7 fabric.topograph.run/tier-99 "
    "topology.k8s.aws/network-node-layer-4 network.topology.nvidia.com/leaf l1 s0 "
    "accelerator.topograph.run/domain accelerator.topograph.run/sub-domain kubernetes.io/hostname",
)

_RACKS = racks(2, 1, 1)
_ETHERNET = ("node0001", "node0002")
_SWITCHES = ("leaf01a", "leaf02b")

LLDP = _corpus(
    [
        json.dumps({name: _RACKS.output(name) for name in _ETHERNET}, indent=0),
        json.dumps({name: _RACKS.output(name, form="json0") for name in (*_ETHERNET, *_SWITCHES)}),
        json.dumps(
            {
                **{name: json.dumps(_RACKS.output(name)) for name in _ETHERNET},
                "switches": {
                    name: {"stdout": json.dumps(_RACKS.output(name))} for name in _SWITCHES
                },
            },
            indent=0,
        ),
    ],
    _RANGES
    + ' { } [ ] : , " \\" \\\\ \\u0000 \\ud800 null true false 1e999 "" {} [] {"x":{}} "lldp" '
    '"interface" "chassis" "id" "name" "value" "port" "descr" "capability" "enabled" "type" Bridge '
    'Router Station mac ifname "stdout" "switches" eth0 swp1 node0001 leaf01a spine1 leaf01a.x',
)

_METAL = pods(1, 2, 2)

IRONIC = _corpus(
    [
        json.dumps({"nodes": _METAL.nodes, "next": None})
        + "\n"
        + json.dumps({"ports": _METAL.ports}, indent=0),
        _METAL.printed(),
        _METAL.printed(titled),
    ],
    _RANGES
    + ' { } [ ] : , " \\u0000 \\ud800 null true 7 1e999 "" {} [] {"x":{}} "nodes" "ports" "next" '
    '"uuid" "UUID" "name" "traits" "properties" "extra" "node_uuid" "address" "switch_id" '
    '"switch_info" "port_id" "local_link_connection" "physical_network" 00:00:00:00:00:00 0x0 '
    "CUSTOM_POD_1 CUSTOM_POD_2 leaf01a leaf02b node0001 node0002",
)

# Which formats a driver reads.
BY_DRIVER = {
    "yaml": {"yaml": YAML},
    "slurm": {
        "topology.conf": SLURM_CONF,
        "topology.yaml": SLURM_YAML,
        "topology.conf, blocks": SLURM_BLOCKS_CONF,
        "topology.yaml, blocks": SLURM_BLOCKS_YAML,
    },
    "ibnetdiscover": {"ibnetdiscover": IBNETDISCOVER},
    "ironic": {"nodes and ports": IRONIC},
    "kubernetes": {"nodes": KUBERNETES},
    "lldp": {"neighbours": LLDP},
}

SWF = _corpus(
    [
        "; Version: 2.2\n; MaxProcs: 100\n; Note: one\n;\n"
        "15 599850 192180   3477    4     -1    -1    4  53940    -1  1  12  12  -1 2 1 -1 -1\n"
        "16 600022  11940   2488   25     -1    -1   25   3600    -1  1  13  13  -1 2 2 -1 -1\n"
        "17 600020  11940     -1   25     -1    -1   25   3600    -1  1  13  13  -1 2 2 -1 -1\n",
        "1\t0\t65\t2592042\t1\t-1\t1009884\t-1\t-1\t-1\t0\t1\t-1\t-1\t2\t9\t-1\t-1\r\n"
        "2\t0\t71\t25920.5\t1\t-1\t1010132\t-1\t-1\t-1\t0\t1\t-1\t-1\t2\t9\t-1\t-1\t7\r\n",
    ],
    "-1 0 1 0.5 -0.5 1e9 1e999 nan inf -inf 0x1 1_0 1,5 ; : # \t \r \r\n \n \x00 \x0b \x1c \x85 "
    "\u2028 \ufeff \u0967 99999999999999999999 -17 MaxProcs:",
)
