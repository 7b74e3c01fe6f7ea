"""hpc-sched characterise."""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

from hpc_sched import conf, decimals, exceptions, files, table_file
from hpc_sched.cli.characterise import perf_output
from hpc_sched.cli.common import output
from hpc_sched.cli.common.argument_types import (
    above_zero,
    argument,
    at_least_zero,
    number,
    share,
)
from hpc_sched.cli.common.base_command import HPCSchedCommand
from hpc_sched.cli.common.sources import content_of
from hpc_sched.core.sharing import characterisation, interference_file
from hpc_sched.core.sharing.cache_interference import InterferenceIndex

# Further digits are noise.
SCORE_DIGITS = 4
PERFORMANCE_DIGITS = 6
_LIMITS = exceptions.InterferenceError, table_file.MAX_BYTES


class Characterise(HPCSchedCommand):
    """Turn measurements of an application into cache scores and an interference index.

    Prints the cache score (1 = 100,000 last-level cache misses per second) from the output of
    perf stat -x, and the flavor's property to set; or, with --timings, how fast applications
    run with each other on a host, and which of them would be kept apart or placed together.
    """

    EPILOG = f"""\
examples:

  A cache score, counted on a host that runs 4 alike VMs of the application and nothing else:

    {perf_output.COMMAND.replace("FILE", "perf.csv")} -a sleep 60
    hpc-sched characterise perf.csv --vms 4

  The same from known numbers:

    hpc-sched characterise --misses 176400000 --seconds 60

  An interference index, from the seconds that each application took alone (- as its neighbour)
  and with each other, one row a run (application,neighbour,seconds):

    hpc-sched characterise --timings runs.csv --output index.csv

exit codes: 0 done, 1 failed, 2 wrong usage
"""

    # An option and its help are one paragraph.
    # fmt: off
    ARGUMENTS = (
        argument("file", f"output of {perf_output.COMMAND}; - for standard input",
            nargs="?", metavar="FILE"),
        number("--misses",
            "last-level cache misses, loads plus stores, in place of FILE; needs --seconds",
            at_least_zero),
        number("--seconds",
            "wall time in which the misses were counted (default: from FILE, the event "
            "duration_time, the time stamps of -I or the run time of a counter)", above_zero, "S"),
        number("--vms",
            "number of alike VMs with these misses; the score is that of one (default: 1)"),
        argument("--timings",
            "CSV of runs: application, neighbour (empty or - for a dedicated run), seconds; "
            "- for standard input", metavar="FILE"),
        argument("--output",
            "with --timings: write the index to this file, as YAML if it ends in .yaml or "
            ".yml, else as CSV; keeps its other pairs, but not its comments", metavar="FILE"),
        argument("--tolerance",
            "with --timings: mark pairs of which one loses at least this much, 0 to 1 "
            f"(default: {conf.INTERFERENCE_TOLERANCE})", type=share, metavar="LOSS"),
    )
    # fmt: on

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, arguments that exclude each other."""
        sources = {"FILE": args.file, "--misses": args.misses, "--timings": args.timings}
        given = " and ".join(name for name, value in sources.items() if value is not None)
        useless = ("output", "tolerance") if args.timings is None else ("seconds", "vms")
        self.refuse(
            (
                given not in sources,
                f"expected one of {', '.join(sources)}, found {given or 'none'}",
            ),
            *(
                (getattr(args, name) is not None, f"--{name} means nothing with {given}")
                for name in useless
            ),
            (args.misses is not None and args.seconds is None, "--misses needs --seconds"),
            (
                args.output == "-",
                "--output -: expected a file; the table is on standard output",
            ),
        )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print the score or the index; return the exit code."""
        if parsed_args.timings is None:
            self.app.stdout.write(_score_text(parsed_args))
            return 0
        index, stated = _measured(parsed_args.timings), parsed_args.tolerance
        tolerance = conf.INTERFERENCE_TOLERANCE if stated is None else stated
        self.app.stdout.write("\n".join(_index_table(index, tolerance)) + "\n")
        if parsed_args.output is not None:
            output.say(_merge(Path(parsed_args.output), index))
        return 0


