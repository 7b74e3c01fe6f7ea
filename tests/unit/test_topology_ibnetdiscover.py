"""Dumps of ibnetdiscover: their format, names, and lines of other programs."""

from pathlib import Path

import pytest

from hpc_sched import exceptions
from hpc_sched.topology import load
from hpc_sched.topology.readers.infiniband.ibnetdiscover import IbnetdiscoverDriver
from tests.ib_dumps import Fabric, read, state, two_levels

#     spine
#    /     \
# leaf1   leaf2
# n1 n2    n3
SMALL = """\
#
# Topology file: generated on Sat Nov 21 02:18:18 2026
#
# Initiated from node 0000000000100001 port 0000000000100011

vendid=0x2c9
devid=0xd2f2
sysimgguid=0x200001
switchguid=0x200001(200001)
Switch\t36 "S-0000000000200001"\t\t# "MF0;leaf1:SX6036/U1" base port 0 lid 4 lmc 0
[1]\t"H-0000000000100001"[1](100011) \t\t# "n1 HCA-1" lid 1 4xEDR
[2]\t"H-0000000000100002"[1](100012) \t\t# "n2 HCA-1" lid 2 4xEDR
[36]\t"S-0000000000200003"[1]\t\t# "MF0;spine:SX6036/U1" lid 6 4xEDR

vendid=0x2c9
devid=0xd2f2
sysimgguid=0x200002
switchguid=0x200002(200002)
Switch\t36 "S-0000000000200002"\t\t# "MF0;leaf2:SX6036/U1" enhanced port 0 lid 5 lmc 0
[1]\t"H-0000000000100003"[1](100013) \t\t# "n3 HCA-1" lid 3 4xEDR
[36]\t"S-0000000000200003"[2]\t\t# "MF0;spine:SX6036/U1" lid 6 4xEDR

vendid=0x2c9
devid=0xd2f2
sysimgguid=0x200003
switchguid=0x200003(200003)
Switch\t36 "S-0000000000200003"\t\t# "MF0;spine:SX6036/U1" base port 0 lid 6 lmc 0
[1]\t"S-0000000000200001"[36]\t\t# "MF0;leaf1:SX6036/U1" lid 4 4xEDR
[2]\t"S-0000000000200002"[36]\t\t# "MF0;leaf2:SX6036/U1" lid 5 4xEDR

vendid=0x2c9
devid=0x1017
sysimgguid=0x100001
caguid=0x100001
Ca\t1 "H-0000000000100001"\t\t# "n1 HCA-1"
[1](100011) \t"S-0000000000200001"[1]\t\t# lid 1 lmc 0 "MF0;leaf1:SX6036/U1" lid 4 4xEDR
"""
WANTED = state(read(SMALL))


def test_the_small_dump_is_a_fat_tree():
    fabric = read(SMALL)
    assert fabric.hosts == ("n1", "n2", "n3")
    assert [fabric.ancestors(host) for host in fabric.hosts] == [
        ("leaf1", "spine"),
        ("leaf1", "spine"),
        ("leaf2", "spine"),
    ]
    assert fabric.remarks == ()


