"""Where placement begins to matter: Block Tridiagonal by oversubscription and communication."""

from collections.abc import Sequence
from dataclasses import replace

from hpc_sched.experiments.dudina2013.block_tridiagonal_table import run
from hpc_sched.experiments.dudina2013.npb_programs import block_tridiagonal_steps
from hpc_sched.experiments.dudina2013.placements import SETUP, saved
from hpc_sched.experiments.experiment_table import Cell, Setting, Table, mean_and_width, percent
from hpc_sched.experiments.shared_cluster import NetworkSetup, PlacementRun, compute_time
from hpc_sched.sim.statistics.estimate import Estimate

RATIOS = (1.0, 2.0, 4.0, 8.0, 16.0)
TALKING = (0.3, 1.0)
SHARES = (10, 20, 30, 40, 50)  # percent
LEAST = 0.02  # gain that counts

COLUMNS = (
    *("oversubscription", "neighbours talk, %"),
    *(name for share in SHARES for name in (f"less by at {share} %, %", f"± at {share} %")),
    "2 % from communication of, %",
)


def table(seed: int, runs: int = 10, setup: NetworkSetup = SETUP) -> Table:
    """Return the gains with their intervals, and the least communication with a gain of 2 %."""
    return Table(
        source="Dudina2013, section 4, where a gain begins",
        title="Block Tridiagonal, mean less by, at 10 to 50 % of communication",
        columns=COLUMNS,
        rows=tuple(
            _line(varied, run(seed, runs, varied))
            for talking in TALKING
            for ratio in RATIOS
            for varied in [replace(setup, oversubscription=ratio, talking=talking)]
        ),
        settings=(
            Setting("runs", str(runs), "4: 10; paired, 95 % intervals of Student's t"),
            Setting("oversubscription", f"{RATIOS[0]:g}:1 to {RATIOS[-1]:g}:1", "guessed: varied"),
            Setting("communication", "of an iteration, alone on a leaf", "guessed: varied"),
            Setting("cluster and other jobs", "as for Block Tridiagonal", "see there"),
        ),
        notes=(
            "The last column is the least share of communication, in whole percent, whose interval "
            "is above 2 %. Without a number there is none.",
            "Poster A18 of SC17 (Understanding the Impact of Fat-Tree Network Locality on "
            "Application Performance) measured typically less than 2 % for three applications on a "
            "commodity cluster of LLNL, whose oversubscription its abstract does not state.",
        ),
    )


def least_share(setup: NetworkSetup, rows: Sequence[PlacementRun]) -> int | None:
    """Return the least communication, percent, with a gain of 2 % at least, or None.

    None as well for fewer runs than an interval needs.
    """
    shares = (share for share in range(1, 100) if _gain(setup, share, rows).is_above(LEAST))
    return next(shares, None)


def _gain(setup: NetworkSetup, share: int, rows: Sequence[PlacementRun]) -> Estimate:
    shared = replace(setup, share=share / 100)
    return saved(rows, compute_time(shared, block_tridiagonal_steps()))


def _line(setup: NetworkSetup, rows: Sequence[PlacementRun]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for share in SHARES:
        found = _gain(setup, share, rows)
        cells += mean_and_width(found, percent)
    return (
        *(setup.oversubscription, percent(setup.talking)),
        *cells,
        least_share(setup, rows),
    )
