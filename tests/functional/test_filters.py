"""What all filters have in common: whom they leave alone, errors of our own, threads."""

import gc
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import nova.conf
import pytest
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.record import logged_entry
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.pods import (
    FABRIC,
    states_of,
)
from tests.functional.states import (
    FILTERS,
    host_state,
    ours,
    run,
    schedule,
    spec,
    why_refused,
    wishing,
)
from tests.functional.trees import write_tree

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.mark.parametrize("filter_class", FILTERS)
@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(lambda: spec(group=None), id="a single VM"),
        pytest.param(lambda: spec(extra_specs=wishing(app_class="none")), id="class none"),
        pytest.param(
            lambda: spec(extra_specs=wishing(app_class="none", require="rack")),
            id="class none with wishes",
        ),
        pytest.param(
            lambda: spec(
                hints={"_nova_check_type": ["rebuild"]}, extra_specs=wishing(require="leaf")
            ),
            id="a rebuild",
        ),
    ],
)
def test_requests_without_a_group_to_place_pass_as_they_came(filter_class, request_of, caplog):
    states = states_of()
    random.Random(7).shuffle(states)
    assert run((state for state in states), request_of(), filter_class()) == states
    assert filter_class().filter_all(iter(states), request_of()) == states
    assert not ours(caplog)


@pytest.mark.parametrize("filter_class", FILTERS)
def test_a_multi_create_without_a_class_is_no_group_as_delivered(filter_class, caplog):
    states = states_of()
    assert run(states, spec(group=None, count=40), filter_class()) == states
    assert not ours(caplog)


@pytest.mark.parametrize("filter_class", FILTERS)
def test_a_class_without_topology_passes_every_filter_without_an_error(filter_class, group, caplog):
    group(left=2)
    states = states_of()
    request = spec(count=2, extra_specs=wishing(app_class="async"))
    assert run(states, request, filter_class()) == states
    assert not [found for found in caplog.records if found.levelname == "ERROR"]


def test_a_class_without_topology_is_refused_as_well_where_it_does_not_fit(group):
    group(left=33)
    request = spec(count=33, extra_specs=wishing(app_class="async"))
    assert "group of 33 does not fit" in why_refused(states_of(), request)


@pytest.mark.parametrize("filter_class", FILTERS)
def test_no_host_in_means_no_host_out(filter_class):
    request = spec(count=4, extra_specs=wishing(require="leaf", homogeneous="true"))
    assert filter_class().filter_all([], request) == []
    assert filter_class().filter_all(iter([]), request) == []


@pytest.mark.parametrize("filter_class", [HPCHomogeneityFilter, HPCRackCapacityFilter])
def test_a_filter_runs_for_the_first_vm_of_a_request_only(filter_class, group):
    group(left=40)
    states = states_of()
    request = spec(count=40, extra_specs=wishing(require="leaf"))
    assert run(states, request, filter_class(), index=1) == states


def test_the_group_filter_checks_the_first_vm_of_a_request_only(group):
    group(left=4)
    states, only = states_of(), HPCGroupFilter()
    request = spec(count=4, extra_specs=wishing(require="leaf"))
    kept = run(states, request, only)
    assert len(kept) == 4
    for state in kept[1:]:
        state.vcpus_used = 16
    kept[0].num_instances += 1
    # Three VMs do not fit any more, which refuses nothing once a place has been claimed.
    assert run(states, request, only, index=1) == states


