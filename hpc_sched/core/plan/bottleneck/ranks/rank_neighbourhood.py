"""The plans that a step of the search compares: those after one move of VMs.

Of a small group all moves of one part are compared, and where none is better all of two. Of a
larger one those from, to and across the node of the highest load, some of each kind. Where these
find nothing, all that is below a switch goes to another one of its level.
"""

from collections.abc import Iterator

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.bottleneck.ranks.rank_intervals import RankIntervals
from hpc_sched.core.plan.bottleneck.ranks.rank_moves import Moves, moves_between, pairs, stay

_ALL = 400  # pairs of places up to which all moves are compared
_MOVES = 2_000  # of them, where hosts take many VMs
_PAIRED = 200  # moves up to which all pairs of them are
_FOCUSED = 240  # moves that are compared otherwise
_SOURCES, _TARGETS = 16, 64  # places between which they are
_RELOCATED = 16  # most VMs that go from a switch to another at once
_SWITCHES = 12  # from which, and to which each, that is tried


def alternatives(
    tables: RankIntervals, planned: Array, room: Array, leaf: Array
) -> Iterator[Moves]:
    """Yield sets of moves; the first move of each changes nothing. A set is for want of a better.

    :param planned: new VMs by place. Shape (places,)
    :param room: most new VMs by place. Shape (places,)
    :param leaf: of each place. Shape (places,)
    """
    sources, targets = np.flatnonzero(planned), np.flatnonzero(room > planned)
    if len(sources) * len(targets) > _ALL:
        yield Moves.joined([stay(1), *_focused(tables, planned, room, leaf)])
        yield Moves.joined([stay(1), *_relocations(tables, planned, room)])
        return
    found = moves_between(sources, targets, planned, room)
    found = found[_some(np.arange(len(found)), _MOVES)]
    yield Moves.joined([stay(1), found])
    yield Moves.joined([stay(1), *_relocations(tables, planned, room)])
    if len(found) <= _PAIRED:
        yield Moves.joined([stay(2), pairs(found, planned, room)])


def _focused(tables: RankIntervals, planned: Array, room: Array, leaf: Array) -> Iterator[Moves]:
    """Yield moves from, to and across the node of the highest load."""
    node = int(np.argmax(tables.loads(planned)))
    place = np.arange(len(room))
    before, behind = place < tables.first[node], place >= tables.last[node]
    inside = ~before & ~behind
    sources, targets = planned > 0, room > planned
    spare = room - planned
    # Of each leaf the last place with VMs; the roomiest of those in use, and of those that are not.
    some_sources = _one_by_leaf(leaf, np.where(sources, place + 1, 0))
    some_targets = _one_by_leaf(leaf, np.where(sources, spare, 0))
    some_targets |= _one_by_leaf(leaf, np.where(sources, 0, spare))
    ways = (
        (sources & inside, some_targets & ~inside),
        (some_sources & ~inside, targets & inside),
        (some_sources & before, some_targets & behind),
        (some_sources & behind, some_targets & before),
    )
    for one, other in ways:
        some, others = _some(np.flatnonzero(one), _SOURCES), _some(np.flatnonzero(other), _TARGETS)
        moves = moves_between(some, others, planned, room)
        yield moves[_some(np.arange(len(moves)), _FOCUSED // len(ways))]


def _relocations(tables: RankIntervals, planned: Array, room: Array) -> Iterator[Moves]:
    """Yield moves of all new VMs below a switch to another of its level.

    There they fill the first hosts, or are on the most hosts, evenly.
    """
    vms, spare = (np.append(0, each.cumsum()) for each in (planned, room - planned))
    vms, spare = (each[tables.last] - each[tables.first] for each in (vms, spare))
    sources = np.flatnonzero((tables.level > 0) & (vms > 0) & (vms <= _RELOCATED))[:_SWITCHES]
    for source in sources.tolist():
        alike = (tables.level == tables.level[source]) & (spare >= vms[source])
        alike &= (tables.first != tables.first[source]) | (tables.last != tables.last[source])
        for target in _some(np.flatnonzero(alike), _SWITCHES).tolist():
            here, there = (np.arange(tables.first[n], tables.last[n]) for n in (source, target))
            left = np.repeat(here, planned[here])
            slots = np.repeat(there, np.minimum((room - planned)[there], len(left)))
            turn = np.arange(len(slots)) - np.searchsorted(slots, slots)
            evenly = slots[np.lexsort((slots, turn))][: len(left)]
            for taken in (slots[: len(left)], np.sort(evenly)):
                yield _one_move(left, taken)


def _one_move(source: Array, target: Array) -> Moves:
    """Return the move of VMs one by one, those that go the same way together. Shapes (vms,)."""
    goes_on = (np.diff(source, prepend=-1) == 0) & (np.diff(target, prepend=-1) == 0)
    [first] = np.nonzero(~goes_on)
    vms = np.diff(first, append=len(source))
    return Moves(source[first][None], target[first][None], vms[None])


def _one_by_leaf(leaf: Array, value: Array) -> Mask:
    """Return which place of each leaf has the highest value above 0, the first of equal ones."""
    order = np.lexsort((np.arange(len(value)), -value, leaf))
    first = order[np.flatnonzero(np.diff(leaf[order], prepend=-1))]
    found = np.zeros(len(value), dtype=np.bool_)
    found[first] = value[first] > 0
    return found


def _some(numbers: Array, most: int) -> Array:
    """Return numbers, at most some of them at even distances."""
    if len(numbers) <= most:
        return numbers
    return numbers[np.arange(most) * len(numbers) // most]
