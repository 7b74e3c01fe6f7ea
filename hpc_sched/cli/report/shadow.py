"""hpc-sched report shadow."""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from hpc_sched import exceptions, terminal_text
from hpc_sched.cli.common import extra_modules, output
from hpc_sched.cli.common.argument_types import argument
from hpc_sched.cli.common.base_command import HPCSchedLister, Table
from hpc_sched.snapshot.log import log_lines, shadow_totals
from hpc_sched.snapshot.log.shadow_lines import ShadowReader
from hpc_sched.topology import plurals

# Heading, and sum of Totals, or attribute.
COLUMNS = (
    ("Requests", "requests"),
    ("New VMs", "vms"),
    ("Compared", "compared"),
    ("Plan", "plan_cost"),
    ("Stock", "stock_cost"),
    ("Saved %", "saved"),
    ("Plan leaves", "plan_leaves"),
    ("Stock leaves", "stock_leaves"),
    ("Refused, placed", "refused_placed"),
    ("Refused by both", "refused_both"),
    ("Refused, open", "refused_open"),
    ("No plan", "no_plan"),
    ("Not compared", "not_compared"),
    ("Unproven", "unproven"),
    ("Degraded", "degraded"),
    ("Seconds", "seconds"),
    ("Read seconds", "read_seconds"),
    ("Planning seconds", "planning_seconds"),
)
Row = tuple[str, str, shadow_totals.Totals]  # project and number of VMs
# Lines between two looks at the clock, and seconds between two lines of progress.
_PAGE = "hpc_sched.page.shadow_page"
_LINES, _PAUSE = 10_000, 5.0
_MAX_LOGS = 5  # named in the page


def _time(text: str) -> datetime:
    """Return a time of the command line; without a zone it is UTC."""
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as failure:
        raise argparse.ArgumentTypeError(
            f"expected a date or time such as 2026-11-02T18:00, found {text!r}"
        ) from failure


