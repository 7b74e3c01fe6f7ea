"""hpc-sched experiment traces."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from hpc_sched import decimals
from hpc_sched.cli.common import output
from hpc_sched.cli.common.argument_types import (
    above_zero,
    argument,
    checked,
    number,
    ratio,
    several,
)
from hpc_sched.cli.experiment_command import Experiment
from hpc_sched.experiments.experiment_table import Table
from hpc_sched.experiments.traces import trace_table
from hpc_sched.experiments.traces.trace_study import (
    HOSTS_A_LEAF,
    LEAVES_A_POD,
    MEASURED,
    TraceStudy,
)
from hpc_sched.sim.results import Summary
from hpc_sched.sim.scenario import Run, Scenario
from hpc_sched.sim.statistics.estimate import LEAST_SEEDS

_USUAL = TraceStudy()
_A_POD = LEAVES_A_POD * HOSTS_A_LEAF  # hosts
_LEAST_DRAWN = 10
_SHARE = checked("a number above 0, at most 1", decimals.number_in, lambda share: 0 < share <= 1)

_EPILOG = """\
A queue of jobs runs under the exact plan and under each other policy, with the same jobs and
messages. A row is the exact plan less another policy: goodput, runtimes, what jobs lose by their
neighbours, waits; with intervals over the seeds.

examples:

  Drawn jobs, two runs at a time:

    hpc-sched experiment traces --processes 2

  A trace, on 128 hosts, at one oversubscription:

    hpc-sched experiment traces --trace jobs.swf.gz --jobs 2000 --hosts 128 --oversubscription 8

exit codes: 0 done, 1 the trace cannot be read or its jobs do not fit, 2 wrong usage
"""


class TracesExperiment(Experiment):
    """Show what the exact plan is worth to whole queues of jobs on a network.

    Takes a quarter of an hour of processor time.
    """

    NAME, RUNS = "traces", LEAST_SEEDS
    ARGUMENTS = (
        argument("--trace", "a trace, SWF, in place of drawn jobs", metavar="FILE"),
        number("--jobs", "drawn, at least 10, or the first of the trace", default=_USUAL.jobs),
        number("--hosts", f"of the fat tree, a multiple of {_A_POD}", default=_USUAL.hosts),
        number("--use", "offered load of drawn jobs", above_zero, "X", _USUAL.use),
        number("--load", "jobs of a trace arrive X times as fast", above_zero, "X", _USUAL.load),
        several("--oversubscription", "of the leaves", ratio, "RATIO", _USUAL.ratios),
        several("--communication", "share of the runtimes", _SHARE, "SHARE", _USUAL.shares),
        number("--processes", "runs at a time", default=1),
    )

    def get_epilog(self) -> str:
        """Return the examples and exit codes."""
        return _EPILOG

    def check(self, args: argparse.Namespace) -> None:
        """Refuse a fat tree of parts of pods, and too few drawn jobs to measure a part of them."""
        super().check(args)
        since, until = MEASURED
        self.refuse(
            (args.hosts % _A_POD, f"--hosts: expected a multiple of {_A_POD}"),
            (
                args.trace is None and args.jobs < _LEAST_DRAWN,
                f"--jobs: expected at least {_LEAST_DRAWN} drawn jobs, of which {since} % to "
                f"{until} % are measured",
            ),
        )

    def tables(self, args: argparse.Namespace, line: output.StatusLine) -> Sequence[Table]:
        """Return the table."""
        study = TraceStudy(
            seed=args.seed,
            runs=args.runs,
            trace=args.trace,
            jobs=args.jobs,
            hosts=args.hosts,
            use=args.use,
            load=args.load,
            ratios=tuple(sorted(set(args.oversubscription))),
            shares=tuple(sorted(set(args.communication))),
        )
        rows = trace_table.rows(
            study,
            partial(_simulated, args.processes),
            lambda text: line.show(f"{self.NAME}: {text}"),
        )
        return (trace_table.table(study, rows),)


def _simulated(processes: int, scenario: Scenario, runs: Sequence[Run]) -> Mapping[Run, Summary]:
    # Not at the top: joblib comes with an extra that the help text does without.
    from hpc_sched.sim import sweep

    found = (each.summary for each in sweep.in_parallel(scenario, runs, processes, None))
    return {Run(summary.policy, summary.seed): summary for summary in found}
