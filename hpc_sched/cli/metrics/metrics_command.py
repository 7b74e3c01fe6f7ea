"""hpc-sched metrics."""

import argparse
import time
from typing import TYPE_CHECKING

from hpc_sched import exceptions
from hpc_sched.cli.common import output, shown_flavors, sources
from hpc_sched.cli.common.argument_types import (
    argument,
    checked,
    exclusive,
    number,
    parsed_by,
)
from hpc_sched.cli.common.base_command import HPCSchedCommand
from hpc_sched.metrics.address import address_in

if TYPE_CHECKING:
    from hpc_sched.cli.metrics.cloud_metrics import CloudMetrics

INTERVAL = 300  # seconds
MISSING = "metrics need prometheus_client: pip install 'hpc-sched[metrics]'"


class Metrics(HPCSchedCommand):
    """Show what a cloud could take as metrics for Prometheus: free slots, largest groups.

    Printed once, written to a file for the textfile collector of node_exporter, or served over
    HTTP and read again at an interval. The values are those of hpc-sched fits without --count.
    """

    EPILOG = """\
examples:

  Once:
    hpc-sched metrics --cloud mycloud --flavor hpc.large --flavor hpc.small

  For node_exporter, by cron or a timer:
    hpc-sched metrics --cloud mycloud \\
      --textfile /var/lib/prometheus/node-exporter/hpc_sched.prom

  As an exporter, until it is ended:
    hpc-sched metrics --cloud mycloud --listen 127.0.0.1:18775 --interval 600

Without --flavor: all flavors that name an hpc:app_class other than none, public or not. Names of
flavors and levels are labels; nothing names a project, a VM, a group or a host.

With --listen a cloud that cannot be read is reported on standard error, and by
hpc_sched_cloud_read_good 0; the last values stay, with the time at which they were read.

exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted
"""

    ARGUMENTS = (
        shown_flavors.ARGUMENT,
        exclusive(
            argument(
                "--textfile",
                "write the metrics to this file, whole or not at all",
                metavar="FILE.prom",
                type=checked(
                    "a name that ends with .prom", str, lambda name: name.endswith(".prom")
                ),
            ),
            argument(
                "--listen",
                "serve the metrics at HOST:PORT or [IPv6]:PORT, path /metrics",
                metavar="ADDRESS",
                type=parsed_by(address_in),
            ),
        ),
        number(
            "--interval",
            f"with --listen: pause between two readings of the cloud (default: {INTERVAL})",
            metavar="SECONDS",
        ),
        *sources.ARGUMENTS,
    )

    def check(self, args: argparse.Namespace) -> None:
        """Refuse, with exit code 2, arguments that exclude each other."""
        serves = args.listen is not None
        self.refuse(
            (
                args.interval is not None and not serves,
                "--interval means nothing without --listen",
            ),
            (
                serves and sources.is_standard_input(args.topology),
                f"--topology {args.topology}: --listen reads it again at every interval, and "
                "standard input can be read once; save it in a file and name that",
            ),
            shown_flavors.fault(args.flavor),
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print, write or serve the metrics."""
        try:
            from prometheus_client.exposition import generate_latest

            from hpc_sched.cli.metrics.cloud_metrics import CloudMetrics
        except ImportError as failure:
            raise exceptions.MetricsError(MISSING) from failure
        found = CloudMetrics()
        if parsed_args.listen is not None:
            self._serve(parsed_args, found)
            return
        _read(parsed_args, found)
        text = generate_latest(found).decode()
        if parsed_args.textfile is not None:
            output.save(text, parsed_args.textfile)
        else:
            output.write_utf8(text, self.app.stdout)

    def _serve(self, args: argparse.Namespace, found: "CloudMetrics") -> None:
        """Read the cloud again and again; interrupted by the user."""
        from hpc_sched.metrics.endpoint import Endpoint

        # The first reading must succeed: what is wrong with the arguments ends the command.
        _read(args, found)
        served = Endpoint(args.listen, lambda: found, output.say)
        try:
            while True:
                time.sleep(args.interval or INTERVAL)
                try:
                    _read(args, found)
                except exceptions.HPCSchedError as failure:
                    found.is_good = False
                    output.say(str(failure))
        finally:
            served.close()


def _read(args: argparse.Namespace, found: "CloudMetrics") -> None:
    cloud = sources.cloud_of(args)
    found.update(cloud, shown_flavors.of(cloud, args.flavor))
