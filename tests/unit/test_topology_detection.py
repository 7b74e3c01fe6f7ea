"""Detection of the driver of a text."""

import time

import pytest

from hpc_sched import exceptions
from hpc_sched.topology.readers import topology_driver


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        pytest.param('Switch\t36 "S-01"\n', "ibnetdiscover", id="a section of ibnetdiscover"),
        pytest.param('  Ca 1 "H-01"\n', "ibnetdiscover", id="an indented one"),
        pytest.param("# leaves\r\n\r\n \tswitchname = a Nodes=h\r\n", "slurm", id="topology.conf"),
        pytest.param("---\n- topology: t\n  tree:\n", "slurm", id="topology.yaml"),
        pytest.param("-\n\n  topology: t\n", "slurm", id="a list with its marks on their own"),
        pytest.param("\ufefflevels: [leaf]\nswitches:\n", "yaml", id="a file of our own"),
    ],
)
def test_the_driver_of_a_text_is_detected(text: str, driver: str):
    assert topology_driver.driver_of(text.encode(), "t") == driver


@pytest.mark.parametrize("line", ["\n", "\r\n", " \n", "-\n"], ids=repr)
def test_empty_lines_are_looked_at_once(line: str):
    began = time.monotonic()
    with pytest.raises(exceptions.TopologyError, match="expected a topology that one of the"):
        topology_driver.driver_of(line.encode() * 300_000, "t")
    assert time.monotonic() - began < 5
