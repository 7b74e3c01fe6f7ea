"""The checks of ``hpc-sched-status upgrade check``, in the order of the table."""

import functools
import textwrap
from collections.abc import Callable, Iterable

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from oslo_upgradecheck.upgradecheck import Result

from hpc_sched import exceptions
from hpc_sched.status import finding
from hpc_sched.status.checks import (
    app_classes,
    failed_builds,
    filters,
    installation,
    metrics_endpoint,
    multipliers,
    options,
    processor_types,
    schedulers,
    sharing,
    topology_hosts,
    weighers,
)
from hpc_sched.status.inspected_cloud import InspectedCloud

Check = Callable[[InspectedCloud], Iterable[Result]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("Nova release", installation.check_versions),
    ("Options", options.check),
    ("Topology", topology_hosts.check),
    ("Filters", filters.check),
    ("Weighers", weighers.check),
    ("Multipliers", multipliers.check),
    ("Failed builds", failed_builds.check),
    ("Application classes", app_classes.check_flavors),
    ("Server groups", app_classes.check_groups),
    ("Shared hosts", sharing.check),
    ("Processor types", processor_types.check),
    ("Placement results", options.check_placement_results),
    ("Host subset", options.check_host_subset_size),
    ("Shuffled hosts", options.check_shuffle),
    ("Gang claims", options.check_gang_claims),
    ("Instance tracking", options.check_instance_tracking),
    ("Extra spec validators", installation.check_validators),
    ("Schedulers", schedulers.check),
    ("Metrics", metrics_endpoint.check),
)

WIDTH = 60  # characters of the details, as in oslo.upgradecheck


def judge(check: Check, cloud: InspectedCloud) -> Result:
    """Return the result of a check; a failure where an option or a database cannot be read."""
    try:
        return finding.merged(check(cloud))
    except exceptions.DatabaseError as error:
        return finding.failure(str(error))
    except exceptions.ConfigError as error:
        return finding.failure(f"{error}.")
    except cfg.Error as error:
        return finding.failure(f"nova.conf: {error}.")


class UpgradeCommands(upgradecheck.UpgradeCommands):
    """Runs the checks and prints their table; :meth:`check` returns the worst code."""

    def __init__(self) -> None:
        cloud = InspectedCloud()
        self._upgrade_checks = tuple(
            (name, lambda _commands, check=check: judge(check, cloud)) for name, check in CHECKS
        )

    def _get_details(self, upgrade_check_result: Result) -> str | None:
        """Return the details wrapped for the table: one paragraph a finding, uuids unbroken."""
        wrap = functools.partial(
            textwrap.fill, width=WIDTH, subsequent_indent="  ", break_on_hyphens=False
        )
        texts = (upgrade_check_result.details or "").splitlines()
        wrapped = [wrap(text, initial_indent="  " if i else "") for i, text in enumerate(texts)]
        return "\n".join(wrapped) or None
