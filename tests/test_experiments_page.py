"""The page of the experiments quotes the recorded tables of the network experiments."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "experiments.rst").read_text()
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def recorded(name: str, first: str, *further: str) -> list[str]:
    """Return the cells of the only recorded row that begins with these."""
    lines = (ROOT / "tests" / "printed" / f"{name}.txt").read_text().splitlines()
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines]
    [found] = [each for each in cells if each[: 1 + len(further)] == [first, *further]]
    return found


def quoted(first: str, *further: str) -> list[str]:
    """Return the cells of the only row of a list-table of the page that begins with these."""
    rows = re.findall(r"^   \* - (.*\n(?:     -.*\n)*)", PAGE, re.MULTILINE)
    cells = [
        [cell.strip() for cell in re.split(r"^     -", row, flags=re.MULTILINE)] for row in rows
    ]
    [found] = [each for each in cells if each[: 1 + len(further)] == [first, *further]]
    return found


def numbers(cells: list[str]) -> list[str]:
    return [number for cell in cells for number in _NUMBER.findall(cell)]


def test_block_tridiagonal_is_as_recorded():
    simulated = recorded("dudina2013", "simulated")
    throughout = recorded("dudina2013", "varied", "30", "30", "1", "32")
    mean, width, most, before, after = range(6, 11)
    for row, cells in (
        ("mean of the run times less by", (mean, width)),
        ("maximum less by", (most,)),
        ("spread, random", (before,)),
        ("spread, bunch-aware", (after,)),
    ):
        wanted = [found[cell] for found in (simulated, throughout) for cell in cells]
        assert numbers(quoted(row)[2:]) == wanted


@pytest.mark.parametrize("program", ["BT", "SP", "LU", "MG", "CG", "FT", "IS"])
def test_benchmarks_are_as_recorded(program: str):
    _, _, pattern, megabytes, _, share, *gains = recorded("dudina2013", program)
    found = quoted(program)
    assert found[2] == pattern
    assert numbers(found[3:]) == [megabytes, share, *gains]


@pytest.mark.parametrize(
    ("ratio", "talking", "talk"),
    [
        *((ratio, "30 %", "30") for ratio in ("4", "8", "16")),
        *((ratio, "always", "100") for ratio in ("2", "4")),
    ],
)
def test_where_a_gain_begins_is_as_recorded(ratio: str, talking: str, talk: str):
    _, _, *cells, least = recorded("dudina2013", ratio, talk)
    at_10, at_30, at_50 = cells[:2], cells[4:6], cells[8:10]
    found = quoted(f"{ratio}:1", talking)
    assert numbers(found[2:5]) == [*at_10, *at_30, *at_50]
    assert numbers(found[5:])[:1] == ([] if least == "-" else [least])


def test_thick_uplinks_gain_nothing_as_recorded():
    for ratio in ("1", "2"):
        assert set(recorded("dudina2013", ratio, "30")[2:]) == {"0", "-"}


@pytest.mark.parametrize("placement", ["exact plan", "random, ranks in fabric order"])
@pytest.mark.parametrize("ranks", ["8", "16"])
def test_what_placement_is_worth_is_as_recorded(ranks: str, placement: str):
    patterns = ("ring", "doubling", "bt", "halo2", "halo3", "alltoall")
    rows = [
        recorded("network", "part of the time", ranks, pattern, placement) for pattern in patterns
    ]
    assert numbers(quoted(f"{ranks} ranks", placement)[2:]) == [
        cell for row in rows for cell in row[5:]
    ]


def test_gupta2012_is_as_recorded():
    at_16, at_32 = (recorded("gupta2012", "varied", "10", ratio)[-1] for ratio in ("16", "32"))
    assert f"up to {at_16} % at 16:1 and {at_32} % at 32:1" in PAGE
    assert (
        numbers(quoted("in one rack: time less by"))[-1]
        == recorded("gupta2012", "simulated", "10", "3.2")[-1]
    )
