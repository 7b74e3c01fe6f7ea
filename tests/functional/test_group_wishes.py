"""What HPCGroupFilter says to wishes: hints, values that cannot be read, contradictions."""

import nova.conf
import pytest
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.read.room import host_state_room
from tests.functional.pods import (
    FABRIC,
    NAMES,
    names,
    states_of,
)
from tests.functional.states import (
    as_hints,
    ours,
    run,
    spec,
    why_refused,
    wishing,
)

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.mark.parametrize(
    ("constraints", "text"),
    [
        ({"require": "rack"}, "hpc:require='rack': expected one of the levels leaf, pod, core"),
        ({"prefer": "Pod"}, "hpc:prefer='Pod': expected one of the levels"),
        ({"max_leaves": 0}, "hpc:max_leaves='0': expected a whole number from 1"),
        ({"group_size": "many"}, "hpc:group_size='many': expected a whole number"),
        ({"homogeneous": "yes"}, "hpc:homogeneous='yes': expected one of true, prefer, false"),
        ({"app_class": "fast"}, "hpc:app_class='fast': expected one of extreme, sync, async, none"),
        (
            {"segment": "prefer:few"},
            "hpc:segment='prefer:few': expected N or prefer:N, N a whole number",
        ),
        ({"segment_level": "rack"}, "hpc:segment_level='rack': expected one of the levels"),
        ({"balance": "yes"}, "hpc:balance='yes': expected one of true, prefer, false"),
    ],
)
def test_a_wish_that_cannot_be_read_is_refused_with_what_was_expected(
    group, monkeypatch, constraints, text
):
    group(left=2)
    monkeypatch.setattr(group_members, "is_placed", lambda _uuid: False)
    for request in (
        spec(count=2, extra_specs=wishing(**constraints)),
        spec(group=None, count=2, extra_specs=wishing(**constraints)),
    ):
        assert text in why_refused(states_of(), request)


def test_wishes_that_contradict_each_other_are_refused_before_anything_else(group, monkeypatch):
    monkeypatch.setattr(
        host_state_room,
        "empty_capacities",
        lambda _demand: {(host, host): 1 for host in FABRIC.hosts},
    )
    group(left=1)
    request = spec(extra_specs=wishing(max_leaves=1, group_size=5))
    told = why_refused(states_of(), request)
    assert "hpc:max_leaves=1 and hpc:group_size=5 contradict each other" in told
    assert "at most 4 VMs of this flavor" in told
    assert not NAMES.search(told)


def test_a_hard_policy_bounds_what_an_empty_leaf_holds(group, monkeypatch):
    empty = {(host, host): 4 for host in FABRIC.hosts}
    monkeypatch.setattr(host_state_room, "empty_capacities", lambda _demand: empty)
    group(left=1)
    wishes = wishing(max_leaves=1, group_size=5)
    assert run(states_of(), spec(vcpus=4, extra_specs=wishes), HPCGroupFilter())
    request = spec(vcpus=4, extra_specs=wishes, group_policy="anti-affinity")
    assert "at most 4 VMs of this flavor" in why_refused(states_of(), request)


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param({"n05": 2}, id="a host that is no candidate is larger"),
        pytest.param(None, id="the databases do not tell"),
    ],
)
def test_wishes_that_may_be_met_by_hosts_that_are_no_candidates_do_not_contradict_each_other(
    group, monkeypatch, sizes
):
    if sizes is not None:
        sizes = {(host, host): sizes.get(host, 1) for host in FABRIC.hosts}
    monkeypatch.setattr(host_state_room, "empty_capacities", lambda _demand: sizes)
    group(left=1)
    states = states_of("leaf1")
    request = spec(extra_specs=wishing(max_leaves=1, group_size=5))
    assert run(states, request, HPCGroupFilter()) == states


def test_wishes_that_only_the_load_of_today_stands_against_do_not_contradict_each_other(group):
    # Every host is in use but one: an empty leaf would hold the group.
    group(left=1)
    states = states_of(vcpus_used=16)
    states[0].vcpus_used = 0
    request = spec(extra_specs=wishing(max_leaves=1, group_size=4))
    assert names(run(states, request, HPCGroupFilter())) >= {"n01"}


@pytest.mark.parametrize(
    "constraints",
    [
        {"require": "pod"},
        {"prefer": "leaf"},
        {"max_leaves": 1},
        {"group_size": 16},
        {"homogeneous": "true"},
        {"segment": 4},
        {"segment_level": "pod"},
        {"balance": "prefer"},
    ],
)
@pytest.mark.parametrize("count", [1, 8], ids=["a single VM", "a multi-create without a class"])
def test_a_wish_without_a_group_is_refused_unless_the_vm_runs_already(
    monkeypatch, caplog, constraints, count
):
    states = states_of()
    monkeypatch.setattr(group_members, "is_placed", lambda _uuid: False)
    request = spec(group=None, count=count, extra_specs=wishing(**constraints))
    told = why_refused(states, request)
    assert next(iter(wishing(**constraints))) in told
    assert "only a group can have that; name a server group in the hint 'group', or" in told
    assert told.endswith("in one request with a flavor that names hpc:app_class")
    monkeypatch.setattr(group_members, "is_placed", lambda _uuid: True)
    moved = spec(group=None, count=count, extra_specs=wishing(**constraints))
    caplog.clear()
    assert run(states, moved, HPCGroupFilter()) == states
    [warning] = [text for text in ours(caplog) if "Ignored for instance" in text]
    assert f"{next(iter(wishing(**constraints)))}: the VM belongs to no group" in warning


