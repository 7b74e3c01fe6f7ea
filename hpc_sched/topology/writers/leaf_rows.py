"""Leaves as rows of text, a cell for every host."""

from collections.abc import Callable

from hpc_sched.topology.model import Topology


def row_of(topology: Topology, leaf: str, cell: Callable[[str], str]) -> str:
    """Return the cells of a leaf's hosts, in the order of the description.

    :param cell: host to its cell, one character mostly
    """
    return " ".join(cell(host) for host in topology.hosts_of(leaf))


def title_of(topology: Topology, leaf: str) -> str:
    """Return the leaf's name, behind that of the switch above it where there are several."""
    above = topology.switches[topology.switch_index(leaf)].parent
    if above < 0 or topology.switches[above].parent < 0:
        return leaf
    return f"{topology.switches[above].name} {leaf}"