def test_a_file_and_a_command_give_the_same(tmp_path: Path):
    path = tmp_path / "fabric.out"
    path.write_text(SMALL)
    assert state(load("ibnetdiscover", path=path)) == WANTED
    assert state(load("ibnetdiscover", command=["cat", str(path)])) == WANTED


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufeff" + SMALL, id="a byte order mark"),
        pytest.param(SMALL.replace("\n", "\r\n"), id="line ends of Windows"),
        pytest.param(SMALL.replace("\n", "\r\r\n"), id="line ends of Windows, twice"),
        pytest.param(SMALL.replace("\t", "  "), id="blanks for tabs"),
        pytest.param(SMALL.replace(" ", "\t").replace("\tHCA", " HCA"), id="tabs for blanks"),
        pytest.param(
            "\n".join(f"  {line}  " for line in SMALL.split("\n")), id="blanks around lines"
        ),
        pytest.param(SMALL.replace("\n\n", "\n"), id="no empty lines"),
        pytest.param(SMALL.replace("[36]", "[36](36)"), id="ports with a number in parentheses"),
        pytest.param(SMALL.replace("](10", "] (10"), id="a blank before the GUID of a port"),
        pytest.param(SMALL.replace("[36]", "[36][ext 4]"), id="ports numbered by their chassis"),
        pytest.param(SMALL.replace("4xEDR", "4xEDR s=4 w=2 v=3"), id="full information"),
        pytest.param(
            SMALL.replace("\nvendid=0x2c9\ndevid=0xd2f2", "\nChassis 1 (guid 0x1)\nvendid=0x2c9"),
            id="grouped by chassis",
        ),
        pytest.param(
            SMALL.replace("#\n#", "#\nNon-Chassis Nodes\n#"), id="grouped, outside a chassis"
        ),
        pytest.param(SMALL.replace("000000000010", "00000000ABCD"), id="GUIDs in capitals"),
        pytest.param(SMALL[: SMALL.index("vendid=0x2c9\ndevid=0x1017")], id="no section of HCAs"),
        pytest.param(SMALL[SMALL.index("Switch") :], id="nothing before the first switch"),
        pytest.param(SMALL + SMALL, id="all of it twice"),
        pytest.param(SMALL[: SMALL.rindex("[2]")], id="a section that was cut"),
        pytest.param(SMALL[: SMALL.rindex(' "MF0;leaf1')], id="a line that was cut"),
    ],
)
def test_the_same_fabric_is_found_where_the_dump_looks_different(text: str):
    assert state(read(text)) == WANTED


def test_sections_of_hcas_alone_define_leaves():
    fabric = two_levels(2, 2, 2)
    found = read(fabric.text(kinds="H"))
    assert found.hosts == ("n001", "n002", "n003", "n004")
    assert found.roots == ("leaf1", "leaf2")


def test_a_router_is_no_host_and_no_switch():
    fabric = two_levels(2, 1, 1)
    wanted = state(fabric.topology())
    router = fabric.hca("router", "r1 HCA-1", "leaf1")
    fabric.nodes[router] = fabric.nodes[router].replace("H-", "R-")
    assert state(fabric.topology()) == wanted


def test_a_host_that_is_linked_to_another_host_is_not_on_the_fabric():
    text = SMALL + (
        'Ca\t1 "H-0000000000100008"\t\t# "lone1 HCA-1"\n'
        '[1](100018) \t"H-0000000000100009"[1] (100019) \t\t# lid 1 lmc 0 "lone2 HCA-1" lid 2\n'
    )
    assert state(read(text)) == WANTED


@pytest.mark.parametrize(
    ("lines", "remark"),
    [
        pytest.param(
            ["[root@mgmt ~]# ibnetdiscover"],
            "dump:1: '[root@mgmt ~]# ibnetdiscover' is no line of ibnetdiscover: passed over",
            id="a prompt",
        ),
        pytest.param(
            ["ibwarn: [4711] mad_rpc: timeout", "src/query_smp.c:197; send failed"],
            "dump:1: 'ibwarn: [4711] mad_rpc: timeout' is no line of ibnetdiscover, and 1 more "
            "such line: passed over",
            id="warnings",
        ),
        pytest.param(
            ["x" * 500, "y", "[1] z"],
            f"dump:1: '{'x' * 80}' is no line of ibnetdiscover, and 2 more such lines: passed over",
            id="a long line",
        ),
    ],
)
def test_lines_of_other_programs_are_skipped_with_a_remark(lines: list[str], remark: str):
    fabric = read("\n".join([*lines, SMALL]))
    assert fabric.remarks == (remark,)
    assert fabric.hosts == ("n1", "n2", "n3")


