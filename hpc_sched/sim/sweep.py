"""Many runs at a time, in local processes or on a Dask cluster."""

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from hpc_sched import exceptions
from hpc_sched.sim.results import Result
from hpc_sched.sim.scenario import Run, Scenario, simulate

try:
    import joblib
except ModuleNotFoundError as _missing:
    raise exceptions.SimulationError(
        f"{_missing.name} is missing: pip install 'hpc-sched[sim]'"
    ) from _missing


def in_parallel(
    scenario: Scenario, runs: Sequence[Run], processes: int, dask: str | None
) -> Iterator[Result]:
    """Yield the results of runs as they end.

    The workers of a Dask cluster read the trace from the same path as this machine, and write
    to the same folder.

    :raises exceptions.SimulationError: if the cluster cannot be reached
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_ending_workers())
        if dask is not None:
            stack.enter_context(_client(dask))
            stack.enter_context(joblib.parallel_config(backend="dask"))
            processes = -1
        parallel = joblib.Parallel(n_jobs=processes, return_as="generator_unordered")
        yield from parallel(joblib.delayed(simulate)(scenario, run) for run in runs)


@contextlib.contextmanager
def _ending_workers() -> Iterator[None]:
    """Let SIGTERM end the workers with this process: they would wait for it without an end."""
    try:
        before = signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _client(address: str) -> Any:
    try:
        import distributed
    except ImportError as failure:
        raise exceptions.SimulationError(
            "a Dask cluster needs the package distributed: pip install 'hpc-sched[distributed]'"
        ) from failure
    try:
        return distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as failure:
        raise exceptions.SimulationError(
            f"{address}: no Dask scheduler can be reached there: {failure}"
        ) from failure
