"""Checks: options of Nova's scheduler that make groups less compact or requests slow."""

import nova.conf

from hpc_sched.status.finding import Finding, good, warning
from hpc_sched.status.inspected_cloud import InspectedCloud
from hpc_sched.topology import plurals

CONF = nova.conf.CONF

# Suggested values of max_placement_results are multiples of it, to last for further computes.
STEP = 1000


def check_placement_results(cloud: InspectedCloud) -> list[Finding]:
    """Return whether a request without a server group sees every compute."""
    most = CONF.scheduler.max_placement_results
    computes = cloud.computes()
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


def check_host_subset_size(_cloud: InspectedCloud) -> list[Finding]:
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


def check_shuffle(_cloud: InspectedCloud) -> list[Finding]:
    """Return whether hosts of equal weight stay in their order."""
    if not CONF.filter_scheduler.shuffle_best_same_weighed_hosts:
        return [good("Hosts of equal weight stay in their order.")]
    return [
        warning(
            "[filter_scheduler] shuffle_best_same_weighed_hosts = true: Nova chooses at random "
            "among hosts of one weight, and groups become less compact. Set it to false."
        )
    ]


def check_instance_tracking(_cloud: InspectedCloud) -> list[Finding]:
    """Return whether nova-compute reports its instances to the scheduler."""
    if CONF.filter_scheduler.track_instance_changes:
        return [good("nova-compute reports changes of its VMs to the scheduler.")]
    return [
        warning(
            "[filter_scheduler] track_instance_changes = false: the scheduler reads the VMs of "
            "every host from the cells for every request, which takes long with many hosts. Set "
            "it to true, except where the cells have message queues of their own."
        )
    ]
