"""Many runs: one after the other, in local processes, or on a Dask cluster."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import joblib

from hpc_sched import exceptions
from hpc_sched.sim.results import Result
from hpc_sched.sim.scenario import Run, Scenario, simulate


def in_turn(
    scenario: Scenario,
    runs: Sequence[Run],
    *,
    stopped: Callable[[], bool],
    progress: Callable[[Run, int], None],
) -> Iterator[Result]:
    """Yield the results of runs in this process.

    :param stopped: called between events; True ends the sweep and its current run
    :param progress: called after every job with the run and its number of recorded jobs
    """
    for run in runs:
        if stopped():
            return

        def job_done(count: int, run: Run = run) -> None:
            progress(run, count)

        yield simulate(scenario, run, stopped=stopped, progress=job_done)


def in_parallel(
    scenario: Scenario, runs: Sequence[Run], *, processes: int, dask: str | None = None
) -> Iterator[Result]:
    """Yield the results of runs as they end.

    The workers of a Dask cluster read the trace from the same path as this machine, and write
    to the same folder.

    :param processes: number of local processes
    :param dask: address of a Dask scheduler to use in place of local processes
    :raises exceptions.SimulationError: if the cluster cannot be reached
    """
    with contextlib.ExitStack() as stack:
        workers = processes
        if dask is not None:
            stack.enter_context(_client(dask))
            stack.enter_context(joblib.parallel_config(backend="dask"))
            workers = -1
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
        yield from parallel(joblib.delayed(simulate)(scenario, run) for run in runs)


def _client(address: str) -> contextlib.AbstractContextManager[object]:
    try:
        import distributed
    except ImportError as failure:
        raise exceptions.SimulationError(
            "a Dask cluster needs the package distributed: pip install 'hpc-sched[distributed]'"
        ) from failure
    try:
        client: contextlib.AbstractContextManager[object] = distributed.Client(
            address, timeout="10s"
        )
    except (OSError, ValueError) as failure:
        raise exceptions.SimulationError(
            f"{address}: no Dask scheduler can be reached there: {failure}"
        ) from failure
    return client
