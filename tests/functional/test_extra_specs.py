"""Flavor extra specs of the ``hpc:`` namespace, as Nova's API checks them."""

import subprocess
import sys

import pytest
from nova import exception
from nova.api.validation.extra_specs import base, validators
from nova.tests.functional.api.client import OpenStackApiException

from hpc_sched.demo import nova_cloud
from hpc_sched.nova_glue import extra_spec_validators

KEYS = (
    "hpc:app_class",
    "hpc:app_name",
    "hpc:balance",
    "hpc:cache_score",
    "hpc:group_size",
    "hpc:homogeneous",
    "hpc:max_leaves",
    "hpc:min_leaves",
    "hpc:min_size",
    "hpc:objective",
    "hpc:pattern",
    "hpc:prefer",
    "hpc:require",
    "hpc:segment",
    "hpc:segment_level",
)

NUMBERS = ("hpc:group_size", "hpc:max_leaves", "hpc:min_leaves", "hpc:min_size")
LEVELS = ("hpc:require", "hpc:prefer", "hpc:segment_level")

GOOD = [
    *(
        pytest.param("hpc:app_class", name, id=f"the class {name}")
        for name in ("extreme", "sync", "async", "none")
    ),
    *(
        pytest.param(key, wish, id=f"{key[4:]} says {wish}")
        for key in ("hpc:balance", "hpc:homogeneous")
        for wish in ("true", "prefer", "false")
    ),
    pytest.param("hpc:app_name", "gromacs-2024.1+cuda_12", id="a name of every character allowed"),
    pytest.param("hpc:app_name", "x" * 255, id="the longest name of an application"),
    pytest.param("hpc:cache_score", "0", id="a VM that leaves the cache alone"),
    pytest.param("hpc:cache_score", "60", id="a whole score"),
    pytest.param("hpc:cache_score", "12.75", id="a score with a fraction"),
    pytest.param("hpc:cache_score", "9" * 255, id="the longest score, which is finite"),
    *(
        pytest.param(key, number, id=f"{key[4:]} of {number}")
        for key in (*NUMBERS, "hpc:segment")
        for number in ("1", "16", "4096")
    ),
    *(
        pytest.param("hpc:segment", f"prefer:{number}", id=f"a preferred segment of {number}")
        for number in ("1", "16", "4096")
    ),
    pytest.param("hpc:max_leaves", "999999", id="max_leaves beyond any fabric"),
    *(
        pytest.param("hpc:objective", name, id=f"the objective {name}")
        for name in ("hops", "bottleneck", "isolated")
    ),
    *(
        pytest.param("hpc:pattern", pattern, id=f"the pattern {pattern[:20]}")
        for pattern in ("uniform", "ring", "halo2", "halo2:8x4", "halo3:4x4x2", "matrix:wrf-4.5")
    ),
    *(
        pytest.param(key, level, id=f"{key[4:]} names {what}")
        for key in LEVELS
        for level, what in (
            ("leaf", "a level"),
            ("x", "a level of one letter"),
            ("level4", "a level without a name of its own"),
            ("chassis switch / row B", "a level with blanks and marks inside"),
            ("Gebäude", "a level in another language"),
            ("l" * 255, "the longest level"),
        )
    ),
]

