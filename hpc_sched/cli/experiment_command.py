"""hpc-sched experiment dudina2013, gupta2012 and gupta2013."""

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from hpc_sched import decimals, exceptions
from hpc_sched.cli.common import output
from hpc_sched.cli.common.argument_types import ZERO_OR_MORE, add_number
from hpc_sched.cli.common.base_command import TextLister
from hpc_sched.cli.common.output import StatusLine
from hpc_sched.experiments import dudina2013, gupta2012, gupta2013, gupta2013_tables
from hpc_sched.experiments.table import Cell, Table
from hpc_sched.sim.jobs import swf
from hpc_sched.topology import plurals

TRACE = "METACENTRUM-2009-2.swf"
ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload/l_metacentrum/"

WIDTH = 100  # of the notes; a table is as wide as its cells

_EPILOG = """\
The simulated numbers are shown next to the published ones. What the paper leaves open is guessed;
notes list the guesses, and further rows show how much depends on them.

examples:

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
    RUNS: int  # by default
    TRACE = ""  # further arguments of the examples
    FAILED = "failed"  # meaning of exit code 1
    table: Callable[[int, int], Table]  # of seed and runs, if there is one and no trace

    def get_epilog(self) -> str:
        """Return the examples and exit codes."""
        runs = 3 * self.RUNS
        return _EPILOG.format(name=self.NAME, trace=self.TRACE, runs=runs, failed=self.FAILED)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of all experiments."""
        add_number(parser, "--seed", "seed of the random numbers", ZERO_OR_MORE, default=1)
        add_number(parser, "--runs", "number of runs in each setting", default=self.RUNS)

    def tables(self, args: argparse.Namespace, line: StatusLine) -> Sequence[Table]:
        """Return the tables; report progress on the line."""
        line.show(f"{self.NAME}: {plurals.text(args.runs, 'run')} in each setting")
        return [self.table(args.seed, args.runs)]

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Sequence[Any]]:
        """Return the tables as columns and rows."""
        line = StatusLine(self.app.stderr or sys.stderr)
        try:
            tables = self.tables(parsed_args, line)
        finally:
            line.end()
        self.lines = render(tables).splitlines()
        return table_rows(tables)


class Dudina2013(Experiment):
    """Repeat Dudina2013: Block Tridiagonal on 16 VMs, random against bunch-aware placement."""

    NAME, RUNS = "dudina2013", 10
    table = staticmethod(dudina2013.table)


class Gupta2012(Experiment):
    """Repeat Gupta2012: 8 VMs placed with regard to racks, and on processors of one type."""

    NAME, RUNS = "gupta2012", 10
    table = staticmethod(gupta2012.table)


class Gupta2013(Experiment):
    """Repeat Gupta2013: a trace under MDOBP and with interference limits (Table II, Figure 9).

    Takes about a minute.
    """

    NAME, RUNS = "gupta2013", 3
    TRACE = f" --trace {TRACE}.gz"
    FAILED = "the trace cannot be read"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        super().add_arguments(parser)
        # An option and its help are one paragraph.
        # fmt: off
        parser.add_argument("--trace", metavar="FILE",
            help=f"{TRACE} of the Parallel Workloads Archive, compressed with gzip or not")
        parser.add_argument("--curves", metavar="FILE",
            help="also write the jobs completed over time, the curves of Figure 9 for the first "
            f"seed, to this file: CSV with the columns {', '.join(gupta2013.CURVE_COLUMNS)}")
        # fmt: on

    def tables(self, args: argparse.Namespace, line: StatusLine) -> Sequence[Table]:
        """Return Table II and the two figures."""
        if args.trace is None:
            raise exceptions.TraceError(
                f"--trace: expected the file {TRACE}, or {TRACE}.gz, which is at {ARCHIVE}"
            )
        line.show(f"{self.NAME}: Table II")
        memory = gupta2013_tables.memory_table(args.trace)
        rows, seed = tuple(swf.read(args.trace, limit=gupta2013.JOBS)), args.seed
        figures = list(
            gupta2013_tables.figures(
                rows, seed, args.runs, lambda text: line.show(f"{self.NAME}: {text}")
            )
        )
        if args.curves is not None:
            line.show(f"{self.NAME}: curves")
            output.save(gupta2013.curves_csv(rows, seed), args.curves)
        return [memory, *figures]


def render(tables: Sequence[Table]) -> str:
    """Return tables with their titles and notes, a blank line between them."""
    return "\n\n".join("\n".join(_lines(table)) for table in tables) + "\n"


def table_rows(tables: Sequence[Table]) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Return columns and rows of one table with the columns of all; missing cells are None."""
    columns = tuple(dict.fromkeys(name for table in tables for name in table.columns))
    found = (dict(zip(table.columns, row, strict=True)) for table in tables for row in table.rows)
    return columns, [tuple(map(cells.get, columns)) for cells in found]


def _lines(table: Table) -> list[str]:
    """Return the lines of a table, without empty columns."""
    columns = [
        (name.split(), cells)
        for name, *cells in zip(table.columns, *table.rows, strict=True)
        if any(cell is not None for cell in cells)
    ]
    is_number = [not any(isinstance(cell, str) for cell in cells) for _, cells in columns]
    shown = [list(row) for row in zip(*(map(_text, cells) for _, cells in columns), strict=True)]
    # Headings are wider than their cells: one word a line, aligned at the bottom.
    words = [name for name, _ in columns]
    height = max(map(len, words))
    columns_of_words = ([""] * (height - len(each)) + each for each in words)
    heading = [list(line) for line in zip(*columns_of_words, strict=True)]
    rule = ["-" * max(map(len, column)) for column in zip(*heading, *shown, strict=True)]
    right = [i for i, number in enumerate(is_number) if number]
    lines = [table.title, "", *output.aligned([*heading, rule, *shown], right), ""]
    for note in table.notes:
        lines += textwrap.wrap(note, WIDTH, initial_indent="* ", subsequent_indent="  ")
    return lines


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return cell if isinstance(cell, str) else decimals.text_of(cell)
