"""What hpc:objective=isolated makes of a request: a guarantee, as hpc:require is."""

import pytest

from hpc_sched.core import extra_specs
from hpc_sched.core.extra_specs import Defaults

LEVELS = ("leaf", "core")
ISOLATED = {"hpc:objective": "isolated"}


def read(specs, **defaults):
    return extra_specs.read(specs, {}, LEVELS, Defaults(**defaults))


@pytest.mark.parametrize("app_class", ["extreme", "sync", "async"])
def test_isolation_is_a_guarantee_on_the_place(app_class):
    found = read({**ISOLATED, "hpc:app_class": app_class})
    assert found.needs_proof
    assert found.binds_place
    assert not found.is_flat
    assert found.group_keys == ("hpc:objective",)


@pytest.mark.parametrize("objective", ["hops", "bottleneck"])
def test_other_objectives_guarantee_nothing(objective):
    found = read({"hpc:objective": objective, "hpc:app_class": "sync"})
    assert not found.needs_proof
    assert not found.group_keys


def test_a_relaxed_request_is_planned_by_hops():
    found = read({**ISOLATED, "hpc:app_class": "sync"}).relaxed()
    assert found.objective == "hops"
    assert not found.needs_proof


def test_a_misspelt_objective_may_be_a_guarantee():
    assert read({"hpc:objective": "isolate"}).is_unclear
    [fault] = read({"hpc:objectiv": "isolated"}).faults
    assert "did you mean hpc:objective?" in fault


def test_a_request_that_is_unclassed_by_default_is_refused_and_class_none_has_no_objective():
    [fault] = read(ISOLATED, app_class="none").faults
    assert fault.startswith("hpc:objective: only HPC applications can have that")
    stated = read({**ISOLATED, "hpc:app_class": "none"})
    assert not stated.faults
    assert stated.objective == "hops"


def test_the_application_of_a_vm_says_whether_its_group_is_isolated():
    for app_class, expected in (("sync", True), ("none", False)):
        specs = {**ISOLATED, "hpc:app_class": app_class}
        found, faults = extra_specs.application(specs, {}, Defaults(), in_group=True)
        assert found.is_isolated is expected
        assert not faults


@pytest.mark.parametrize("text", ["isolated ", " isolated", "Isolated", "isolated\n"])
def test_a_vm_is_isolated_for_others_with_every_text_that_isolates_its_group(text):
    specs = {"hpc:app_class": "sync", "hpc:objective": text}
    assert read(specs).objective == "isolated"
    assert extra_specs.application(specs, {}, Defaults(), in_group=True)[0].is_isolated
