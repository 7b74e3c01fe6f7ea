"""Detection of the driver of a text."""

import re
from importlib import metadata

import pytest

from hpc_sched import exceptions
from hpc_sched.topology.readers import topology_driver
from tests import cpu_guard


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        pytest.param('Switch\t36 "S-01"\n', "ibnetdiscover", id="a section of ibnetdiscover"),
        pytest.param('  Ca 1 "H-01"\n', "ibnetdiscover", id="an indented one"),
        pytest.param("# leaves\r\n\r\n \tswitchname = a Nodes=h\r\n", "slurm", id="topology.conf"),
        pytest.param("---\n- topology: t\n  tree:\n", "slurm", id="topology.yaml"),
        pytest.param("-\n\n  topology: t\n", "slurm", id="a list with its marks on their own"),
        pytest.param("SW    36  1 0x0002c9 4x FDR\n", "ibnetdiscover", id="a report of ports"),
        pytest.param('{"items": [{"kind": "Node"}]}', "kubernetes", id="kubectl's nodes"),
        pytest.param('{"lldp": {"interface": []}}', "lldp", id="lldpcli's neighbours"),
        pytest.param('{"h1": {\n "lldp" : {}}}', "lldp", id="neighbours of hosts by name"),
        pytest.param('[{"UUID": "1", "Name": "n"}]', "ironic", id="openstack's list of nodes"),
        pytest.param('{"ports": [{"local_link_connection": {}}]}', "ironic", id="the API's ports"),
        pytest.param("BlockName=b Nodes=n[1-4]\n", "slurm", id="topology.conf with blocks"),
        pytest.param("\ufefflevels: [leaf]\nswitches:\n", "yaml", id="a file of our own"),
    ],
)
def test_the_driver_of_a_text_is_detected(text: str, driver: str):
    assert topology_driver.driver_of(text.encode(), "t") == driver


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        pytest.param(
            'Ca\t : 0x00100e ports 1 devid 0x0 "n1 HCA-1"\n', "ibnetdiscover", id="a list"
        ),
        pytest.param("CA: n1 HCA-1:\n   0x0c  33 1[  ] ==(", "iblinkinfo", id="iblinkinfo"),
        pytest.param("{ CA Ports:01 SystemGUID:0c }\n", "OpenSM's list", id="OpenSM's subnet list"),
        pytest.param(
            "---\nInterface:    eth0, via: LLDP, RID: 1\n", "-f json", id="lldpcli's text"
        ),
        pytest.param("lldp.eth0.via=LLDP\n", "-f json", id="lldpcli's key values"),
        pytest.param('{"Instances": [{"NetworkNodes": []}]}', "Topograph", id="Amazon's answer"),
    ],
)
def test_what_no_driver_reads_is_named_with_what_to_use(text: str, instead: str):
    with pytest.raises(exceptions.TopologyError, match=rf"t: not read .*: use .*{instead}"):
        topology_driver.driver_of(text.encode(), "t")


def test_the_table_of_ranks_is_that_of_the_drivers():
    rows = re.findall(r"^([1-9]) +``(\w+)``", topology_driver.__doc__ or "", re.MULTILINE)
    points = metadata.entry_points(group=topology_driver.NAMESPACE)
    drivers = {point.name: point.load() for point in points}
    ranks = {name: driver.rank for name, driver in drivers.items() if driver.patterns}
    assert {name: int(rank) for rank, name in rows} == ranks


@pytest.mark.parametrize("line", ["\n", "\r\n", " \n", "-\n"], ids=repr)
def test_empty_lines_are_looked_at_once(line: str):
    expected = "expected a topology that one of the"
    with cpu_guard.ends(), pytest.raises(exceptions.TopologyError, match=expected):
        topology_driver.driver_of(line.encode() * 300_000, "t")
