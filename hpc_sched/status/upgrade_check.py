"""The checks of ``hpc-sched-status upgrade check``, in the order of the table.

A new check is a function of an :class:`InspectedCloud` in a module of
:mod:`hpc_sched.status.checks`, and a line in :data:`CHECKS`. It yields findings and returns a
verdict, see :mod:`hpc_sched.status.finding`; what it cannot read it raises. What several checks
read is read once by :mod:`hpc_sched.status.inspected_cloud`. The reference in docs/ is made from
the table.
"""

import textwrap
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from oslo_upgradecheck.upgradecheck import Result

from hpc_sched import exceptions
from hpc_sched.status import finding
from hpc_sched.status.checks import (
    app_classes,
    filters,
    installation,
    metrics_endpoint,
    multipliers,
    options,
    placement_candidates,
    processor_types,
    schedulers,
    sharing,
    topology_hosts,
    weighers,
)
from hpc_sched.status.inspected_cloud import InspectedCloud


class Check(NamedTuple):
    """One check: a line of the table, and an entry of the reference."""

    name: str
    find: Callable[[InspectedCloud], finding.Findings]
    # What it says, for the reference, where that is not the docstring of its function.
    sentence: str = ""


CHECKS = (
    Check("Nova release", installation.check_versions),
    Check("Options", options.check),
    Check("Topology", topology_hosts.check),
    Check("Filters", filters.check),
    Check("Weighers", weighers.check),
    Check("Multipliers", multipliers.check),
    Check("Failed builds", weighers.check_failed_builds),
    Check("Application classes", app_classes.check_flavors),
    Check("Server groups", app_classes.check_groups),
    Check("Shared hosts", sharing.check),
    Check("Processor types", processor_types.check),
    Check("Placement results", placement_candidates.check_results),
    Check("Placement candidates", placement_candidates.check_candidates),
    Check(
        "Host subset",
        partial(
            options.check_scheduler_option,
            "host_subset_size",
            1,
            "Nova takes the best host.",
            "Nova chooses at random among the {} best hosts, which takes VMs off the plan. Set it "
            "to 1: the plan itself keeps requests that run at the same time apart.",
        ),
        "Return whether Nova takes the best host.",
    ),
    Check(
        "Shuffled hosts",
        partial(
            options.check_scheduler_option,
            "shuffle_best_same_weighed_hosts",
            False,
            "Hosts of equal weight stay in their order.",
            "Nova chooses at random among hosts of one weight, and groups become less compact. Set "
            "it to false.",
        ),
        "Return whether hosts of equal weight stay in their order.",
    ),
    Check("Gang claims", options.check_gang_claims),
    Check(
        "Instance tracking",
        partial(
            options.check_scheduler_option,
            "track_instance_changes",
            True,
            "nova-compute reports changes of its VMs to the scheduler.",
            "the scheduler reads the VMs of every host from the cells for every request, which "
            "takes long with many hosts. Set it to true, except where the cells have message "
            "queues of their own.",
        ),
        "Return whether nova-compute reports its instances to the scheduler.",
    ),
    Check("Extra spec validators", installation.check_validators),
    Check("Schedulers", schedulers.check),
    Check("Metrics", metrics_endpoint.check),
)

WIDTH = 60  # characters of the details, as in oslo.upgradecheck


def judge(find: Callable[[InspectedCloud], finding.Findings], cloud: InspectedCloud) -> Result:
    """Return the result of a check; a failure where it cannot read what it needs."""
    try:
        return finding.merged(find(cloud))
    except exceptions.HPCSchedError as error:
        # Others are sentences.
        return finding.failure(f"{error}{'.' if isinstance(error, exceptions.ConfigError) else ''}")
    except cfg.Error as error:
        return finding.failure(f"nova.conf: {error}.")


class UpgradeCommands(upgradecheck.UpgradeCommands):
    """Runs the checks and prints their table; :meth:`check` returns the worst code."""

    def __init__(self) -> None:
        cloud = InspectedCloud()
        self._upgrade_checks = tuple(
            (check.name, lambda _commands, find=check.find: judge(find, cloud)) for check in CHECKS
        )

    def _get_details(self, upgrade_check_result: Result) -> str | None:
        """Return the details wrapped for the table: one paragraph a finding, uuids unbroken."""
        wrap = partial(textwrap.fill, width=WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        texts = (upgrade_check_result.details or "").splitlines()
        wrapped = [wrap(text, initial_indent="  " if i else "") for i, text in enumerate(texts)]
        return "\n".join(wrapped) or None
