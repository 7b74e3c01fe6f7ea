"""The ``slurm`` driver: Slurm's own description of a fabric, topology.conf or topology.yaml.

Of topology.conf, as ``scontrol show topology`` prints it too, each line has ``key=value`` pairs,
the first of which names a switch. What is read follows Slurm's ``parse_config.c``: keys in any
case, blanks around ``=``, quotes around a value, a comment from ``#`` to the end of the line,
``\\#`` and ``\\\\`` for the characters themselves, and a backslash at the end for a line that
goes on.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_sched import exceptions, files
from hpc_sched.topology import hostlist
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.reader_errors import InvalidItemError, Problems, shortened
from hpc_sched.topology.readers.slurm import graph_tree, topology_yaml
from hpc_sched.topology.readers.slurm.switch_graph import SwitchLine
from hpc_sched.topology.readers.text_driver import TextDriver

# A byte order mark of UTF-16; or, after comments, YAML's indicators or a key with a colon.
_YAML = re.compile(
    rb"\xff\xfe|\xfe\xff|(?:\xef\xbb\xbf)?+(?:\s|#[^\n]*(?:\n|\Z))*+"
    rb"(?:---|%YAML|%TAG|-\s|-\Z|[\[{!&*|>~?]|[\"']?[A-Za-z0-9_.]+[\"']?\s*:(?:\s|\Z))"
)

_KEYS = {key.lower(): key for key in ("SwitchName", "Nodes", "Switches", "LinkSpeed", "Level")}
_OTHER_PLUGINS = {
    "blockname": ("BlockName", "topology/block"),
    "blocksizes": ("BlockSizes", "topology/block"),
    "ringname": ("RingName", "topology/ring"),
}
_PAIR = re.compile(r"\s*([A-Za-z0-9_.]+)\s*=(\s*)", re.ASCII)
_VALUE = re.compile(r'(?:"([^"]*)"|([^\s"]+))(?=\s|\Z)', re.ASCII)
_NEXT_PAIR = re.compile(r"[A-Za-z0-9_.]+=", re.ASCII)
_INCLUDE = re.compile(r"\s*include(?=\s|\Z)", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+\Z")
_SPEED = re.compile(r"[0-9]\w*\Z|unlimited\Z|infinite\Z", re.ASCII | re.IGNORECASE)
_UNCOMMENTED = re.compile(r"(?:[^\\#]|\\.?)*+", re.DOTALL)  # up to a comment
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


class SlurmDriver(TextDriver):
    """Reads topology.conf, the output of ``scontrol show topology``, or a tree of topology.yaml.

    Without the name of a ``tree``: the first with ``cluster_default``, or the only one.
    """

    def __init__(self, *, tree: str | None = None, **source: Any) -> None:
        super().__init__(**source)
        self.tree = tree

    def parse_text(self, content: bytes, name: str, names: Mapping[str, str]) -> Topology:
        """Return the topology in the format of the first line; TopologyError has every problem."""
        problems = Problems(name)
        if is_yaml(content):
            lines = topology_yaml.switches_of(content, self.tree, problems)
        else:
            lines = _switches_of(files.decode(content, name, exceptions.TopologyError), problems)
            if self.tree is not None:
                problems.remark(
                    None, f"topology {self.tree!r} is asked for, but topology.conf has no names"
                )
        return graph_tree.topology_of(lines, problems)


def is_yaml(content: bytes) -> bool:
    """True if a text is a topology.yaml rather than a topology.conf."""
    return _YAML.match(content) is not None


def _switches_of(text: str, problems: Problems) -> list[SwitchLine]:
    found = []
    for number, line in _logical_lines(text):
        if not line or line.isspace():
            continue
        with problems.collecting():
            if _INCLUDE.match(line):
                raise InvalidItemError(
                    number, "Include: expected all switches in one file, found one that is included"
                )
            found.append(_switch_of(number, _pairs_of(number, line, problems)))
        if len(found) > hostlist.MAX_NAMES:
            raise problems.error(
                number, f"expected at most {hostlist.MAX_NAMES} switches, found more"
            )
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments and escapes, continued ones joined, with their first number."""
    parts: list[str] = []
    first = 1
    for number, physical in enumerate(text.split("\n"), 1):
        if not parts:
            first = number
        found = _UNCOMMENTED.match(physical) if "#" in physical else None
        line = found[0] if found else physical
        stripped = line.rstrip()
        goes_on = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        parts.append(stripped[:-1] if goes_on else line)
        if not goes_on:
            yield first, _ESCAPE.sub(r"\1", "".join(parts))
            parts = []
    if parts:
        yield first, _ESCAPE.sub(r"\1", "".join(parts))


def _pairs_of(number: int, line: str, problems: Problems) -> dict[str, str]:
    pairs: dict[str, str] = {}
    at, end = 0, len(line.rstrip())
    while at < end:
        pair = _PAIR.match(line, at)
        if not pair:
            rest = shortened(line[at:].strip())
            raise InvalidItemError(number, f"expected key=value, found {rest!r}")
        stated = pair[1]
        key = _KEYS.get(stated.lower())
        if stated.lower() in _OTHER_PLUGINS:
            name, plugin = _OTHER_PLUGINS[stated.lower()]
            wanted = "expected switches (topology/tree), found none"
            raise problems.error(number, f"key {name!r} of {plugin}: {wanted}")
        if key is None:
            known = ", ".join(_KEYS.values())
            raise InvalidItemError(number, f"{_owner(pairs)}unknown key {stated!r}; known: {known}")
        if not pairs and key != "SwitchName":
            raise InvalidItemError(number, f"expected SwitchName first, found {stated!r}")
        if key in pairs:
            raise InvalidItemError(number, f"{_owner(pairs)}key {key!r} stands twice")
        at = pair.end()
        pairs[key] = ""
        if at < end and not (pair[2] and _NEXT_PAIR.match(line, at)):
            value = _VALUE.match(line, at)
            if not value:
                raise InvalidItemError(
                    number,
                    f"{_owner(pairs)}key {key!r}: expected a value, or one in quotes, found "
                    f"{shortened(line[at:].strip())!r}",
                )
            pairs[key] = value[2] if value[1] is None else value[1].strip()
            at = value.end()
        # ``scontrol show topology``, which prints levels, prints keys without a value too.
        if not pairs[key] and "Level" not in pairs:
            raise InvalidItemError(number, f"{_owner(pairs)}key {key!r} has no value")
    return pairs


def _owner(pairs: dict[str, str]) -> str:
    name = pairs.get("SwitchName")
    return f"switch {name!r}: " if name else ""


def _switch_of(number: int, pairs: dict[str, str]) -> SwitchLine:
    name = pairs["SwitchName"]
    for key, form in (("Level", _NUMBER), ("LinkSpeed", _SPEED)):
        if key in pairs and not form.match(pairs[key]):
            raise InvalidItemError(
                number, f"switch {name!r}: {key}: expected a number, found {pairs[key]!r}"
            )
    nodes, switches = pairs.get("Nodes") or None, pairs.get("Switches") or None
    reaches = nodes is not None and switches is not None
    if reaches and not pairs.get("Level", "").strip("0"):
        raise InvalidItemError(
            number, f"switch {name!r}: expected Nodes of a leaf or Switches below, found both"
        )
    return SwitchLine(name, number, nodes, switches, reaches)
