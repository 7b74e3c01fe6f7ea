"""hpc-sched simulate."""

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, cast

from hpc_sched import __version__, exceptions
from hpc_sched.cli.common import output
from hpc_sched.cli.common.argument_types import argument, flag, number, titled
from hpc_sched.cli.common.base_command import HPCSchedLister, Table
from hpc_sched.cli.simulate import arguments, result_table
from hpc_sched.cli.simulate.scenario_builder import RequestedRuns, requested_runs
from hpc_sched.core.traffic.patterns import NONE
from hpc_sched.sim import result_files
from hpc_sched.sim.measured.job_kinds import PATTERN
from hpc_sched.sim.measured.measured_window import MeasuredPart
from hpc_sched.sim.results import Result
from hpc_sched.sim.scenario import Run, simulate
from hpc_sched.sim.statistics.policy_comparison import Evidence, compare

if TYPE_CHECKING:
    from hpc_sched.cli.main import HPCSchedApp

INTERRUPTED = 130


class Simulate(HPCSchedLister):
    """Simulate placement policies on the jobs of a trace and a topology.

    A discrete-event simulation with the algorithms of the filters and weighers, and with the
    published rules of stock Nova, Slurm and Kueue. The same arguments give the same results.
    """

    EPILOG = """\
examples:

  What stock Nova, Dudina2013 and the exact plan make of a steady load, on 256 hosts:
    hpc-sched simulate

  Half that load, on a fabric of yours:
    hpc-sched simulate --use 0.45 --topology topology.yaml --host vcpus=64,memory=262144

  A trace without its first jobs, which find the cluster empty, and without its last:
    hpc-sched simulate jobs.swf.gz --measure 20%,90%

  A trace on a topology of yours, every policy, with a report:
    hpc-sched simulate jobs.swf.gz --topology topology.yaml --host vcpus=64,memory=262144 \\
      --policy all --queue easy --output results

  How much a placement costs, with measured factors, ten seeds on four processors:
    hpc-sched simulate jobs.swf --calibrate measured.csv --classes sync=0.6,async=0.4 \\
      --scores uniform:0:30 --seeds 10 --jobs 4 --output results

  A cloud as it is now, with the jobs of a day on top of what runs there:
    hpc-sched snapshot save state.json.gz && \\
      hpc-sched simulate jobs.swf --snapshot state.json.gz

  What it costs jobs to wait for a place below one leaf, and what they gain:
    hpc-sched simulate jobs.swf --queue easy --policy exact-plan --prefer leaf \\
      --wait-for-place 0,60,300,1200

  What the jobs pay, and what a host in use earns, by policy:
    hpc-sched simulate jobs.swf.gz --classes sync=0.6,async=0.4 --price sync=0.03,async=0.07

Without arguments drawn jobs arrive as fast as 90 % of the cluster needs (--use), under switches
with twice as many ports down as up, and take longer where their messages share links (--network;
assumed, not measured). The first 20 % and the last 10 % of the jobs are not measured (--measure).

One row a run; with ten and more seeds the format table has one row a policy, with confidence
intervals. Times in seconds. hop_byte_ratio and leaf_ratio are relative to the least that the same
jobs could have alone on the cluster. core_hours are vcpus of VMs times hours, of all jobs that ran;
host_core_hours are those of all cores of the hosts that had a VM. With --price the table has these
and the revenue. With --wait-for-place a policy has a run for each time, as in exact-plan@300. With
--measure all numbers are of a part of the run, while the files of jobs have all jobs. --output
writes runs.csv, results.json, report.html, with a network kinds.csv, and for each run a CSV with a
row for every job. Ctrl-C ends the current run and writes the results so far; a second one ends the
command.

exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted
"""

    _interrupted = False

    ARGUMENTS = (
        arguments.add_arguments,
        titled(
            "results",
            argument("--output", "write all results into this folder", type=Path, metavar="FOLDER"),
            flag("--each-run", "print a row for each run, with any number of seeds"),
            flag("--events", "with --output: write a line for every event too"),
            number("--jobs", "number of runs at a time, each in its own process", default=1),
            argument(
                "--dask",
                "run on the Dask cluster with this scheduler; its workers need the trace and the "
                "output folder at the same paths",
                metavar="ADDRESS",
            ),
        ),
    )

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, arguments that exclude each other."""
        prefers = args.prefer is not None or args.max_leaves is not None
        self.refuse(
            (
                args.wait_for_place is not None and not prefers,
                "--wait-for-place needs --prefer or --max-leaves",
            ),
            (args.events and args.output is None, "--events needs --output"),
            (
                args.dask is not None and args.jobs != 1,
                "--dask has workers of its own: --jobs does not go with it",
            ),
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Simulate; return columns and rows."""
        requested = requested_runs(parsed_args)
        output.note(*requested.notes)
        folder = parsed_args.output
        if folder is not None:
            result_files.prepare(folder)
        found = self._results(parsed_args, requested)
        empty = (*self._without_jobs(found), *self._without_messages(parsed_args, found))
        output.note(*empty)
        notes = (*requested.notes, *empty)
        if self._interrupted:
            self.exit_code = INTERRUPTED
            early = f"interrupted: {len(found)} of {len(requested.runs)} runs have results"
            notes = (*notes, early)
            output.say(early)
        if folder is not None:
            result_files.write(folder, found, self._settings(requested), notes)
            kinds = (result_files.KINDS_FILE,) if result_files.has_kinds(found) else ()
            names = ", ".join((*result_files.FILES, *kinds))
            output.say(f"written to {folder}: {names}, and each run's jobs")
        return self._table(parsed_args, found, requested.scenario.measured)

    @staticmethod
    def _without_jobs(found: Sequence[Result]) -> tuple[str, ...]:
        """Return a note on runs in which no job is measured; empty if there are none."""
        runs = [result for result in found if result.window and not result.summary.jobs]
        if not runs:
            return ()
        first = runs[0]
        assert first.window is not None
        named = f"{first.summary.policy}, seed {first.summary.seed}"
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        return (f"no job was submitted in the time to measure, {first.window}: {named}{more}",)

    @staticmethod
    def _without_messages(args: argparse.Namespace, found: Sequence[Result]) -> tuple[str, ...]:
        """Return a note if no measured job communicates by the rows of the file; else nothing."""
        if args.network_file is None:
            return ()
        kinds = [each for result in found for each in result.kinds]
        patterns = {each.name for each in kinds if each.dimension == PATTERN}
        if not patterns or patterns != {NONE}:
            return ()
        return (
            f"{args.network_file}: by its rows none of the jobs that were measured communicates",
        )

    def _table(
        self, args: argparse.Namespace, found: Sequence[Result], measured: MeasuredPart
    ) -> Table:
        comparison, all_columns = compare(found), bool(args.columns)
        self.below = [
            *result_table.of_kinds(found),
            *result_table.below(comparison, measured, has_limits=result_table.has_limits(found)),
        ]
        of_policies = comparison.evidence is Evidence.INTERVALS and not args.each_run
        if args.formatter == result_table.TABLE and of_policies:
            return result_table.of_policies(found, comparison, all_columns=all_columns)
        return result_table.of_runs(found, comparison, args.formatter, all_columns=all_columns)

    def _settings(self, requested: RequestedRuns) -> result_files.Settings:
        """Return the settings of the files: those of the scenario, with what ran it."""
        command, version = cast("HPCSchedApp", self.app).command_line, __version__
        return result_files.Settings(
            about=(
                ("Command", command),
                *requested.about,
                ("Version", f"hpc_sched {version}"),
            ),
            values={"command": command, "version": version, **requested.settings},
        )

    def _results(self, args: argparse.Namespace, requested: RequestedRuns) -> list[Result]:
        """Return the results in the order of the runs; fewer if interrupted."""
        # joblib and tqdm come with an extra that other commands do without.
        try:
            from tqdm import tqdm

            from hpc_sched.sim import sweep
        except ImportError as failure:
            raise exceptions.SimulationError(
                f"{failure.name} is missing: pip install 'hpc-sched[sim]'"
            ) from failure
        found: dict[Run, Result] = {}
        runs, jobs = requested.runs, requested.scenario.jobs
        named = {(run.label, run.seed): run for run in runs}
        interval = 0.5 if sys.stderr.isatty() else 30.0  # seconds
        with tqdm(
            total=len(runs) * jobs, unit=" jobs", file=sys.stderr, mininterval=interval, delay=1
        ) as bar:

            def progress(run: Run, done: int) -> None:
                bar.set_description(run.name, refresh=False)
                bar.update(runs.index(run) * jobs + done - bar.n)

            if args.jobs == 1 and args.dask is None:
                with self._stoppable():
                    for run in runs:
                        if self._interrupted:
                            break
                        found[run] = simulate(
                            requested.scenario,
                            run,
                            stopped=lambda: self._interrupted,
                            progress=partial(progress, run),
                        )
            else:
                try:
                    for result in sweep.in_parallel(requested.scenario, runs, args.jobs, args.dask):
                        found[named[result.summary.policy, result.summary.seed]] = result
                        bar.update(jobs)
                except KeyboardInterrupt:
                    self._interrupted = True
        return [found[run] for run in runs if run in found]

    @contextlib.contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Let the first Ctrl-C end the current run, and the second one the command."""

        def stop(_signal: int, _frame: FrameType | None) -> None:
            if self._interrupted:
                raise KeyboardInterrupt
            self._interrupted = True

        try:
            before = signal.signal(signal.SIGINT, stop)
        except ValueError:  # not the main thread: it gets no Ctrl-C
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
