"""Unknown keys of the hpc: namespace: a misspelt constraint is refused, others are ignored."""

import pytest

from hpc_sched.core import extra_specs
from hpc_sched.core.extra_spec_names import KEYS, MAX_REPORTED, NAMES
from hpc_sched.core.extra_specs import Defaults, FlavorFaults
from hpc_sched.core.hpc_specs import HPCSpecs
from tests.counted_calls import calls_of

LEVELS = ("leaf", "pod", "core")
EXPECTED = f"expected hpc: and one of {', '.join(NAMES)}"


def read(
    specs: dict[str, str], hints: dict[str, list[str]] | None = None, **options: object
) -> HPCSpecs:
    return extra_specs.read(specs, hints or {}, LEVELS, Defaults(**options))


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("hpc:requires", "hpc:require"),
        ("hpc:requir", "hpc:require"),
        ("hpc:reuqire", "hpc:require"),
        ("hpc:Require", "hpc:require"),
        ("hpc:REQUIRE", "hpc:require"),
        ("hpc:require ", "hpc:require"),
        ("hpc:required", "hpc:require"),
        ("hpc:max-leaves", "hpc:max_leaves"),
        ("hpc:maxleaves", "hpc:max_leaves"),
        ("hpc:max_leafs", "hpc:max_leaves"),
        ("hpc:max_leave", "hpc:max_leaves"),
    ],
)
def test_a_key_at_most_two_letters_from_a_constraint_on_the_place_is_a_fault(key, meant):
    found = read({key: "1"})
    assert found.faults == (f"unknown extra spec {key}; did you mean {meant}?",)
    assert found.ignored == ()
    # It refuses no move and proves nothing.
    assert not found.is_unclear


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("hpc:bogus", EXPECTED),
        ("hpc:", EXPECTED),
        ("hpc:processor", EXPECTED),
        ("hpc:requirement", EXPECTED),
        ("hpc:require:leaf", EXPECTED),
        ("hpc:prefers", "did you mean hpc:prefer?"),
        ("hpc:homogenous", "did you mean hpc:homogeneous?"),
        ("hpc:App_Class", "did you mean hpc:app_class?"),
    ],
)
def test_any_other_unknown_key_is_ignored_with_what_was_expected(key, remedy):
    found = read({key: "1", "hpc:require": "leaf"})
    assert (found.faults, found.constraints.bounds.level) == ((), "leaf")
    assert found.ignored == (f"unknown extra spec {key}; {remedy}",)


@pytest.mark.parametrize(
    "key", ["HPC:require", "hpc_require", "hpcrequire", "require", "hw:require"]
)
def test_keys_outside_the_namespace_are_not_looked_at(key):
    found = read({key: "leaf"})
    assert (found.faults, found.ignored) == ((), ())


def test_hints_count_only_where_they_are_allowed():
    hints = {"hpc:requires": ["leaf"], "hpc:bogus": ["1"], "group": ["g"]}
    assert (read({}, hints).faults, read({}, hints).ignored) == ((), ())
    found = read({}, hints, user_hints=True)
    assert found.faults == ("unknown scheduler hint hpc:requires; did you mean hpc:require?",)
    assert found.ignored == (f"unknown scheduler hint hpc:bogus; {EXPECTED}",)


def test_class_none_ignores_a_misspelt_constraint_as_it_ignores_the_constraint():
    specs = {"hpc:app_class": "none", "hpc:requires": "leaf"}
    assert read(specs).faults == read(specs | {"hpc:require": "leaf"}).faults == ()
    assert len(read(specs).ignored) == 1
    # By default of the site it does not.
    assert len(read({"hpc:requires": "leaf"}, app_class="none").faults) == 1


def test_a_fault_of_a_hostile_key_is_short_and_on_one_line():
    found = read({}, {"hpc:require\n": [""], f"hpc:{'x' * 10**6}\n\x1b[2J": [""]}, user_hints=True)
    texts = (*found.faults, *found.ignored)
    assert len(texts) == 2
    assert all(text.isprintable() and len(text) < 300 for text in texts)


def test_many_hostile_keys_take_no_time():
    # Nova's API takes bodies of 112 KB.
    few, many = ({f"hpc:requi{number:05}": [""] for number in range(most)} for most in (2000, 8000))
    calls = calls_of(lambda: read({}, few, user_hints=True))
    assert calls_of(lambda: read({}, many, user_hints=True)) < 1.1 * calls < 400_000
    found = read({}, many, user_hints=True)
    assert len(found.faults) + len(found.ignored) == MAX_REPORTED


def test_a_misspelt_constraint_is_found_behind_many_other_unknown_keys():
    others = {f"hpc:another{number:03}": "1" for number in range(200)}
    found = read({**others, "hpc:requires": "leaf"})
    assert found.faults == ("unknown extra spec hpc:requires; did you mean hpc:require?",)


def test_a_flavor_is_checked_whatever_its_class():
    specs = {
        "hpc:app_class": "none",
        "hpc:bogus": "1",
        "hpc:group_size": "99999",
        "hpc:require": "rack",
        "hpc:max_leafs": "2",
        "hw:cpu_policy": "shared",
    }
    wrong = (
        "hpc:require='rack': expected one of the levels leaf, pod, core",
        "hpc:group_size='99999': expected a whole number from 1 to 4096",
    )
    bogus = f"hpc:bogus='1': unknown extra spec hpc:bogus; {EXPECTED}"
    misspelt = "hpc:max_leafs='2': unknown extra spec hpc:max_leafs; did you mean hpc:max_leaves?"
    # Class none has no constraints: nothing is refused.
    assert extra_specs.check_flavor(specs, LEVELS, Defaults()) == FlavorFaults(
        (), (), (*wrong, misspelt, bogus)
    )
    specs["hpc:app_class"] = "sync"
    assert extra_specs.check_flavor(specs, LEVELS, Defaults()) == FlavorFaults(
        (), (*wrong, misspelt), (bogus,)
    )
    # Without a topology any level may be right.
    unknown = extra_specs.check_flavor({"hpc:require": "rack"}, (), Defaults())
    assert unknown == FlavorFaults((), (), ())


@pytest.mark.parametrize("app_class", ["sync", "none"])
@pytest.mark.parametrize("key", KEYS)
def test_a_flavor_has_the_faults_with_which_its_requests_are_refused(key, app_class):
    for specs in ({key: "?"}, {"hpc:app_class": "none", key: "?"}):
        refused = read(specs, app_class=app_class).faults
        found = extra_specs.check_flavor(specs, LEVELS, Defaults(app_class))
        assert sorted(found.application + found.group) == sorted(refused)


def test_a_guarantee_of_a_flavor_without_class_is_refused_where_none_is_the_default():
    found = extra_specs.check_flavor({"hpc:require": "pod"}, LEVELS, Defaults("none"))
    [fault] = found.group
    assert "the flavor must say hpc:app_class=sync or extreme" in fault