BAD = [
    pytest.param("hpc:app_class", "fast", id="a class that does not exist"),
    pytest.param("hpc:app_class", "Sync", id="a class in another case"),
    pytest.param("hpc:app_class", "sync\n", id="a class with a line break"),
    pytest.param("hpc:app_class", "", id="an empty class"),
    pytest.param("hpc:objective", "isolate", id="an objective that does not exist"),
    pytest.param("hpc:objective", "", id="an empty objective"),
    pytest.param("hpc:app_name", "", id="an empty name of an application"),
    pytest.param("hpc:app_name", "x" * 256, id="a name of an application that is too long"),
    pytest.param("hpc:app_name", "wrf 4", id="a name of an application with a blank"),
    pytest.param("hpc:app_name", "wrf\n", id="a name of an application with a line break"),
    pytest.param("hpc:app_name", "wrf/4", id="a name of an application with a slash"),
    pytest.param("hpc:app_name", "schrödinger", id="a name of an application beyond ASCII"),
    *(
        pytest.param("hpc:cache_score", score, id=f"a score that is {what}")
        for score, what in (
            ("", "empty"),
            ("-1", "negative"),
            ("-0", "a negative zero"),
            ("+1", "signed"),
            ("nan", "not a number"),
            ("inf", "infinite"),
            ("1e3", "written with an exponent"),
            ("1_0", "written with an underscore"),
            ("0x10", "hexadecimal"),
            ("1,5", "written with a comma"),
            (".5", "without a digit before the point"),
            ("5.", "without a digit after the point"),
            (" 5", "after a blank"),
            ("5\n", "before a line break"),
            ("٣", "in other digits"),
            ("high", "a word"),
        )
    ),
    *(
        pytest.param(key, number, id=f"{key[4:]} that is {what}")
        for key in (*NUMBERS, "hpc:segment")
        for number, what in (
            ("", "empty"),
            ("0", "zero"),
            ("-4", "negative"),
            ("+4", "signed"),
            ("1.5", "a fraction"),
            ("4.0", "a whole number written as a fraction"),
            ("1_6", "written with an underscore"),
            ("016", "padded"),
            (" 16", "after a blank"),
            ("16\n", "before a line break"),
            ("٣", "in other digits"),
            ("1e1", "written with an exponent"),
            ("many", "a word"),
            ("1000000", "of seven digits"),
            ("1" * 255, "longer than any number"),
        )
    ),
    pytest.param("hpc:group_size", "4097", id="group_size above what is planned"),
    pytest.param("hpc:min_size", "4097", id="min_size above what is planned"),
    pytest.param("hpc:segment", "4097", id="a segment above what is planned"),
    *(
        pytest.param("hpc:segment", text, id=f"a preferred segment that is {what}")
        for text, what in (
            ("prefer:4097", "above what is planned"),
            ("prefer:", "without a number"),
            ("prefer: 4", "after a blank"),
            ("prefer:0", "zero"),
            ("prefer:4\n", "before a line break"),
            ("Prefer:4", "in another case"),
            ("prefer4", "without a colon"),
            ("prefer:prefer:4", "preferred twice"),
            ("require:4", "required"),
            ("4:prefer", "the other way round"),
        )
    ),
    *(
        pytest.param("hpc:pattern", pattern, id=f"a pattern that is {what}")
        for pattern, what in (
            ("", "empty"),
            ("Ring", "in another case"),
            ("ring\n", "before a line break"),
            ("ring|halo2", "two of them"),
            ("halo2:8", "a grid that lacks a side"),
            ("halo2:8x0", "a grid with a side of 0"),
            ("halo2:8x4x2", "a grid with a side more"),
            ("matrix", "a matrix without a name"),
            ("matrix:../secret", "a file elsewhere"),
            ("matrix:a/b", "a file in another folder"),
            ("matrix:.hidden", "a hidden file"),
        )
    ),
    *(
        pytest.param(key, level, id=f"{key[4:]} names a level {what}")
        for key in LEVELS
        for level, what in (
            ("", "without a character"),
            (" ", "that is a blank"),
            (" leaf", "after a blank"),
            ("leaf ", "before a blank"),
            ("leaf\n", "before a line break"),
            ("\u00a0leaf", "after a blank that does not break"),
            ("le\naf", "with a line break inside"),
            ("le\taf", "with a tab inside"),
            ("le\x00af", "with a zero inside"),
            ("le\x85af", "with a control character beyond ASCII"),
            ("le\u2028af", "with a line break of Unicode"),
            ("l" * 256, "that is too long"),
        )
    ),
    *(
        pytest.param(key, wish, id=f"{key[4:]} says {what}")
        for key in ("hpc:balance", "hpc:homogeneous")
        for wish, what in (
            ("", "nothing"),
            ("yes", "yes"),
            ("1", "one"),
            ("True", "true in another case"),
            ("PREFER", "prefer in another case"),
            ("false ", "false and a blank"),
        )
    ),
]


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_a_good_value_is_accepted(name: str, value: str):
    validators.validate(name, value)


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_refused_with_its_key_and_what_was_expected(name: str, value: str):
    with pytest.raises(exception.ValidationError) as caught:
        validators.validate(name, value)
    text = caught.value.format_message()
    assert text.startswith(f"Validation failed; {name}={value!r}: expected ")
    assert caught.value.code == 400


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("hpc:requir", id="a key that lacks a letter"),
        pytest.param("hpc:Require", id="a key in another case"),
        pytest.param("hpc:", id="the namespace alone"),
        pytest.param("hpc:require:leaf", id="a value in the key"),
    ],
)
def test_a_key_that_is_not_of_the_namespace_is_refused(name: str):
    with pytest.raises(exception.ValidationError, match=f"extra spec '{name}' does not appear"):
        validators.validate(name, "leaf")


