"""The grammar of Slurm's topology.conf, and of what ``scontrol show topology`` prints.

Each line has ``key=value`` pairs, the first of which names a switch or a block. What is read
follows Slurm's ``parse_config.c``: keys in any case, blanks around ``=``, quotes around a value, a
comment from ``#`` to the end of the line, ``\\#`` and ``\\\\`` for the characters themselves, and a
backslash at the end for a line that goes on.
"""

import re
from collections.abc import Iterator

from hpc_sched.topology import hostlist
from hpc_sched.topology.readers.reader_errors import InvalidItemError, Problems
from hpc_sched.topology.readers.slurm.blocks import BlockList
from hpc_sched.topology.readers.slurm.switch_graph import SwitchLine

# The keys of a line by its first one.
_BLOCK_KEYS = ("Nodes", "BlockIndex", "BlockSize")
_LINES = {
    "SwitchName": ("SwitchName", "Nodes", "Switches", "LinkSpeed", "Level"),
    "BlockName": ("BlockName", *_BLOCK_KEYS),
    "BlockSizes": ("BlockSizes",),
    "AggregatedBlock": ("AggregatedBlock", *_BLOCK_KEYS),
}
_KEYS = {key.lower(): key for keys in _LINES.values() for key in keys}
# Slurm prints these, and then other keys without a value too.
_PRINTED = {"Level", "BlockIndex"}
_PAIR = re.compile(r"\s*([A-Za-z0-9_.]+)\s*=(\s*)", re.ASCII)
_VALUE = re.compile(r'(?:"([^"]*)"|([^\s"]+))(?=\s|\Z)', re.ASCII)
_NEXT_PAIR = re.compile(r"[A-Za-z0-9_.]+=", re.ASCII)
_INCLUDE = re.compile(r"\s*include(?=\s|\Z)", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+\Z")
_SPEED = re.compile(r"[0-9]\w*\Z|unlimited\Z|infinite\Z", re.ASCII | re.IGNORECASE)
_UNCOMMENTED = re.compile(r"(?:[^\\#]|\\.?)*+", re.DOTALL)  # up to a comment
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


def read(text: str, problems: Problems) -> list[SwitchLine] | BlockList:
    """Return the switches or blocks of a file; adds the problems of lines, raises as they do."""
    switches: list[SwitchLine] = []
    found = BlockList()
    first = ""
    for number, line in _logical_lines(text):
        if not line or line.isspace():
            continue
        with problems.collecting():
            if _INCLUDE.match(line):
                raise InvalidItemError(
                    number, "Include: expected all switches in one file, found one that is included"
                )
            pairs = _pairs_of(number, line, problems)
            key = next(iter(pairs))
            first = first or key
            if (key == "SwitchName") != (first == "SwitchName"):
                raise problems.error(
                    number,
                    f"{key} in a file with {first}: expected switches (topology/tree) or blocks "
                    "(topology/block), found both",
                )
            if key == "SwitchName":
                switches.append(_switch_of(number, pairs))
            else:
                _add_block(found, number, key, pairs)
        count = len(switches) + len(found.blocks)
        problems.check_number(count, hostlist.MAX_NAMES, "switches", number)
    return switches if first in ("", "SwitchName") else found


def _add_block(found: BlockList, number: int, key: str, pairs: dict[str, str]) -> None:
    if key == "BlockName":
        found.blocks.append(SwitchLine(pairs[key], number, pairs.get("Nodes") or None))
    if key == "BlockSizes":
        if found.line:
            raise InvalidItemError(number, f"{key} stands twice, first on line {found.line}")
        found.line = number
        found.sizes += [part.strip() for part in pairs[key].split(",") if part.strip()]
    elif (size := pairs.get("BlockSize")) and size not in found.printed:
        found.printed[size] = number


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments and escapes, continued ones joined, with their first number."""
    parts: list[str] = []
    first = 1
    lines = text.split("\n")
    for number, physical in enumerate(lines, 1):
        if not parts:
            first = number
        found = _UNCOMMENTED.match(physical) if "#" in physical else None
        line = found[0] if found else physical
        stripped = line.rstrip()
        goes_on = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        parts.append(stripped[:-1] if goes_on else line)
        if not goes_on or number == len(lines):
            yield first, _ESCAPE.sub(r"\1", "".join(parts))
            parts = []


def _pairs_of(number: int, line: str, problems: Problems) -> dict[str, str]:
    pairs: dict[str, str] = {}
    known: tuple[str, ...] = tuple(_LINES)
    at, end = 0, len(line.rstrip())
    while at < end:
        pair = _PAIR.match(line, at)
        if not pair:
            raise InvalidItemError(
                number, f"expected key=value, found {hostlist.truncated(line[at:].strip())!r}"
            )
        stated = pair[1]
        key = _KEYS.get(stated.lower())
        if stated.lower() == "ringname":
            raise problems.error(
                number,
                "key 'RingName' of topology/ring: expected switches (topology/tree) or blocks "
                "(topology/block)",
            )
        if not pairs and key is not None and key not in _LINES:
            raise InvalidItemError(
                number, f"expected SwitchName or BlockName first, found {stated!r}"
            )
        if key not in known:
            raise InvalidItemError(
                number, f"{_owner(pairs)}unknown key {stated!r}; known: {', '.join(known)}"
            )
        known = known if pairs else _LINES[key]
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
                    f"{hostlist.truncated(line[at:].strip())!r}",
                )
            pairs[key] = value[2] if value[1] is None else value[1].strip()
            at = value.end()
        if not pairs[key] and not _PRINTED & pairs.keys():
            raise InvalidItemError(number, f"{_owner(pairs)}key {key!r} has no value")
    return pairs


def _owner(pairs: dict[str, str]) -> str:
    name = next(iter(pairs.values()), "")
    return f"{'switch' if 'SwitchName' in pairs else 'block'} {name!r}: " if name else ""


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
