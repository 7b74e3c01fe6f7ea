"""Communication patterns of parallel applications.

Each function returns an array of shape (processes, processes): bytes that the process of the row
sends to that of the column in one iteration. The diagonal is 0.
"""

from collections.abc import Sequence

import numpy as np

from hpc_sched.core.arrays import Array, Reals
from hpc_sched.sim.runtime.network import Flows

# Doubles that NPB's BT sends per point of a cell's face: two layers of five unknowns each way with
# copy_faces; a block of 5 x 5 and a right-hand side of 5 forward in a sweep, and 5 unknowns back.
FACE, FORWARD, BACK = 10, 30, 5


def ring(processes: int, size: float) -> Reals:
    """Return the traffic of a ring: each process sends to the next one, the last to the first."""
    return _to_each(processes, [(np.roll(np.arange(processes), -1), size)])


def torus(rows: int, columns: int, size: float) -> Reals:
    """Return the traffic of a torus whose processes each send to four neighbours, rows first.

    On a grid two wide both neighbours in a row are one process, which receives twice as much.
    """
    grid = np.arange(rows * columns).reshape(rows, columns)
    return _to_each(
        rows * columns,
        [(np.roll(grid, by, axis).ravel(), size) for axis in (0, 1) for by in (1, -1)],
    )


def block_tridiagonal(side: int, points: int) -> Reals:
    """Return the traffic of one time step of NPB's BT on side * side processes.

    NPB cuts the cube into side ** 3 cells, so that each process has one cell in each plane of
    each direction (multi-partition). Its neighbours are thereby the same for all its cells: the
    next and the previous process in the row, in the column, and, for the third direction, on
    the diagonal, all cyclic (NPB 3.3, BT/make_set.f). To the next one go faces and the forward
    sweep, to the previous one faces and the back substitution, for all planes but one
    (BT/copy_faces.f, BT/x_solve.f). Cells are assumed to be equal, and a sweep's stages to be
    sent at once.

    :param points: grid points along an edge of the cube; 162 for class C
    """
    grid = np.arange(side * side).reshape(side, side)
    face = (points / side) ** 2 * (side - 1) * 8  # bytes of a double each
    # To the next process of each direction, and to the previous one.
    sent = [
        (np.roll(grid, (shift * rows, shift * columns), (0, 1)).ravel(), face * doubles)
        for rows, columns in ((0, 1), (1, 0), (1, -1))
        for shift, doubles in ((-1, FACE + FORWARD), (1, FACE + BACK))
    ]
    return _to_each(side * side, sent)


def flows(traffic: Reals, places: Sequence[int]) -> Flows:
    """Return the flows of one iteration.

    :raises ValueError: if there are not as many places as processes
    """
    if len(places) != len(traffic):
        raise ValueError(f"{len(places)} places for {len(traffic)} processes")
    sender, receiver = np.nonzero(traffic)
    host = np.asarray(places, dtype=np.int64)
    return Flows(host[sender], host[receiver], traffic[sender, receiver])


def _to_each(processes: int, sent: Sequence[tuple[Array, float]]) -> Reals:
    traffic = np.zeros((processes, processes))
    for receiver, size in sent:
        traffic[np.arange(processes), receiver] += size
    np.fill_diagonal(traffic, 0.0)
    return traffic