def test_keys_outside_the_namespace_are_none_of_our_business():
    validators.validate("hpcx:require", "")
    validators.validate("hpc", "")


def test_every_key_has_good_and_bad_cases_and_says_what_it_does():
    found = {validator.name: validator for validator in extra_spec_validators.register()}
    assert tuple(found) == KEYS
    for cases in (GOOD, BAD):
        assert {case.values[0] for case in cases} == set(KEYS)
    for validator in found.values():
        assert isinstance(validator, base.ExtraSpecValidator)
        assert "Default: " in validator.description
        assert validator.value["description"]


def test_nova_has_loaded_the_keys_that_the_entry_point_registers():
    assert {name for name in validators.VALIDATORS if name.startswith("hpc:")} == set(KEYS)


def test_nova_api_imports_the_module_and_its_words_but_no_scheduler_and_registers_nothing():
    code = (
        "import sys\n"
        "from nova.api.validation.extra_specs import base\n"
        "from oslo_config import cfg\n"
        "before = set(sys.modules)\n"
        "import hpc_sched.nova_glue.extra_spec_validators as ours\n"
        "ours.register()\n"
        "new = set(sys.modules) - before\n"
        "new = {name for name in new if not name.startswith('hpc_sched.core.constraints')}\n"
        "assert new == {\n"
        "    'hpc_sched', 'hpc_sched.exceptions', 'hpc_sched.core',\n"
        "    'hpc_sched.core.extra_spec_names',\n"
        "    'hpc_sched.nova_glue', 'hpc_sched.nova_glue.extra_spec_validators',\n"
        "}, new\n"
        "assert 'nova.scheduler.host_manager' not in sys.modules\n"
        "assert 'hpc_sched' not in cfg.CONF._groups\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def cloud(start_cloud) -> nova_cloud.NovaCloud:
    """Return a Nova with an API, without a scheduler and without computes."""
    return start_cloud(with_scheduler=False)


def test_the_api_accepts_good_extra_specs_and_says_what_is_wrong_with_bad_ones(cloud):
    flavor = cloud.flavor("hpc.large")
    good = {"hpc:require": "pod", "hpc:app_class": "sync", "hpc:group_size": "16"}
    good |= {"hpc:segment": "prefer:4", "hpc:segment_level": "leaf", "hpc:balance": "true"}
    cloud.api.post_extra_spec(flavor, {"extra_specs": good})
    # A number of JSON is checked as the text that it becomes.
    cloud.api.post_extra_spec(flavor, {"extra_specs": {"hpc:cache_score": 2.5}})
    kept = good | {"hpc:cache_score": "2.5"}
    assert cloud.api.get_extra_specs(flavor) == kept

    for name, value, expected in [
        ("hpc:app_class", "fast", ["hpc:app_class='fast'", "extreme, sync, async, none"]),
        ("hpc:group_size", "0", ["hpc:group_size='0'", "a whole number from 1 to 4096"]),
        (
            "hpc:segment",
            "prefer:0",
            ["hpc:segment='prefer:0'", "N or prefer:N, N a whole number from 1 to 4096"],
        ),
        ("hpc:cache_score", 1e300, ["hpc:cache_score='1e+300'", "a decimal number >= 0"]),
        ("hpc:requir", "leaf", ["extra spec 'hpc:requir' does not appear to be a valid"]),
    ]:
        # One bad key refuses the whole request.
        body = {"extra_specs": {"hpc:homogeneous": "true", name: value}}
        with pytest.raises(OpenStackApiException) as caught:
            cloud.api.post_extra_spec(flavor, body)
        assert caught.value.response.status_code == 400
        message = caught.value.response.json()["badRequest"]["message"]
        for text in expected:
            assert text in message
    assert cloud.api.get_extra_specs(flavor) == kept
