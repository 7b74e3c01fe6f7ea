"""Compressed descriptions are read as others are; damaged and huge ones are refused in bounds."""

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_sched import exceptions
from hpc_sched.topology import load
from hpc_sched.topology.readers.compression import decompressed

TEXT = b"switches:\n- name: leaf\n  hosts: n[1-4]\n"
FORMATS = [pytest.param(one.compress, id=one.__name__) for one in (gzip, lzma, bz2)]
Compress = Callable[[bytes], bytes]


@pytest.mark.parametrize("compress", FORMATS)
def test_a_compressed_file_is_read(compress: Compress, tmp_path: Path):
    path = tmp_path / "fabric"
    path.write_bytes(compress(TEXT))
    assert load("yaml", path=path).hosts == ("n1", "n2", "n3", "n4")


@pytest.mark.parametrize("compress", FORMATS)
def test_members_one_after_the_other_are_joined(compress: Compress):
    content = compress(TEXT[:10]) + compress(b"") + compress(TEXT[10:])
    assert decompressed(content, "f", 1000) == TEXT


@pytest.mark.parametrize("compress", FORMATS)
def test_a_file_that_is_cut_anywhere_is_refused(compress: Compress):
    content = compress(TEXT)
    for end in range(8, len(content)):
        with pytest.raises(exceptions.TopologyError, match=r"\Af: (?!.*f: ).*(cut off|decompr)"):
            decompressed(content[:end], "f", 1000)


def outcome(content: bytes) -> str | bytes:
    try:
        return decompressed(content, "f", 1000)
    except exceptions.TopologyError as error:
        return str(error)


@pytest.mark.parametrize("compress", FORMATS)
def test_damage_is_refused_or_changes_nothing_unseen(compress: Compress):
    content = compress(TEXT)
    for at in range(len(content)):
        damaged = bytes([*content[:at], content[at] ^ 0x55, *content[at + 1 :]])
        found = outcome(damaged)
        # The time in a header, and its flags, are not covered by a sum.
        assert found in (TEXT, damaged) or str(found).startswith("f: ")


@pytest.mark.parametrize("compress", FORMATS)
def test_a_small_file_that_becomes_a_huge_one_takes_little_memory(compress: Compress):
    content = compress(b"\0" * (64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(exceptions.TopologyError, match=r"at most 4194304 bytes when decom"):
            decompressed(content, "f", 4 << 20)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_what_follows_the_compressed_data_is_an_error_unless_it_is_padding():
    assert decompressed(gzip.compress(TEXT) + b"\0" * 512, "f", 1000) == TEXT
    with pytest.raises(exceptions.TopologyError, match="f: there is more after"):
        decompressed(gzip.compress(TEXT) + b"more", "f", 1000)


def test_formats_that_are_not_read_are_named_with_a_command():
    with pytest.raises(exceptions.TopologyError, match="use zstd -dc"):
        decompressed(b"\x28\xb5\x2f\xfd\0\0", "f", 1000)
