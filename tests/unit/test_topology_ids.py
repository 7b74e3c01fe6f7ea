"""Other names of hosts and switches: ids, and the members of merged switches."""

from dataclasses import replace

import pytest

from hpc_sched import digests, exceptions
from hpc_sched.topology import Topology, canonical_text, switch_names
from hpc_sched.topology.compare import difference
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.readers.text_driver import Text
from hpc_sched.topology.readers.yaml_file import YamlFileDriver
from hpc_sched.topology.tree import Details
from hpc_sched.topology.writers import yaml_writer

UUIDS = [f"7f0e2e5c-3f0c-4c4e-9d4e-0c8a0e1b5a7{digit}" for digit in range(3)]


def rails(**host_ids: str) -> Topology:
    """Return two leaves that have one physical switch in common.

    ::

                  core
                /      \\
        r1+r2 (r[1-2])  r2+r3 (r[2-3])
           a1 a2            b1
    """
    return Topology.from_tree(
        {"core": {"r1+r2": ["a1", "a2"], "r2+r3": ["b1"]}},
        details=Details(
            members={"r1+r2": ("r1", "r2"), "r2+r3": ("r2", "r3")},
            ids={"r1+r2": ("0x1", "0x2"), "r2+r3": ("0x2", "0x3"), "core": ("aa:bb:cc:00:00:01",)},
        ),
        host_ids=host_ids,
    )


@pytest.mark.parametrize(
    ("name", "switches"),
    [
        pytest.param("core", ["core"], id="a name of the tree"),
        pytest.param("r1", ["r1+r2"], id="a member"),
        pytest.param("r2", ["r1+r2", "r2+r3"], id="a member of two"),
        pytest.param("0x0000000000000003", ["r2+r3"], id="a GUID with its zeros"),
        pytest.param("S-0000000000000003", ["r2+r3"], id="a GUID as dumps have it"),
        pytest.param("AA:BB:CC:00:00:01", ["core"], id="an address in capitals"),
        pytest.param("aabbcc000001", ["core"], id="an address without colons"),
        pytest.param("aabb.cc00.0001", ["core"], id="an address as Cisco writes it"),
        pytest.param("r4", [], id="a name that is unknown"),
        pytest.param("", [], id="an empty name"),
    ],
)
def test_a_switch_is_found_by_each_of_its_names(name: str, switches: list[str]):
    assert list(switch_names.known_as(rails(), name)) == switches


def test_a_bare_metal_node_is_found_by_its_uuid_without_a_name_map():
    names = HostNames(rails(a1=UUIDS[0], a2=UUIDS[1]))
    assert names.find("ironic-compute", UUIDS[1]) == "a2"
    places = [("ironic-compute", uuid) for uuid in UUIDS]
    assert names.find_all(places) == (["a1", "a2", UUIDS[2]], [UUIDS[2]])


def test_an_id_outranks_a_short_name_that_two_hypervisors_share():
    names = HostNames(rails(a1=UUIDS[0]))
    places = [("ironic-compute", UUIDS[0]), ("a1.example.org", "a1.example.org")]
    assert names.find_all(places) == (["a1", "a1.example.org"], ["a1.example.org"])


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        pytest.param({"x": "1"}, "host 'x' has an id, but no place in the tree", id="no host"),
        pytest.param({"a1": "b1"}, "hosts 'b1' and 'a1' are both called 'b1'", id="a name"),
        pytest.param(
            {"a1": "u", "b1": "u"}, "hosts 'a1' and 'b1' are both called 'u'", id="another's id"
        ),
    ],
)
def test_an_id_is_that_of_one_host(ids: dict[str, str], error: str):
    with pytest.raises(exceptions.TopologyError, match=error):
        rails(**ids)


def test_ids_of_hosts_are_part_of_the_digest_and_those_of_switches_are_not():
    def digest(topology: Topology) -> str:
        return digests.of(canonical_text.lines_of(topology))

    assert digest(rails(a1=UUIDS[0])) != digest(rails())
    assert digest(rails()) == digest(Topology.from_tree(rails().to_tree()))


def test_another_id_of_a_host_is_a_difference():
    found = difference.between(rails(a1=UUIDS[0]), rails(a1=UUIDS[1], b1=UUIDS[2]))
    assert found.sentences() == (
        f"id of a1: {UUIDS[0]} became {UUIDS[1]}",
        f"id of b1: unknown became {UUIDS[2]}",
    )
    assert found.summary() == "ids changed: a1,b1"


def test_other_names_survive_a_file():
    fabric = rails(a1=UUIDS[0], b1=UUIDS[1])
    text = yaml_writer.text_of(fabric)
    again = YamlFileDriver(path="t.yaml").parse(Text(text.encode(), "t.yaml"))
    assert (again.details(), again.host_ids) == (fabric.details(), fabric.host_ids)


def test_many_ids_are_written_in_lines_that_can_be_read():
    ids = tuple(f"0x{number:016x}" for number in range(1, 21))
    fabric = Topology.from_tree({"leaf": ["a"]}, details=Details(ids={"leaf": ids}))
    text = yaml_writer.text_of(fabric)
    assert max(map(len, text.splitlines())) < 200
    again = YamlFileDriver(path="t.yaml").parse(Text(text.encode(), "t.yaml"))
    assert again.details().ids == {"leaf": ids}


def test_a_member_or_id_that_would_be_read_as_several_is_left_out_of_a_file():
    fabric = rails()
    members = ("r1", "leaf 2;x", "a,b")
    odd = replace(fabric.switches[1], members=members, ids=("0x1", "eth[1-2]"))
    fabric = replace(fabric, switches=(fabric.switches[0], odd, *fabric.switches[2:]))
    text = yaml_writer.text_of(fabric)
    again = YamlFileDriver(path="t.yaml").parse(Text(text.encode(), "t.yaml"))
    assert again.details().members["r1+r2"] == ("r1", "leaf 2;x")
    assert again.details().ids["r1+r2"] == ("0x1",)


def test_a_renamed_host_keeps_its_id():
    fabric = rails(a1=UUIDS[0], a2=UUIDS[1]).renamed({"a1": "c1", "a2": UUIDS[1]})
    assert fabric.host_ids == {"c1": UUIDS[0]}


def test_an_id_of_several_hosts_in_a_file_is_an_error():
    text = "switches:\n- name: leaf\n  hosts:\n  - {name: 'n[1-2]', id: u}\n"
    with pytest.raises(exceptions.TopologyError, match=r"t\.yaml:4: id 'u': expected one"):
        YamlFileDriver(path="t.yaml").parse(Text(text.encode(), "t.yaml"))
