"""HPCHomogeneityFilter: one processor type for the whole group."""

import nova.conf
import pytest
from nova import objects

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.read.room import host_processors
from tests.functional.pods import (
    FABRIC,
    cpu,
    hosts_below,
    names,
    states_of,
    two_types,
    write_fabric,
)
from tests.functional.states import (
    databases_say,
    preferred,
    run,
    served,
    spec,
    why_refused,
    wishing,
)

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


def in_aggregate(processor: str) -> list[objects.Aggregate]:
    return [objects.Aggregate(metadata={"hpc:processor": processor})]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (["from aggregate"], {"n01", "n02"}),
        (["from file"], {"n03", "n04"}),
        (["Intel Icelake 2x8x2"], set(FABRIC.hosts) - {"n01", "n02", "n03", "n04"}),
        (["not there", "from file", "from aggregate"], {"n03", "n04"}),
    ],
    ids=["metadata of aggregates", "the topology file", "cpu_info", "the operator's order"],
)
def test_metadata_beats_the_topology_file_and_that_beats_what_hosts_report(
    group, two_pods, order, expected
):
    write_fabric(two_pods, {"leaf1": "from file"})
    loaded_topology.load()
    CONF.set_override("processor_order", order, "hpc_sched")
    group(left=2)
    states = states_of(cpu_info=cpu())
    for state in states[:2]:
        state.aggregates = in_aggregate("from aggregate")
    assert preferred(states, spec(count=2)) == expected


def test_without_an_order_the_type_with_most_cores_a_host_comes_first(group):
    group(left=4)
    states = two_types(["pod2"], ["pod1"])
    assert preferred(states, spec(count=4)) == hosts_below("pod2")


def test_what_must_be_homogeneous_keeps_the_hosts_of_the_type_alone_in_their_order(group):
    group(left=4)
    states = two_types(["pod2"], ["pod1"])
    kept = run(
        states, spec(count=4, extra_specs=wishing(homogeneous="true")), HPCHomogeneityFilter()
    )
    assert names(kept) == hosts_below("pod2")
    assert kept == [state for state in states if state in kept]


def test_without_a_topology_weigher_a_preferred_type_is_kept_alone(group):
    group(left=4)
    states = two_types(["pod2"], ["pod1"])
    CONF.set_override("weight_classes", ["nova.scheduler.weights.all_weighers"], "filter_scheduler")
    assert names(run(states, spec(count=4), HPCHomogeneityFilter())) == hosts_below("pod2")


def test_the_best_type_that_holds_the_group_is_taken_not_the_best_of_all(group):
    group(left=12)
    assert preferred(two_types(["leaf1"], ["pod2"]), spec(count=12)) == hosts_below("pod2")


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"queue": [f"vm{n}" for n in range(12)]}, id="VMs of other requests"),
        pytest.param({"extra_specs": {"hpc:group_size": "12"}}, id="group_size"),
    ],
)
def test_the_first_vm_of_a_group_takes_a_type_that_holds_those_to_come(group, said):
    group(queue=said.get("queue", ()), left=1)
    request = spec(extra_specs=said.get("extra_specs"))
    assert preferred(two_types(["leaf1"], ["pod2"]), request) == hosts_below("pod2")


def test_where_no_type_holds_those_to_come_the_first_vm_takes_the_best(group):
    group(left=1)
    request = spec(extra_specs=wishing(group_size=64))
    assert preferred(two_types(["leaf1"], ["pod2"]), request) == hosts_below("leaf1")


def test_features_that_differ_make_two_types(group):
    group(left=4)
    states = states_of("pod1", cpu_info=cpu(features=["sse4", "avx512f"]))
    states += states_of("pod2", cpu_info=cpu(features=["sse4"]))
    # Equal cores: by name, which is the shorter.
    assert preferred(states, spec(count=4)) == hosts_below("pod2")
    CONF.set_override("processor_order", ["Intel Icelake 2x8x2 +avx512f"], "hpc_sched")
    assert preferred(states, spec(count=4)) == hosts_below("pod1")