def test_a_constraint_on_a_single_vm_whose_class_makes_groups_of_multi_creates(monkeypatch):
    monkeypatch.setattr(group_members, "is_placed", lambda _uuid: False)
    said = wishing(require="leaf", app_class="sync")
    told = why_refused(states_of(), spec(group=None, extra_specs=said))
    assert told.endswith("or create the VMs in one request")


def test_a_vm_that_runs_is_not_held_fast_by_a_wish_that_nobody_can_read(monkeypatch):
    monkeypatch.setattr(group_members, "is_placed", lambda _uuid: True)
    states = states_of()
    request = spec(group=None, extra_specs=wishing(require="rack"))
    assert run(states, request, HPCGroupFilter()) == states


def test_homogeneous_prefer_and_false_need_no_group(caplog):
    for value in ("prefer", "false"):
        states = states_of()
        request = spec(group=None, extra_specs=wishing(homogeneous=value))
        assert run(states, request, HPCGroupFilter()) == states
    assert not ours(caplog)


def test_a_bad_hint_is_refused_where_hints_count_and_ignored_where_they_do_not(group):
    group(left=2)
    states, request = states_of(), spec(count=2, hints=as_hints(require="rack"))
    assert run(states, request, HPCGroupFilter()) == states
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    assert "hpc:require='rack'" in why_refused(states, spec(count=2, hints=request.scheduler_hints))


def test_two_values_of_one_hint_are_refused(group):
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    group(left=2)
    request = spec(count=2, hints={"hpc:max_leaves": ["1", "2"]})
    assert "hpc:max_leaves: expected one value, found 2" in why_refused(states_of(), request)


def test_a_hint_counts_where_allowed_and_the_flavor_beats_it(group):
    group(left=8)
    hint = as_hints(require="leaf")
    assert len(run(states_of(), spec(count=8, hints=hint), HPCGroupFilter())) == 32
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    assert "needs one leaf" in why_refused(states_of(), spec(count=8, hints=hint))
    both = spec(count=8, hints=hint, extra_specs=wishing(require="pod"))
    assert len(run(states_of(), both, HPCGroupFilter())) == 16


MISREAD = [
    pytest.param({"require": "rack"}, True, id="require"),
    pytest.param({"max_leaves": "few"}, True, id="max_leaves"),
    pytest.param({"homogeneous": "yes"}, True, id="homogeneous"),
    pytest.param({"prefer": "rack"}, False, id="prefer"),
    pytest.param({"group_size": "many"}, False, id="group_size"),
    pytest.param({"app_class": "fast"}, False, id="app_class"),
    pytest.param({"prefer": "rack", "require": "pod"}, False, id="prefer beside a good require"),
    pytest.param({"prefer": "rack", "require": "row"}, True, id="prefer and require"),
    pytest.param({"min_leaves": 3, "max_leaves": 2}, True, id="more leaves than there may be"),
    pytest.param({"min_leaves": 3, "group_size": 2}, True, id="more leaves than VMs"),
    pytest.param({"segment": "few"}, True, id="segment"),
    pytest.param({"balance": "even"}, True, id="balance"),
    pytest.param({"segment": 2, "min_leaves": 2}, True, id="parts on leaves of their own"),
]


@pytest.mark.parametrize(("constraints", "is_unclear"), MISREAD)
def test_a_request_is_unclear_where_a_guarantee_is_asked_for_in_words_nobody_can_read(
    constraints, is_unclear
):
    request = spec(extra_specs=wishing(**constraints))
    asked = served_requests.session_of(request).hpc_specs(request)
    assert asked.faults
    assert asked.is_unclear == is_unclear


@pytest.mark.parametrize(("constraints", "is_unclear"), MISREAD)
def test_a_group_member_that_moves_is_held_fast_by_an_unclear_guarantee_and_by_no_bad_preference(
    group, caplog, constraints, is_unclear
):
    group({"n01": 1}, queue=[uuids.instance], left=1, is_move=True)
    states = states_of("pod1")
    request = spec(extra_specs=wishing(**constraints))
    first = next(iter(wishing(**constraints)))
    if is_unclear:
        assert first in why_refused(states, request)
    else:
        assert run(states, request, HPCGroupFilter()) == states
        assert [found.levelname for found in caplog.records if first in found.getMessage()] == [
            "WARNING"
        ]
