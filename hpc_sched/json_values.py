"""Number of values in a JSON text, counted before anything is built of them.

An empty list takes two bytes of a text, which gzip packs into a few bits, and 72 bytes of memory.
"""

from dataclasses import dataclass

from hpc_sched import exceptions

_MARKS = b'",[{'
_OTHERS = bytes(set(range(256)) - set(_MARKS))


@dataclass(slots=True)
class ValueCounter:
    """Counts the values of a text that arrives in parts; raises ``error`` above ``most``.

    Counted are commas and opening brackets outside strings: no fewer than values, keys apart, up
    to the first syntax error. Linear, some 300 MB a second.
    """

    name: str  # of the file, in the error
    most: int
    error: type[exceptions.HPCSchedError] = exceptions.SnapshotError
    found: int = 1
    _in_string: bool = False
    _backslash: bytes = b""  # at the end of the last part; it escapes what follows

    def add(self, part: bytes) -> None:
        """Count the next part of the text."""
        text = (self._backslash + part).replace(b"\\\\", b"")
        self._backslash = b"\\" if text.endswith(b"\\") else b""
        marks = text.replace(b'\\"', b"").translate(None, _OTHERS)
        # Two adjacent quotes enclose nothing that counts, whether within or between strings.
        pieces = marks.replace(b'""', b"").split(b'"')
        self.found += sum(map(len, pieces[self._in_string :: 2]))
        self._in_string ^= len(pieces) % 2 == 0
        if self.found > self.most:
            raise self.error(f"{self.name}: expected at most {self.most} JSON values, found more")

    def end(self) -> None:
        """Begin another text, whose values are added; the last one may have ended in a string."""
        self._in_string, self._backslash = False, b""
