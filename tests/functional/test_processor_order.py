"""The operator's order and speeds of processor types hold, whichever hosts are candidates."""

import nova.conf
import pytest

from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from tests.functional.pods import cpu, hosts_below, names, states_of, two_types
from tests.functional.states import preferred, run, spec, wishing

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.mark.parametrize("with_plain", [True, False], ids=["all are free", "the plain are full"])
@pytest.mark.parametrize("more", [[], ["Intel Icelake 2x8x2"]], ids=["", "the plain are last"])
def test_a_type_that_the_order_names_with_a_feature_stays_first(group, with_plain, more):
    order = ["Intel Icelake 2x8x2 +avx512f", "Intel Zen 2x8x2", *more]
    CONF.set_override("processor_order", order, "hpc_sched")
    group(left=2)
    states = states_of("leaf2", cpu_info=cpu("Icelake", features=("sse4", "avx512f")))
    states += states_of("leaf3", cpu_info=cpu("Zen"))
    if with_plain:
        states += states_of("leaf1", cpu_info=cpu("Icelake", features=("sse4",)))
    kept = run(states, spec(count=2), HPCHomogeneityFilter())
    assert names(kept) == hosts_below("leaf2")


@pytest.mark.parametrize(
    ("speeds", "order", "taken"),
    [
        ({}, [], "pod1"),
        ({"Intel Broadwell 2x12x2": 3000, "Intel Icelake 2x16x2": 2130}, [], "pod2"),
        ({"Intel Broadwell 2x12x2": 1e-3}, [], "pod2"),
        ({"Intel Broadwell 2x12x2": 1, "Intel Icelake 2x16x2": 1}, [], "pod1"),
        ({"Intel Broadwell 2x12x2": 3000}, ["Intel Icelake 2x16x2"], "pod1"),
    ],
    ids=[
        "no speeds: most cores",
        "the faster with fewer cores",
        "the one with a speed",
        "equal speeds: most cores",
        "the operator's order first",
    ],
)
def test_the_fastest_type_that_holds_the_group_is_taken(group, speeds, order, taken):
    CONF.set_override("processor_speeds", speeds, "hpc_sched")
    CONF.set_override("processor_order", order, "hpc_sched")
    group(left=4)
    assert preferred(two_types(["pod1"], ["pod2"]), spec(count=4)) == hosts_below(taken)


def test_a_fast_type_that_cannot_hold_the_group_leaves_it_to_the_next(group):
    CONF.set_override("processor_speeds", "Intel Broadwell 2x12x2=3000", "hpc_sched")
    group(left=12)
    assert preferred(two_types(["pod1"], ["leaf5"]), spec(count=12)) == hosts_below("pod1")


@pytest.mark.parametrize("with_plain", [True, False], ids=["all are free", "the plain are full"])
def test_the_speed_of_a_type_with_a_feature_does_not_depend_on_the_candidates(group, with_plain):
    """The name of the type has the feature only next to hosts of the label without it."""
    speeds = "Intel Icelake 2x8x2 +avx512f=3000, Intel Icelake 2x8x2=1000, Intel Zen 2x8x2=2000"
    CONF.set_override("processor_speeds", speeds, "hpc_sched")
    group(left=2)
    states = states_of("leaf2", cpu_info=cpu("Icelake", features=("sse4", "avx512f")))
    states += states_of("leaf3", cpu_info=cpu("Zen"))
    if with_plain:
        states += states_of("leaf1", cpu_info=cpu("Icelake", features=("sse4",)))
    assert names(run(states, spec(count=2), HPCHomogeneityFilter())) == hosts_below("leaf2")


def test_speeds_that_a_reload_makes_unreadable_leave_the_order_to_cores(two_pods, group, tmp_path):
    """nova.conf of a running scheduler: the reload logs the fault, no request fails for it."""
    group(left=4)
    states = two_types(["pod1"], ["pod2"])
    homogeneity = HPCHomogeneityFilter()
    request = {"count": 4, "extra_specs": wishing(homogeneous="true")}
    found = {}
    for value in ("Intel Broadwell 2x12x2=3000", "Intel Broadwell 2x12x2=fast"):
        path = tmp_path / "nova.conf"
        path.write_text(f"[hpc_sched]\nprocessor_speeds = {value}\n")
        CONF(["--config-file", str(path)])
        CONF.set_override("topology_file", str(two_pods), "hpc_sched")
        found[value.rpartition("=")[2]] = names(run(states, spec(**request), homogeneity))
    assert found == {"3000": hosts_below("pod2"), "fast": hosts_below("pod1")}
