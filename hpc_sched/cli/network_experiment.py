"""hpc-sched experiment network."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from hpc_sched.cli.common import extra_modules, output
from hpc_sched.cli.common.argument_types import argument, checked, ratio, several
from hpc_sched.cli.experiment_command import Experiment
from hpc_sched.experiments.experiment_table import Table
from hpc_sched.experiments.network import case_table, neighbour_table, runtime_table
from hpc_sched.experiments.network.drawn_cluster import NetworkStudy
from hpc_sched.experiments.network.paired_runs import paired_runs
from hpc_sched.sim.statistics.estimate import LEAST_SEEDS

_USUAL = NetworkStudy()
_PICTURE = "hpc_sched.experiments.network.picture"
_LEAST_RANKS, _MOST_RANKS = 4, 100_000


def _ranks(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else None


_RANKS = checked(
    f"a whole number from {_LEAST_RANKS} to {_MOST_RANKS}",
    _ranks,
    lambda ranks: _LEAST_RANKS <= ranks <= _MOST_RANKS,
)

_EPILOG = """\
A job is placed by policies of the simulator on a fat tree that other jobs share. The first table
is its runtime over that on random hosts, by pattern of its messages; the second what the other
jobs lose by it. Notes below say where the exact plan gains, where it harms, and what is assumed.

examples:

  About two minutes of processor time:

    hpc-sched experiment network

  One size and one oversubscription, in seconds:

    hpc-sched experiment network --ranks 16 --oversubscription 8

  Rows for programs, and the picture of the documentation:

    hpc-sched experiment network -f csv --picture network.svg

  Files of cases at the three levels of detail of the network model, in place of the tables:

    hpc-sched experiment network --case bt.case.gz halo.case

exit codes: 0 done, 1 a case cannot be read or a job does not fit, 2 wrong usage
"""


class NetworkExperiment(Experiment):
    """Show what a placement is worth in seconds, by the pattern of the messages.

    Takes about two minutes.
    """

    NAME, RUNS = "network", LEAST_SEEDS
    ARGUMENTS = (
        several(
            "--oversubscription", "of the leaves, a column each", ratio, "RATIO", _USUAL.ratios
        ),
        several(
            "--ranks",
            "of the job, one a host; the table of other jobs is of the middle one",
            _RANKS,
            "N",
            _USUAL.ranks,
        ),
        argument(
            "--picture",
            "also draw the runtimes at the highest oversubscription, an SVG file (needs the "
            "extra sim)",
            metavar="FILE",
        ),
        argument(
            "--case",
            "files of the case format, compressed or not: a row each, and no other table",
            nargs="+",
            metavar="FILE",
        ),
    )

    def get_epilog(self) -> str:
        """Return the examples and exit codes."""
        return _EPILOG

    def check(self, args: argparse.Namespace) -> None:
        """Refuse a picture of cases, and one of another format."""
        super().check(args)
        is_other = args.picture is not None and not args.picture.endswith(".svg")
        self.refuse(
            (args.case and args.picture, "--case has no picture: expected one of the two"),
            (is_other, f"--picture {args.picture}: expected a name that ends in .svg"),
        )

    def tables(self, args: argparse.Namespace, line: output.StatusLine) -> Sequence[Table]:
        """Return the two tables, or that of the cases."""

        def progress(text: str) -> None:
            line.show(f"{self.NAME}: {text}")

        if args.case:
            return (case_table.table(args.case, progress),)
        if args.picture is not None:
            extra_modules.check_picture(Path(args.picture), _PICTURE)
        study = NetworkStudy(
            seed=args.seed,
            runs=args.runs,
            ratios=tuple(sorted(set(args.oversubscription))),
            ranks=tuple(sorted(set(args.ranks))),
        )
        runs = paired_runs(study, progress)
        if args.picture is not None:
            output.save(extra_modules.load(_PICTURE, "--picture").picture(runs), args.picture)
        return runtime_table.table(runs), neighbour_table.table(runs)
