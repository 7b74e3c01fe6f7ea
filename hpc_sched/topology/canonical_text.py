"""The canonical text of a topology, the same for all descriptions of one fabric."""

import json

from hpc_sched.topology.model import Topology


def lines_of(topology: Topology) -> list[str]:
    """Return one line for the levels, one for each switch and one for each host.

    Has what placement depends on: levels, names and tree of the switches, hosts, their ids and
    processor types. Not the order of the description, which switch states a processor type, nor
    links and merged switches, which only some drivers know. O(hosts * depth).
    """
    switches, name = topology.switches, json.dumps
    lines = []
    for switch in switches:
        line = f"switch {name(switch.name)}"
        if switch.parent >= 0:
            line += f" below {name(switches[switch.parent].name)}"
        lines.append(line)
    for host, leaf in zip(topology.hosts, topology.leaf_index.tolist(), strict=True):
        line = f"host {name(host)} below {name(switches[leaf].name)}"
        if (id_ := topology.host_ids.get(host)) is not None:
            line += f" id {name(id_)}"
        if (processor := topology.processor_of(host)) is not None:
            line += f" processor {name(processor)}"
        lines.append(line)
    return [f"levels {' '.join(map(name, topology.levels))}", *sorted(lines)]
