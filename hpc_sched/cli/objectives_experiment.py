"""hpc-sched experiment objectives."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from hpc_sched.cli.common import extra_modules, output
from hpc_sched.cli.common.argument_types import (
    Argument,
    above_zero,
    argument,
    from_one_to,
    number,
    parsed_by,
    ratio,
    several,
)
from hpc_sched.cli.experiment_command import Experiment
from hpc_sched.experiments.experiment_table import Table
from hpc_sched.experiments.objectives import isolated_table, job_table, mix_table
from hpc_sched.experiments.objectives.drawn_neighbours import NEIGHBOURS
from hpc_sched.experiments.objectives.fabrics import (
    BOTTLENECK,
    FABRICS,
    HOPS,
    PATTERNS,
    STATED,
    UNBOUNDED,
)
from hpc_sched.experiments.objectives.fabrics import ISOLATED as ISOLATED_OBJECTIVE
from hpc_sched.experiments.objectives.isolated_table import QUEUES, IsolatedStudy
from hpc_sched.experiments.objectives.mix_study import ALL, MixStudy
from hpc_sched.experiments.objectives.single_jobs import JobStudy, job_runs
from hpc_sched.sim.jobs import distributions
from hpc_sched.sim.results import Result
from hpc_sched.sim.scenario import Run, Scenario
from hpc_sched.sim.statistics.estimate import LEAST_SEEDS

JOB, MIXES, ISOLATED = PARTS = ("job", "mixes", "isolated")
_JOBS, _MIXES, _ISOLATED = JobStudy(), MixStudy(), IsolatedStudy()
_BY_OPTION = {
    "bottleneck": BOTTLENECK,
    "pattern": STATED,
    "unbounded": UNBOUNDED,
    "isolated": ISOLATED_OBJECTIVE,
}
_LEAST_DRAWN = 10
_PICTURE = "hpc_sched.experiments.objectives.picture"
_MOST_RANKS = 1024
_Number = TypeVar("_Number", int, float)

_EPILOG = """\
The plan of least Hop-Byte (hops) against plans by the other objectives: of least bottleneck within
a bound on the harm to others, without that bound, and isolated. The first table is one job among
neighbours; the second whole mixes of jobs that are all planned by one objective; the third, by
--part isolated, a full queue of isolated jobs on an 847-host Clos network.

examples:

  About two minutes of processor time:

    hpc-sched experiment objectives

  One job on both fabrics, at all oversubscriptions, as rows for programs and as a picture:

    hpc-sched experiment objectives --part job --leaves 16 64 --oversubscription 2 4 8 \\
      --ranks 16 64 128 -f csv --picture objectives.svg

  Mixes of one pattern each, four runs at a time:

    hpc-sched experiment objectives --part mixes --mix halo3 alltoall --processes 4

  The use that isolated jobs reach, in some four minutes of processor time:

    hpc-sched experiment objectives --part isolated

