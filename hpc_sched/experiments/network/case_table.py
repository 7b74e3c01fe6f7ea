"""Cases at the three levels of detail: seconds, errors of the coarser ones, processor time."""

import time
from collections.abc import Callable, Iterable

from hpc_sched import exceptions
from hpc_sched.experiments.experiment_table import Cell, Table, percent
from hpc_sched.sim.network.link_bytes import LinkBytes, LinkLoad
from hpc_sched.sim.network.messages import program
from hpc_sched.sim.network.messages.case_file import Case, read
from hpc_sched.sim.network.messages.iteration import Iteration, computation
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.sim.network.replay import replay

COLUMNS = (
    *("case", "ranks", "steps"),
    *("replay, s", "by steps, s", "by links, s"),
    *("steps off by, %", "links off by, %"),
    *("replay took, ms", "steps took, ms", "links took, ms"),
)
_DIGITS = 6  # of seconds


def table(paths: Iterable[str], progress: Callable[[str], object] = lambda _: None) -> Table:
    """Return a row for each file.

    :raises exceptions.SimulationError: for a file that is no case, or that cannot be replayed
    """
    rows = []
    for path in paths:
        progress(path)
        rows.append(_row(path))
    return Table(
        source="Network, cases",
        title="each file at three levels of detail",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(
            "Replay follows every message; steps have a barrier after each wait; links know only "
            "the bytes of a step on each link. Off by: over the seconds of replay, less 1.",
            "What it took is processor time without reading the file, and differs between runs.",
        ),
    )


def _row(path: str) -> tuple[Cell, ...]:
    case = read(path)
    try:
        iteration = program.steps(case.ranks)
        found = [
            _timed(lambda: float(replay(case.network, case.ranks, case.others).max())),
            _timed(lambda: _by_steps(case)),
            _timed(lambda: _by_links(case)),
        ]
    except ValueError as error:
        raise exceptions.SimulationError(f"{path}: {error}") from error
    seconds, took = zip(*found, strict=True)
    exact = seconds[0]
    return (
        *(path, len(case.ranks), sum(each.times for each in iteration if len(each.sender))),
        *(round(each, _DIGITS) for each in seconds),
        *(percent(each / exact - 1) if exact else None for each in seconds[1:]),
        *(round(1000 * each, 1) for each in took),
    )


def _timed(compute: Callable[[], float]) -> tuple[float, float]:
    """Return what is computed, and the processor time that it takes, s."""
    start = time.process_time()
    found = compute()
    return found, time.process_time() - start


def _placed(case: Case) -> tuple[Iteration, PlacedSteps]:
    iteration = program.steps(case.ranks)
    return iteration, PlacedSteps.of(case.network, iteration, case.hosts)


def _by_steps(case: Case) -> float:
    iteration, placed = _placed(case)
    return computation(iteration) + placed.seconds(case.network.capacity, case.others)


def _by_links(case: Case) -> float:
    iteration, placed = _placed(case)
    capacity = case.network.capacity
    load = LinkLoad.of(capacity, case.others)
    return computation(iteration) + LinkBytes.of(case.network, placed).seconds(capacity, load)
