"""A runtime model from measured times: what follows from them, and what does not."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.exceptions import CalibrationError
from hpc_sched.sim.runtime import calibration
from hpc_sched.sim.runtime.calibration import Calibration, Measured, calibrated
from hpc_sched.sim.runtime.runtime_model import RuntimeModel

LEVELS = ("leaf", "pod", "core")
ALL = ("host", *LEVELS)
HEADER = "job,seconds,level,processor,neighbour_score\n"


def read(folder: Path, content: str | bytes) -> Calibration:
    path = folder / "times.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return calibration.read(path, LEVELS)


def times_of(
    hops: dict[str, float], speeds: dict[str, float], interference: float, noise: float = 0.0
) -> list[Measured]:
    """Return runs of two jobs on every level, type and three scores, as the model has it."""
    rng = random.Random(7)
    return [
        Measured(
            job,
            base * hop / speed * interference**score * (1 + noise * rng.uniform(-1, 1)),
            level,
            processor,
            score,
        )
        for job, base in (("WRF", 312.4), ("LU", 17.0))
        for level, hop in hops.items()
        for processor, speed in speeds.items()
        for score in (0.0, 7.5, 30.0)
    ]


HOPS = {"host": 1.0, "leaf": 1.02, "pod": 1.1, "core": 1.25}
SPEEDS = {"bronze": 0.5, "gold": 1.0, "silver": 0.8}


def test_known_factors_are_found_again():
    found = calibrated(times_of(HOPS, SPEEDS, 1.01), ALL, "x")
    assert found.hop_factors == pytest.approx(HOPS, rel=1e-9)
    assert found.speeds == pytest.approx(SPEEDS, rel=1e-9)
    assert found.interference == pytest.approx(1.01, rel=1e-9)
    assert found.residual == pytest.approx(0.0, abs=1e-9)
    assert found.notes == ()
    assert list(found.hop_factors) == list(HOPS)
    assert list(found.speeds) == sorted(SPEEDS)


FACTORS = st.floats(0.1, 10)


@given(
    st.lists(FACTORS, min_size=3, max_size=3),
    st.dictionaries(st.sampled_from("abcd"), FACTORS, min_size=1),
    st.floats(0.9, 1.2),
    st.randoms(use_true_random=False),
)
def test_any_factors_are_found_again_in_any_order_of_rows(hops, speeds, interference, rng):
    known = dict(zip(ALL, [1.0, *hops], strict=True))
    runs = times_of(known, speeds, interference)
    rng.shuffle(runs)
    found = calibrated(runs, ALL, "x")
    assert found.hop_factors == pytest.approx(known, rel=1e-9)
    fastest = max(speeds.values())
    expected = {name: speed / fastest for name, speed in speeds.items()}
    assert found.speeds == pytest.approx(expected, rel=1e-9)
    assert found.interference == pytest.approx(interference, rel=1e-9)


def test_what_was_calibrated_gives_the_times_back():
    model = calibrated(times_of(HOPS, SPEEDS, 1.01), ALL, "x").model(LEVELS)
    assert model.factor((0, 0, 0, 1, 0), ("gold", "silver"), 7.5) == pytest.approx(
        1.25 / 0.8 * 1.01**7.5
    )


def test_the_residual_is_how_far_the_model_is_off():
    found = calibrated(times_of(HOPS, SPEEDS, 1.01, noise=0.05), ALL, "x")
    # Evenly spread over 5 % to both sides.
    assert found.residual == pytest.approx(100 * 0.05 / 3**0.5, rel=0.2)
    assert found.hop_factors == pytest.approx(HOPS, rel=0.05)


def test_a_file_is_read(tmp_path: Path):
    content = (
        "\ufeff# measured in May\r\n\r\n"
        "level, job ,seconds\r\n"
        'pod,"WRF, large",110.0 # on a Monday\r\n'
        'leaf,"WRF, large",1e2\r\n'
        "core,LU,25\r\n"
        "leaf,LU,20\r\n"
    )
    found = read(tmp_path, content)
    assert found.hop_factors == pytest.approx({"leaf": 1.0, "pod": 1.1, "core": 1.25})
    assert (found.speeds, found.interference) == ({}, 1.0)
    assert found.notes == ("there are no more runs than unknowns: the residual says nothing",)
    model = found.model(LEVELS)
    assert model.hop_factors == pytest.approx((1.0, 1.0, 1.1, 1.25))


def test_the_lowest_level_measured_is_one_and_others_follow_the_next_lower(tmp_path: Path):
    found = read(tmp_path, "job,seconds,level\na,10,pod\na,20,core\n")
    assert found.hop_factors == pytest.approx({"pod": 1.0, "core": 2.0})
    assert found.model(("leaf", "pod", "core", "top")).hop_factors == pytest.approx(
        (1.0, 1.0, 1.0, 2.0, 2.0)
    )


UNTOLD = "the runs do not tell it from what else differs between them"


def test_levels_that_no_job_compares_stay_one():
    runs = [
        Measured("a", 10, "leaf"),
        Measured("a", 11, "pod"),
        Measured("a", 11, "pod"),
        Measured("b", 90, "core"),
        Measured("b", 90, "core"),
    ]
    found = calibrated(runs, ALL, "x")
    assert found.hop_factors == pytest.approx({"leaf": 1.0, "pod": 1.1, "core": 1.0})
    assert found.notes == (f"level core stays 1: {UNTOLD}",)


def test_jobs_that_share_a_level_compare_all_their_levels():
    runs = [
        Measured("a", 10, "leaf"),
        Measured("a", 11, "pod"),
        Measured("b", 100, "pod"),
        Measured("b", 150, "core"),
    ]
    found = calibrated(runs, ALL, "x")
    assert found.hop_factors == pytest.approx({"leaf": 1.0, "pod": 1.1, "core": 1.65})


def test_what_always_differs_together_is_not_told_apart():
    runs = [
        Measured("a", seconds, level, processor, 0.0)
        for seconds, level, processor in ((10, "leaf", "gold"), (20, "pod", "silver"))
        for _ in range(2)
    ]
    found = calibrated(runs, ALL, "x")
    assert found.hop_factors == {"leaf": 1.0, "pod": 1.0}
    assert found.speeds == {"gold": 1.0, "silver": 1.0}
    assert found.interference == 1.0
    assert found.notes == (
        f"level pod stays 1: {UNTOLD}",
        f"processor silver stays 1: {UNTOLD}",
        f"interference stays 1: {UNTOLD}",
    )


def test_what_is_told_apart_counts_beside_what_is_not():
    runs = [
        *times_of({"leaf": 1.0, "pod": 1.5}, {"gold": 1.0, "silver": 0.5}, 1.1),
        Measured("once", 10, "core", "bronze", 3.0),
        Measured("twice", 10, "core", "bronze", 0.0),
        Measured("twice", 10, "core", "bronze", 0.0),
    ]
    found = calibrated(runs, ALL, "x")
    assert found.hop_factors == pytest.approx({"leaf": 1.0, "pod": 1.5, "core": 1.0})
    assert found.speeds == pytest.approx({"gold": 1.0, "silver": 0.5, "bronze": 1.0})
    assert found.interference == pytest.approx(1.1)
    assert found.notes == (
        f"level core stays 1: {UNTOLD}",
        f"processor bronze stays 1: {UNTOLD}",
        "nothing follows from a job that was measured once: once",
    )


def test_jobs_that_were_measured_once_determine_nothing():
    runs = [Measured(job, 10, level) for job, level in zip("abc", LEVELS, strict=True)]
    found = calibrated(runs, ALL, "x")
    assert set(found.hop_factors.values()) == {1.0}
    assert found.notes[2:] == (
        "nothing follows from a job that was measured once: a and 2 more",
        "there are no more runs than unknowns: the residual says nothing",
    )
    assert found.model(LEVELS) == RuntimeModel((1.0, 1.0, 1.0, 1.0))


@pytest.mark.parametrize("size", [0.1, 1.0, 1e6])
def test_scores_of_any_size_are_resolved(size: float):
    runs = [Measured("a", 10 * 2**times, "leaf", None, size * times) for times in range(4)]
    found = calibrated(runs, ALL, "x")
    assert found.interference**size == pytest.approx(2, rel=1e-6)
    assert found.notes == ()


def test_a_slowdown_by_next_to_no_score_is_refused():
    runs = [Measured("a", 10 * 2**times, "leaf", None, 1e-6 * times) for times in range(4)]
    with pytest.raises(CalibrationError, match=r"x: a neighbours' score of 1: .*found one of e\^"):
        calibrated(runs, ALL, "x")


BROKEN = [
    ("nothing", "", r"csv: expected a header of job, seconds, level and, .*; found no row$"),
    ("a header alone", HEADER, r"csv: expected .*found no row$"),
    ("no header", "a,10,leaf\n", r":1: expected a header of job, .*found 'a, 10, leaf'$"),
    ("a column missing", "#\njob,level\n", r":2: expected a header .*found 'job, level'$"),
    ("a column nobody knows", "job,seconds,level,x\n", r":1: expected a header .*level, x'$"),
    ("a column twice", "job,seconds,level,job\n", r":1: expected a header .*level, job'$"),
    ("too few cells", f"{HEADER}a,1,leaf,gold\n", r":2: expected 5 columns \(job, .*found 4$"),
    ("too many cells", "job,seconds,level\na,1,leaf,\n", r":2: expected 3 columns .*found 4$"),
    ("no job", f"{HEADER},1,leaf,gold,0\n", r":2: job: expected a name, found nothing$"),
    ("no time", f"{HEADER}a,,leaf,gold,0\n", r":2: seconds: expected a number .*found nothing$"),
    ("zero seconds", f"{HEADER}a,0,leaf,gold,0\n", r":2: seconds: .*above 0 .*found '0'$"),
    ("nan seconds", f"{HEADER}a,nan,leaf,gold,0\n", r":2: seconds: .*found 'nan'$"),
    ("endless seconds", f"{HEADER}a,1e10,leaf,gold,0\n", r":2: seconds: .*at most 1e\+09"),
    ("a level nobody knows", f"{HEADER}a,1,rack,gold,0\n", r"one of host, leaf, pod, core, f.*'$"),
    ("no processor", f"{HEADER}a,1,leaf,,0\n", r":2: processor: expected a processor type, f"),
    ("no score", f"{HEADER}a,1,leaf,gold,\n", r":2: neighbour_score: .*0 to 1e\+06, found noth"),
    ("a negative score", f"{HEADER}a,1,leaf,gold,-1\n", r":2: neighbour_score: .*found '-1'$"),
    ("an open quote", f'{HEADER}"a,1,leaf,gold,0\n', r":2: not CSV: "),
    ("bytes that are no text", b"job,seconds,level\n\xff,1,leaf\n", r":2: expected UTF-8, found b"),
    (
        "times that cannot be",
        "job,seconds,level\na,1e-9,leaf\na,1,pod\n",
        r"csv: level pod: expected times that differ by a factor of at most 1e\+06, found one of e",
    ),
    (
        "too many types",
        HEADER + "".join(f"a,1,leaf,t{i},0\n" for i in range(101)),
        r"csv: expected at most 100 processor types, found 101$",
    ),
]


@pytest.mark.parametrize(
    ("content", "error"), [pytest.param(*case, id=sentence) for sentence, *case in BROKEN]
)
def test_a_file_that_cannot_be_used_is_refused_with_its_place(tmp_path, content, error):
    with pytest.raises(CalibrationError, match=error) as caught:
        read(tmp_path, content)
    assert str(caught.value).startswith(str(tmp_path / "times.csv"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(CalibrationError, match=r"no\.csv: cannot be read: No such file"):
        calibration.read(tmp_path / "no.csv", LEVELS)


def test_a_file_with_too_many_rows_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(calibration, "MAX_ROWS", 3)
    rows = "a,1,leaf\n" * 4
    with pytest.raises(CalibrationError, match=r":5: expected at most 3 rows, found more$"):
        read(tmp_path, f"job,seconds,level\n{rows}")
