"""Where a command's text goes: to standard output or into a file."""

import re
import sys
from typing import TextIO

from hpc_sched import exceptions, files, terminal_text

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def write(text: str, stream: TextIO) -> None:
    """Write text to a stream; what its encoding does not have comes out escaped.

    So do control characters: names of switches come from the fabric, and a terminal obeys them.
    """
    encoding = stream.encoding or "utf-8"
    text = _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def write_utf8(text: str, stream: TextIO) -> None:
    """Write what is a file's content, whatever the encoding that people read in."""
    binary = getattr(stream, "buffer", None)
    if binary is None:
        stream.write(text)
        return
    stream.flush()
    binary.write(text.encode())


def save(text: str, path: str) -> None:
    """Write text as UTF-8 into a file, whole or not at all.

    :raises exceptions.HPCSchedError: naming the file that cannot be written
    """
    files.write_atomically(path, text.encode(), exceptions.HPCSchedError)


def takes(text: str, stream: TextIO) -> bool:
    """Tell whether a stream's encoding has all letters of a text."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def say(text: str) -> None:
    """Write a line of talk to standard error; a terminal does not obey what stands in it."""
    print(terminal_text.text_of(text), file=sys.stderr)
