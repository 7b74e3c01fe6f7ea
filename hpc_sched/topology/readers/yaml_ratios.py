"""The key ``oversubscription`` of a topology file, which few files have."""

from dataclasses import replace

import yaml

from hpc_sched import decimals
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.yaml_items import invalid, mapping, text

# Of the rates of the links below a switch over that of its uplinks: no fabric has fewer uplinks.
MOST_RATIO = 1000.0


def with_ratios(fabric: Topology, node: yaml.Node, problems: Problems) -> Topology:
    """Return the fabric with the ratios of a node, by level.

    :raises exceptions.TopologyError: naming the line of what is no ratio of a level
    """
    found: dict[str, float] = {}
    with problems.collecting():
        for level, item in mapping(node, "oversubscription", fabric.levels).items():
            number = decimals.number_in(text(item, f"oversubscription of {level}"))
            if number is None or not 1 / MOST_RATIO <= number <= MOST_RATIO:
                raise invalid(
                    item,
                    f"oversubscription of {level}: expected a number from {1 / MOST_RATIO:g} to "
                    f"{MOST_RATIO:g}, found {item.value[:80]!r}",
                )
            found[level] = number
    problems.stop()
    return replace(fabric, oversubscription=found)
