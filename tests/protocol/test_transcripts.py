"""Histories to read, one a file: commands, and what they lead to, compared byte for byte.

A file begins with a comment; each line that begins with ``>`` is a command of
:mod:`tests.protocol.world`. ``pytest --rewrite-transcripts`` writes what they lead to again. A
drawn history that fails ends with such lines: as a file it is replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.protocol import world
from tests.protocol.nova_model import NovaModel

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


def replayed(begin: Callable[[], NovaModel], text: str) -> str:
    """Return a transcript with what its commands lead to now."""
    lines = text.splitlines()
    comment = [line for line in lines if line.startswith("#")]
    with world.watched(world.World(begin())) as history:
        for line in lines:
            if line.startswith(">"):
                history.do(line.removeprefix(">").strip())
    return "\n".join([*comment, "", *history.lines, ""])


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_is_what_its_commands_lead_to(begin, path, pytestconfig):
    text = path.read_text()
    now = replayed(begin, text)
    if pytestconfig.option.rewrite_transcripts:
        path.write_text(now)
        return
    assert now == text


def test_there_are_forty_transcripts_and_all_commands_are_in_one():
    commands = {
        line.split()[1]
        for path in TRANSCRIPTS
        for line in path.read_text().splitlines()
        if line.startswith(">")
    }
    assert len(TRANSCRIPTS) >= 40
    assert commands == {line.split()[0] for line in world.COMMANDS.splitlines() if line[0] != " "}
