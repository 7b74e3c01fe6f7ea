"""The tree of Slurm's graph of switches.

The level of a switch is one more than the highest level of the switches that it lists, and two
hosts meet on the lowest level on which one switch has both below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hpc_sched import exceptions
from hpc_sched.topology import hierarchy
from hpc_sched.topology.hierarchy import bits, union
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import Problems, first_of
from hpc_sched.topology.readers.slurm.switch_graph import SwitchGraph, SwitchLine, SwitchList
from hpc_sched.topology.tree import MAX_LEVELS

# Far above any fabric: they protect the scheduler's memory and time from a hostile file.
MAX_BITS = 1 << 31  # of all masks in memory: 256 MB
MAX_STEPS = 1 << 31  # some ten seconds


def topology_of(lines: Sequence[SwitchLine], problems: Problems) -> Topology:
    """Return the topology of switches; TopologyError has every problem, those of the text too.

    Linear in the names that the lines list, each list counted once, but for graphs that are no
    trees, see :func:`hierarchy.build`.
    """
    graph = SwitchGraph(lines, problems)
    order = graph.ordered()
    problems.stop()
    leaves = [hierarchy.Leaf((name,), nodes) for name, nodes in graph.leaves.items()]
    # The masks of all switches must fit into memory.
    if len(leaves) * (len(leaves) + len(order)) > MAX_BITS:
        raise problems.error(
            None,
            f"{len(leaves)} leaf switches and {len(order)} different lists of switches: "
            "too many to compare",
        )
    lowest = {name: SwitchList(level=1, leaves=1 << i) for i, name in enumerate(graph.leaves)}
    masks: dict[int, list[int]] = {}  # of the leaves below each switch, by level
    for listed in order:
        lower = [graph.list_of(name) or lowest.get(name) for name in listed.switches]
        highest = max((each.level for each in lower if each), default=0)
        if highest:
            listed.level = highest + 1
            listed.leaves = union(each.leaves for each in lower if each)
            masks.setdefault(listed.level, []).append(listed.leaves)
    _check_levels(graph)
    problems.stop()
    _check_reached(graph, leaves)
    problems.stop()
    uppers = [
        hierarchy.Upper(name, upper.level, upper.leaves)
        for name in graph.defined
        if (upper := graph.list_of(name)) and upper.level
    ]
    try:
        near = _near_of([leaf.leaves for leaf in lowest.values()], masks)
        if len(near) // 2 + 1 > max(masks, default=1):
            _remark_apart(graph, leaves, near)
        places = {name: place for place, name in enumerate(graph.defined)}
        return _in_order(hierarchy.build(leaves, near, uppers, problems.remarks), places)
    except exceptions.TopologyError as error:
        raise problems.error(None, str(error)) from error


def _in_order(fabric: Topology, places: Mapping[str, int]) -> Topology:
    """Return the fabric with the order of its switches, if that of the tree differs on a level.

    A node of several switches has the place of the last one, the parent that Slurm uses; a node
    that the description does not have is where its first child is.
    """
    switches = fabric.switches
    order = [len(places)] * len(switches)
    for s in reversed(range(len(switches))):
        switch = switches[s]
        named = [places[name] for name in switch.members or (switch.name,) if name in places]
        order[s] = max(named, default=order[s])
        if switch.parent >= 0:
            order[switch.parent] = min(order[switch.parent], order[s])
    by_level = sorted(range(len(switches)), key=lambda s: switches[s].level)
    if by_level == sorted(by_level, key=lambda s: (switches[s].level, order[s])):
        return fabric
    placed = zip(switches, order, strict=True)
    return replace(fabric, switches=tuple(replace(switch, order=at) for switch, at in placed))


def _check_levels(graph: SwitchGraph) -> None:
    highest = max((listed.level for listed in graph.lists.values()), default=1)
    for line in graph.defined.values():
        listed = graph.list_of(line.name)
        if listed is None:
            if line.nodes is None:
                graph.remark(line, " has neither nodes nor switches: left out")
        elif not listed.level:
            graph.remark(
                line, f" lists switch {first_of(listed.switches)}, but no node is below: left out"
            )
        elif listed.level > max(MAX_LEVELS, highest - 1):
            raise graph.problems.error(
                line.line,
                f"switch {line.name!r} is on level {highest}: expected at most {MAX_LEVELS} levels "
                "of switches",
            )
    if not graph.leaves:
        graph.problems.note(None, "no switch has nodes")


def _remark_apart(
    graph: SwitchGraph, leaves: Sequence[hierarchy.Leaf], near: Sequence[Sequence[int]]
) -> None:
    one = next(i for i, close in enumerate(near[-2]) if close != near[-1][i])
    other = next(bits(near[-1][one] & ~near[-2][one]))
    (a,), (b,) = leaves[one].switches, leaves[other].switches
    graph.problems.remark(
        graph.defined[a].line,
        f"switch {a!r} and switch {b!r} have no switch above both and are connected by "
        "way of others: one level is added above all",
    )


def _check_reached(graph: SwitchGraph, leaves: Sequence[hierarchy.Leaf]) -> None:
    """Note the switches whose nodes differ from those that they reach."""
    checked: dict[tuple[str, int], str] = {}
    for line in graph.defined.values():
        listed = graph.list_of(line.name)
        if not line.reaches or listed is None or not line.nodes:
            continue
        key = (line.nodes, listed.leaves)
        if key not in checked:
            named = set(graph.names_of(line, line.nodes, "node"))
            reached = {node for i in bits(key[1]) for node in leaves[i].hosts}
            # Slurm reaches a node by each leaf that lists it.
            missed = named - reached - graph.shared
            wrong, what = sorted(missed), "names node {} and does not reach it"
            if not wrong:
                wrong, what = sorted(reached - named), "reaches node {} and does not name it"
            checked[key] = what.format(first_of(wrong)) if wrong else ""
        if checked[key]:
            graph.note(line, f" {checked[key]}")


def _near_of(own: list[int], below: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the leaves near each leaf, as :func:`hierarchy.build` takes them.

    Two leaves that no switch has both below, but a chain of others connects, meet one level above
    all switches. Linear in the leaves below all the different switches of a level, in steps of 64.
    """
    near, leaves = [own], len(own)
    kept = steps = 0
    for level in range(2, max(below, default=1) + 1):
        now = list(near[-1])
        masks = dict.fromkeys(below.get(level, ()))
        steps += sum(mask.bit_count() for mask in masks) * (leaves // 64 + 64)
        for mask in masks:
            if steps > MAX_STEPS or kept > MAX_BITS:
                raise exceptions.TopologyError(
                    f"{leaves} leaf switches with too many different switches above to compare"
                )
            for leaf in bits(mask):
                together = now[leaf] | mask
                # Leaves below the same switches share one mask.
                now[leaf] = mask if together == mask else together
                kept += leaves * (together != mask)
        near += [near[-1], now]
    connected = _connected(near[-1])
    return near if connected == near[-1] else [*near, near[-1], connected]


def _connected(near: Sequence[int]) -> list[int]:
    """Return, per leaf, the mask of all leaves connected with it, directly or by others."""
    if sum(mask.bit_count() for mask in set(near)) == len(near):
        return list(near)  # the parts are disjoint already
    connected: dict[int, int] = {}
    for start in range(len(near)):
        if start not in connected:
            part, new = 0, 1 << start
            while new:
                part |= new
                new = union(near[leaf] for leaf in bits(new)) & ~part
            connected |= dict.fromkeys(bits(part), part)
    return [connected[leaf] for leaf in range(len(near))]
