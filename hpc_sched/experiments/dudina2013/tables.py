"""The tables of Dudina2013."""

from hpc_sched.experiments.dudina2013 import (
    block_tridiagonal_table,
    other_programs,
    where_gain_begins,
)
from hpc_sched.experiments.dudina2013.placements import SETUP
from hpc_sched.experiments.experiment_table import Table
from hpc_sched.experiments.shared_cluster import NetworkSetup


def tables(seed: int, runs: int = 10, setup: NetworkSetup = SETUP) -> tuple[Table, ...]:
    """Return the table of Block Tridiagonal, of all benchmarks, and of where a gain begins."""
    parts = (block_tridiagonal_table, other_programs, where_gain_begins)
    return tuple(part.table(seed, runs, setup) for part in parts)
