"""hpc-sched experiment dudina2013, gupta2012 and gupta2013."""

import abc
import argparse
import sys
from collections.abc import Callable, Sequence

from hpc_sched import exceptions
from hpc_sched.cli.common import number_types, output
from hpc_sched.cli.common.progress_line import StatusLine
from hpc_sched.cli.common.text_lister import Answer, TextLister
from hpc_sched.cli.simulate import experiment_tables
from hpc_sched.experiments import (
    dudina2013,
    gupta2012,
    gupta2013,
    gupta2013_tables,
)
from hpc_sched.experiments.table import Table
from hpc_sched.topology import plurals

TRACE = "METACENTRUM-2009-2.swf"
ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload/l_metacentrum/"

_EPILOG = """\
examples:

  Ours beside what was published, and ours where the guesses are varied:

    hpc-sched experiment {name}{trace}

  Other runs, and more of them; the same seed gives the same numbers:

    hpc-sched experiment {name}{trace} --seed 2 --runs {runs}

  Rows for programs; without the notes, which say what is guessed:

    hpc-sched experiment {name}{trace} -f csv

exit codes: 0 done, 1 {failed}, 2 wrong usage
"""


class Experiment(TextLister):
    """An experiment of a paper, repeated in the simulator."""

    NAME: str
    RUNS: int  # unless something else is asked for
    TRACE = ""  # what examples put behind the name
    FAILED = "failed"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the arguments that all experiments have."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--seed",
            type=number_types.at_least(0),
            default=1,
            metavar="N",
            help="where chance begins (default: 1)",
        )
        parser.add_argument(
            "--runs",
            type=number_types.at_least(1),
            default=self.RUNS,
            metavar="N",
            help=f"runs that numbers are taken from (default: {self.RUNS})",
        )
        return parser

    def get_epilog(self) -> str:
        """Return the examples."""
        return _EPILOG.format(
            name=self.NAME, trace=self.TRACE, runs=3 * self.RUNS, failed=self.FAILED
        )

    @abc.abstractmethod
    def tables(self, args: argparse.Namespace, line: StatusLine) -> Sequence[Table]:
        """Return the tables; the line tells what is being done."""

    def answer(self, args: argparse.Namespace) -> Answer:
        """Return the tables as text and as rows."""
        line = StatusLine(self.app.stderr or sys.stderr)
        try:
            tables = self.tables(args, line)
        finally:
            line.end()
        columns, rows = experiment_tables.rows(tables)
        return Answer(experiment_tables.render(tables), columns, rows)


class OneTable(Experiment):
    """An experiment that has one table and needs no trace."""

    table: Callable[[int, int], Table]  # of seed and runs

    def tables(self, args: argparse.Namespace, line: StatusLine) -> Sequence[Table]:
        """Return the one table."""
        line.show(f"{self.NAME}: {plurals.text(args.runs, 'run')} in each setting")
        return [self.table(args.seed, args.runs)]


class Dudina2013(OneTable):
    """Repeat Dudina2013: Block Tridiagonal on 16 VMs, random against bunch-aware placement.

    Ours beside the published numbers. What the paper does not tell is guessed; the notes say
    what, and further rows show how much hangs on it.
    """

    NAME, RUNS = "dudina2013", 10

    table = staticmethod(dudina2013.table)


class Gupta2012(OneTable):
    """Repeat Gupta2012: 8 VMs placed with regard to racks, and on processors of one type.

    Ours beside the published numbers. What the paper does not tell is guessed; the notes say
    what, and further rows show how much hangs on it.
    """

    NAME, RUNS = "gupta2012", 10

    table = staticmethod(gupta2012.table)


class Gupta2013(Experiment):
    """Repeat Gupta2013: a trace under MDOBP and with interference minded (Table II, Figure 9).

    Ours beside the published numbers. What the paper does not tell is guessed; the notes say
    what, and further rows show how much hangs on it. Takes about a minute.
    """

    NAME, RUNS = "gupta2013", 3
    TRACE = f" --trace {TRACE}.gz"
    FAILED = "the trace cannot be read"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--trace",
            metavar="FILE",
            help=f"{TRACE} of the Parallel Workloads Archive, compressed with gzip or not",
        )
        parser.add_argument(
            "--curves",
            metavar="FILE",
            help="write the jobs completed over time here too, the curves of Figure 9 for the "
            f"first seed: CSV with the columns {', '.join(gupta2013.CURVE_COLUMNS)}",
        )
        return parser

    def tables(self, args: argparse.Namespace, line: StatusLine) -> Sequence[Table]:
        """Return Table II and the two figures."""
        if args.trace is None:
            raise exceptions.TraceError(
                f"--trace: expected the file {TRACE}, or {TRACE}.gz, which is at {ARCHIVE}"
            )
        line.show(f"{self.NAME}: Table II")
        memory = gupta2013_tables.memory_table(args.trace)
        rows = gupta2013.records(args.trace)
        figures = [
            figure(
                rows, args.seed, args.runs, report=lambda text: line.show(f"{self.NAME}: {text}")
            )
            for figure in (gupta2013_tables.figure_9a, gupta2013_tables.figure_9b)
        ]
        if args.curves is not None:
            line.show(f"{self.NAME}: curves")
            found = gupta2013.curves(rows, args.seed)
            output.save(gupta2013.curves_csv(found), args.curves)
        return [memory, *figures]