def test_a_warning_inside_a_section_does_not_end_it():
    text = SMALL.replace('[2]\t"H-', 'ibwarn: [4711] timeout\nCannot open x\n[2]\t"H-')
    fabric = read(text)
    assert fabric.hosts == ("n1", "n2", "n3")
    assert "dump:12: 'ibwarn: [4711] timeout'" in fabric.remarks[0]


def test_lines_after_an_unreadable_header_belong_to_no_section():
    text = SMALL.replace('Switch\t36 "S-0000000000200002"', 'Switch\t36 "S-00000000002000ZZ"')
    text = text[: text.index("sysimgguid=0x200003")]
    fabric = read(text)
    assert fabric.hosts == ("n1", "n2")
    assert "and 2 more such lines" in fabric.remarks[0]


def test_of_two_neighbours_of_a_port_the_first_counts_and_both_are_reported():
    other = SMALL.replace('[1]\t"H-0000000000100001"[1](100011)', '[1]\t"H-0000000000100003"[1]')
    fabric = read(SMALL + other)
    assert state(fabric)[:-1] == WANTED[:-1]
    assert fabric.remarks == (
        'dump:47: port "S-0000000000200001"[1] is linked to "H-0000000000100003"[1] here and to '
        '"H-0000000000100001"[1] before: the first line counts',
    )


def test_a_port_with_two_peers_is_reported():
    text = SMALL.replace('[2]\t"S-0000000000200002"[36]', '[3]\t"S-0000000000200002"[36]')
    fabric = read(text)
    assert fabric.hosts == ("n1", "n2", "n3")
    [remark] = fabric.remarks
    assert 'port "S-0000000000200002"[36] is linked to "S-0000000000200003"[3] here' in remark


@pytest.mark.parametrize(
    ("description", "host"),
    [
        ("n2 HCA-1", "n2"),
        ("n2 HCA1", "n2"),
        ("n2 mlx5_0", "n2"),
        ("n2 mlx4_12", "n2"),
        ("n2 mlx5_bond_0", "n2"),
        ("n2 mlx5_ib3", "n2"),
        ("n2 mthca0", "n2"),
        ("n2 qib0", "n2"),
        ("n2 hfi1_0", "n2"),
        ("n2 ibp12s0", "n2"),
        ("n2 ibP2p1s0f1", "n2"),
        ("n2 rocep1s0f0", "n2"),
        ("n2 rdma0", "n2"),
        ("  n2   mlx5_0 ", "n2"),
        ("n2", "n2"),
        ("n2.example.com mlx5_0", "n2.example.com"),
        ("A08-P1-DGX_04 HCA-6", "A08-P1-DGX_04"),
        ("4711", "4711"),
        ("ibmgmt mlx5_0", "ibmgmt"),
        ("MT4129 ConnectX7   Mellanox Technologies", None),
        ("MT25408 ConnectX", None),
        ("MT4129", None),
        ("Mellanox Technologies Aggregation Node", None),
        ("MT23108 InfiniHost Mellanox Technologies", None),
        ("localhost HCA-1", None),
        ("localhost.localdomain mlx5_0", None),
        ("(none) mlx5_0", None),
        ("(none)", None),
        ("HCA-1", None),
        ("mlx5_0", None),
        ("n2 and more HCA-1", None),
        ("n2 switch", None),
        ("#;; \\ x\\", None),
        ("", None),
        ("n\x00ode HCA-1", None),
        ("a" * 300, None),
    ],
)
def test_a_description_is_a_host_and_its_adapter_or_a_host_alone(
    description: str, host: str | None
):
    fabric = Fabric()
    fabric.host("n1", "leaf")
    fabric.hca("other", description, "leaf")
    assert fabric.topology().hosts == (("n1",) if host is None else tuple(sorted(["n1", host])))


