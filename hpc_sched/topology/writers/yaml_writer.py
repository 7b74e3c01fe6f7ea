"""A topology as a file of the driver ``yaml``."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import yaml

from hpc_sched import decimals, exceptions
from hpc_sched.topology import hostlist
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.links import Cables
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import MAX_LEVELS, Switch

# Needs no quotes: it is no number, date or indicator of YAML.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*(?:\[[0-9,-]+\][A-Za-z0-9._-]*)*\Z")
_IN_A_LINE = 8  # members or ids of a switch
# Words that other YAML readers take for null or booleans.
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))


def text_of(topology: Topology) -> str:
    """Return a topology as a file; TopologyError for a name or depth that cannot be read again.

    The hosts of a leaf are folded and sorted by name. The usual uplinks of a level and links of
    hosts are stated once, where all have some. Linear.
    """
    check_depth(topology)
    below, hosts = topology.children(), topology.leaf_hosts()
    usual = _usual_uplinks(topology)
    host_links = [topology.host_links.get(host) for host in topology.hosts]
    of_all_hosts = _usual(host_links)
    levels = ", ".join(_scalar(name, "level") for name in topology.levels)
    ratios = {level: decimals.text_of(ratio) for level, ratio in topology.oversubscription.items()}
    uplinks = {level: _cables(one) for level, one in usual.items()}
    lines = [f"levels: [{levels}]"]
    for key, by_level in (("oversubscription", ratios), ("uplinks", uplinks)):
        texts = ", ".join(f"{_scalar(level, 'level')}: {text}" for level, text in by_level.items())
        lines += [f"{key}: {{{texts}}}"] if texts else []
    lines += [f"host_links: {_cables(of_all_hosts)}"] if of_all_hosts else []
    lines.append("switches:")
    roots = [s for s, switch in enumerate(topology.switches) if switch.parent < 0]
    # A stack: children follow their switch.
    waiting = [(s, "") for s in reversed(roots)]
    while waiting:
        s, indent = waiting.pop()
        switch = topology.switches[s]
        lines += [indent + line for line in _head(switch)]
        up = switch.links.uplinks if switch.links and switch.parent >= 0 else None
        if up and up.number and up != usual.get(topology.levels[switch.level - 1]):
            lines.append(f"{indent}  uplinks: {_cables(up)}")
        if below[s]:
            lines.append(f"{indent}  switches:")
            waiting += [(child, indent + "  ") for child in reversed(below[s])]
        else:
            lines += [indent + line for line in _hosts(topology, switch, hosts[s], of_all_hosts)]
    return "\n".join(lines) + "\n"


def check_depth(topology: Topology) -> None:
    """Raise a TopologyError for a topology deeper than the readers accept."""
    if topology.depth > MAX_LEVELS:
        raise exceptions.TopologyError(
            f"expected at most {MAX_LEVELS} levels of switches, found {topology.depth}"
        )


def _usual_uplinks(topology: Topology) -> dict[str, Cables]:
    """Return the usual uplinks of the levels on which all switches below others have some.

    Not of one whose oversubscription is stated too: a file has one of the two.
    """
    stated = by_key(
        (topology.levels[one.level - 1], one.links.uplinks if one.links else None)
        for one in topology.switches
        if one.parent >= 0
    )
    return {
        level: usual
        for level in topology.levels
        if level not in topology.oversubscription and (usual := _usual(stated.get(level, ())))
    }


def _usual(stated: Sequence[Cables | None]) -> Cables | None:
    """Return the most frequent cables, of several the first; None if one has none or is alone."""
    if not all(one and one.number for one in stated):
        return None
    most, count = next(iter(Counter(stated).most_common(1)), (None, 0))
    return most if count > 1 else None


def _cables(cables: Cables) -> str:
    parts = cables.parts()
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


def _head(switch: Switch) -> Iterator[str]:
    yield f"- name: {_scalar(switch.name, 'switch')}"
    ids = [id_ for id_ in switch.ids if not _is_several(id_)]
    for key, names in (("members", _members(switch)), ("ids", ids)):
        texts = [_scalar(text, key) for text in names]
        for start in range(0, len(texts), _IN_A_LINE):
            before = f"  {key}: [" if not start else "    "
            after = "," if start + _IN_A_LINE < len(texts) else "]"
            yield before + ", ".join(texts[start : start + _IN_A_LINE]) + after
    if switch.processor is not None:
        yield f"  processor: {_scalar(switch.processor, 'processor')}"


def _members(switch: Switch) -> list[str]:
    """Return the members of a switch, folded; without those that would be read as several."""
    plain = [name for name in switch.members if hostlist.PLAIN.match(name)]
    odd = (name for name in switch.members if not hostlist.PLAIN.match(name))
    return [*hostlist.written(plain), *(name for name in odd if not _is_several(name))]


def _is_several(name: str) -> bool:
    """True for a name that would be read as a list of names, or might be."""
    return not set(name).isdisjoint(",[]")


def _hosts(
    topology: Topology, leaf: Switch, hosts: Sequence[str], usual: Cables | None
) -> Iterator[str]:
    items = []

    def attributes(host: str) -> dict[str, str]:
        stated = {
            "processor": topology.host_processors.get(host),
            "id": topology.host_ids.get(host),
        }
        found = {key: _quoted_text(text, key) for key, text in stated.items() if text is not None}
        links = topology.host_links.get(host)
        return found | ({"links": _cables(links)} if links and links != usual else {})

    for stated, names in groupby(hosts, key=attributes):
        try:
            texts = hostlist.written(tuple(names))
        except ValueError as error:
            raise exceptions.TopologyError(
                f"leaf {leaf.name!r}: host cannot be written: {error}"
            ) from error
        for text in texts:
            item = _scalar(text, "host")
            if stated:
                more = (f"{key}: {value}" for key, value in stated.items())
                item = f"{{name: {_quoted(text)}, {', '.join(more)}}}"
            items.append(item)
    if len(items) == 1 and not items[0].startswith("{"):
        yield f"  hosts: {items[0]}"
    else:
        yield "  hosts:"
        yield from (f"  - {item}" for item in items)


def comment(text: str) -> str:
    """Return a text escaped for a comment: one line of ASCII."""
    return text.encode("unicode_escape").decode("ascii")


def _scalar(text: str, what: str) -> str:
    if _PLAIN.match(text) and text.lower() not in _WORDS:
        # In a flow list, commas and brackets are indicators.
        return text if what == "host" or "[" not in text else _quoted(text)
    return _quoted_text(text, what)


def _quoted_text(text: str, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise exceptions.TopologyError(f"{what} {text!r} cannot be written: {error}") from error
    if not text or text != text.strip():
        raise exceptions.TopologyError(
            f"{what} {text!r} cannot be written: expected a text without blanks around it"
        )
    return _quoted(text)


def _quoted(text: str) -> str:
    made: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf"))
    return made.rstrip("\n")
