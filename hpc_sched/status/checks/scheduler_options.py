"""Checks: options of Nova's own scheduler that make groups less compact."""

import nova.conf

from hpc_sched import exceptions
from hpc_sched.status.check_result import Finding, failure, good, warning
from hpc_sched.status.inspected_cloud import Cloud
from hpc_sched.topology import plurals

CONF = nova.conf.CONF

# max_placement_results is suggested in steps, so that it need not be raised for every compute.
STEP = 1000


def check_placement_results(cloud: Cloud) -> list[Finding]:
    """Return whether a request without a server group sees every compute."""
    most = CONF.scheduler.max_placement_results
    try:
        computes = cloud.computes()
    except exceptions.DatabaseError as error:
        return [failure(str(error))]
    number = len(computes.enabled)
    found = [warning(f"{silent}. Its computes are not counted here.") for silent in computes.silent]
    if number <= most:
        return [*found, good(f"{plurals.text(number, 'enabled compute')}, at most {most} results.")]
    enough = -(-number // STEP) * STEP
    return [
        *found,
        warning(
            f"Placement returns at most {most} of {number} enabled computes, in no useful "
            "order, to requests without a server group: their VMs are placed on a part of the "
            f"fabric only. Set [scheduler] max_placement_results = {enough}, or have users make "
            "server groups."
        ),
    ]


def check_host_subset_size(_cloud: Cloud) -> list[Finding]:
    """Return whether Nova takes the best host."""
    size = CONF.filter_scheduler.host_subset_size
    if size == 1:
        return [good("Nova takes the best host.")]
    return [
        warning(
            f"[filter_scheduler] host_subset_size = {size}: Nova chooses at random among the "
            f"{size} best hosts, which takes VMs off the plan. Set it to 1: the plan itself "
            "keeps requests that run at the same time apart."
        )
    ]


def check_shuffle(_cloud: Cloud) -> list[Finding]:
    """Return whether the order of equal hosts is left as it is."""
    if not CONF.filter_scheduler.shuffle_best_same_weighed_hosts:
        return [good("Hosts of equal weight stay in their order.")]
    return [
        warning(
            "[filter_scheduler] shuffle_best_same_weighed_hosts = true: Nova chooses at random "
            "among hosts of one weight, and groups become less compact. Set it to false."
        )
    ]


def check_instance_tracking(_cloud: Cloud) -> list[Finding]:
    """Return whether the scheduler knows the VMs of the hosts without asking for them."""
    if CONF.filter_scheduler.track_instance_changes:
        return [good("The scheduler is told of changes on the hosts.")]
    return [
        warning(
            "[filter_scheduler] track_instance_changes = false: the scheduler reads the VMs of "
            "every host from the cells for every request, which takes long with many hosts. Set "
            "it to true, except where the cells have message queues of their own."
        )
    ]
