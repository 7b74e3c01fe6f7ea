"""Fabrics of the sample data, compared with an independent reading of the same files."""

import gzip
import re
from collections import Counter
from pathlib import Path

import networkx
import pytest

from hpc_sched.topology import Topology
from hpc_sched.topology.capacities import LinkDefaults, capacities
from hpc_sched.topology.compare import difference, lint
from hpc_sched.topology.links import Cables
from hpc_sched.topology.readers import topology_driver
from hpc_sched.topology.readers.text_driver import Text
from hpc_sched.topology.readers.yaml_file import YamlFileDriver
from hpc_sched.topology.writers import yaml_writer
from tests import sample_data
from tests.ib_dumps import read, switches_between
from tests.unit.fabrics import check

_SECTION = re.compile(r'^Switch\s+\d+ "(S-\w+)".*\n((?:\[.*\n)*)', re.MULTILINE)
_PORT = re.compile(r'^\[\d+\]\s+"(\S+)"\[\d+\].*# "(.*)" lid', re.MULTILINE)


def content_of(name: str) -> bytes:
    path: Path = sample_data.path(name)
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def distances_in(content: bytes, host: str) -> dict[tuple[str, str], float]:
    """Return the switches between hosts, from the sections of switches alone.

    :param host: regular expression for the whole description of a host's HCA
    """
    graph = networkx.Graph()
    hosts: dict[str, list[str]] = {}
    for switch, ports in _SECTION.findall(content.decode()):
        graph.add_node(switch)
        for peer, description in _PORT.findall(ports):
            named = re.fullmatch(host, description)
            if peer[0] == "S":
                graph.add_edge(switch, peer)
            elif named:
                hosts.setdefault(named[1], []).append(switch)
    return switches_between(graph, hosts)


@pytest.mark.parametrize(
    ("name", "leaves", "hosts", "spines"),
    [("ib/ft2-2s4l32h.out", 4, 8, 2), ("ib/ft2-18s36l648h.out.gz", 36, 18, 18)],
)
def test_a_simulated_fat_tree(name: str, leaves: int, hosts: int, spines: int):
    content = content_of(name)
    fabric = read(content)
    check(fabric)
    assert fabric.leaves == tuple(f"leaf{i:02}" for i in range(1, leaves + 1))
    assert fabric.hosts == tuple(f"node{i:04}" for i in range(1, leaves * hosts + 1))
    assert {len(fabric.hosts_of(leaf)) for leaf in fabric.leaves} == {hosts}
    assert fabric.roots == (f"spine[01-{spines:02}]",)
    assert len(fabric.switches[0].members) == spines
    assert fabric.remarks == ()
    distances = distances_in(content, r"(node\d+) HCA-1")
    assert len(distances) == len(fabric.hosts) * (len(fabric.hosts) - 1)
    assert all(fabric.hops(*pair) == switches for pair, switches in distances.items())


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf[root@mgmt ~]# ibnetdiscover\r\n"])
def test_a_dump_is_known_by_its_content(start: bytes):
    content = start + content_of("ib/dgx-superpod.out")
    assert topology_driver.driver_of(content, "dump") == "ibnetdiscover"
    assert len(read(content).hosts) == 121


@pytest.fixture(scope="module")
def superpod() -> Topology:
    return read(content_of("ib/dgx-superpod.out"))


def test_the_dgx_fabric_has_eight_leaves_on_31_switches(superpod: Topology):
    check(superpod)
    assert len(superpod.hosts) == 121
    assert sum("-dgx-" in host for host in superpod.hosts) == 119
    assert {"ubuntu", "B11-P1-CUFM-02"} < set(superpod.hosts)
    assert "localhost" not in superpod.hosts
    leaves = [switch for switch in superpod.switches if switch.level == 1]
    sizes = Counter((len(leaf.members), len(superpod.hosts_of(leaf.name))) for leaf in leaves)
    # Nine sets of switches: two hosts have no HCA known on two of the rails of their neighbours.
    assert sizes == Counter([(4, n) for n in (18, 18, 17, 16, 15, 14 + 2, 11)] + [(3, 10)])
    assert len({switch for leaf in leaves for switch in leaf.members}) == 31
    [root] = [switch for switch in superpod.switches if switch.level == 2]
    assert len(root.members) == 9
    assert all("IBSPINE" in name for name in root.members)


def test_hcas_of_the_dgx_fabric_without_a_name_are_reported(superpod: Topology):
    # 69 are described by their model and 3 as localhost; the 40 aggregation nodes are no hosts.
    [remark] = [remark for remark in superpod.remarks if "HCAs without the name" in remark]
    assert "count for none: 72, such as 'MT4129 ConnectX7   Mellanox Technologies'" in remark


