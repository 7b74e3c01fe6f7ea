"""What a command is doing, on one line of a terminal that each text overwrites."""

from typing import TextIO

_MOST = 200
_CLEAR = "\r\x1b[K"


class StatusLine:
    """One line of talk; elsewhere than on a terminal its texts are lines of their own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.in_place = stream.isatty()

    def show(self, text: str) -> None:
        """Write a text in place of the last one."""
        self._write(f"{_CLEAR}{text}"[:_MOST] if self.in_place else f"{text}\n")

    def end(self) -> None:
        """Leave the line empty for what comes next."""
        if self.in_place:
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
