"""Check: the topology loads, and names every compute that takes VMs."""

import nova.conf

from hpc_sched import conf, exceptions
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.status.check_result import Finding, failure, good, shortened, warning
from hpc_sched.status.inspected_cloud import Cloud
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF


def check(cloud: Cloud) -> list[Finding]:
    """Return how the topology compares with the cloud's computes."""
    try:
        topology = cloud.topology()
    except exceptions.TopologyError as error:
        texts = shortened(error.problems)
        return [
            *(failure(text) for text in texts),
            failure(f"nova-scheduler does not start with this topology ({source()}): mend it."),
        ]
    found = [good(f"{topology.summary()} ({source()}).")]
    found += [warning(remark) for remark in shortened(topology.remarks)]
    try:
        return found + _coverage(topology, cloud)
    except exceptions.DatabaseError as error:
        return [*found, failure(str(error))]


def source() -> str:
    """Return what nova.conf says the topology comes from, for people."""
    driver, options = conf.topology_source(CONF)
    described = options.get("path") or " ".join(options.get("command", ()))
    return f"{driver}: {described}" if described else f"driver {driver}"


def _coverage(topology: Topology, cloud: Cloud) -> list[Finding]:
    computes = cloud.computes()
    found = [
        warning(f"{silent}. Its computes are not compared with the topology.")
        for silent in computes.silent
    ]
    names, _ = loaded_topology.names_in(loaded_topology.Fabric(topology), computes.nodes)
    known = [name for name in names if name in topology]
    missing = [
        node.nodename
        for node, name in zip(computes.nodes, names, strict=True)
        if node.enabled and name not in topology
    ]
    strangers = sorted(set(topology.hosts) - set(known)) if not computes.silent else []
    if missing:
        hint = " (or name them in topology_name_map)" if strangers else ""
        found.append(
            warning(
                f"{len(missing)} of {plurals.text(len(computes.enabled), 'enabled compute')} are "
                "not in the topology and count as leaves of their own at the greatest distance: "
                f"{folded(missing)}. Add them to the topology{hint}, or disable them."
            )
        )
    elif computes.enabled:
        found.append(
            good(f"All {plurals.text(len(computes.enabled), 'enabled compute')} are in it.")
        )
    if strangers:
        found.append(
            good(
                f"{plurals.text(len(strangers), 'host')} of the topology are no computes: "
                f"{folded(strangers)}. They do no harm."
            )
        )
    return found


def folded(names: list[str]) -> str:
    """Return names folded, of very many only the first."""
    shown = names[: loaded_topology.MAX_LISTED]
    # Blanks are where the table breaks lines.
    text = ", ".join(_ranges(hostlist.fold(shown)))
    more = len(names) - len(shown)
    return f"{text} and {more} more" if more else text


def _ranges(text: str) -> list[str]:
    """Return the parts of a folded text between the commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts
