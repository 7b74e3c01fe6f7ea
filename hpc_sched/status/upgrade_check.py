"""The checks of ``hpc-sched-status upgrade check``, in the order of the table."""

import functools
import textwrap
from collections.abc import Callable, Sequence

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from hpc_sched import exceptions
from hpc_sched.status.checks import (
    app_classes,
    default_class,
    filter_order,
    installation,
    multipliers,
    options,
    scheduler_options,
    topology_hosts,
    weigher_list,
)
from hpc_sched.status.finding import Finding, failure, result
from hpc_sched.status.inspected_cloud import InspectedCloud

Check = Callable[[InspectedCloud], Sequence[Finding]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("Nova release", installation.check_versions),
    ("Options", options.check),
    ("Topology", topology_hosts.check),
    ("Filters", filter_order.check),
    ("Weighers", weigher_list.check),
    ("Multipliers", multipliers.check),
    ("Application classes", app_classes.check),
    ("Server groups", default_class.check),
    ("Placement results", scheduler_options.check_placement_results),
    ("Host subset", scheduler_options.check_host_subset_size),
    ("Shuffled hosts", scheduler_options.check_shuffle),
    ("Instance tracking", scheduler_options.check_instance_tracking),
    ("Extra spec validators", installation.check_validators),
)

WIDTH = 60  # characters of the details, as in oslo.upgradecheck


def judge(check: Check, cloud: InspectedCloud) -> upgradecheck.Result:
    """Return the result of a check; a failure where an option or a database cannot be read."""
    try:
        return result(check(cloud))
    except exceptions.DatabaseError as error:
        return result([failure(str(error))])
    except cfg.Error as error:
        return result([failure(f"nova.conf: {error}.")])


def _run(check: Check, commands: "UpgradeCommands") -> upgradecheck.Result:
    return judge(check, commands.cloud)


class UpgradeCommands(upgradecheck.UpgradeCommands):
    """Runs the checks and prints their table; :meth:`check` returns the worst code."""

    _upgrade_checks = tuple((name, functools.partial(_run, check)) for name, check in CHECKS)

    def __init__(self) -> None:
        self.cloud = InspectedCloud()

    def _get_details(self, upgrade_check_result: upgradecheck.Result) -> str | None:
        """Return the details wrapped for the table: one paragraph a finding, uuids unbroken."""
        if upgrade_check_result.details is None:
            return None
        lines: list[str] = []
        for text in upgrade_check_result.details.splitlines():
            indent = "  " if lines else ""
            lines += textwrap.wrap(
                text,
                WIDTH,
                initial_indent=indent,
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
        return "\n".join(lines)
