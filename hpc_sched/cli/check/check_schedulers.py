"""hpc-sched check schedulers."""

import argparse
import sys
from collections.abc import Iterator

from hpc_sched import exceptions
from hpc_sched.cli.common.argument_types import argument
from hpc_sched.cli.common.base_command import HPCSchedLister, Table
from hpc_sched.cli.common.sources import STDIN
from hpc_sched.core.logged.decision_summary import SHADOW
from hpc_sched.snapshot.log import log_lines, logged_decisions, logged_schedulers
from hpc_sched.topology import plurals


class CheckSchedulers(HPCSchedLister):
    """Compare the schedulers of a cloud by the decision logs of its controllers.

    Shows, for each scheduler that has written records, version and digests of its newest record. A
    scheduler without a record is not seen: it may have no hpc_sched, no decision log, or no request
    of a group since its start.
    """

    EPILOG = """\
examples:

  hpc-sched check schedulers ctl1.jsonl ctl2.jsonl ctl3.jsonl
  for c in ctl1 ctl2 ctl3; do ssh $c tail -n 1000 /var/log/nova/hpc_sched.jsonl; done |
      hpc-sched check schedulers -

A digest does not show which option or which host of the topology differs. Compare the texts of two
controllers:

  diff <(ssh ctl1 hpc-sched-status scheduler show) <(ssh ctl2 hpc-sched-status scheduler show)

Options of Nova's own filters and weighers, and its version, are in no digest.

exit codes: 0 the schedulers seen do not differ, 1 they differ, none was seen, or a log cannot be
read, 2 wrong usage
"""

    ARGUMENTS = (
        argument(
            "logs",
            "decision log of a controller, or of several; a name in .gz is unpacked; - for "
            "standard input",
            metavar="LOG",
            nargs="+",
        ),
    )

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, to read standard input twice."""
        self.refuse((args.logs.count("-") > 1, "LOG -: standard input can be read once only"))

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Return a row for each scheduler."""
        logs: list[str] = parsed_args.logs
        seen = logged_schedulers.seen_in(record for log in logs for record in _records(log))
        if not seen:
            names = ", ".join(STDIN if log == "-" else log for log in logs)
            raise exceptions.SnapshotError(
                f"{names}: no record names its scheduler: expected lines of a "
                "decision log of hpc_sched, of this version or a newer one"
            )
        different = list(logged_schedulers.differences(seen))
        shadows = ", ".join(host for host, one in seen.items() if one.mode == SHADOW)
        self.below = [
            *(different or [f"{plurals.text(len(seen), 'scheduler')} seen, no difference."]),
            *([f"In shadow mode, without effect on VMs: {shadows}."] if shadows else []),
        ]
        self.exit_code = int(bool(different))
        columns = ("Host", "Version", "Options", "Topology", "Interference", "Mode", "Last record")
        return columns, [
            (
                host,
                one.scheduler.version,
                one.scheduler.options,
                one.scheduler.topology,
                one.scheduler.interference or logged_schedulers.NONE,
                one.mode or logged_schedulers.ACTIVE,
                one.time,
            )
            for host, one in seen.items()
        ]


def _records(log: str) -> Iterator[logged_decisions.Record]:
    """Yield the records of a file, or of standard input for ``-``; raise SnapshotError."""
    for line in log_lines.lines_of(*((STDIN, sys.stdin.buffer) if log == "-" else (log,))):
        yield from logged_decisions.parsed(line)
