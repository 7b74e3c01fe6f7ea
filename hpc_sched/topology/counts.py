"""How many of what, in words."""

from hpc_sched.topology.model import Topology


def text(number: int, one: str, many: str | None = None) -> str:
    """Return a number and its noun, such as ``1 leaf`` or ``4 leaves``.

    :param many: the noun's plural, where it takes more than an s
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


def of(topology: Topology) -> str:
    """Return a fabric's size, as the scheduler logs it: ``60 hosts, 4 leaves, depth 3``."""
    leaves = text(len(topology.leaves), "leaf", "leaves")
    return f"{text(len(topology.hosts), 'host')}, {leaves}, depth {topology.depth}"
