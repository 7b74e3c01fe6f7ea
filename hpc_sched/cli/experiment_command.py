"""hpc-sched experiment dudina2013, gupta2012 and gupta2013."""

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

from hpc_sched import decimals, exceptions
from hpc_sched.cli.common import output
from hpc_sched.cli.common.argument_types import ZERO_OR_MORE, argument, number
from hpc_sched.cli.common.base_command import TextLister
from hpc_sched.experiments import gupta2012
from hpc_sched.experiments.dudina2013.tables import tables as dudina2013_tables
from hpc_sched.experiments.experiment_table import Cell, Setting, Table
from hpc_sched.experiments.gupta2013 import (
    figure_8,
    figure_9a,
    figure_9b,
    table_1,
    table_2,
    trace_run,
)
from hpc_sched.experiments.gupta2013.figure_9 import Runs
from hpc_sched.sim.jobs import swf
from hpc_sched.sim.statistics.estimate import LEAST_SEEDS
from hpc_sched.topology import plurals

TRACE = "METACENTRUM-2009-2.swf"
ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload/l_metacentrum/"

WIDTH = 100  # of text; a table is as wide as its cells
SETTING_COLUMNS = ("setting", "value", "stated in section")

_EPILOG = """\
The simulated numbers are shown next to the published ones, with a verdict on each table. Below
are the settings: where the paper states each one, or that it is inferred or guessed. Further rows
show how much depends on the guesses.

examples:

    hpc-sched experiment {name}{trace}

  Other runs, and more of them; the same seed gives the same numbers:

    hpc-sched experiment {name}{trace} --seed 2 --runs {runs}

  Rows for programs, with those of verdicts and settings, without the notes:

    hpc-sched experiment {name}{trace} -f csv

exit codes: 0 done, 1 {failed}, 2 wrong usage
"""


class Experiment(TextLister):
    """An experiment of a paper, repeated in the simulator."""

    NAME: str
    RUNS: int  # by default
    FURTHER = ""  # arguments of the examples
    FAILED = "failed"  # meaning of exit code 1
    of_runs: Callable[[int, int], Sequence[Table]]  # of seed and runs, without a trace

    def get_epilog(self) -> str:
        """Return the examples and exit codes."""
        return _EPILOG.format(
            name=self.NAME, trace=self.FURTHER, runs=3 * self.RUNS, failed=self.FAILED
        )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of all experiments, then those of this one."""
        number("--seed", "seed of the random numbers", ZERO_OR_MORE, default=1)(parser)
        number("--runs", "number of runs in each setting", default=self.RUNS)(parser)
        super().add_arguments(parser)

    def tables(self, args: argparse.Namespace, line: output.StatusLine) -> Sequence[Table]:
        """Return the tables; report progress on the line."""
        line.show(f"{self.NAME}: {plurals.text(args.runs, 'run')} in each setting")
        return self.of_runs(args.seed, args.runs)

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Sequence[Any]]:
        """Return the tables as columns and rows."""
        with closing(output.StatusLine(self.app.stderr or sys.stderr)) as line:
            tables = self.tables(parsed_args, line)
        self.lines = render(tables).splitlines()
        return table_rows(tables)


class Dudina2013(Experiment):
    """Repeat Dudina2013: NPB on 16 VMs, Block Tridiagonal first, random against bunch-aware."""

    NAME, RUNS = "dudina2013", 10
    of_runs = staticmethod(dudina2013_tables)


class Gupta2012(Experiment):
    """Repeat Gupta2012: 8 VMs placed with regard to racks, and on processors of one type."""

    NAME, RUNS = "gupta2012", 10
    of_runs = staticmethod(gupta2012.tables)


class Gupta2013(Experiment):
    """Repeat Gupta2013: Tables I and II, the case study (Figure 8), and the trace (Figure 9).

    Takes some minutes.
    """

    NAME, RUNS = "gupta2013", LEAST_SEEDS
    FURTHER = f" --trace {TRACE}.gz"
    FAILED = "the trace cannot be read"

    ARGUMENTS = (
        argument(
            "--trace",
            f"{TRACE} of the Parallel Workloads Archive, compressed with gzip or not",
            metavar="FILE",
        ),
        argument(
            "--curves",
            "also write the jobs completed over time, the curves of Figure 9 for the first "
            f"seed, to this file: CSV with the columns {', '.join(trace_run.CURVE_COLUMNS)}",
            metavar="FILE",
        ),
    )

    def tables(self, args: argparse.Namespace, line: output.StatusLine) -> Sequence[Table]:
        """Return the two tables and the figures."""
        if args.trace is None:
            raise exceptions.TraceError(
                f"--trace: expected the file {TRACE}, or {TRACE}.gz, which is at {ARCHIVE}"
            )
        line.show(f"{self.NAME}: Table II")
        tables = [
            table_1.table(),
            table_2.table(args.trace),
            figure_8.table(),
            figure_8.performance_table(),
        ]
        rows, seed = tuple(swf.read(args.trace, limit=trace_run.JOBS)), args.seed
        runs = Runs(
            rows, range(seed, seed + args.runs), lambda text: line.show(f"{self.NAME}: {text}")
        )
        tables += [figure_9a.table(runs), figure_9b.table(runs)]
        if args.curves is not None:
            line.show(f"{self.NAME}: curves")
            output.save(trace_run.curves_csv(rows, seed), args.curves)
        return tables


def render(tables: Sequence[Table]) -> str:
    """Return tables with verdicts, settings and notes, a blank line between them."""
    return "\n\n".join("\n".join(_lines(table)) for table in tables) + "\n"


def table_rows(tables: Sequence[Table]) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Return columns and rows for programs: of a table its verdict, its results, its settings.

    One set of columns for all of them; the first is the table, and missing cells are None.
    """
    found = [{"table": table.source, **cells} for table in tables for cells in _cells(table)]
    named = dict.fromkeys(name for table in tables for name in table.columns)
    columns = ("table", "verdict", *named, *SETTING_COLUMNS, "why")
    return columns, [tuple(map(cells.get, columns)) for cells in found]