@pytest.mark.parametrize(
    ("pattern", "description", "host"),
    [
        (r"^(\S+) mlx5_[0-3]$", "n2 mlx5_1", "n2"),
        (r"^(\S+) mlx5_[0-3]$", "n2 mlx5_7", None),
        (r"n\d+", "rack 7, n2, upper", "n2"),
        (r"storage (\w+)|(host)", "the storage st1", "st1"),
        (r"storage (\w+)|(host)", "the host", None),
        (r"^(\w*);", ";n2", None),
        (r"^(\S+) HCA", "localhost HCA-1", None),
        (r"^(\S+)", "Mellanox Technologies Aggregation Node", None),
        (r'"(.*)"', 'rack "n2" #1;x', "n2"),
    ],
)
def test_a_pattern_finds_hosts_in_descriptions_of_any_form(
    pattern: str, description: str, host: str | None
):
    fabric = Fabric()
    fabric.host("n1", "leaf")
    fabric.hca("other", description, "leaf")
    names = {fabric.nodes["n1 mlx5_0"][2:]: "n1"}
    found = read(fabric.text(), names, host_pattern=pattern).hosts
    assert found == (("n1",) if host is None else tuple(sorted(["n1", host])))


@pytest.mark.parametrize("pattern", ["(", "[a-", "*", "a{2,1}", "(?P<x>a)(?P<x>b)"])
def test_a_pattern_that_is_none_is_refused_before_anything_is_read(pattern: str):
    with pytest.raises(
        exceptions.TopologyError, match="topology_host_pattern: expected a regular expression"
    ):
        load("ibnetdiscover", path="unused", host_pattern=pattern)


def test_hcas_without_a_name_are_reported_once_with_an_example_and_a_hint():
    fabric = two_levels(2, 1, 1)
    for i in range(3):
        fabric.hca(f"hca{i}", "MT4129 ConnectX7   Mellanox Technologies", "leaf1")
    fabric.hca("sharp", "Mellanox Technologies Aggregation Node", "leaf1")
    topology = fabric.topology()
    assert topology.hosts == ("n001", "n002")
    assert topology.remarks == (
        "HCAs without the name of a host, which count for none: 3, such as 'MT4129 ConnectX7   "
        f"Mellanox Technologies' (0x{fabric.nodes['hca0'][2:]}); expected a line "
        f"'0x{fabric.nodes['hca0'][2:]} HOST' in topology_name_map, or a topology_host_pattern",
    )


def test_a_name_map_names_hosts_by_guid_before_their_description(tmp_path: Path):
    fabric = Fabric()
    fabric.host("n1", "leaf")
    fabric.hca("model", "MT4129 ConnectX7   Mellanox Technologies", "leaf")
    fabric.hca("wrong", "localhost HCA-1", "leaf")
    fabric.hca("mapped", "MT4129", "leaf")
    port = fabric.text().replace(f"({fabric.nodes['wrong'][2:].lstrip('0')})", "(00c0ffee)")
    names = tmp_path / "names"
    names.write_text(
        f'0x{fabric.nodes["model"][2:].lstrip("0").upper()} "n2"  # by its node\n'
        "0xc0ffee n3 # by its port\n"
        f'0x{fabric.nodes["mapped"][2:]} "n4 HCA-1"  # as ibnetdiscover itself takes it\n'
        f'0x{fabric.nodes["leaf"][2:]} "rack 7"\n'
        "n1 8d6f7f6e-uuid\n"
        "n3 third\n"
    )
    path = tmp_path / "fabric.out"
    path.write_text(port)
    topology = load("ibnetdiscover", path=path, name_map=names)
    assert sorted(topology.hosts) == ["8d6f7f6e-uuid", "n2", "n4", "third"]
    assert topology.leaves == ("rack 7",)
    assert topology.remarks == ()


def test_names_that_ibnetdiscover_has_from_its_own_map_count_before_what_an_hca_says():
    # It maps the names of peers, but not that of an HCA in its own section.
    text = SMALL.replace('# "n1 HCA-1" lid 1', '# "compute1" lid 1')
    assert read(text).hosts == ("compute1", "n2", "n3")


