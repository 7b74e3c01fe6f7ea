"""hpc-sched characterise."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from cliff.command import Command

from hpc_sched import conf, decimals, exceptions, files, table_file
from hpc_sched.cli.characterise import index_table, perf_output
from hpc_sched.cli.common import number_types
from hpc_sched.core.sharing import characterisation, interference_file
from hpc_sched.core.sharing.cache_interference import InterferenceIndex

# What is behind these digits is noise.
SCORE_DIGITS = 4
PERFORMANCE_DIGITS = 6

_EPILOG = f"""\
examples:

  A cache score, counted on a host that runs 4 alike VMs of the application and nothing else:

    {perf_output.COMMAND.replace("FILE", "perf.csv")} -a sleep 60
    hpc-sched characterise perf.csv --vms 4

  The same from numbers that are known:

    hpc-sched characterise --misses 176400000 --seconds 60

  An interference index, from the seconds that each application took alone (- as its neighbour)
  and beside each other, one row a run (application,neighbour,seconds):

    hpc-sched characterise --timings runs.csv --output index.csv

exit codes: 0 done, 1 failed, 2 wrong usage
"""


class Characterise(Command):
    """Turn measurements of an application into what hpc_sched asks for.

    Prints the cache score (1 = 100,000 last-level cache misses per second) from the output of
    perf stat -x, and the flavor's property to set; or, with --timings, how fast applications
    run beside each other, and which of them would be kept apart.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the command's own arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument(
            "file",
            nargs="?",
            metavar="FILE",
            help=f"output of {perf_output.COMMAND}; - for standard input",
        )
        parser.add_argument(
            "--misses",
            type=number_types.at_least_zero,
            metavar="N",
            help="last-level cache misses, loads plus stores, in place of FILE; needs --seconds",
        )
        parser.add_argument(
            "--seconds",
            type=number_types.above_zero,
            metavar="S",
            help="wall time in which the misses were counted (default: what FILE tells by the "
            "event duration_time, the time stamps of -I or the run time of a counter)",
        )
        parser.add_argument(
            "--vms",
            type=number_types.at_least(1),
            metavar="N",
            help="how many alike VMs the misses are of; the score is that of one (default: 1)",
        )
        parser.add_argument(
            "--timings",
            metavar="FILE",
            help="CSV of runs: application, neighbour (empty or - for a dedicated run), seconds; "
            "- for standard input",
        )
        parser.add_argument(
            "--output",
            metavar="FILE",
            help="with --timings: write the index here, as YAML if it ends in .yaml or .yml, "
            "else as CSV; pairs that it holds and were not measured stay, its comments do not",
        )
        parser.add_argument(
            "--tolerance",
            type=number_types.share,
            metavar="LOSS",
            help="with --timings: mark pairs of which one loses at least this much, 0 to 1 "
            f"(default: {conf.INTERFERENCE_TOLERANCE})",
        )
        self.parser = parser
        return parser

    def get_epilog(self) -> str:
        """Return the examples."""
        return _EPILOG

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print the score or the index; return the exit code."""
        self._check(parsed_args)
        if parsed_args.timings is not None:
            self._index(parsed_args)
        else:
            self._score(parsed_args)
        return 0

    def _check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, arguments that make no sense together."""
        sources = {"FILE": args.file, "--misses": args.misses, "--timings": args.timings}
        given = [name for name, value in sources.items() if value is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            self.parser.error(f"expected one of {', '.join(sources)}, found {found}")
        if args.timings is None:
            useless = {"--output": args.output, "--tolerance": args.tolerance}
        else:
            useless = {"--seconds": args.seconds, "--vms": args.vms}
        for name, value in useless.items():
            if value is not None:
                self.parser.error(f"{name} means nothing with {given[0]}")
        if args.misses is not None and args.seconds is None:
            self.parser.error("--misses needs --seconds")
        if args.output == "-":
            self.parser.error("--output -: expected a file; the table is on standard output")

    def _score(self, args: argparse.Namespace) -> None:
        misses, seconds = args.misses, args.seconds
        if args.file is not None:
            content, name = _content(args.file)
            text = files.decode(content, name, exceptions.InterferenceError)
            counted = perf_output.read(text, name)
            for warning in counted.warnings:
                self._say(f"warning: {warning}")
            misses = counted.misses
            seconds = seconds or counted.seconds
            if not seconds and counted.run_seconds:
                seconds = counted.run_seconds
                self._say(
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
        self.app.stdout.write(
            f"misses:              {decimals.text_of(misses)}\n"
            f"seconds:             {decimals.text_of(seconds)}\n"
            f"cache score per VM:  {shown}\n"
            f"openstack flavor set --property hpc:cache_score={shown} FLAVOR\n"
        )

    def _index(self, args: argparse.Namespace) -> None:
        content, name = _content(args.timings)
        runs = characterisation.timings_of(content, name)
        try:
            measured = characterisation.index_of(runs)
        except exceptions.InterferenceError as error:
            raise exceptions.InterferenceError(f"{name}: {error}") from error
        if not measured.performance:
            raise exceptions.InterferenceError(
                f"{name}: expected runs beside a neighbour, found none: nothing to compare"
            )
        # Rounded before it is shown, so that the marks are what the written file will say.
        index = InterferenceIndex(
            {pair: round(speed, PERFORMANCE_DIGITS) for pair, speed in measured.performance.items()}
        )
        tolerance = conf.INTERFERENCE_TOLERANCE if args.tolerance is None else args.tolerance
        self.app.stdout.write(index_table.render(index, tolerance) + "\n")
        if args.output is not None:
            self._say(_merge(Path(args.output), index))

    def _say(self, text: str) -> None:
        (self.app.stderr or sys.stderr).write(f"{text}\n")


def _merge(path: Path, index: InterferenceIndex) -> str:
    """Write the index into a file that may hold other pairs; return what was done."""
    has_content = path.exists() and path.stat().st_size > 0
    old = interference_file.read_index(path).performance if has_content else {}
    merged = InterferenceIndex({**old, **index.performance})
    interference_file.write_index(path, merged)
    before, now = _pairs(old), _pairs(index.performance)
    return (
        f"{path}: wrote {len(before | now)} pairs: {len(now - before)} new, "
        f"{len(now & before)} replaced, {len(before - now)} kept"
    )


def _pairs(performance: Mapping[tuple[str, str], float]) -> set[tuple[str, str]]:
    return {(min(pair), max(pair)) for pair in performance}


def _content(path: str) -> tuple[bytes, str]:
    """Return what a file or standard input holds, and what errors call it."""
    error = exceptions.InterferenceError
    if path == "-":
        name = "<stdin>"
        return files.read_stream(sys.stdin.buffer, name, error, table_file.MAX_BYTES), name
    return files.read_bytes(path, error, table_file.MAX_BYTES), path
