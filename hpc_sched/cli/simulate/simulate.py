"""hpc-sched simulate."""

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from types import FrameType
from typing import Any

from cliff.lister import Lister

from hpc_sched import exceptions
from hpc_sched.cli.common import number_types, output
from hpc_sched.cli.simulate import arguments
from hpc_sched.cli.simulate.scenario_arguments import Sweep, sweep_of
from hpc_sched.sim import result_files
from hpc_sched.sim.scenario import Run
from hpc_sched.sim.summary import Result, Summary

INTERRUPTED = 130

_EPILOG = """\
examples:

  What stock Nova, Dudina2013 and the exact plan do to a thousand drawn jobs, on 256 hosts:
    hpc-sched simulate

  An own trace on the own fabric, every policy, a report to look at:
    hpc-sched simulate jobs.swf.gz --topology topology.yaml --host vcpus=64,memory=262144 \\
      --policy all --queue easy --output results

  How much a placement costs, with measured factors, ten seeds on four processors:
    hpc-sched simulate jobs.swf --calibrate measured.csv --classes sync=0.6,async=0.4 \\
      --scores uniform:0:30 --seeds 10 --jobs 4 --output results

  A cloud as it is now, with the jobs of a day on top of what runs there:
    hpc-sched snapshot save state.json.gz && \\
      hpc-sched simulate jobs.swf --snapshot state.json.gz

One row a run; times in seconds. Hop-Byte and leaves are told over the least that the same jobs
could have on the cluster without others. With --output the folder gets runs.csv, results.json,
report.html, and for each run a CSV with a row for every job. Ctrl-C ends the run where it is and
writes what there is; a second one ends the command.

exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted
"""

# What a terminal shows; -c and -f csv have all.
_SHORT = (
    "policy",
    "seed",
    "done",
    "refused",
    "left",
    "makespan",
    "wait_mean",
    "slowdown_mean",
    "vcpu_use",
    "hops_per_pair",
    "hop_byte_ratio",
    "leaf_ratio",
    "factor_mean",
)


class Simulate(Lister):
    """Tell what placement policies would do to the jobs of a trace on a fabric.

    Discrete events on the very algorithms that the filters and weighers use, and on the rules
    that stock Nova, Slurm and Kueue have published. The same arguments give the same results.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        arguments.add_arguments(parser)
        group = parser.add_argument_group("results")
        group.add_argument("--output", metavar="FOLDER", help="write all results into this folder")
        group.add_argument(
            "--events", action="store_true", help="with --output: a line for every event too"
        )
        group.add_argument(
            "--jobs",
            type=number_types.at_least(1),
            default=1,
            metavar="N",
            help="runs at once, each in a process of its own (default: 1)",
        )
        group.add_argument(
            "--dask",
            metavar="ADDRESS",
            help="run on the Dask cluster with this scheduler, whose workers find the trace and "
            "the output folder at the same paths",
        )
        self.parser = parser
        return parser

    def get_epilog(self) -> str:
        """Return the examples."""
        return _EPILOG

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Print the runs; return the exit code."""
        if parsed_args.events and parsed_args.output is None:
            self.parser.error("--events needs --output")
        if parsed_args.dask is not None and parsed_args.jobs != 1:
            self.parser.error("--dask has workers of its own: --jobs does not go with it")
        self._interrupted = False
        code = super().run(parsed_args)
        return INTERRUPTED if self._interrupted else code

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        """Simulate; return columns and rows."""
        asked = sweep_of(parsed_args)
        for note in asked.notes:
            output.say(f"note: {note}")
        folder = (
            None if parsed_args.output is None else result_files.prepared(Path(parsed_args.output))
        )
        found = self._results(parsed_args, asked)
        if folder is not None:
            result_files.write(folder, found, asked.about, asked.notes)
            output.say(f"written to {folder}: {', '.join(result_files.FILES)}, and each run's jobs")
        if self._interrupted:
            output.say(f"interrupted: {len(found)} of {len(asked.runs)} runs have results")
        names = [field.name for field in fields(Summary)]
        rows = [dict(zip(names, astuple(result.summary), strict=True)) for result in found]
        if parsed_args.formatter == "table" and not parsed_args.columns:
            names = list(_SHORT)
        return names, [[_shown(row[name], parsed_args.formatter) for name in names] for row in rows]

    def _results(self, args: argparse.Namespace, asked: Sweep) -> list[Result]:
        """Return the results in the order of the runs, what there is where it is interrupted."""
        # joblib and tqdm come with an extra; other commands do without.
        try:
            from tqdm import tqdm

            from hpc_sched.sim import sweep
        except ImportError as failure:
            raise exceptions.SimulationError(
                f"{failure.name} is missing: pip install 'hpc-sched[sim]'"
            ) from failure
        found: dict[tuple[str, int], Result] = {}
        total = len(asked.runs) * asked.jobs
        # Where nobody watches a line now and then is enough.
        often = 0.5 if sys.stderr.isatty() else 30.0
        with tqdm(total=total, unit=" jobs", file=sys.stderr, mininterval=often, delay=1) as bar:
            if args.jobs == 1 and args.dask is None:
                offsets = {run: i * asked.jobs for i, run in enumerate(asked.runs)}

                def progress(run: Run, jobs: int) -> None:
                    bar.set_description(run.name, refresh=False)
                    bar.update(offsets[run] + jobs - bar.n)

                with self._stoppable():
                    runs = sweep.in_turn(
                        asked.scenario,
                        asked.runs,
                        stopped=lambda: self._interrupted,
                        progress=progress,
                    )
                    for result in runs:
                        found[result.summary.policy, result.summary.seed] = result
            else:
                try:
                    parallel = sweep.in_parallel(
                        asked.scenario, asked.runs, processes=args.jobs, dask=args.dask
                    )
                    for result in parallel:
                        found[result.summary.policy, result.summary.seed] = result
                        bar.update(asked.jobs)
                except KeyboardInterrupt:
                    self._interrupted = True
        return [found[key] for run in asked.runs if (key := (run.policy, run.seed)) in found]

    @contextlib.contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Let the first Ctrl-C end a run in good order, and the second one everything."""

        def stop(_signal: int, _frame: FrameType | None) -> None:
            if self._interrupted:
                raise KeyboardInterrupt
            self._interrupted = True

        try:
            before = signal.signal(signal.SIGINT, stop)
        except ValueError:  # not the main thread: nobody can press Ctrl-C here
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _shown(value: Any, formatter: str) -> Any:
    """Return a cell; for people with four digits."""
    if isinstance(value, float) and formatter == "table":
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return "" if value is None and formatter in ("table", "csv", "value") else value
