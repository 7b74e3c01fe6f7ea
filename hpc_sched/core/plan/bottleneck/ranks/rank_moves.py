"""Moves of VMs between places, by which a plan may become better."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from hpc_sched.core.arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Alternatives to a plan: each moves VMs from places to others. Shapes (moves, parts)."""

    source: Array
    target: Array
    vms: Array

    def shift(self, place: Array) -> Array:
        """Return how many new ranks more are before places. Shape (moves, places)."""
        found = np.zeros((len(self), len(place)), dtype=np.int64)
        for source, target, vms in zip(self.source.T, self.target.T, self.vms.T, strict=True):
            found += vms[:, None] * (place > target[:, None])
            found -= vms[:, None] * (place > source[:, None])
        return found

    def __getitem__(self, chosen: Array | slice) -> "Moves":
        return Moves(self.source[chosen], self.target[chosen], self.vms[chosen])

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def of_one_part(cls, source: Array, target: Array, vms: Array) -> "Moves":
        """Return moves from one place to one other each. Shapes (moves,)."""
        return cls(source[:, None], target[:, None], vms[:, None])

    @classmethod
    def joined(cls, parts: Sequence["Moves"]) -> "Moves":
        """Return the moves of several sets; those of fewer parts get parts of no VMs."""
        most = max(part.source.shape[1] for part in parts)
        columns = (
            np.concatenate([_wide(getattr(part, each.name), most) for part in parts])
            for each in fields(cls)
        )
        return cls(*columns)

    def after(self, planned: Array, move: int) -> Array:
        """Return a plan after one of the moves. Shape (places,)."""
        found = planned.copy()
        np.subtract.at(found, self.source[move], self.vms[move])
        np.add.at(found, self.target[move], self.vms[move])
        return found


def stay(parts: int) -> Moves:
    """Return the one move that changes nothing."""
    return Moves(*(np.zeros((1, parts), dtype=np.int64),) * 3)


def moves_between(sources: Array, targets: Array, planned: Array, room: Array) -> Moves:
    """Return the moves of any number of VMs from some places to others.

    :param sources: places with VMs
    :param targets: places with room for more
    """
    source, target = (each.ravel() for each in np.meshgrid(sources, targets, indexing="ij"))
    source, target = source[source != target], target[source != target]
    most = np.minimum(planned[source], (room - planned)[target])
    move = np.repeat(np.arange(len(source)), most)
    vms = np.arange(len(move)) - (most.cumsum() - most)[move] + 1
    return Moves.of_one_part(source[move], target[move], vms)


def pairs(moves: Moves, planned: Array, room: Array) -> Moves:
    """Return the moves of two parts, of which both together are possible. O(moves ** 2)."""
    one, other = np.triu_indices(len(moves), 1)
    both = Moves(
        *(np.hstack([each[one], each[other]]) for each in (moves.source, moves.target, moves.vms))
    )
    # VMs that go on to a third place are moved there by one part.
    possible = ~(both.source == both.target[:, ::-1]).any(1)
    for place in (*both.source.T, *both.target.T):
        less = ((both.source == place[:, None]) * both.vms).sum(1)
        more = ((both.target == place[:, None]) * both.vms).sum(1)
        after = planned[place] - less + more
        possible &= (after >= 0) & (after <= room[place])
    return both[np.flatnonzero(possible)]


def _wide(numbers: Array, parts: int) -> Array:
    found = np.zeros((len(numbers), parts), dtype=np.int64)
    found[:, : numbers.shape[1]] = numbers
    return found