def _cells(table: Table) -> Iterator[dict[str, Cell]]:
    if table.verdict is not None:
        yield {"verdict": table.verdict.word, "why": table.verdict.why}
    for columns, rows in (
        (table.columns, table.rows),
        (SETTING_COLUMNS, map(_setting_row, table.settings)),
    ):
        yield from (dict(zip(columns, row, strict=True)) for row in rows)


def _setting_row(setting: Setting) -> tuple[str, str, str]:
    return setting.name, setting.value, setting.source


def _lines(table: Table) -> list[str]:
    lines = [f"{table.source}: {table.title}", "", *_result_lines(table), ""]
    if table.verdict is not None:
        word = table.verdict.word.capitalize()
        lines += [*textwrap.wrap(f"{word}. {table.verdict.why}", WIDTH), ""]
    if table.settings:
        lines += [*_ruled([SETTING_COLUMNS], [*map(_setting_row, table.settings)]), ""]
    for note in table.notes:
        lines += textwrap.wrap(note, WIDTH, initial_indent="* ", subsequent_indent="  ")
    return lines if lines[-1] else lines[:-1]


def _result_lines(table: Table) -> list[str]:
    """Return the lines of the results, without empty columns."""
    columns = [
        (name.split(), cells)
        for name, *cells in zip(table.columns, *table.rows, strict=True)
        if any(cell is not None for cell in cells)
    ]
    right = [
        i
        for i, (_, cells) in enumerate(columns)
        if not any(isinstance(cell, str) for cell in cells)
    ]
    # Headings are wider than their cells: one word a line, aligned at the bottom.
    height = max(len(words) for words, _ in columns)
    headings = ([""] * (height - len(words)) + words for words, _ in columns)
    shown = (map(_text, cells) for _, cells in columns)
    return _ruled([*zip(*headings, strict=True)], [*zip(*shown, strict=True)], right)


def _ruled(
    heading: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> list[str]:
    """Return lines of aligned cells, with a rule below the heading."""
    rule = ["-" * max(map(len, column)) for column in zip(*heading, *rows, strict=True)]
    return output.aligned([*heading, rule, *rows], right)


def _text(cell: Cell) -> str:
    return "-" if cell is None else cell if isinstance(cell, str) else decimals.text_of(cell)
