"""NPB's programs on 16 ranks, class C: what each sends in an iteration, and what it computes.

Bytes, and operations as the programs print them in Mop/s, are read from the sources of NPB 3.3 for
MPI. Left out: sums of a few numbers over all ranks, and ghost points at the edges of faces.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.traffic.block_tridiagonal import SP, block_tridiagonal
from hpc_sched.core.traffic.patterns import NONE
from hpc_sched.core.traffic.step import Step, step
from hpc_sched.sim.network.messages.iteration import Iteration, iteration, volume

RANKS, SIDE = 16, 4
DOUBLE = 8  # bytes
POINTS = 162  # an edge, of BT, SP and LU in class C
EDGE = 512  # points an edge, of MG and FT
KEYS, KEY_BYTES = 2**27, 4  # of IS
KEY_OPERATIONS = 10  # on a key in an iteration: guessed, as IS counts keys
ROWS, NONZEROS, INNER = 150_000, 15, 25  # of CG: its matrix, and steps of an iteration


@dataclass(frozen=True, slots=True, eq=False)
class NpbProgram:
    """A program that 16 ranks run."""

    name: str
    pattern: str  # of its messages
    steps: Iteration
    operations: float  # of a rank in an iteration

    @property
    def volume(self) -> float:
        """Bytes of the busiest rank in an iteration."""
        return volume(self.steps)


def block_tridiagonal_steps(computation: float = 0.0) -> Iteration:
    """Return an iteration of BT.

    :param computation: s
    """
    cell_face = (POINTS / SIDE) ** 2 * DOUBLE
    # Per point of a cell's face 6 * 10 doubles for faces, and 3 * (30 + 5) for sweeps.
    return iteration("bt", RANKS, 165 * (SIDE - 1) * cell_face, computation)


def programs() -> tuple[NpbProgram, ...]:
    """Return the eight programs that send messages between 16 ranks, or none at all."""
    here = np.arange(RANKS)
    points, grid = POINTS**3, EDGE**3
    # Formulas of operations: BT/bt.f, SP/sp.f, LU/lu.f, MG/mg.f, CG/cg.f, FT/ft.f.
    operations = {
        "BT": 3478.8 * points - 17655.7 * POINTS**2 + 28023.7 * POINTS,
        "SP": 881.174 * points - 4683.91 * POINTS**2 + 11484.5 * POINTS - 19272.4,
        "LU": 1984.77 * points - 10923.3 * POINTS**2 + 27770.9 * POINTS - 144010,
        "MG": 58.0 * grid,
        "CG": 2 * ROWS * (6 + _nonzeros() + INNER * (5 + _nonzeros())),
        "FT": grid * (5.23518 + 7.21113 * math.log(grid)),
        "IS": float(KEY_OPERATIONS * KEYS),
        "EP": 0.0,
    }
    patterns = {
        "BT": ("faces, sweeps in stages", block_tridiagonal_steps()),
        "SP": ("faces, sweeps in stages", _scalar_pentadiagonal()),
        "LU": ("pipeline over planes, faces", _lower_upper(here.reshape(SIDE, SIDE))),
        "MG": ("faces of a 3-D grid", _multigrid(here)),
        "CG": ("exchanges in rows, transpose", _conjugate_gradient(here)),
        "FT": ("all to all", _all_to_all(16.0 * grid)),
        "IS": ("all to all", _all_to_all(float(KEYS * KEY_BYTES))),
        "EP": ("none", iteration(NONE, RANKS, 0.0)),
    }
    return tuple(
        NpbProgram(name, pattern, steps, operations[name] / RANKS)
        for name, (pattern, steps) in patterns.items()
    )


def _nonzeros() -> int:
    return NONZEROS * (NONZEROS + 1)  # of a row of CG's matrix, about


def _scalar_pentadiagonal() -> Iteration:
    cell_face = (POINTS / SIDE) ** 2 * DOUBLE
    return tuple(
        replace(each, size=each.size * cell_face, computation=0.0)
        for each in block_tridiagonal(SIDE, 1.0, SP)
        if len(each.sender)
    )


def _lower_upper(grid: Array) -> Iteration:
    """Return LU's sweeps over planes (LU/exchange_1.f), then faces (LU/exchange_3.f).

    In a sweep a rank sends the edge of a plane on as soon as it is computed: while the pipeline is
    full, all ranks send at a time. Filling it is left out.
    """
    down, right = (grid[:-1], grid[1:]), (grid[:, :-1], grid[:, 1:])
    edge = 5 * POINTS / SIDE * DOUBLE
    return (
        *(_messages(pairs, edge, POINTS - 2) for pairs in ((down, right), _back(down, right))),
        *(_messages((each, *_back(each)), 2 * POINTS * edge) for each in (down, right)),
    )


def _multigrid(here: Array) -> Iteration:
    """Return the faces of MG on 2 * 2 * 4 ranks, an axis at a time (MG/mg.f, comm3).

    Three times an iteration on the finest grid, and as often on each coarser one, whose faces are
    a quarter: 4 / 3 in all.
    """
    grid = here.reshape(4, 2, 2)
    local = EDGE // 4, EDGE // 2, EDGE // 2
    return tuple(
        _messages(
            [(grid, np.roll(grid, by, axis)) for by in (-1, 1)],
            math.prod(local) / local[axis] * DOUBLE * 4 / 3,
            times=3,
        )
        for axis in (2, 1, 0)
    )


def _conjugate_gradient(here: Array) -> Iteration:
    """Return the exchanges of CG on 4 * 4 ranks, one of them with the transposed rank (CG/cg.f)."""
    part = ROWS / SIDE * DOUBLE
    transposed = here % SIDE * SIDE + here // SIDE
    return tuple(
        _messages([(here, to)], part, INNER + 1) for to in (here ^ 1, here ^ 2, transposed)
    )


def _all_to_all(data: float) -> Iteration:
    """Return the exchange of all data, of which a rank keeps its part.

    :param data: of all ranks, bytes
    """
    return iteration("alltoall", RANKS, data / RANKS * (RANKS - 1) / RANKS)


def _messages(pairs: Iterable[tuple[Array, Array]], size: float, times: int = 1) -> Step:
    return step([(sender.ravel(), to.ravel()) for sender, to in pairs], size, times)


def _back(*messages: tuple[Array, Array]) -> tuple[tuple[Array, Array], ...]:
    return tuple((to, sender) for sender, to in messages)
