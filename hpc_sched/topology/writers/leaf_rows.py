"""Leaves as rows of text, one cell per host."""

from collections.abc import Callable

from hpc_sched.topology.model import Topology


def row_of(topology: Topology, leaf: str, cell: Callable[[str], str]) -> str:
    """Return the cells of a leaf's hosts, in the order of the description.

    :param cell: returns the cell of a host, mostly one character
    """
    return " ".join(cell(host) for host in topology.hosts_of(leaf))


def title_of(topology: Topology, leaf: str) -> str:
    """Return the leaf's name, after that of the switch above it unless that is a root."""
    above = topology.switches[topology.switch_index(leaf)].parent
    if above < 0 or topology.switches[above].parent < 0:
        return leaf
    return f"{topology.switches[above].name} {leaf}"