class ReportShadow(HPCSchedLister):
    """Compare what hpc_sched would have done with what stock Nova did, by logs of shadow mode.

    A row for each project and number of VMs of a request, then for all. Plan and Stock are sums of
    Hop-Bytes of the groups' members and the new VMs, and leaves those with new VMs, over the
    requests that are compared: those with a plan, all of whose VMs Nova has placed. Refused are
    those that hpc_sched would have refused. Seconds is the time that its decisions took,
    with what of it was spent on reads and on plans.
    """

    EPILOG = """\
examples:

  hpc-sched report shadow /var/log/nova/hpc_sched.jsonl
  hpc-sched report shadow ctl1.jsonl ctl2.jsonl --since 2026-11-02 --until 2026-11-09
  hpc-sched report shadow hpc_sched.jsonl --html shadow.html -f csv > shadow.csv

The rotated files of a log (FILE.1, FILE.2.gz, FILE-20260131) are read too, each file once however
often it is named. Records of a scheduler in active mode are left out. The page of --html needs
packages of the extra sim: pip install 'hpc-sched[sim]'.

exit codes: 0 the logs have decisions of shadow mode, 1 they have none in the period, or a file
cannot be read or written, 2 wrong usage
"""

    ARGUMENTS = (
        argument(
            "logs",
            "decision log of a scheduler in shadow mode; a name in .gz is unpacked",
            metavar="FILE",
            nargs="+",
        ),
        *(
            argument(
                name,
                f"only decisions {what}, UTC: a date such as 2026-11-02, or 2026-11-02T18:00",
                metavar="TIME",
                type=_time,
            )
            for name, what in (
                ("--since", "of this time or later"),
                ("--until", "before this time"),
            )
        ),
        argument("--html", "write the report as a page too", metavar="FILE"),
    )

    def check(self, args: argparse.Namespace) -> None:
        """Refuse a period without time."""
        self.refuse(
            (
                args.since and args.until and args.until <= args.since,
                "--until: expected a time after that of --since",
            )
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return a row for each project and size."""
        if parsed_args.html is not None:
            extra_modules.load(_PAGE, "--html")  # fails before the logs are read
        reader = ShadowReader(parsed_args.since, parsed_args.until)
        totals = shadow_totals.ShadowTotals()
        progress = output.StatusLine(sys.stderr, _PAUSE)
        seen: set[tuple[int, int]] = set()
        # As one: rotated files may be named one by one, and a landing be in the next.
        lines = itertools.chain.from_iterable(
            _shown(log_lines.oldest_first(log, seen), log, progress) for log in parsed_args.logs
        )
        for _ in totals.add_all(reader.pairs(lines)):
            pass
        progress.close()
        notes = list(_notes(reader, totals.all))
        requests = int(totals.all.sums["requests"])
        if not requests:
            none = f"{', '.join(parsed_args.logs)}: no decision of shadow mode"
            raise exceptions.SnapshotError("; ".join([none, *notes]))
        rows = list(totals.rows())
        period = f"{totals.first} to {totals.last}, UTC"
        self.above = [f"{plurals.text(requests, 'request')}, {period}"]
        self.below = notes
        if parsed_args.html is not None:
            logs = ", ".join(parsed_args.logs[:_MAX_LOGS])
            more = len(parsed_args.logs) - _MAX_LOGS
            about = [
                ("Period", period),
                ("Logs", logs + (f" and {more} more" if more > 0 else "")),
                ("Command", getattr(self.app, "command_line", "hpc-sched report shadow")),
            ]
            output.save(_page(about, notes, rows), parsed_args.html)
            output.say(f"{parsed_args.html}: written")
        return ("Project", "VMs", *(heading for heading, _ in COLUMNS)), (
            (project, size, *(_cell(one, name, parsed_args.formatter) for _, name in COLUMNS))
            for project, size, one in rows
        )


def _page(about: Sequence[tuple[str, str]], notes: Sequence[str], rows: Sequence[Row]) -> str:
    texts = [
        (project, size, [_cell(one, name, "table") for _, name in COLUMNS])
        for project, size, one in rows
    ]
    ratios = [
        (size, one.sums["stock_cost"] / one.sums["plan_cost"])
        for project, size, one in rows
        if project == shadow_totals.ALL and one.sums["plan_cost"]
    ]
    headings = [heading for heading, _ in COLUMNS]
    found: str = extra_modules.load(_PAGE, "--html").page(about, notes, headings, texts, ratios)
    return found


def _shown(lines: Iterator[bytes], name: str, progress: output.StatusLine) -> Iterator[bytes]:
    """Yield lines, and show their number now and then."""
    for number, line in enumerate(lines, 1):
        yield line
        if number % _LINES == 0:
            progress.show(terminal_text.text_of(f"{name}: {number:,} lines"))


def _cell(totals: shadow_totals.Totals, name: str, formatter: str) -> Any:
    if name == "not_compared":
        return totals.not_compared.total()
    found = totals.saved if name == "saved" else totals.sums[name]
    if found is not None and name == "saved":
        found = round(100 * found, 1)
    elif name.endswith("seconds"):
        found = round(found or 0, 3)
    elif isinstance(found, float) and found.is_integer():
        found = int(found)
    return output.cell(found, formatter)


def _notes(reader: ShadowReader, totals: shadow_totals.Totals) -> Iterator[str]:
    """Yield a sentence for everything that the sums do not have."""
    yield from (
        f"{plurals.text(number, 'request')} not compared: {why}"
        for why, number in sorted(totals.not_compared.items())
    )
    counted: Sequence[tuple[int, str, str]] = (
        (reader.outside, "decision", "outside the period"),
        (reader.others, "record", "not of shadow mode"),
        (reader.unmatched, "landing", "without its decision"),
        (reader.unreadable, "line", "that cannot be read"),
    )
    yield from (
        f"{plurals.text(number, what)} left out: {why}" for number, what, why in counted if number
    )
    if totals.sums["refused_open"]:
        refusals = plurals.text(int(totals.sums["refused_open"]), "refusal")
        yield f"{refusals} without a record of what Nova did"