@pytest.mark.parametrize("filter_class", FILTERS)
@pytest.mark.parametrize(
    ("constraints", "passes"),
    [
        ({}, True),
        ({"prefer": "leaf", "group_size": 16, "homogeneous": "prefer"}, True),
        ({"require": "pod"}, False),
        ({"max_leaves": 8}, False),
        ({"homogeneous": "true"}, False),
    ],
    ids=["no wish", "preferences", "require", "max_leaves", "homogeneous"],
)
def test_a_bug_of_ours_lets_all_hosts_pass_unless_a_guarantee_is_asked_for(
    monkeypatch, caplog, filter_class, constraints, passes
):
    def broken(*_args: object, **_said: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(group_members, "read", broken)
    states = states_of()
    request = spec(count=2, extra_specs=wishing(**constraints))
    assert run(states, request, filter_class()) == (states if passes else [])
    [logged] = [found for found in caplog.records if found.levelname == "ERROR"]
    assert filter_class.__name__ in logged.getMessage()
    assert logged.exc_info is not None


@pytest.mark.parametrize("filter_class", FILTERS)
@pytest.mark.parametrize(
    "constraints",
    [{"require": "pod"}, {"max_leaves": 8}, {"homogeneous": "true"}],
    ids=["require", "max_leaves", "homogeneous"],
)
def test_after_a_bug_a_move_passes_though_it_has_a_guarantee(
    monkeypatch, caplog, filter_class, constraints
):
    def broken(*_args: object, **_said: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(group_members, "read", broken)
    states = states_of()
    request = spec(extra_specs=wishing(**constraints))
    request.requested_destination = objects.Destination(cell=objects.CellMapping(uuid=uuids.cell1))
    assert run(states, request, filter_class()) == states
    assert [found.levelname for found in caplog.records if found.levelname == "ERROR"] == ["ERROR"]


def test_a_bug_in_telling_a_refusal_changes_nothing_of_it(group, monkeypatch, caplog, tmp_path):
    def broken(*_args: object, **_said: object) -> None:
        raise ZeroDivisionError("boom")

    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    monkeypatch.setattr(logged_entry, "append", broken)
    group(left=33)
    constraints = wishing(require="pod")
    assert "needs one pod" in why_refused(states_of(), spec(count=33, extra_specs=constraints))
    request = spec(count=33, extra_specs=constraints)
    assert run(states_of(), request, HPCRackCapacityFilter()) == []
    logged = [found for found in caplog.records if found.levelname == "ERROR"]
    assert [found.exc_info is not None for found in logged] == [True, True]


def test_after_a_bug_the_other_filters_let_pass_what_asked_for_nothing(monkeypatch, caplog):
    def broken(*_args: object, **_said: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(group_members, "read", broken)
    states = states_of()
    request = spec(count=40)
    assert run(states, request, *(made() for made in FILTERS)) == states
    assert len([found for found in caplog.records if found.exc_info]) == 1


def test_eight_threads_with_different_groups_on_one_chain_do_not_mix(monkeypatch):
    """Each group has members in a leaf of its own and must be kept there, every time."""
    chain, weigher = [made() for made in FILTERS], HopByteWeigher()
    start = threading.Barrier(8)
    home = {getattr(uuids, f"g{number}"): f"leaf{number + 1}" for number in range(8)}

    def read(
        request: request_spec.RequestedGroup, *_: object, **_said: object
    ) -> group_members.GroupMembership:
        host = FABRIC.hosts_of(home[request.group_uuid])[0]
        return group_members.GroupMembership(
            Counter({(host, host): 1}), (request.instance_uuid,), 3, False
        )

    monkeypatch.setattr(group_members, "read", read)

    def serve(number: int) -> bool:
        start.wait()
        leaf = home[getattr(uuids, f"g{number}")]
        for turn in range(15):
            states = states_of()
            queue = [getattr(uuids, f"t{number}x{turn}x{vm}") for vm in range(3)]
            request = spec(
                group=f"g{number}",
                group_policy="anti-affinity",
                count=3,
                uuid=queue[0],
                extra_specs=wishing(require="leaf"),
            )
            placed, _ = schedule(states, request, queue, weigher, chain)
            if set(placed) != set(FABRIC.hosts_of(leaf)[1:]):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(serve, range(8))) == [True] * 8
    assert [vars(used) for used in [*chain, weigher]] == [{}] * 4
    gc.collect()
    ours = {
        getattr(uuids, f"t{n}x{turn}x{vm}")
        for n in range(8)
        for turn in range(15)
        for vm in range(3)
    }
    assert not ours & {kept.instance_uuid for kept in list(served_requests._sessions)}


def test_anti_affinity_on_bare_metal_whose_services_are_the_hosts_of_the_topology(group, two_pods):
    """Each service has two nodes.

    ::

          spine
         /     \\
      pod-a   pod-b
      s1 s2    s3
    """
    write_tree(two_pods, {"spine": {"pod-a": ["s1", "s2"], "pod-b": ["s3"]}})
    loaded_topology.reload()
    nodes = [host_state(f"s{s}", f"s{s}-node{n}") for s in (1, 2, 3) for n in (1, 2)]
    rules = {"max_server_per_host": "1"}

    def request(count: int) -> objects.RequestSpec:
        group(left=count)
        return spec(
            group_policy="anti-affinity",
            rules=rules,
            count=count,
            extra_specs=wishing(require="leaf"),
        )

    kept = run(nodes, request(2), HPCGroupFilter())
    assert {state.host for state in kept} == {"s1", "s2"}
    assert "largest gang that fits under one leaf: 2" in why_refused(nodes, request(3))