@pytest.mark.parametrize(
    ("descriptions", "names"),
    [
        (["MF0;leaf04:SX6036/U1", "MF0;leaf05:SX6036/U1"], ["leaf04", "leaf05"]),
        (["MF0;a:b:SX6036/U1", "leaf05"], ["a:b", "leaf05"]),
        (["MF0;core:CS7500/L01/U1", "MF0;core:CS7500/S02/U1"], ["core/L01/U1", "core/S02/U1"]),
        (["MF0;leaf:SX6036/U1", "MF0;leaf:SX6036/U1"], ["leaf-{0}", "leaf-{1}"]),
        (["Quantum Mellanox Technologies"] * 2, ["Quantum Mellanox Technologies-{i}"] * 2),
        (["ISR9024 Voltaire", "  SW-6IB4 Voltaire "], ["ISR9024 Voltaire", "SW-6IB4 Voltaire"]),
        (["", "MF0;:SX6036/U1"], ["{0}", "MF0;:SX6036/U1"]),
        (["rack#1; row 2", 'a "b" c'], ["rack#1; row 2", 'a "b" c']),
        (["MF0;;x:SX6036/U1", "MF0;y"], [";x", "MF0;y"]),
        (["sw", "MF0;sw:SX6036/U1"], ["sw-{0}", "sw-{1}"]),
    ],
)
def test_a_switch_is_called_what_is_its_own_in_its_description(
    descriptions: list[str], names: list[str]
):
    fabric = Fabric()
    for i, description in enumerate(descriptions):
        fabric.switch(f"s{i}", description or " ")
        fabric.host(f"n{i}", f"s{i}")
    guids = [fabric.nodes[f"s{i}"][2:] for i in range(2)]
    found = fabric.topology()
    assert [found.leaf_of(f"n{i}") for i in range(2)] == [
        name.format(*guids, i=guids[i]) for i, name in enumerate(names)
    ]


def test_boards_of_a_director_without_distinct_places_have_their_guids():
    fabric = Fabric()
    places = ["L01", "L02", "L02"]
    for i, place in enumerate(places):
        fabric.switch(f"s{i}", f"MF0;core:CS7500/{place}/U1")
        fabric.host(f"n{i}", f"s{i}")
    found = fabric.topology()
    assert [found.leaf_of(f"n{i}") for i in range(3)] == [
        f"core-{fabric.nodes[f's{i}'][2:]}" for i in range(3)
    ]


def test_a_name_made_of_a_guid_may_be_taken_already():
    fabric = Fabric()
    fabric.switch("s0", "x")
    fabric.switch("s1", "x")
    fabric.switch("s2", f"x-{fabric.nodes['s0'][2:]}")
    for i in range(3):
        fabric.host(f"n{i}", f"s{i}")
    assert len(set(fabric.topology().leaves)) == 3


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", r"\Adump: expected the output of ibnetdiscover, .* found none\Z"),
        ("# only\n\n# comments\n", r"found none\Z"),
        ("switches:\n- name: sw1\n", r"found none; first line: dump:1: 'switches:'\Z"),
        ("\x7fELF\x00\x00", r"found none; first line: dump:1: "),
        (
            "vendid=0x2c9\n" + "[1]\t" + '"H-1"[1]',
            r"found none; first line: dump:2: '\[1\]\\t\"H-1\"\[1\]'\Z",
        ),
        (
            SMALL.replace("HCA-1", "lost and found"),
            r"\Adump: expected a switch that carries a host, found switches: 3, HCAs without the "
            r"name of a host: 3, such as 'n1 lost and found' \(0x0000000000100001\); expected a "
            r"line '0x0000000000100001 HOST' in topology_name_map, or topology_host_pattern = "
            r"\^\(\\S\+\) for host 'n1'\Z",
        ),
        (
            'Switch\t36 "S-0000000000200001"\t\t# "MF0;leaf1:SX6036/U1"\n',
            r"found switches: 1, HCAs without the name of a host: 0\Z",
        ),
        (
            'Ca\t36 "H-0000000000200001"\t\t# "n1 HCA-1"\n',
            r"\Adump: expected a switch that carries a host, found hosts that are linked to none",
        ),
    ],
)
def test_a_text_without_a_switch_that_carries_a_host_is_refused(text: str, error: str):
    with pytest.raises(exceptions.TopologyError, match=error):
        read(text)


