"""Check: the VMs on each host keep the rules for sharing it (Gupta2013)."""

import functools
from collections.abc import Mapping

from nova import context as nova_context
from nova import objects

from hpc_sched import exceptions
from hpc_sched.core.sharing import interference_file
from hpc_sched.core.sharing.cache_interference import ALPHA, BETA, Limits, limits_in
from hpc_sched.core.sharing.violations import DEDICATION, violations
from hpc_sched.enabled_plugins import INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.read.instances import host_instances
from hpc_sched.nova_glue.read.instances.kept import host_vms
from hpc_sched.status.finding import Findings, failure, first_listed, good, listed, warning
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud
from hpc_sched.topology import plurals
from hpc_sched.topology.grouping import by_key

_REMEDY = (
    "Migrate them, or the others. It may come from force_hosts, a scheduler without the filters, "
    "or VMs from before they were enabled"
)


def check(cloud: InspectedCloud) -> Findings:
    """Return the hosts on which dedication, a limit or the interference index is broken."""
    found = cloud.from_database("VMs on hosts", read_instances)
    metadata = cloud.from_database("host aggregates", read_metadata)
    by_limits = configured_plugins.enabled().has_filter(INTERFERENCE_FILTER)
    # Read only if an application has a name.
    bad_company = functools.cache(_bad_company)

    def apart(name: str | None) -> frozenset[str]:
        return frozenset() if name is None else bad_company().get(name, frozenset())

    default = Limits(CONF.hpc_sched[ALPHA], CONF.hpc_sched[BETA])
    at = {
        place: {vm.uuid: vm.application for vm in there if vm.application is not None}
        for place, there in sorted(found.at.items(), key=lambda item: str(item[0]))
    }
    unknown = sum(map(len, found.at.values())) - sum(map(len, at.values()))
    try:
        broken = by_key(
            (one.rule, f"{node or host}: {one.text} ({', '.join(first_listed(one.vms))})")
            for (host, node), vms in at.items()
            for one in violations(
                vms, limits_in(metadata.get(host, ()), default)[0], apart, by_limits=by_limits
            )
        )
    except exceptions.InterferenceError as error:
        yield failure(f"interference_file: {error}")
        return
    yield from map(warning, first_listed(found.problems))
    if unknown:
        yield warning(f"The application of {plurals.text(unknown, 'VM')} could not be read.")
    for rule, texts in broken.items():
        hosts = plurals.text(len(texts), "host")
        yield from listed(
            failure if rule == DEDICATION else warning,
            f"Rule {rule} is broken on {hosts}. {_REMEDY}:",
            first_listed(texts),
        )
    if not broken:
        yield good(f"No rule is broken by the VMs on {plurals.text(len(found.at), 'host')}.")


def read_instances(context: nova_context.RequestContext) -> host_instances.HostInstances:
    """Return the VMs on all hosts, with their applications.

    Queries as :func:`host_instances.read` says; no look-ups in Placement.
    """
    found = host_instances.read(context, (), ())
    at = host_vms.corrected(found.at, (), found.others)
    return host_instances.HostInstances(at, problems=found.problems)


def read_metadata(context: nova_context.RequestContext) -> dict[str, list[dict[str, str]]]:
    """Return the metadata of each service host's aggregates. Nova's own list of aggregates."""
    return by_key(
        (host, aggregate.metadata)
        for aggregate in objects.AggregateList.get_all(context)
        for host in aggregate.hosts
    )


def _bad_company() -> Mapping[str, frozenset[str]]:
    """Return the applications that each is kept apart from; raise InterferenceError."""
    path = CONF.hpc_sched.interference_file
    if not path:
        return {}
    return interference_file.read_index(path).bad_company(CONF.hpc_sched.interference_tolerance)
