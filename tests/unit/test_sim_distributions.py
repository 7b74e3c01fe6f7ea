"""What the simulator draws: stated in short texts, repeatable, bounded."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.exceptions import ConfigError
from hpc_sched.sim.jobs import distributions
from hpc_sched.sim.jobs.distributions import Distribution

READ = [
    ("constant:5", Distribution("constant", (5.0,))),
    ("constant:-0.5", Distribution("constant", (-0.5,))),
    ("uniform:0:30", Distribution("uniform", (0.0, 30.0))),
    ("exponential:600", Distribution("exponential", (600.0,))),
    ("lognormal:60:1.5", Distribution("lognormal", (60.0, 1.5))),
    ("choice:1:2:4:8", Distribution("choice", (1.0, 2.0, 4.0, 8.0), (1.0,) * 4)),
    ("choice:1=0.5:8=0.25", Distribution("choice", (1.0, 8.0), (0.5, 0.25))),
]


@pytest.mark.parametrize(("text", "expected"), READ, ids=[text for text, _ in READ])
def test_a_text_states_a_distribution(text: str, expected):
    assert distributions.read(text, "x") == expected


@pytest.mark.parametrize("found", [found for _, found in READ], ids=[text for text, _ in READ])
def test_a_distribution_is_written_as_it_is_read(found: Distribution):
    assert distributions.read(found.text, "x") == found


@pytest.mark.parametrize(
    ("text", "is_constant"),
    [
        ("constant:5", True),
        ("uniform:3:3", True),
        ("uniform:3:4", False),
        ("exponential:600", False),
        ("lognormal:60:0", True),
        ("lognormal:60:0.1", False),
        ("choice:7", True),
        ("choice:7=1:7=2", True),
        ("choice:7:8", False),
    ],
)
def test_a_distribution_is_constant_where_all_draws_are_equal(text: str, is_constant: bool):
    found = distributions.read(text, "x")
    assert found.is_constant == is_constant
    rng = random.Random(1)
    assert (len({found.draw(rng) for _ in range(100)}) == 1) == is_constant


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("constant:5", 5),
        ("uniform:0:30", 15),
        ("exponential:600", 600),
        ("lognormal:600:1", 600 * math.sqrt(math.e)),
        ("choice:1:2:4:8", 3.75),
        ("choice:1=3:8=1", 2.75),
    ],
)
def test_the_mean_in_closed_form_is_that_of_what_is_drawn(text: str, mean: float):
    found = distributions.read(text, "x")
    assert found.mean == pytest.approx(mean)
    rng = random.Random(1)
    drawn = statistics.fmean(found.draw(rng) for _ in range(50_000))
    assert found.mean == pytest.approx(drawn, rel=0.02)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (" uniform: 0 :3e1", "uniform:0:30"),
        ("choice:1=1:2=1.0", "choice:1:2"),
        ("constant:1e-7", "constant:0.0000001"),
        ("constant:-0", "constant:0"),
    ],
)
def test_a_distribution_may_be_written_in_several_ways(text: str, same: str):
    assert distributions.read(text, "x") == distributions.read(same, "x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "one of constant:NUMBER, uniform:"),
        ("5", "one of constant:NUMBER"),
        ("normal:1:2", "one of constant:NUMBER"),
        ("constant", "constant:NUMBER, found"),
        ("constant:", "constant:NUMBER, found"),
        ("constant:1:2", "constant:NUMBER, found"),
        ("constant:nan", "constant:NUMBER, found"),
        ("constant:inf", "constant:NUMBER, found"),
        ("constant:1e999", "constant:NUMBER, found"),
        ("constant:1e16", "constant:NUMBER, found"),
        ("constant:1_0", "constant:NUMBER, found"),
        ("constant:\u0967", "constant:NUMBER, found"),
        ("uniform:1", "uniform:LOW:HIGH, found"),
        ("uniform:2:1", "uniform:LOW:HIGH with LOW not above HIGH"),
        ("exponential:0", "exponential:MEAN with a MEAN above 0"),
        ("exponential:1e-320", "exponential:MEAN with a MEAN above 0"),
        ("exponential:-1", "exponential:MEAN with a MEAN above 0"),
        ("lognormal:60", "lognormal:MEDIAN:SIGMA, found"),
        ("lognormal:0:1", "a MEDIAN above 0 and a SIGMA of 0 to 20"),
        ("lognormal:1:-1", "a SIGMA of 0 to 20"),
        ("lognormal:1:21", "a SIGMA of 0 to 20"),
        ("choice", "choice:NUMBER:..."),
        ("choice:", "choice:NUMBER:..."),
        ("choice:1=1:2", "choice:NUMBER:..."),
        ("choice:1=1=1", "choice:NUMBER:..."),
        ("choice:1=0:2=1", "weights above 0"),
        ("choice:1=-1:2=1", "weights above 0"),
        ("choice:a:b", "choice:NUMBER:..."),
    ],
)
def test_what_states_no_distribution_is_refused(text: str, expected: str):
    with pytest.raises(ConfigError) as caught:
        distributions.read(text, "--runtimes")
    assert str(caught.value).startswith("--runtimes: expected ")
    assert expected in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["constant:-1", "uniform:-1:5", "choice:1:-1:2"])
def test_a_distribution_that_may_fall_below_a_limit_is_refused(text: str):
    distributions.read(text, "x", at_least=-1)
    with pytest.raises(ConfigError, match=f"x: expected numbers of at least 0, found '{text}'"):
        distributions.read(text, "x", at_least=0)


NUMBERS = st.floats(-1e15, 1e15)
POSITIVE = st.floats(1e-15, 1e15)
ANY = st.one_of(
    NUMBERS.map(lambda number: Distribution("constant", (number,))),
    st.tuples(NUMBERS, NUMBERS).map(lambda pair: Distribution("uniform", tuple(sorted(pair)))),
    POSITIVE.map(lambda mean: Distribution("exponential", (mean,))),
    st.tuples(POSITIVE, st.floats(0, 20)).map(lambda pair: Distribution("lognormal", pair)),
    st.lists(st.tuples(NUMBERS, POSITIVE), min_size=1, max_size=5).map(
        lambda pairs: Distribution("choice", *map(tuple, zip(*pairs, strict=True)))
    ),
)


@given(ANY, st.integers(0, 9))
def test_every_distribution_draws_finite_numbers_again_and_again(found, seed):
    one, other = random.Random(seed), random.Random(seed)
    drawn = [found.draw(one) for _ in range(20)]
    assert drawn == [found.draw(other) for _ in range(20)]
    assert all(math.isfinite(each) and each >= found.lowest for each in drawn)


@pytest.mark.parametrize(
    ("text", "middle", "expected"),
    [
        ("constant:5", statistics.mean, 5),
        ("uniform:0:30", statistics.mean, 15),
        ("exponential:600", statistics.mean, 600),
        ("lognormal:60:1.5", statistics.median, 60),
        ("choice:1:2:4:8", statistics.mean, 3.75),
        ("choice:1=0.9:8=0.1", statistics.mean, 1.7),
    ],
)
def test_what_is_drawn_has_the_middle_that_is_stated(text, middle, expected):
    rng = random.Random(1)
    found = distributions.read(text, "x")
    assert middle(found.draw(rng) for _ in range(20_000)) == pytest.approx(expected, rel=0.05)


def test_a_mix_of_classes_is_normalised_in_the_order_of_the_vocabulary():
    mix = distributions.read_mix("none=1, sync=2,async=1,extreme=0", "x")
    assert mix.shares == (("sync", 0.5), ("async", 0.25), ("none", 0.25))
    assert distributions.read_mix("sync=1", "x") == distributions.ALL_SYNC


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected CLASS=SHARE,..., found ''"),
        ("sync", "expected CLASS=SHARE,..., found 'sync'"),
        ("sync=1,", "expected CLASS=SHARE,..., found 'sync=1,'"),
        ("fast=1", "names of extreme, sync, async, none, found 'fast'"),
        ("sync=1,sync=2", "each name once, found 'sync again'"),
        ("sync=-1", "sync from 0 to 1e+09, found '-1'"),
        ("sync=nan", "sync from 0 to 1e+09, found 'nan'"),
        ("sync=", "sync from 0 to 1e+09, found ''"),
        ("sync=0,none=0", "a share above 0"),
    ],
)
def test_what_states_no_mix_is_refused(text: str, expected: str):
    with pytest.raises(ConfigError) as caught:
        distributions.read_mix(text, "--classes")
    assert str(caught.value).startswith("--classes: ")
    assert expected in str(caught.value)


@given(
    st.dictionaries(st.sampled_from(APP_CLASSES), st.floats(1e-3, 1e6), min_size=1),
    st.randoms(use_true_random=False),
)
def test_every_mix_adds_up_to_one_and_draws_the_classes_it_names(stated, rng):
    text = ",".join(f"{name}={share!r}" for name, share in stated.items())
    mix = distributions.read_mix(text, "x")
    assert math.fsum(share for _, share in mix.shares) == pytest.approx(1.0, abs=1e-9)
    assert mix.draw(rng) in stated


def test_a_mix_of_applications_has_names_of_any_kind():
    found = distributions.read_applications("LU.C=1, ChaNGa = 3,EP.B=0", "x")
    assert found.shares == (("ChaNGa", 0.75), ("LU.C", 0.25))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "NAME=SHARE,... with an application's name of 1 to 255"),
        ("LU C=1", "NAME=SHARE,... with an application's name of 1 to 255"),
        ("=1", "NAME=SHARE,... with an application's name of 1 to 255"),
        ("LU=1,LU=2", "NAME=SHARE,... with each name once"),
        ("LU=-1", "LU from 0 to 1e+09"),
        ("LU=0", "NAME=SHARE,... with a share above 0"),
    ],
)
def test_what_states_no_mix_of_applications_is_refused(text: str, expected: str):
    with pytest.raises(ConfigError) as caught:
        distributions.read_applications(text, "--applications")
    assert str(caught.value).startswith(f"--applications: expected {expected}")


def test_classes_are_drawn_as_often_as_stated():
    mix, rng = (
        distributions.read_mix("sync=0.5,async=0.3,extreme=0.1,none=0.1", "x"),
        random.Random(3),
    )
    drawn = [mix.draw(rng) for _ in range(10_000)]
    for name, share in mix.shares:
        assert drawn.count(name) / len(drawn) == pytest.approx(share, abs=0.02)