def test_utf_16_is_not_what_ibnetdiscover_prints():
    with pytest.raises(exceptions.TopologyError, match="expected the output of ibnetdiscover"):
        read(SMALL.encode("utf-16"))


def test_a_byte_that_is_no_utf_8_spoils_its_own_description_alone():
    fabric = read(SMALL.encode().replace(b"n2 HCA-1", b"n\xff2 HCA-1"))
    assert fabric.hosts == ("n1", "n3")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("[1]" + " " * 200_000, id="blanks"),
        pytest.param("[1]" + "\t(" * 100_000, id="parentheses"),
        pytest.param("Switch" + " " * 100_000 + "1" * 100_000, id="a header without an end"),
        pytest.param("[" + "9" * 200_000 + "]", id="digits"),
        pytest.param('[1] "S-1"[2] # "' + '"4x' * 70_000, id="quotes"),
        pytest.param('[1] "S-1"[2] # "x" ' + "1x1x" * 50_000, id="rates"),
        pytest.param('[1] "S-1"[2] # "x" 1x' + "A" * 200_000 + "_", id="a speed without an end"),
        pytest.param("Chassis" + " " * 200_000, id="a chassis without a number"),
    ],
)
def test_a_line_without_an_end_takes_linear_time(line: str):
    # What grew with the square of the line would take minutes.
    assert len(read(f"{SMALL}{line}\n").hosts) == 3


def test_an_hca_of_too_many_ports_takes_linear_time():
    ports = (f'[{i}] "H-1"[{i}]({i:x}) # "n1 HCA-1" lid 1 4xHDR' for i in range(1, 100_000))
    assert read("\n".join(['Switch 1 "S-1"', *ports])).hosts == ("n1",)


def test_the_driver_takes_the_options_of_a_text_and_a_pattern():
    driver = IbnetdiscoverDriver(command="ibnetdiscover -C mlx5_0", timeout=3, host_pattern="x")
    assert driver.command == ("ibnetdiscover", "-C", "mlx5_0")
    with pytest.raises(exceptions.TopologyError, match="found neither"):
        IbnetdiscoverDriver(host_pattern="x")


@pytest.mark.parametrize(
    ("description", "host"),
    [
        pytest.param("E1000_H1 HCA-1 (Mellanox HCA)", "E1000_H1", id="a note in parentheses"),
        pytest.param("Hca0", "Hca0", id="a host of a simulated fabric"),
        pytest.param("HCA-1", None, id="an adapter alone"),
        pytest.param("node1 Hca0", "node1", id="an adapter in another case"),
    ],
)
def test_hosts_are_known_by_these_descriptions(description: str, host: str | None):
    fabric = two_levels(1, 0, 1)
    fabric.hca("hca", description, "leaf1")
    assert fabric.topology().hosts == tuple(sorted({"n001"} | ({host} if host else set())))


def test_lines_of_a_name_map_that_match_nothing_are_reported(tmp_path: Path):
    fabric = two_levels(2, 1, 1)
    dump, names = tmp_path / "dump", tmp_path / "names"
    dump.write_text(fabric.text())
    leaf, hca = fabric.nodes["leaf1"], fabric.nodes["n001 mlx5_0"]
    names.write_text(f"{hca} node-a\n{leaf} rack-1\nn002 node-b\nH-00ff c\n0xee d\nn003 e\n")
    topology = load("ibnetdiscover", path=dump, name_map=names)
    assert set(topology.hosts) == {"node-a", "node-b"}
    assert topology.leaves == ("leaf2", "rack-1")
    assert topology.remarks == (
        f"{names}:4: 'H-00ff' matches no host or switch, nor do 2 more lines",
    )
