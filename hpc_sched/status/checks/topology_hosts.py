"""Check: the topology loads, and names every compute that takes instances."""

import re

from hpc_sched import conf, exceptions
from hpc_sched.configuration import topology_options
from hpc_sched.nova_glue.io import fabric
from hpc_sched.status.finding import Findings, failure, first_listed, good, warning
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud, unread_cells
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.compare import lint
from hpc_sched.topology.host_names import HostNames
from hpc_sched.topology.model import Topology

_COMMA = re.compile(r",(?![^\[]*\])")  # outside of brackets


def check(cloud: InspectedCloud) -> Findings:
    """Return how the topology compares with the cloud's computes."""
    driver, options = topology_options.source(CONF)
    described = options.get("path") or " ".join(options.get("command", ()))
    source = f"{driver}: {described}" if described else f"driver {driver}"
    try:
        topology = cloud.topology()
    except exceptions.TopologyError as error:
        yield from map(failure, first_listed(error.problems))
        yield failure(f"nova-scheduler does not start with this topology ({source}): correct it.")
        return
    yield good(f"{topology.summary()} ({source}).")
    yield from map(warning, first_listed([f"incomplete: {text}" for text in topology.incomplete]))
    yield from map(warning, first_listed(topology.remarks))
    ratios = conf.uplink_oversubscription(CONF)
    yield from map(warning, first_listed(lint.of_load(topology, ratios)))
    try:
        yield from _coverage(topology, cloud)
    except exceptions.DatabaseError as error:
        yield failure(str(error))


def _coverage(topology: Topology, cloud: InspectedCloud) -> Findings:
    computes = cloud.computes()
    yield from unread_cells(computes, "compared with the topology")
    names, _ = HostNames(topology).find_all([(node.host, node.nodename) for node in computes.rows])
    missing = sorted(
        node.nodename
        for node, name in zip(computes.rows, names, strict=True)
        if node.enabled and name not in topology
    )
    # A cell that did not answer may have them.
    unused = [] if computes.problems else sorted(set(topology.hosts) - set(names))
    number = sum(node.enabled for node in computes.rows)
    enabled = plurals.text(number, "enabled compute")
    if missing:
        hint = " (or name them in topology_name_map)" if unused else ""
        yield warning(
            f"{len(missing)} of {enabled} are "
            "not in the topology and count as leaves of their own at the greatest distance: "
            f"{_folded(missing)}. Add them to the topology{hint}, or disable them."
        )
    elif number:
        yield good(f"All {enabled} are in it.")
    if unused:
        yield good(
            f"{plurals.text(len(unused), 'host')} of the topology are no computes: "
            f"{_folded(unused)}. They do no harm."
        )


def _folded(names: list[str]) -> str:
    """Return names folded, at most ``MAX_LISTED``, with blanks at which the table breaks lines."""
    return _COMMA.sub(", ", hostlist.first(names, fabric.MAX_LISTED))