exit codes: 0 done, 1 a job does not fit, 2 wrong usage
"""


def _chosen(name: str, what: str, choices: Sequence[str], default: Sequence[str]) -> Argument:
    return argument(
        *(name, f"{what} (default: {' '.join(default)})"),
        nargs="+",
        choices=choices,
        default=list(default),
    )


class ObjectivesExperiment(Experiment):
    """Show for which jobs and sites each objective of a plan is worth it.

    Takes a minute or two.
    """

    NAME, RUNS = "objectives", LEAST_SEEDS
    ARGUMENTS = (
        _chosen("--part", "tables to print", PARTS, (JOB, MIXES)),
        argument(
            "--leaves",
            "of the fabric, 16 hosts each (default: 16)",
            type=int,
            nargs="+",
            choices=tuple(FABRICS),
            default=list(_JOBS.fabrics),
        ),
        several("--oversubscription", "of the leaves", ratio, "RATIO", _JOBS.leaf_ratios),
        several("--pods", "oversubscription of the pods", ratio, "RATIO", _JOBS.pod_ratios),
        _chosen("--neighbours", "of the job", NEIGHBOURS, NEIGHBOURS),
        several("--ranks", "of the job, one a host", from_one_to(_MOST_RANKS), "N", _JOBS.ranks),
        several("--use", "offered load of the mixes", above_zero, "X", _MIXES.uses),
        _chosen("--mix", "patterns of the jobs of a mix", (ALL, *PATTERNS), (ALL,)),
        argument(
            "--sizes",
            f"VMs of the jobs of a mix, a distribution (default: {_MIXES.sizes})",
            type=parsed_by(partial(distributions.read, what="--sizes"), prefix="--sizes: "),
            metavar="DISTRIBUTION",
        ),
        _chosen(
            "--objective",
            "of the jobs of a mix, compared with hops",
            tuple(_BY_OPTION),
            tuple(_BY_OPTION),
        ),
        number("--jobs", "of a mix, at least 10", default=_MIXES.jobs),
        _chosen("--queue", "disciplines of the isolated jobs", QUEUES, QUEUES),
        number("--processes", "runs of mixes at a time", default=1),
        argument(
            "--picture",
            "also draw the table of one job at the highest oversubscription, an SVG file (needs "
            "the extra sim)",
            metavar="FILE",
        ),
    )

    def get_epilog(self) -> str:
        """Return the examples and exit codes."""
        return _EPILOG

    def check(self, args: argparse.Namespace) -> None:
        """Refuse a picture without its table or of another format, and too few drawn jobs."""
        super().check(args)
        picture = args.picture
        self.refuse(
            (picture and JOB not in args.part, f"--picture draws the table of --part {JOB}"),
            (
                picture is not None and not picture.endswith(".svg"),
                f"--picture {picture}: expected a name that ends in .svg",
            ),
            (
                args.jobs < _LEAST_DRAWN,
                f"--jobs: expected at least {_LEAST_DRAWN} drawn jobs, of which some are measured",
            ),
        )

    def tables(self, args: argparse.Namespace, line: output.StatusLine) -> Sequence[Table]:
        """Return the tables of the parts."""
        if args.picture is not None:
            extra_modules.check_picture(Path(args.picture), _PICTURE)
        return tuple(self._tables(args, lambda text: line.show(f"{self.NAME}: {text}")))

    def _tables(
        self, args: argparse.Namespace, progress: Callable[[str], object]
    ) -> Iterator[Table]:
        simulate = partial(_simulated, args.processes)
        if JOB in args.part:
            runs = job_runs(_job_study(args), progress)
            if args.picture is not None:
                output.save(extra_modules.load(_PICTURE, "--picture").picture(runs), args.picture)
            yield job_table.table(runs)
        if MIXES in args.part:
            mixes = _mix_study(args)
            yield mix_table.table(mixes, mix_table.rows(mixes, simulate, progress))
        if ISOLATED in args.part:
            isolated = replace(
                _ISOLATED, seed=args.seed, runs=args.runs, queues=_each_once(args.queue)
            )
            yield isolated_table.table(isolated, isolated_table.rows(isolated, simulate, progress))


def _job_study(args: argparse.Namespace) -> JobStudy:
    return JobStudy(
        seed=args.seed,
        runs=args.runs,
        fabrics=_ascending(args.leaves),
        pod_ratios=_ascending(args.pods),
        leaf_ratios=_ascending(args.oversubscription),
        neighbours=_each_once(args.neighbours),
        ranks=_ascending(args.ranks),
    )


def _mix_study(args: argparse.Namespace) -> MixStudy:
    return MixStudy(
        seed=args.seed,
        runs=args.runs,
        fabrics=_ascending(args.leaves),
        pod_ratios=_ascending(args.pods),
        leaf_ratios=_ascending(args.oversubscription),
        uses=_ascending(args.use),
        mixes=_each_once(args.mix),
        sizes=_MIXES.sizes if args.sizes is None else args.sizes.text,
        objectives=(HOPS, *(_BY_OPTION[name] for name in _each_once(args.objective))),
        jobs=args.jobs,
    )


def _ascending(numbers: Sequence[_Number]) -> tuple[_Number, ...]:
    return tuple(sorted(set(numbers)))


def _each_once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _simulated(processes: int, scenario: Scenario, runs: Sequence[Run]) -> Mapping[Run, Result]:
    # Not at the top: joblib comes with an extra that the help text does without.
    from hpc_sched.sim import sweep

    found = sweep.in_parallel(scenario, runs, processes, None)
    return {Run(each.summary.policy, each.summary.seed): each for each in found}
