"""The name map: other names of hosts.

A line has a name in the topology and the name in Nova, such as the UUID of a bare-metal node, or
a GUID and the name of its host or switch; H-<GUID> and S-<GUID> are GUIDs too. Quotes and comments
are those of the node name map of OpenSM and infiniband-diags, which can be used too::

    node0001             4f0c6a1e-7d0b-4a6e-9d43-2f1f6a9c3b10
    0x0002c90300a1b2c3   "node0002"                            # HCA without a description
"""

import re
from collections import UserDict

from hpc_sched import exceptions, files
from hpc_sched.topology import plurals
from hpc_sched.topology.readers.reader_errors import InvalidItemError, Problems

_LINE = re.compile(r'\s*(?P<key>"[^"]*"|[^\s"#]+)\s+(?P<name>"[^"]*"|[^\s"]+)\s*(?:#.*)?\Z')
# Marked as one: a name of a host may look like a GUID.
_GUID = re.compile(r"(?:[HS]-(?:0[xX])?|0[xX])([0-9a-fA-F]{1,16})\Z")
_SHOWN = 80
# 100,000 hosts with 8 ports each have 800,000. A million entries take 0.4 GB.
MAX_ENTRIES = 1_000_000


class NameMap(UserDict[str, str]):
    """Names by key, for one reading of a topology: knows which of its lines have been used.

    A GUID is a key both as written and normalized by :func:`guid`. Linear. TopologyError has the
    first wrong lines.
    """

    def __init__(self, content: bytes, path: str) -> None:
        super().__init__()
        self.path = path
        self._lines: dict[str, int] = {}  # of each key
        self._used: set[int] = set()
        entries = 0
        text = files.decode(content, path, exceptions.TopologyError)
        problems = Problems(path)
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                with problems.collecting():
                    self._add(number, line)
                    entries += 1
            problems.check_number(entries, MAX_ENTRIES, "names", number)
        problems.stop()

    def _add(self, number: int, line: str) -> None:
        found = _LINE.match(line)
        key = found["key"].strip('"') if found else ""
        name = found["name"].strip('"').strip() if found else ""
        if not key or not name or not name.isprintable():
            shown = line.strip()[:_SHOWN]
            raise InvalidItemError(
                number, f"expected a name or GUID and the name of a host, found {shown!r}"
            )
        # A GUID written in two ways is the same GUID.
        forms = [key, *filter(None, [guid(key)])]
        other = next((form for form in forms if self.data.get(form, name) != name), None)
        if other is not None:
            raise InvalidItemError(
                number,
                f"{key[:_SHOWN]!r} is {name[:_SHOWN]!r} here and {self.data[other][:_SHOWN]!r} on "
                f"line {self._lines[other]}",
            )
        for form in forms:
            self.data[form] = name
            self._lines.setdefault(form, min(self._lines.get(one, number) for one in forms))

    def __getitem__(self, key: str) -> str:
        name = self.data[key]
        self._used.add(self._lines[key])
        return name

    def remarks(self) -> list[str]:
        """Return a sentence on the lines that have not been used, or none."""
        # A line has its key as written first.
        lines = reversed(self._lines.items())
        unused = {line: key for key, line in lines if line not in self._used}
        if not unused:
            return []
        first, more = min(unused), len(unused) - 1
        others = f", nor do {plurals.text(more, 'more line')}" if more else ""
        key = unused[first][:_SHOWN]
        return [f"{self.path}:{first}: {key!r} matches no host or switch{others}"]


def guid(text: str) -> str | None:
    """Return a GUID normalized, or None for another text."""
    return normalized_guid(found[1]) if (found := _GUID.match(text)) else None


def normalized_guid(digits: str) -> str:
    """Return a GUID of 16 lower-case hexadecimal digits."""
    return digits.lower().rjust(16, "0")
