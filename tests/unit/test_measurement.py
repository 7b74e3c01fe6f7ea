"""Cache scores, and the index from timings."""

import math
from pathlib import Path

import pytest

from hpc_sched.core.sharing.characterisation import TimedRun, cache_score, index_of, timings_of
from hpc_sched.exceptions import InterferenceError


def test_a_score_of_one_is_a_hundred_thousand_misses_a_second():
    assert cache_score(misses=1_000_000, seconds=10) == 1.0


def test_the_score_is_that_of_one_vm():
    assert cache_score(misses=117_600_000, seconds=10, vms=4) == pytest.approx(29.4)


def test_no_misses_are_a_score_of_zero():
    assert cache_score(0, 1) == 0.0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1, 1), "misses: expected 0 or more, found -1"),
        ((math.nan, 1), "misses: expected 0 or more, found nan"),
        ((1, 0), "seconds: expected more than 0, found 0"),
        ((1, math.inf), "seconds: expected more than 0, found inf"),
        ((1, 1, 0), "VMs: expected 1 or more, found 0"),
        ((1e308, 1e-300), "no score so large"),
    ],
    ids=str,
)
def test_what_cannot_have_been_counted_is_refused(arguments, error):
    with pytest.raises(InterferenceError, match=error):
        cache_score(*arguments)


def alone(name: str, *seconds: float) -> list[TimedRun]:
    return [TimedRun(name, None, each) for each in seconds]


def beside(name: str, neighbour: str, *seconds: float) -> list[TimedRun]:
    return [TimedRun(name, neighbour, each) for each in seconds]


def test_performance_is_the_time_alone_over_the_time_beside_the_neighbour():
    runs = [
        *alone("WRF", 80),
        *alone("LU", 50),
        *beside("WRF", "LU", 100),
        *beside("LU", "WRF", 50),
        *beside("LU", "LU", 40),
    ]
    expected = {("WRF", "LU"): 0.8, ("LU", "WRF"): 1.0, ("LU", "LU"): 1.25}
    assert index_of(runs).performance == expected
    assert index_of(reversed(runs)).performance == expected


def test_one_disturbed_run_does_not_count():
    runs = [*alone("LU", 40, 400, 40), *beside("LU", "LU", 50, 51, 5000, 49, 50)]
    assert index_of(runs).performance == {("LU", "LU"): 0.8}


def test_dedicated_runs_alone_tell_of_no_pair():
    assert index_of(alone("LU", 1)).performance == {}
    assert index_of([]).performance == {}


def test_every_run_that_is_missing_is_named():
    with pytest.raises(
        InterferenceError, match=r"^runs are missing: EP alone, LU alone, LU beside WRF$"
    ):
        index_of([*alone("WRF", 1), *beside("WRF", "LU", 1), *beside("EP", "EP", 1)])


def test_a_run_that_took_no_time_is_refused():
    with pytest.raises(InterferenceError, match=r"^LU beside EP: expected more than 0 seconds"):
        index_of(beside("LU", "EP", 0))


def test_timings_are_read_in_the_order_of_the_file(tmp_path: Path):
    path = tmp_path / "runs.csv"
    path.write_text(
        "\ufeffapplication,neighbour,seconds\n# May\nWRF,,312.4\nWRF, - ,310\n\nWRF,LU,3.6e2\n"
    )
    assert timings_of(path.read_bytes(), str(path)) == [
        TimedRun("WRF", None, 312.4),
        TimedRun("WRF", None, 310.0),
        TimedRun("WRF", "LU", 360.0),
    ]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("WRF,LU", r"expected 3 columns \(application, neighbour, .*, seconds\), found 2"),
        (",LU,1", r"column 1: expected an application's name .*, found nothing"),
        ("WRF,L U,1", r"column 2: expected an application's name .*, found 'L U'"),
        ("WRF,LU,", r"column 3: expected a number of seconds above 0, found nothing"),
        ("WRF,LU,0", r"column 3: expected a number of seconds above 0, found '0'"),
        ("WRF,LU,5m", r"column 3: expected a number of seconds above 0, found '5m'"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(tmp_path: Path, row: str, error: str):
    path = tmp_path / "runs.csv"
    path.write_text(f"WRF,-,1\n{row}\n")
    with pytest.raises(InterferenceError, match=rf"runs\.csv:2: {error}"):
        timings_of(path.read_bytes(), str(path))