def test_a_type_must_hold_the_group_with_all_its_wishes(group):
    group(left=4)
    # Four of the better type, but in two leaves.
    better = [*states_of("leaf1")[:2], *states_of("leaf2")[:2]]
    for state in better:
        state.cpu_info = cpu("Icelake", cores=16)
    states = better + states_of("leaf7", cpu_info=cpu("Broadwell"))
    assert preferred(states, spec(count=4)) == names(better)
    request = spec(count=4, extra_specs=wishing(require="leaf"))
    assert preferred(states, request) == hosts_below("leaf7")


def test_the_type_of_the_members_is_kept_though_another_is_better(group):
    group({"n20": 1}, left=2)
    states = two_types(["pod1"], ["pod2"])
    assert preferred(states, spec(count=2)) == hosts_below("pod2")


def test_members_of_a_type_that_is_full_leave_the_group_mixed_or_refused(group):
    group({"n20": 1}, left=5)
    states = two_types(["pod1"], ["leaf5"])
    # The other type would hold all five, but not the member.
    assert run(states, spec(count=5), HPCHomogeneityFilter()) == states
    request = spec(count=5, extra_specs=wishing(homogeneous="true"))
    assert run(states, request, HPCHomogeneityFilter()) == []


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(({}, {("far", "far"): cpu("Broadwell", cores=12)}), id="cpu_info"),
        pytest.param(({"far": ["Intel Broadwell 2x12x2"]}, {}), id="metadata of aggregates"),
    ],
)
def test_the_type_of_members_on_hosts_that_are_no_candidates_is_looked_up(group, monkeypatch, said):
    group({"far": 1}, left=2)
    monkeypatch.setattr(host_processors, "read_processors", lambda _places, _cells: said)
    states = two_types(["pod1"], ["pod2"])
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    assert names(run(states, request, HPCHomogeneityFilter())) == hosts_below("pod2")


def test_a_move_is_not_refused_because_the_type_of_members_could_not_be_read(group, monkeypatch):
    monkeypatch.setattr(host_processors, "read_processors", lambda _places, _cells: ({}, {}))
    states = two_types(["pod1"], ["pod2"])
    request = {"extra_specs": wishing(homogeneous="true")}
    group({"far": 1})
    assert run(states, spec(**request), HPCHomogeneityFilter()) == []
    group({"far": 1}, is_move=True)
    # Without a topology weigher the best type is kept.
    assert names(run(states, spec(**request), HPCHomogeneityFilter())) == hosts_below("pod1")


def test_a_move_is_refused_where_the_known_types_of_the_members_differ(group):
    group({"n01": 1, "n17": 1}, is_move=True)
    states = two_types(["pod1"], ["pod2"])
    request = {"extra_specs": wishing(homogeneous="true")}
    assert run(states, spec(**request), HPCHomogeneityFilter()) == []


def test_members_that_run_on_two_types_leave_the_one_with_more_of_them_to_a_preference(group):
    group({"n01": 1, "n17": 1, "n18": 1}, left=2)
    states = two_types(["pod1"], ["pod2"])
    assert preferred(states, spec(count=2)) == hosts_below("pod2")
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    assert run(states, request, HPCHomogeneityFilter()) == []


def test_where_no_type_holds_the_group_all_pass_if_it_is_a_preference_alone(group):
    group(left=20)
    states = two_types(["pod1"], ["pod2"])
    assert run(states, spec(count=20), HPCHomogeneityFilter()) == states
    request = spec(count=20, extra_specs=wishing(homogeneous="true"))
    assert run(states, request, HPCHomogeneityFilter()) == []
    CONF.set_override("default_homogeneous", "true", "hpc_sched")
    assert run(states, spec(count=20), HPCHomogeneityFilter()) == []


def test_the_refusal_reaches_the_tenant_through_the_group_filter_behind(group, caplog):
    CONF.set_override(
        "enabled_filters", ["HPCHomogeneityFilter", "HPCGroupFilter"], "filter_scheduler"
    )
    caplog.set_level("INFO")
    group(left=20)
    request = spec(count=20, extra_specs=wishing(homogeneous="true"))
    told = why_refused(
        two_types(["pod1"], ["pod2"]), request, HPCHomogeneityFilter(), HPCGroupFilter()
    )
    assert "no single processor type holds 20 VMs: largest gang that fits on one type: 16" in told
    assert "Intel" not in told
    assert any("Intel Icelake 2x16x2" in found.getMessage() for found in caplog.records)


