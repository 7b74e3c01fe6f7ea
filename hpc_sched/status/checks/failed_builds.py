"""Check: no host is kept from groups because builds on it have failed."""

from nova.scheduler.weights import compute
from oslo_upgradecheck.upgradecheck import Result

from hpc_sched.status.checks.weighers import load
from hpc_sched.status.finding import good, shortened, warning
from hpc_sched.status.inspected_cloud import InspectedCloud
from hpc_sched.topology import plurals


def check(cloud: InspectedCloud) -> list[Result]:
    """Return the hosts on which builds have failed, where BuildFailureWeigher outvotes topology."""
    weighers, _ = load()  # the check of weighers reports what cannot be loaded
    ours = [abs(one.multiplier()) for one in weighers if one.is_topology or one.is_mdobp]
    guards = [one for one in weighers if isinstance(one.weigher, compute.BuildFailureWeigher)]
    if not any(abs(guard.multiplier()) > max(ours, default=0.0) for guard in guards):
        return [good("BuildFailureWeigher does not outvote the weighers of hpc_sched.")]
    computes = cloud.computes()
    found = [warning(f"{cell}. Its computes are not looked at.") for cell in computes.problems]
    failed = sorted(
        (node.nodename, node.failed_builds)
        for node in computes.rows
        if node.enabled and node.failed_builds
    )
    if failed:
        hosts = ", ".join(shortened([f"{name} ({count})" for name, count in failed]))
        found.append(
            warning(
                f"Builds have failed on {plurals.text(len(failed), 'host')}: {hosts}. "
                "BuildFailureWeigher keeps VMs off them, and groups are planned without them as "
                "long as they fit, which may split them. The count stays until a build there "
                "succeeds or nova-compute restarts: repair the host, then restart its "
                "nova-compute, or create a server on it (openstack server create --host)."
            )
        )
    return found or [good("No build has failed on any enabled compute.")]
