"""The order of the places of a group in parts: each part has ranks that follow each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpc_sched.core.constraints.parts.group_parts import Parts
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.segmented.rooms_of_tops import level_of_parts
from hpc_sched.topology.fabric_order import in_fabric_order
from hpc_sched.topology.grouping import by_key

_COMPLETING, _WHOLE, _LAST = range(3)


@dataclass(frozen=True, slots=True)
class _PlacedPart:
    """The new VMs of one part."""

    kind: int
    hosts: Sequence[int]  # in the order of the fabric


def in_parts(
    problem: Problem, parts: Parts, chosen: Sequence[int], ends: Sequence[int]
) -> list[int]:
    """Return hosts in the order of ranks: part after part, in the order of the fabric.

    A part that members have begun comes first, and one that is not full last.

    :param chosen: host of each VM; those are near each other that are next to each other
    :param ends: numbers of VMs that are placed together: their parts come before others
    """
    topology = problem.topology
    switch_of = topology.groups[level_of_parts(problem.topology, parts) - 1]
    below = by_key((switch_of.item(host), host) for host in in_fabric_order(topology, chosen))
    position = {switch: i for i, switch in enumerate(below)}
    found: list[tuple[tuple[int, ...], Sequence[int]]] = []
    begin = 0
    for switch in dict.fromkeys(switch_of[list(chosen)].tolist()):
        here = int(problem.members[switch_of == switch].sum())
        for number, part in enumerate(_parts_of(below[switch], here, parts.size)):
            together = sum(begin >= end for end in ends)
            order = part.kind, together, position[switch], number
            found.append((order, part.hosts))
            begin += len(part.hosts)
    return [host for _, hosts in sorted(found) for host in hosts]


def _parts_of(hosts: Sequence[int], members: int, size: int) -> Iterator[_PlacedPart]:
    """Yield the parts of some VMs below one switch that has members."""
    done = 0
    while done < len(hosts):
        begun = (members + done) % size
        part = hosts[done : done + size - begun]
        is_full = begun + len(part) == size
        kind = _LAST if not is_full else _COMPLETING if begun else _WHOLE
        yield _PlacedPart(kind, part)
        done += len(part)
