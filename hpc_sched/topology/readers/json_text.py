"""JSON texts, read in bounds: one document, or several one after the other."""

import re
from codecs import BOM_UTF8
from typing import Any, TypeVar

import msgspec

from hpc_sched import exceptions, files
from hpc_sched.json_values import ValueCounter
from hpc_sched.topology import hostlist, plurals

# A value takes up to 170 bytes.
MAX_VALUES = 10_000_000
# Printing a value in an error is recursive.
MAX_NESTING = 64

_BYTE = re.compile(r" \(byte (\d+)\)\Z")
Kind = TypeVar("Kind")


def documents(content: bytes, name: str) -> list[object]:
    """Return the JSON documents of a text, at least one; linear in its length.

    Of a key that an object has twice, the last value counts.

    :param name: of the text, in errors
    :raises exceptions.TopologyError: naming line and column of what is not JSON; also for more than
        ``MAX_VALUES`` values, or lists and objects nested deeper than ``MAX_NESTING``
    """
    found = documents_of(object, content, name)
    level: list[Any] = [found]
    for _ in range(MAX_NESTING + 1):
        parts = (one.values() if isinstance(one, dict) else one for one in level)
        level = [value for part in parts for value in part if isinstance(value, dict | list)]
        if not level:
            return found
    raise exceptions.TopologyError(
        f"{name}: expected lists and objects nested at most {MAX_NESTING} deep, found deeper ones"
    )


def documents_of(kind: type[Kind], content: bytes, name: str) -> list[Kind]:
    """Return documents as ``msgspec`` decodes them to a type; raises as :func:`documents` does.

    What a structure has no field for is not kept. A value of another type is an error that names
    its place in the document.
    """
    count = ValueCounter(name, MAX_VALUES, exceptions.TopologyError)
    for start in range(0, len(content), files.CHUNK):
        count.add(content[start : start + files.CHUNK])
    decoder = msgspec.json.Decoder(kind)
    # Not decoded as a whole: one character outside the BMP makes four bytes of each.
    text = memoryview(content)
    at = len(BOM_UTF8) if content.startswith(BOM_UTF8) else 0
    found = []
    while at < len(text):
        end = len(text)
        try:
            try:
                found.append(decoder.decode(text[at:]))
            except msgspec.DecodeError as failure:
                place = _BYTE.search(str(failure))
                if place is None or "trailing characters" not in str(failure):
                    raise
                # The place is that after the first character of the next document.
                end = at + int(place[1]) - 1
                found.append(decoder.decode(text[at:end]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as failure:
            raise exceptions.TopologyError(f"{name}{_problem(failure, content, at)}") from failure
        at = end
        if len(found) > hostlist.MAX_NAMES:
            raise exceptions.TopologyError(
                f"{name}: expected at most {plurals.text(hostlist.MAX_NAMES, 'JSON document')}, "
                "found more"
            )
    if not found:
        raise exceptions.TopologyError(f"{name}: expected JSON, found an empty text")
    return found


def keys_of(found: dict[str, Any]) -> str:
    """Return an object's keys in words, for errors."""
    keys = ", ".join(map(repr, list(found)[:3])) or "no keys"
    return hostlist.truncated(f"an object with {keys}")


def _problem(failure: Exception, content: bytes, start: int) -> str:
    """Return what is wrong, after line and column if they are known; ``start`` of the document."""
    if isinstance(failure, RecursionError):
        return ": nested too deeply"
    if isinstance(failure, UnicodeDecodeError):
        return f": expected UTF-8, found byte 0x{failure.object[failure.start]:02x}"
    text = str(failure)
    if isinstance(failure, msgspec.ValidationError):
        return f": {hostlist.truncated(text)}"
    if not content[start:].strip():
        return ": expected JSON, found an empty text"
    found = _BYTE.search(text)
    at = len(content) if found is None else start + int(found[1])
    line, column = content.count(b"\n", 0, at) + 1, at - content.rfind(b"\n", 0, at)
    return f":{line}:{column}: not JSON: {hostlist.truncated(_BYTE.sub('', text))}"
