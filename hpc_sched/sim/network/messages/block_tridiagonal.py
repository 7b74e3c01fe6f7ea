"""The steps of NPB's BT: faces, then sweeps in three directions whose stages wait for each other.

NPB cuts the cube into side ** 3 cells, so that each rank of side * side has one cell in each plane
of each direction (multi-partition). Its neighbours are thereby the same for all its cells: the next
and the previous rank in the row, in the column, and, for the third direction, on the diagonal, all
cyclic (NPB 3.3, BT/make_set.f). All neighbours get faces at once (BT/copy_faces.f). Then in each
direction systems are solved cell by cell: forward to the next rank, back to the previous one, and
a stage cannot begin before the message of the one before has come (BT/x_solve.f). Cells are
assumed to be equal.
"""

from collections.abc import Iterator

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.sim.network.messages.step import Step, step

# Doubles that BT sends per point of a cell's face: two layers of five unknowns each way with
# copy_faces; a block of 5 x 5 and a right-hand side of 5 forward in a sweep, and 5 unknowns back.
_FACE, _FORWARD, _BACK = 10, 30, 5


def block_tridiagonal(side: int, forward: float) -> Iterator[Step]:
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
    yield step([(ranks, to) for pair in directions for to in pair], _FACE * (side - 1))
    ahead, behind = forward / 3 / side, (1 - forward) / 3 / side  # of one cell
    for following, previous in directions:
        yield step([(ranks, following)], _FORWARD, times=side - 1, computation=ahead)
        yield step([], 0.0, computation=ahead)
        yield step([(ranks, previous)], _BACK, times=side - 1, computation=behind)
        yield step([], 0.0, computation=behind)