def test_a_group_filter_in_front_tells_nobody(group):
    CONF.set_override(
        "enabled_filters", ["HPCGroupFilter", "HPCHomogeneityFilter"], "filter_scheduler"
    )
    group(left=20)
    request = spec(count=20, extra_specs=wishing(homogeneous="true"))
    states = two_types(["pod1"], ["pod2"])
    assert run(states, request, HPCGroupFilter(), HPCHomogeneityFilter()) == []


@pytest.mark.parametrize(("answer", "is_known"), [(({}, {}), True), (None, False)])
def test_the_topology_s_type_of_members_elsewhere_counts_only_if_no_aggregate_has_another(
    group, two_pods, monkeypatch, answer, is_known
):
    """``answer``: of the database that knows the metadata of aggregates; None if it is down."""
    write_fabric(two_pods, {"leaf8": "gold", "leaf1": "gold"})
    loaded_topology.load()
    group({"n32": 2}, left=2)
    monkeypatch.setattr(host_processors, "read_processors", lambda _places, _cells: answer)
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    found = run(states_of("leaf1", "leaf2"), request, HPCHomogeneityFilter())
    assert names(found) == (hosts_below("leaf1") if is_known else set())


def test_a_member_whose_type_nobody_knows_refuses_what_must_be_homogeneous(group, monkeypatch):
    group({"far": 2}, left=2)
    monkeypatch.setattr(host_processors, "read_processors", lambda _places, _cells: ({}, {}))
    CONF.set_override(
        "enabled_filters", ["HPCHomogeneityFilter", "HPCGroupFilter"], "filter_scheduler"
    )
    states = two_types(["pod1"], ["pod2"])
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    told = why_refused(states, request, HPCHomogeneityFilter(), HPCGroupFilter())
    assert "the processor type of 2 members of the group is not known" in told
    assert preferred(states, spec(count=2)) == hosts_below("pod1")


def test_hosts_that_tell_nothing_pass_a_preference_and_not_a_must(group):
    group(left=2)
    states = states_of()
    assert run(states, spec(count=2), HPCHomogeneityFilter()) == states
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    assert run(states, request, HPCHomogeneityFilter()) == []
    request = spec(count=2, extra_specs=wishing(homogeneous="false"))
    assert run(two_types(["pod1"], ["pod2"]), request, HPCHomogeneityFilter())


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"topology": 7}', '{"features": 3}', "null"])
def test_a_cpu_info_that_cannot_be_read_is_no_type(group, broken):
    group(left=2)
    states = states_of("pod1", cpu_info=cpu()) + states_of("pod2", cpu_info=broken)
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    assert names(run(states, request, HPCHomogeneityFilter())) == hosts_below("pod1")


def test_a_member_of_which_only_the_service_host_is_known_has_its_candidates_type(monkeypatch):
    def read(*_args: object) -> None:
        raise AssertionError("the member stands on a candidate")

    monkeypatch.setattr(host_processors, "read_processors", read)
    databases_say(monkeypatch, members={("n20", None): 2, ("n21", "n21"): 1}, left=2)
    states = two_types(["pod1"], ["pod2"])
    state = served(spec(count=2), states)
    inputs, found = state.group.inputs, state.group.inputs.membership
    processors = host_processors.of(
        states, state.positions(states), found.members, found.cells, inputs.fabric
    )
    assert processors.members == {"Intel Broadwell 2x12x2": 3}
    request = spec(count=2, extra_specs=wishing(homogeneous="true"))
    assert names(run(states, request, HPCHomogeneityFilter())) == hosts_below("pod2")


def test_an_entry_of_the_operators_order_without_features_names_the_types_with_them(group):
    CONF.set_override("processor_order", ["Intel Broadwell 2x12x2"], "hpc_sched")
    group(left=4)
    states = states_of("pod1", cpu_info=cpu("Icelake", cores=16))
    states += states_of("leaf5", cpu_info=cpu("Broadwell", cores=12, features=["a", "sse4"]))
    states += states_of("leaf6", cpu_info=cpu("Broadwell", cores=12, features=["b", "sse4"]))
    assert preferred(states, spec(count=4)) == hosts_below("leaf5")