def _score_text(args: argparse.Namespace) -> str:
    """Return what is printed for a cache score; warnings go to standard error."""
    misses, seconds = args.misses, args.seconds
    if args.file is not None:
        content, name = content_of(args.file, *_LIMITS)
        counted = perf_output.read(files.decode(content, name, exceptions.InterferenceError), name)
        for warning in counted.warnings:
            output.say(f"warning: {warning}")
        misses, seconds = counted.misses, seconds or counted.seconds
        if not seconds and counted.run_seconds:
            seconds = counted.run_seconds
            output.say(
                f"warning: {name}: no wall time (the event duration_time, or -I): took the "
                f"counter's {decimals.text_of(seconds)} s, which perf adds up over threads "
                "and CPUs; for more than one of them give --seconds"
            )
        if not seconds:
            raise exceptions.InterferenceError(
                f"{name}: expected the wall time, found neither the event duration_time nor "
                "time stamps of -I nor a counter's run time: give --seconds"
            )
    score = characterisation.cache_score(misses, seconds, args.vms or 1)
    shown = decimals.text_of(round(score, SCORE_DIGITS))
    return (
        f"misses:              {decimals.text_of(misses)}\n"
        f"seconds:             {decimals.text_of(seconds)}\n"
        f"cache score per VM:  {shown}\n"
        f"openstack flavor set --property hpc:cache_score={shown} FLAVOR\n"
    )


def _measured(path: str) -> InterferenceIndex:
    content, name = content_of(path, *_LIMITS)
    runs = characterisation.timings_of(content, name)
    try:
        measured = characterisation.index_of(runs)
    except exceptions.InterferenceError as error:
        raise exceptions.InterferenceError(f"{name}: {error}") from error
    if not measured.performance:
        raise exceptions.InterferenceError(
            f"{name}: expected runs beside a neighbour, found none: nothing to compare"
        )
    return InterferenceIndex(
        {pair: round(speed, PERFORMANCE_DIGITS) for pair, speed in measured.performance.items()}
    )


def _index_table(index: InterferenceIndex, tolerance: float) -> list[str]:
    """Return an index as a table (Gupta2013, Figure 2): rows applications, columns neighbours.

    1.00 is the speed alone. Pairs that would be kept apart have a ``*`` in both rows, because the
    loss of one is enough, those that attract each other a ``+``; pairs without a measurement are
    ``-``.
    """
    bad = index.bad_company(tolerance)
    good = {name: index.attracting(name, tolerance) for name in index.applications}
    names = sorted(index.applications)

    def cell(name: str, neighbour: str) -> str:
        speed = index.performance.get((name, neighbour))
        mark = "*" if neighbour in bad.get(name, ()) else "+" if neighbour in good[name] else " "
        return "- " if speed is None else f"{speed:.2f}{mark}"

    # Headings end above the last digit, not above the mark.
    cells = [["application", *(f"{name} " for name in names)]]
    cells += [[name, *(cell(name, neighbour) for neighbour in names)] for name in names]
    limit, attracted, apart = decimals.text_of(tolerance), _pairs(good), _pairs(bad)
    together = f"+ placed together where MDOBP chooses, at a tolerance of {limit}: {attracted}"
    kept_apart = f"* kept apart at a tolerance of {limit}: {apart}"
    return [
        "performance beside a neighbour on the same host, 1.00 = alone",
        *output.aligned(cells, right=range(1, len(names) + 1)),
        *([together] if attracted else []),
        kept_apart if apart else f"no pair is kept apart at a tolerance of {limit}",
    ]


def _pairs(others: Mapping[str, Iterable[str]]) -> str:
    found = {tuple(sorted((one, other))) for one, those in others.items() for other in those}
    return ", ".join(f"{one} + {other}" for one, other in sorted(found))


def _merge(path: Path, index: InterferenceIndex) -> str:
    """Write the index into a file, keep the file's other pairs; return a summary."""
    has_content = path.exists() and path.stat().st_size > 0
    old = interference_file.read_index(path).performance if has_content else {}
    interference_file.write_index(path, InterferenceIndex({**old, **index.performance}))
    before, now = ({tuple(sorted(pair)) for pair in pairs} for pairs in (old, index.performance))
    return (
        f"{path}: wrote {len(before | now)} pairs: {len(now - before)} new, "
        f"{len(now & before)} replaced, {len(before - now)} kept"
    )
