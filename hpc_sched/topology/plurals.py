"""How many of what, in words."""

from hpc_sched.topology.model import Topology


def text(number: int, thing: str) -> str:
    """Return a number of things in words: ``1 host``, ``2 leaves``, ``3 leaf switches``."""
    if number == 1:
        return f"1 {thing}"
    if thing.endswith("leaf"):
        return f"{number} {thing[:-1]}ves"
    return f"{number} {thing}{'es' if thing.endswith('ch') else 's'}"


def of(topology: Topology) -> str:
    """Return a fabric's size, as the scheduler logs it: ``60 hosts, 4 leaves, depth 3``."""
    leaves = text(len(topology.leaves), "leaf")
    return f"{text(len(topology.hosts), 'host')}, {leaves}, depth {topology.depth}"