def test_hops_of_the_dgx_fabric_are_its_distances(superpod: Topology):
    distances = distances_in(
        content_of("ib/dgx-superpod.out"), r"(?!localhost|Mellanox|MT)(\S+) \S+"
    )
    assert {host for host, _ in distances} == set(superpod.hosts)
    for (a, b), switches in distances.items():
        assert superpod.hops(a, b) == switches
    assert not any("rounded up" in remark for remark in superpod.remarks)
    assert "2 hosts are not connected to all switches of the leaf" in " ".join(superpod.remarks)


def test_links_of_the_dgx_fabric_are_hardly_oversubscribed(superpod: Topology):
    for switch in superpod.switches:
        assert switch.links is not None
        if switch.level == 1:
            assert switch.links.oversubscription is not None
            assert 0.9 < switch.links.oversubscription < 1.1


_NAMED = re.compile(r'^Switch\s.*# "MF0;([^:]+):.*\n((?:\[.*\n)*)', re.MULTILINE)
_CABLE = re.compile(r'^\[\d+\]\s+"([SH])-\w+"\[\d+\].*# "([^"]*)" lid \d+ (\w+)$', re.MULTILINE)


def counted(content: bytes, spine: str) -> tuple[dict[str, int], Counter[str]]:
    """Return the cables from each switch to spines, and from each host to any switch.

    :param spine: part of the description of a spine switch
    """
    up: dict[str, int] = {}
    hosts: Counter[str] = Counter()
    for name, ports in _NAMED.findall(content.decode()):
        cables = _CABLE.findall(ports)
        up[name] = sum(kind == "S" and spine in there for kind, there, _ in cables)
        hosts.update(there.split()[0] for kind, there, _ in cables if kind == "H")
    return up, hosts


@pytest.mark.parametrize(
    ("name", "spine", "rate", "numbers"),
    [
        ("ib/ft2-2s4l32h.out", "spine", 56, [4] * 4),
        ("ib/ft2-18s36l648h.out.gz", "spine", 100, [18] * 36),
        # Of 4 switches each, and of 3 in the first one.
        ("ib/dgx-superpod.out", "IBSPINE", 400, [53, 66, 67, 68, 70, 70, 67, 71]),
    ],
)
def test_uplinks_are_those_that_a_count_of_the_lines_finds(
    name: str, spine: str, rate: float, numbers: list[int]
):
    content = content_of(name)
    up, hosts = counted(content, spine)
    fabric = read(content)
    found = []
    for switch in fabric.switches:
        assert switch.links is not None
        if switch.level == 1:
            members = switch.members or (switch.name,)
            number = sum(up[member] for member in members)
            assert switch.links.uplinks == Cables(((rate, number),))
            found.append(number)
        else:
            assert switch.links.uplinks == Cables()
    assert found == numbers
    assert set(fabric.host_links) == set(fabric.hosts)
    for host, links in fabric.host_links.items():
        assert links == Cables(((rate, hosts[host]),))


def test_capacities_of_the_dgx_fabric_are_those_of_its_cables(superpod: Topology):
    found = capacities(superpod, LinkDefaults({"leaf": 9}, 1))
    assert found.switches.tolist() == [
        0, *(400_000 * number for number in (53, 66, 67, 68, 70, 70, 67, 71))
    ]  # fmt: skip
    assert Counter(found.hosts.tolist()) == {1_600_000: 109, 1_200_000: 10, 800_000: 2}


def test_a_leaf_of_the_dgx_fabric_that_loses_half_of_its_cables_is_a_remark():
    lines = content_of("ib/dgx-superpod.out").decode().split("\n")
    section, cut = "", 0
    kept = []
    for line in lines:
        section = line if line.startswith("Switch") else section
        spine = "IBSPINE" in line and not line.startswith("Switch")
        if "A09-P1-IBLEAF-0" in section and "-04:" in section and spine and cut < 36:
            cut += 1
        elif not ("IBSPINE" in section and "IBLEAF-0" in line and "-04:" in line):
            kept.append(line)
    fabric = read("\n".join(kept).encode())
    assert lint.few_uplinks(fabric) == [
        "leaf with uplinks of 32 x 400 Gb/s, at most half of the median, 67 x 400 Gb/s: "
        "A09-P1-IBLEAF-[01-04]-04"
    ]


@pytest.mark.parametrize("name", ["ib/ft2-2s4l32h.out", "ib/dgx-superpod.out"])
def test_a_dump_keeps_its_links_in_a_topology_file(name: str):
    fabric = read(content_of(name))
    text = yaml_writer.text_of(fabric)
    written = YamlFileDriver(path="t").parse(Text(text.encode(), "t"))
    assert not difference.between(fabric, written)
    assert written.host_links == fabric.host_links
    found = [capacities(one, LinkDefaults()).switches.tolist() for one in (fabric, written)]
    assert found[0] == found[1]
