"""What a group's VMs send as ``hpc:pattern`` states it: names, grids, files, and what is wrong."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.core import extra_spec_names, extra_specs
from hpc_sched.core.extra_specs import Defaults
from hpc_sched.core.traffic import rank_bytes
from hpc_sched.core.traffic.matrix_file import content_of, matrix_in
from hpc_sched.core.traffic.patterns import PATTERNS, grid
from hpc_sched.core.traffic.rank_bytes import MOST_BYTES, MOST_RANKS, Traffic
from hpc_sched.core.traffic.stated_pattern import stated_traffic

PAIRS = "0,5,0,0\n5,0,0,0\n0,0,0,5\n0,0,5,0\n"


def sent(pattern: str, ranks: int, directory: Path | None = None) -> list[list[int]]:
    """Return the matrix of a pattern that is usable."""
    found = stated_traffic(pattern, ranks, directory)
    assert found.remark is None
    assert found.traffic is not None
    return found.traffic.matrix().tolist()


def remark(pattern: str, ranks: int, directory: Path | None = None) -> str:
    """Return why a pattern counts as uniform."""
    found = stated_traffic(pattern, ranks, directory)
    assert found.traffic is None
    assert found.remark is not None
    return found.remark


@pytest.mark.parametrize("pattern", [None, "uniform", "alltoall"])
def test_uniform_traffic_needs_no_matrix(pattern):
    assert stated_traffic(pattern, 5000) == stated_traffic(None, 1)


def test_the_names_that_flavors_may_state_are_those_of_the_patterns():
    names = re.findall(r"[a-z]+[123]?", extra_spec_names.TRAFFIC.pattern.replace("0-9", ""))
    assert {*names} - {"x", "z", "a"} == {*PATTERNS, "uniform", "matrix"}


@pytest.mark.parametrize("name", sorted(PATTERNS.keys() - {"alltoall"}))
@pytest.mark.parametrize("ranks", [1, 2, 5, 8, 9, 16])
def test_a_pattern_sends_the_sum_of_its_steps(name: str, ranks: int):
    expected = np.zeros((ranks, ranks))
    for step in PATTERNS[name](ranks):
        np.add.at(expected, (step.sender, step.receiver), step.size * step.times)
    assert sent(name, ranks) == expected.tolist()


def test_a_ring_sends_to_the_next_rank_alone():
    assert sent("ring", 3) == [[0, 4, 0], [0, 0, 4], [4, 0, 0]]


def test_a_grid_with_stated_sides_is_in_row_major_order():
    """Rows of three: 0 1 2 and 3 4 5. Both neighbours in a column are one rank."""
    assert sent("halo2:2x3", 6)[0] == [0, 1, 1, 2, 0, 0]
    assert sent("halo2:3x2", 6)[0] == [0, 2, 1, 0, 1, 0]


@pytest.mark.parametrize(("pattern", "ranks"), [("halo2", 12), ("halo3", 12), ("halo3", 64)])
def test_a_grid_without_sides_has_those_that_are_nearest_to_each_other(pattern: str, ranks: int):
    sides = "x".join(map(str, grid(ranks, int(pattern[-1]))))
    assert sent(pattern, ranks) == sent(f"{pattern}:{sides}", ranks)


def test_a_grid_of_another_size_counts_as_uniform():
    assert remark("halo2:8x4", 30) == (
        "hpc:pattern=halo2:8x4: a grid of 32 VMs, the group has 30: state halo2 for the sides that "
        "are nearest to each other; planned as uniform"
    )


def test_a_group_beyond_the_bound_counts_as_uniform():
    assert "expected at most 1024 VMs, the group has 1025" in remark("ring", MOST_RANKS + 1)


@pytest.mark.parametrize("pattern", ["", "rings", "halo1:8", "halo2:8", "halo2:0x8", "matrix:"])
def test_a_text_that_is_no_pattern_counts_as_uniform(pattern: str):
    assert "expected alltoall, broadcast" in remark(pattern, 8)


def test_a_matrix_is_a_file_of_the_directory(tmp_path: Path):
    (tmp_path / "pairs.csv").write_text(f"# two pairs\n\n{PAIRS}")
    assert sent("matrix:pairs", 4, tmp_path) == [
        [0, 5, 0, 0],
        [5, 0, 0, 0],
        [0, 0, 0, 5],
        [0, 0, 5, 0],
    ]


def test_a_matrix_without_a_directory_counts_as_uniform():
    assert "[hpc_sched] pattern_directory is not set" in remark("matrix:pairs", 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "m.csv: expected 4 rows, one a rank, found 0"),
        (PAIRS + "0,0,0,0\n", "m.csv:5: expected 4 rows, one a rank, found more"),
        (PAIRS[:16], "m.csv: expected 4 rows, one a rank, found 2"),
        ("0,1,2\n", "m.csv:1: expected 4 columns, one a rank, found 3"),
        ("0,1,2,3,4\n", "m.csv:1: expected 4 columns, one a rank, found 5"),
        ("\n0,1,-2,3\n", "m.csv:2: column 3: expected a number from 0 to 1e+100, found '-2'"),
        ("0,nan,2,3\n", "m.csv:1: column 2: expected a number from 0 to 1e+100, found 'nan'"),
        ("0,1e101,2,3\n", "m.csv:1: column 2: expected a number from 0 to 1e+100, found '1e101'"),
        ("0,,2,3\n", "m.csv:1: column 2: expected a number from 0 to 1e+100, found nothing"),
        ("0,1_0,2,3\n", "m.csv:1: column 2: expected a number from 0 to 1e+100, found '1_0'"),
        ("from,to,x,y\n", "m.csv:1: column 1: expected a number from 0 to 1e+100, found 'from'"),
        ('0,"1,2,3\n', "m.csv:1: not CSV: unexpected end of data"),
        (b"0,1,\xff,3\n", "m.csv:1: expected UTF-8, found byte 0xff"),
        ("0" * 10_000_001, "m.csv: expected at most 10000000 bytes, found more"),
        (None, "m.csv: cannot be read: No such file or directory"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_matrix_counts_as_uniform_and_names_file_line_and_column(
    tmp_path: Path, text: str | bytes | None, expected: str
):
    path = tmp_path / "m.csv"
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(exceptions.RequestError) as raised:
        matrix_in(content_of(path), str(path), 4)
    assert str(raised.value) == f"{tmp_path}/{expected}"
    assert remark("matrix:m", 4, tmp_path) == (
        f"hpc:pattern=matrix:m: {raised.value}; planned as uniform"
    )


def test_a_matrix_is_parsed_again_only_when_its_file_has_changed(tmp_path: Path):
    (tmp_path / "m.csv").write_text(PAIRS)
    first = stated_traffic("matrix:m", 4, tmp_path).traffic
    assert first is not None
    assert stated_traffic("matrix:m", 4, tmp_path).traffic is first
    (tmp_path / "m.csv").write_text(PAIRS.replace("5", "7"))
    assert sent("matrix:m", 4, tmp_path) == (first.matrix() // 5 * 7).tolist()
    assert "expected 3 columns" in remark("matrix:m", 3, tmp_path)


def test_requests_share_the_traffic_of_a_pattern_and_cannot_change_it():
    first = stated_traffic("halo2:4x2", 8).traffic
    assert first is not None
    assert stated_traffic("halo2:4x2", 8).traffic is first
    for array in (first.sender, first.receiver, first.bytes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_pipe_without_a_writer_is_no_wait_without_an_end(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "expected 2 rows, one a rank, found 0" in remark("matrix:pipe", 2, tmp_path)


@pytest.mark.parametrize(
    "name",
    ["../secret", "a/b", "/etc/passwd", ".hidden", "..", "", "a\x00b", "a b", "x" * 101, "é"],
)
def test_no_name_of_a_matrix_leaves_the_directory(tmp_path: Path, name: str):
    (tmp_path / "secret.csv").write_text("0,1\n1,0\n")
    (tmp_path / "inside").mkdir()
    assert "expected alltoall" in remark(f"matrix:{name}", 2, tmp_path / "inside")
    assert re.fullmatch(extra_spec_names.TRAFFIC.pattern, f"matrix:{name}") is None


@given(st.text(max_size=40), st.integers(0, 20))
def test_whatever_a_pattern_is_it_is_read_without_an_exception(text: str, ranks: int):
    found = stated_traffic(text, ranks)
    assert found.traffic is None or found.traffic.ranks == ranks


numbers = st.one_of(
    st.integers(0, 10**6).map(float), st.floats(0, 1e100), st.sampled_from([0.0, 5e-324, 1e100])
)


@given(st.integers(1, 5).flatmap(lambda n: st.lists(numbers, min_size=n * n, max_size=n * n)))
def test_a_matrix_becomes_whole_numbers_in_bounds_of_which_none_vanishes(flat: list[float]):
    ranks = round(len(flat) ** 0.5)
    given_matrix = np.array(flat).reshape(ranks, ranks)
    found = rank_bytes.of_matrix(given_matrix)
    apart = given_matrix * (1 - np.eye(ranks))
    assert 0 <= found.bytes.sum() <= MOST_BYTES
    assert ((found.matrix() > 0) == (apart > 0)).all()
    check(found)
    if (apart == np.floor(apart)).all() and apart.sum() <= MOST_BYTES:
        assert (found.matrix() == apart).all()
    elif apart.max() > 1e-300:
        largest = found.matrix().max() / apart.max()
        assert np.allclose(found.matrix(), apart * largest, rtol=1e-9, atol=1.01)


def check(traffic: Traffic) -> None:
    """Assert that each pair is there once, in order, and none is a rank with itself."""
    pairs = list(zip(traffic.sender.tolist(), traffic.receiver.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert all(one != other for one, other in pairs)


def test_a_matrix_that_is_as_another_times_a_power_of_two_is_the_same_traffic():
    one = np.array([[0, 0.1, 0.7], [0.3, 0, 0], [0, 1.7, 0]])
    first, second = (rank_bytes.of_matrix(one * by) for by in (1.0, 2.0**300))
    assert (first.matrix() == second.matrix()).all()


def test_a_flavor_or_where_allowed_a_hint_states_a_pattern():
    def read(specs: dict[str, str], hints: dict[str, str], user_hints: bool = True):
        return extra_specs.read(specs, hints, (), Defaults(user_hints=user_hints))

    stated = {"hpc:pattern": "halo2:8x4"}
    assert read(stated, {}).pattern == "halo2:8x4"
    assert read({}, stated).pattern == "halo2:8x4"
    assert read({}, stated, user_hints=False).pattern is None
    assert read({"hpc:pattern": "ring"}, stated).pattern == "ring"
    assert read({"hpc:app_class": "none", **stated}, {}).pattern is None


def test_a_wrong_pattern_is_a_fault_that_lists_the_good_ones():
    read = extra_specs.read({"hpc:pattern": "mesh"}, {}, (), Defaults())
    assert read.pattern is None
    assert read.faults == (
        "hpc:pattern='mesh': expected alltoall, broadcast, bt, doubling, halo1 to halo3, none, "
        "ring, uniform, halo2:8x4 or matrix:NAME",
    )
