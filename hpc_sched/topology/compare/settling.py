"""Changes of a discovered fabric that wait until they have lasted: cables and nodes come and go.

Each host and each switch waits for itself: a host that flaps holds up no other change. While a
change of the switches above leaves waits, hosts move between the leaves that are there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from hpc_sched.topology.compare import difference
from hpc_sched.topology.compare.difference import Change
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import Details, by_name

_Value = TypeVar("_Value")


class _Since(NamedTuple):
    """What a change has led to, and when that was seen first."""

    value: str | None  # such as the switch above a host; None if it is gone
    time: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """What differs from the fabric in use; false if nothing does."""

    hosts: Mapping[str, _Since] = field(default_factory=dict)
    switches: Mapping[str, _Since] = field(default_factory=dict)
    names: Mapping[str, _Since] = field(default_factory=dict)
    members: Mapping[str, _Since] = field(default_factory=dict)
    links: Mapping[str, _Since] = field(default_factory=dict)
    host_links: Mapping[str, _Since] = field(default_factory=dict)
    newest: Topology | None = None  # the fabric with all of it
    newest_since: float = 0.0

    def __bool__(self) -> bool:
        return self.newest is not None


NOTHING = Waiting()
NO_NAMES: Mapping[str, str] = MappingProxyType({})


class _Staying(NamedTuple):
    """What stays as it is in use."""

    names: Mapping[str, str]  # switch to the name that it has in the fabric in use
    members: set[str]  # switches by their new names, likewise links
    links: set[str]
    host_links: set[str]  # hosts


def changes(old: Topology, new: Topology) -> difference.Difference:
    """Return how a reading of a source differs from an older one of it."""
    return difference.between(old, new, one_sided=True)


def settled(
    current: Topology, new: Topology, waiting: Waiting, now: float, seconds: float
) -> tuple[Topology, Waiting]:
    """Return the new fabric without the changes that are younger than some seconds; and these.

    A fabric that has been the same for so long is returned whole.

    :param waiting: as returned for the last reading; :data:`NOTHING` at first
    :param now: a time in seconds from any start
    """
    newest, last = new, waiting.newest
    is_same = last is not None and (last is new or not changes(last, new))
    since = waiting.newest_since if is_same else now
    if now - since >= seconds:
        return new, NOTHING

    def young(changes: Mapping[str, _Since]) -> set[str]:
        return {name for name, since in changes.items() if now - since.time < seconds}

    found = changes(current, new)
    names = _since(found.renamed, waiting.names, now)
    members = _since(found.members, waiting.members, now)
    links = _since(found.links, waiting.links, now)
    host_links = _since(found.host_links, waiting.host_links, now)
    old = {change.names[0]: change.old or "" for change in found.renamed}
    stays = _Staying(
        {name: old[name] for name in young(names)},
        *(young(each) for each in (members, links, host_links)),
    )
    new = _keeping(new, current, stays)
    found = changes(current, new)
    hosts = _since(found.hosts, waiting.hosts, now, old)
    switches = _since((*found.switches, *found.levels), waiting.switches, now, old)
    still = Waiting(hosts, switches, names, members, links, host_links, newest, since)
    if not young(hosts) and not young(switches):
        return new, still if any(stays) else NOTHING
    old_names = {change.names[0]: change.old or "" for change in found.renamed}
    new_names = {old: new for new, old in old_names.items()}
    mixed = _moved(new, current, young(hosts), new_names) or current
    left = changes(current, mixed)
    changed = {name for change in (*left.switches, *left.levels) for name in change.names}
    if changed & young(switches):
        # Only between leaves that the fabric in use has.
        leaves = set(current.leaves)
        ready = {
            host
            for host in hosts.keys() - young(hosts)
            if host not in new or old_names.get(new.leaf_of(host), new.leaf_of(host)) in leaves
        }
        mixed = _moved(current, new, ready, old_names) or current
    return mixed, still


def _since(
    changes: Iterable[Change],
    before: Mapping[str, _Since],
    now: float,
    old_names: Mapping[str, str] = NO_NAMES,
) -> dict[str, _Since]:
    """Return the changes, each with the time of the reading since which it is the same.

    :param old_names: of the switches that they lead to: a new name is no other change
    """
    found = {}
    for change in changes:
        same = (change.new, old_names.get(change.new or "", change.new))
        for name in change.names:
            last = before.get(name)
            is_same = last is not None and last.value in same
            found[name] = _Since(change.new, last.time if last and is_same else now)
    return found


def _keeping(new: Topology, current: Topology, stays: _Staying) -> Topology:
    """Return a fabric with some names, members and links as they are in use."""
    if not any(stays):
        return new
    names = stays.names

    def renamed(tree: Mapping[str, Any]) -> dict[str, Any]:
        return {
            names.get(name, name): renamed(below) if isinstance(below, dict) else below
            for name, below in tree.items()
        }

    details = {
        part: {names.get(name, name): value for name, value in values.items()}
        for part, values in _parts(new.details())
    }
    by_part = {"members": stays.members, "links": stays.links}
    for part, values in _parts(current.details()):
        staying = {names.get(name, name) for name in by_part.get(part, ())}
        renamed_ones = {name: values[name] for name in names.values() if name in values}
        details[part] = {**_as_before(details[part], values, staying), **renamed_ones}
    return Topology.from_tree(
        renamed(new.to_tree()),
        levels=new.levels,
        host_processors=new.host_processors,
        details=Details(**details),
        remarks=new.remarks,
        host_ids=new.host_ids,
        oversubscription=new.oversubscription,
        host_links=_as_before(new.host_links, current.host_links, stays.host_links),
    )


def _as_before(
    new: Mapping[str, Any], current: Mapping[str, Any], names: Iterable[str]
) -> dict[str, Any]:
    """Return the new values, but the current ones, or none, of some names."""
    staying = set(names)
    return {name: value for name, value in new.items() if name not in staying} | {
        name: value for name, value in current.items() if name in staying
    }


def _moved(
    base: Topology, other: Topology, hosts: Iterable[str], names: Mapping[str, str]
) -> Topology | None:
    """Return a fabric with some hosts where another one has them, or without, if it has not.

    None where a leaf of one of them has the name of a switch above leaves of the other, and where
    no host would be left.

    :param names: switch of the other fabric to its name in this one, where that differs
    """
    tree = base.to_tree()
    where = by_name(tree)
    for host in sorted(hosts):
        if host in base:
            where[base.leaf_of(host)].remove(host)
        if host in other:
            path = [names.get(name, name) for name in reversed(other.ancestors(host))]
            leaf = _leaf_at(path, tree, where)
            if not isinstance(leaf, list):
                return None
            leaf.append(host)
    tree = _without_empty(tree)
    if not tree:
        return None
    made = Topology.from_tree(tree, details=_merged(other.details(), base.details()))
    alike = next((one for one in (base, other) if one.depth == made.depth), made)
    return replace(
        made,
        levels=alike.levels,
        oversubscription=alike.oversubscription,
        host_processors=_present(made, other.host_processors, base.host_processors),
        host_ids=_present(made, other.host_ids, base.host_ids),
        host_links=_present(made, other.host_links, base.host_links),
        remarks=base.remarks,
    )


def _leaf_at(path: Sequence[str], tree: dict[str, Any], where: dict[str, Any]) -> Any:
    """Return what is below the last switch of a path, made where it is missing."""
    below: Any = tree
    for name in path:
        if name not in where:
            if not isinstance(below, dict):
                return None
            where[name] = below[name] = [] if name == path[-1] else {}
        below = where[name]
    return below


def _without_empty(tree: Mapping[str, Any]) -> dict[str, Any]:
    parts = {
        name: _without_empty(below) if isinstance(below, dict) else below
        for name, below in tree.items()
    }
    return {name: below for name, below in parts.items() if below}


def _merged(one: Details, other: Details) -> Details:
    """Return the attributes of both; names without a switch in the tree do no harm."""
    both = zip(_parts(one), _parts(other), strict=True)
    return Details(**{part: {**values, **more} for (part, values), (_, more) in both})


def _parts(details: Details) -> list[tuple[str, Mapping[str, Any]]]:
    return [(part.name, getattr(details, part.name)) for part in fields(details)]


def _present(made: Topology, *values: Mapping[str, _Value]) -> dict[str, _Value]:
    return {host: value for one in values for host, value in one.items() if host in made}
