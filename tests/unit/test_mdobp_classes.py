"""Which classes MDOBP places: one rule for scheduler, snapshots and simulator."""

import numpy as np
import pytest

from hpc_sched import conf
from hpc_sched.core import extra_specs
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.core.extra_specs import Defaults
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.core.sharing.mdobp import MDOBPInput, UnplannedVMs

ALL = frozenset(mdobp_classes.CHOICES)


def test_the_option_offers_every_class_but_the_dedicated_one():
    [opt] = [opt for opt in conf.OPTS if opt.dest == "mdobp_classes"]
    assert tuple(opt.type.item_type.choices) == mdobp_classes.CHOICES
    assert set(mdobp_classes.CHOICES) == {*APP_CLASSES} - {"extreme"}
    assert tuple(opt.default) == mdobp_classes.DEFAULT == ("sync", "async")


@pytest.mark.parametrize("wrong", ["extreme", "nova", "sync async"])
def test_another_class_is_no_value_of_the_option(wrong: str):
    [opt] = [opt for opt in conf.OPTS if opt.dest == "mdobp_classes"]
    assert opt.type(" async, none ") == ["async", "none"]
    assert opt.type("") == []
    with pytest.raises(ValueError, match=r"Valid values are \[sync, async, none\], but found"):
        opt.type(f"sync,{wrong}")


@pytest.mark.parametrize("app_class", APP_CLASSES)
@pytest.mark.parametrize("classes", [ALL, frozenset({"sync"}), frozenset(), {*ALL, "extreme"}])
def test_the_classes_of_a_group_are_those_of_the_option(app_class: str, classes):
    specs = {"hpc:app_class": app_class}
    found = extra_specs.read(specs, {}, (), Defaults(mdobp_classes=frozenset(classes)))
    assert found.by_mdobp == (app_class in classes and app_class != "extreme")
    assert found.by_topology == (app_class in ("sync", "extreme"))


def test_a_vm_without_a_group_has_neither_topology_nor_constraints():
    specs = {"hpc:app_class": "sync", "hpc:require": "leaf", "hpc:homogeneous": "true"}
    found = extra_specs.read(specs, {}, ("leaf",), Defaults())
    alone = found.unplanned("sync")
    assert found.by_topology
    assert found.needs_proof
    assert alone.is_flat
    assert alone.by_mdobp
    assert not alone.by_topology
    assert not alone.needs_proof


def test_vms_without_a_plan_go_to_full_hosts_and_those_that_lost_a_claim_last():
    packing = MDOBPInput(
        demand=np.array([1.0, 1024.0]),
        free=np.array([(4.0, 4096.0), (2.0, 2048.0), (4.0, 1024.0), (4.0, 4096.0)]),
        usable=np.array([(4.0, 4096.0)] * 4),
    )
    nothing = np.zeros(4, dtype=np.int64)
    vms = UnplannedVMs(packing, nothing, name_rank=np.arange(4), room=np.array([4, 2, 4, 4]))
    none = np.zeros(0, dtype=np.int64)

    def order(placed: list[int], lost: np.ndarray = none) -> list[int]:
        return np.argsort(vms.keys(np.array(placed), lost)).tolist()

    assert order([0, 0, 0, 0]) == [1, 0, 3, 2]
    # One VM later the second host is fuller still; then it is full.
    assert order([0, 1, 0, 0]) == [1, 0, 3, 2]
    assert order([0, 2, 0, 0]) == [0, 3, 2, 1]
    assert order([0, 2, 0, 0], lost=np.array([0])) == [3, 2, 1, 0]
