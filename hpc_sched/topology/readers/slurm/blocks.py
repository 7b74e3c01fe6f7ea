"""The tree of Slurm's blocks: blocks are leaves, and block sizes the levels above.

As in Slurm 26.05.3 (src/plugins/topology/block/block_record.c): a size is a power of two times the
first one, which is that of a block. A block of that power is as many consecutive blocks of the
file, from the first one on; blocks without nodes count. What remains at the end is a block of its
own if it is more than the next smaller size.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.slurm.switch_graph import SwitchGraph, SwitchLine
from hpc_sched.topology.tree import unique

ROOT = "fabric"
# Slurm counts blocks with 16 bits.
MAX_BLOCKS = 1 << 16
MAX_POWER = 15  # of two, in a block size
MAX_NAME = 60  # a longer folded list of blocks is truncated in a name
_SIZE = re.compile(r"[0-9]{1,9}\Z")


@dataclass(slots=True)
class BlockList:
    """Blocks in the order of a file, and the sizes as it states them."""

    blocks: list[SwitchLine] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    line: int = 0  # of the sizes
    # What Slurm prints has a size on each line instead: size to its first line.
    printed: dict[str, int] = field(default_factory=dict)


class _Group(NamedTuple):
    first: int  # place of its first block among all
    name: str
    below: Any  # as Topology.from_tree takes it


def topology_of(found: BlockList, problems: Problems) -> Topology:
    """Return the topology of blocks; TopologyError has every problem, those of the text too.

    Nodes of several blocks are in the first. Linear in nodes, and in blocks times levels.
    """
    if len(found.blocks) > MAX_BLOCKS:
        last = found.blocks[MAX_BLOCKS]
        raise problems.error(last.line, f"expected at most {MAX_BLOCKS} blocks, found more")
    graph = SwitchGraph(found.blocks, problems, "block")
    powers = _powers(found, problems)
    problems.stop()
    if not graph.leaves:
        raise problems.error(None, "no block has nodes")
    names = list(graph.defined)
    taken = set(names)
    groups = [
        _Group(place, name, graph.leaves[name])
        for place, name in enumerate(names)
        if name in graph.leaves
    ]
    for smaller, power in itertools.pairwise(powers):
        groups = _joined(groups, 1 << smaller, 1 << power, names, taken)
        if 1 << power >= len(names):
            break
    if len(groups) > 1:
        groups = [_group(0, groups, ROOT, taken)]
    return Topology.from_tree(
        {group.name: group.below for group in groups}, remarks=problems.remarks
    )


def _powers(found: BlockList, problems: Problems) -> Sequence[int]:
    """Return the sizes of blocks as powers of two of the base size, ascending from 0."""
    sizes = [(size, found.line) for size in found.sizes] or list(found.printed.items())
    if not sizes:
        problems.remark(
            None, "no block sizes: 2, 4, 8 and 16 blocks are one on the levels above, as in Slurm"
        )
        return range(5)
    base, powers = 0, {0}
    for text, line in sizes:
        size = int(text) if _SIZE.match(text) else 0
        base = base or size
        times, rest = divmod(size, base) if base else (0, 0)
        if times < 1 or rest or times & (times - 1) or times > 1 << MAX_POWER:
            expected = f"{base} times a power of two" if base else "numbers from 1"
            problems.note(line or None, f"block sizes: expected {expected}, found {text!r}")
        powers.add(times.bit_length() - 1)
    return sorted(powers)


def _joined(
    groups: Sequence[_Group], smaller: int, size: int, names: Sequence[str], taken: set[str]
) -> list[_Group]:
    """Return groups of a level joined to those of ``size`` blocks each."""
    joined: list[_Group] = []
    for number, parts in itertools.groupby(groups, lambda group: group.first // size):
        first = number * size
        if len(names) - first <= smaller:
            joined += parts
        else:
            joined.append(_group(first, list(parts), _name_of(names[first : first + size]), taken))
    return joined


def _group(first: int, parts: Sequence[_Group], wanted: str, taken: set[str]) -> _Group:
    return _Group(first, unique(wanted, taken), {part.name: part.below for part in parts})


def _name_of(blocks: Sequence[str]) -> str:
    folded = hostlist.fold(blocks) if len(blocks) <= hostlist.MANY else ""
    return folded if 0 < len(folded) <= MAX_NAME else f"{blocks[0]}+{len(blocks) - 1}"
