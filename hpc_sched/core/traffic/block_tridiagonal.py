"""The steps of NPB's BT and SP: faces, then sweeps in three directions, stage after stage.

NPB cuts the cube into side ** 3 cells, so that each rank of side * side has one cell in each plane
of each direction (multi-partition). Its neighbours are thereby the same for all its cells: the next
and the previous rank in the row, in the column, and, for the third direction, on the diagonal, all
cyclic (NPB 3.3, BT/make_set.f). All neighbours get faces at once (BT/copy_faces.f). Then in each
direction systems are solved cell by cell: forward to the next rank, back to the previous one, and
a stage cannot begin before the message of the one before has come (BT/x_solve.f). SP is the same
with other messages; it computes some of a stage while it waits, which is left out. Cells are
assumed to be equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.traffic.step import Step, step


@dataclass(frozen=True, slots=True)
class Doubles:
    """What a rank sends per point of a cell's face, in doubles."""

    face: int  # each way, to each neighbour
    forward: int  # to the next rank, after a stage of a forward sweep
    back: int  # to the previous one, after a stage of the back substitution


# Faces are two layers of five unknowns. BT sends a block of 5 x 5 and a right-hand side of 5
# forward, and 5 unknowns back; SP what its three systems need (SP/x_solve.f).
BT, SP = Doubles(10, 30, 5), Doubles(10, 22, 10)


def block_tridiagonal(side: int, forward: float, doubles: Doubles = BT) -> Iterator[Step]:
    """Yield the steps of one time step on side * side ranks.

    Sizes are in doubles per point of a cell's face, computation in parts of that of the time step:
    a third for each direction.

    :param forward: part of a direction's computation in its forward sweep, 0 to 1
    """
    if side < 2:
        return
    here = np.arange(side * side).reshape(side, side)
    ranks = here.ravel()

    def shifted(rows: int, columns: int) -> Array:
        found: Array = np.roll(here, (-rows, -columns), (0, 1)).ravel()
        return found

    directions = [
        (shifted(rows, columns), shifted(-rows, -columns))
        for rows, columns in ((0, 1), (1, 0), (1, -1))
    ]
    # A cell in each of side planes has faces to the next rank in all but one of them.
    yield step([(ranks, to) for pair in directions for to in pair], doubles.face * (side - 1))
    ahead, behind = forward / 3 / side, (1 - forward) / 3 / side  # of one cell
    for following, previous in directions:
        yield step([(ranks, following)], doubles.forward, times=side - 1, computation=ahead)
        yield step([], 0.0, computation=ahead)
        yield step([(ranks, previous)], doubles.back, times=side - 1, computation=behind)
        yield step([], 0.0, computation=behind)
