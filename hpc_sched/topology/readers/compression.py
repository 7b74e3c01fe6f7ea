"""Compressed descriptions, decompressed in bounded memory."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from hpc_sched import exceptions, files

_FORMATS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": partial(zlib.decompressobj, wbits=16 + zlib.MAX_WBITS),
    b"\xfd7zXZ\x00": partial(lzma.LZMADecompressor, memlimit=256 << 20),
    b"BZh": bz2.BZ2Decompressor,
}
# Formats without a decompressor in Python's library.
_OTHERS = {
    b"\x28\xb5\x2f\xfd": "zstd -dc",
    b"\x04\x22\x4d\x18": "lz4 -dc",
    b"PK\x03\x04": "unzip -p",
}


def decompressed(content: bytes, name: str, max_bytes: int) -> bytes:
    """Return the content of a gzip, xz or bzip2 file, several members joined; others as they are.

    :raises exceptions.TopologyError: for a file that is damaged or cut off, one of more than
        ``max_bytes`` or in another format
    """
    for magic, command in _OTHERS.items():
        if content.startswith(magic):
            raise exceptions.TopologyError(
                f"{name}: expected a text, or a file of gzip, xz or bzip2: use {command}"
            )
    output, rest = bytearray(), content
    while made := next((each for magic, each in _FORMATS.items() if rest.startswith(magic)), None):
        rest = _member(made(), rest, name, output, max_bytes)
        if not rest.strip(b"\0"):
            return bytes(output)
    if output:
        raise exceptions.TopologyError(f"{name}: there is more after the compressed data")
    return content


def _member(one: Any, content: bytes, name: str, output: bytearray, max_bytes: int) -> bytes:
    """Append one member to the output; return what follows it."""
    is_zlib = not hasattr(one, "needs_input")
    given = content
    while not one.eof:
        before = len(output)
        try:
            output += one.decompress(given, files.CHUNK)
        except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError) as error:
            raise exceptions.TopologyError(f"{name}: cannot be decompressed: {error}") from error
        given = one.unconsumed_tail if is_zlib else b""
        if len(output) > max_bytes:
            raise exceptions.TopologyError(
                f"{name}: expected at most {max_bytes} bytes when decompressed, found more"
            )
        if not one.eof and not given and len(output) == before:
            raise exceptions.TopologyError(f"{name}: the compressed data is cut off")
    return cast(bytes, one.unused_data)
