"""The checks of ``hpc-sched-status upgrade check``, in the order of the table."""

import functools
import textwrap
from collections.abc import Callable, Sequence

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from hpc_sched.status.check_result import Finding, failure, result
from hpc_sched.status.checks import (
    api_validators,
    app_classes,
    filter_order,
    multipliers,
    options,
    packed_groups,
    scheduler_options,
    topology_hosts,
    versions,
    weigher_list,
)
from hpc_sched.status.inspected_cloud import Cloud

Check = Callable[[Cloud], Sequence[Finding]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("Nova release", versions.check),
    ("Options", options.check),
    ("Topology", topology_hosts.check),
    ("Filters", filter_order.check),
    ("Weighers", weigher_list.check),
    ("Multipliers", multipliers.check),
    ("Application classes", app_classes.check),
    ("Server groups", packed_groups.check),
    ("Placement results", scheduler_options.check_placement_results),
    ("Host subset", scheduler_options.check_host_subset_size),
    ("Shuffled hosts", scheduler_options.check_shuffle),
    ("Instance tracking", scheduler_options.check_instance_tracking),
    ("Extra spec validators", api_validators.check),
)

WIDTH = 60  # of the details, as oslo.upgradecheck has it


def judge(check: Check, cloud: Cloud) -> upgradecheck.Result:
    """Return what a check finds; an option that cannot be read is a failure of it."""
    try:
        return result(check(cloud))
    except cfg.Error as error:
        return result([failure(f"nova.conf: {error}.")])


def _line(check: Check, commands: "UpgradeCommands") -> upgradecheck.Result:
    return judge(check, commands.cloud)


class UpgradeCommands(upgradecheck.UpgradeCommands):
    """Runs the checks and prints their table; :meth:`check` returns the worst code."""

    _upgrade_checks = tuple((name, functools.partial(_line, check)) for name, check in CHECKS)

    def __init__(self) -> None:
        self.cloud = Cloud()

    def _get_details(self, upgrade_check_result: upgradecheck.Result) -> str | None:
        """Return the details as the table has them: a finding a paragraph, uuids unbroken."""
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
