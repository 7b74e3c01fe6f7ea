"""The canonical text of a topology, the same for all descriptions of one fabric."""

import json

from hpc_sched.topology.model import Topology


def lines_of(topology: Topology) -> list[str]:
    """Return one line for the levels, one for each switch and one for each host.

    Has what placement depends on: levels, names and tree of the switches, hosts, their ids and
    processor types; uplinks, hosts' links and oversubscription where they are stated. Not the order
    of the description, which switch states a processor type, rates down, nor merged switches, which
    only some drivers know. O(hosts * depth).
    """
    switches, name = topology.switches, json.dumps
    below = {-1: "", **{s: f" below {name(switch.name)}" for s, switch in enumerate(switches)}}
    ratios = sorted(topology.oversubscription.items())
    lines = [f"oversubscription {name(level)} {ratio:g}" for level, ratio in ratios]
    for switch in switches:
        # Where no switch above has been seen none are stated: a file cannot state that there are 0.
        up = switch.links.uplinks if switch.links and switch.parent >= 0 else None
        uplinks = f" uplinks {up}" if up is not None and up.number else ""
        lines.append(f"switch {name(switch.name)}{below[switch.parent]}{uplinks}")
    own = topology.host_links
    for host, leaf in zip(topology.hosts, topology.leaf_index.tolist(), strict=True):
        stated = {
            "id": topology.host_ids.get(host),
            "processor": topology.processor_of(host),
            "links": str(own[host]) if host in own else None,
        }
        given = (f" {key} {name(text)}" for key, text in stated.items() if text is not None)
        lines.append(f"host {name(host)}{below[leaf]}{''.join(given)}")
    return [f"levels {' '.join(map(name, topology.levels))}", *sorted(lines)]
