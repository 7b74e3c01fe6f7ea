"""Shadow mode on real HostStates without a cloud: what is kept, changed, logged and followed."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import nova.conf
import pytest

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.filters.dedicated_host import HPCDedicatedHostFilter
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.claim import claim_conditions
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io import periodic_thread
from hpc_sched.nova_glue.record import landed_record
from hpc_sched.weighers.bunch import BunchWeigher
from hpc_sched.weighers.hop_byte import HopByteWeigher
from hpc_sched.weighers.mdobp import MDOBPWeigher
from hpc_sched.weighers.rack_capacity import RackCapacityWeigher
from tests.functional import states as functional_states
from tests.functional.pods import hosts_below, states_of
from tests.functional.states import (
    FILTERS,
    States,
    hosts_have,
    place,
    queue_of,
    read_decisions,
    read_landings,
    run,
    spec,
    wishing,
)

CONF = nova.conf.CONF

WEIGHERS = (BunchWeigher, HopByteWeigher, MDOBPWeigher, RackCapacityWeigher)


@pytest.fixture(autouse=True)
def log(two_pods: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enable shadow mode and a decision log; no thread looks at requests by itself."""
    monkeypatch.setattr(landed_record._thread, "_function", int)
    sleeping = periodic_thread.PeriodicThread(int, lambda: 0)
    monkeypatch.setattr(landed_record, "_thread", sleeping)
    monkeypatch.setattr(landed_record, "_followed", type(landed_record._followed)())
    CONF.set_override("mode", "shadow", "hpc_sched")
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    enable(*FILTERS)
    CONF.set_override(
        "weight_classes", ["hpc_sched.weighers.hop_byte.HopByteWeigher"], "filter_scheduler"
    )
    return tmp_path / "decisions"


def enable(*filters: type) -> None:
    CONF.set_override("enabled_filters", [one.__name__ for one in filters], "filter_scheduler")


def weights(states: States, request) -> list[list[float]]:
    weighed = [mock.Mock(obj=state, weight=0.0) for state in states]
    return [made().weigh_objects(weighed, request) for made in WEIGHERS]


def schedule(states: States, request, vms: list[str], hosts: list[str]) -> None:
    """Take VMs through filters and weighers; Nova places them on these hosts."""
    chain = [made() for made in FILTERS]
    for index, (uuid, host) in enumerate(zip(vms, hosts, strict=True)):
        request.instance_uuid = uuid
        kept = run(states, request, *chain, index=index)
        assert kept == states
        assert all(one is other for one, other in zip(kept, states, strict=True))
        assert weights(kept, request) == [[]] * len(WEIGHERS)
        place(states, [host], request)


def test_all_hosts_pass_and_no_weigher_says_anything(group, log):
    queue, states = queue_of(4), states_of()
    group({"n01": 1}, queue=queue, left=4)
    request = spec(count=4, uuid=queue[0])
    schedule(states, request, queue, ["n02", "n09", "n17", "n25"])
    [decision], [landing] = read_decisions(log), read_landings(log)
    assert (decision["decision"], decision["mode"], decision["project"]) == (
        *("planned", "shadow"),
        "project",
    )
    assert landing["mode"] == "shadow"
    assert landing["landed"]["hosts"] == dict.fromkeys(["n02", "n09", "n17", "n25"], 1)
    assert landing["landed"]["hop_bytes"] > decision["plan"]["hop_bytes"]
    assert landing["landed"]["as_planned"] is False


def test_nothing_is_claimed_and_no_candidate_is_arranged(group):
    assert claim_conditions.obstacle() == "mode is shadow"
    queue, states = queue_of(2), states_of("leaf1")
    two = [{"allocations": {name: {"resources": {"VCPU": 16}}}, "mappings": {}} for name in "ab"]
    lists = [list(two) for _ in states]
    for state, offered in zip(states, lists, strict=True):
        state.allocation_candidates = offered
    group(queue=queue, left=2)
    request = spec(count=2, uuid=queue[0], vcpus=4, group_policy="soft-affinity")
    schedule(states, request, queue, sorted(hosts_below("leaf1"))[:2])
    for state, offered in zip(states, lists, strict=True):
        assert state.allocation_candidates is offered
        assert offered == two


def test_what_would_be_refused_is_logged_once_and_goes_on(group, log):
    queue = queue_of(5)
    group(queue=queue, left=5)
    request = spec(count=5, uuid=queue[0], extra_specs=wishing(require="leaf"))
    schedule(states_of(), request, queue, ["n01", "n09", "n17", "n25", "n02"])
    [decision], [landing] = read_decisions(log), read_landings(log)
    assert decision["decision"] == "refused"
    assert "needs one leaf" in decision["reason"]
    assert sum(landing["landed"]["hosts"].values()) == 5
    assert landing["landed"]["planned"] is None


def test_the_plan_is_made_among_the_hosts_that_filters_would_have_left(group, log, monkeypatch):
    """Stock Nova may still use the others, which the record of the landing shows."""
    enable(HPCDedicatedHostFilter, HPCGroupFilter)
    queue, states = queue_of(2), states_of()
    group(queue=queue, left=2)
    free = set(hosts_below("leaf2"))
    taken = [state.nodename for state in states if state.nodename not in free]
    hosts_have(monkeypatch, {host: [Application("extreme", group="x")] for host in taken})
    request = spec(count=2, uuid=queue[0])
    for made in (HPCDedicatedHostFilter, HPCGroupFilter):
        assert run(states, request, made()) == states
    [decision] = read_decisions(log)
    assert set(decision["plan"]["hosts"]) <= free
    assert decision["removed"]["dedicated hosts"] == len(taken)
    for host in taken[:2]:
        place(states, [host], request)
    [landing] = read_landings(log)
    assert set(landing["landed"]["hosts"]) == set(taken[:2])


def test_a_refusal_without_a_group_is_logged_with_its_landing(log, monkeypatch):
    enable(HPCDedicatedHostFilter)
    states = states_of("leaf1")
    hosts = {state.nodename: [Application("extreme", group="x")] for state in states}
    hosts_have(monkeypatch, hosts)
    request = spec(group=None)
    assert run(states, request, HPCDedicatedHostFilter()) == states
    place(states, [states[0].nodename], request)
    [decision], [landing] = read_decisions(log), read_landings(log)
    assert (decision["decision"], decision["left"]) == ("refused", 1)
    assert landing["landed"]["hosts"] == {states[0].nodename: 1}
    assert landing["instance"] == decision["instance"]


def test_weighers_alone_plan_too(group, log):
    enable()
    queue, states = queue_of(3), states_of()
    group(queue=queue, left=3)
    request = spec(count=3, uuid=queue[0])
    assert weights(states, request) == [[]] * len(WEIGHERS)
    [decision] = read_decisions(log)
    assert (decision["decision"], sum(decision["plan"]["hosts"].values())) == ("planned", 3)


def test_with_one_host_plan_and_landing_are_logged_although_filters_of_nova_follow(group, log):
    """For one host Nova calls no weigher."""
    names = [made.__name__ for made in FILTERS] + ["ComputeFilter"]
    CONF.set_override("enabled_filters", names, "filter_scheduler")
    queue, states = queue_of(1), states_of("leaf1")[:1]
    group(queue=queue, left=1)
    request = spec(uuid=queue[0])
    run(states, request, *(made() for made in FILTERS))
    place(states, [states[0].nodename], request)
    [decision], [landing] = read_decisions(log), read_landings(log)
    assert decision["decision"] == "planned"
    assert landing["landed"]["hosts"] == {states[0].nodename: 1}


def test_hosts_that_only_hpc_sched_would_have_removed_are_a_refusal(group, log, monkeypatch):
    names = [HPCDedicatedHostFilter.__name__, "ComputeFilter"]
    CONF.set_override("enabled_filters", names, "filter_scheduler")
    queue, states = queue_of(2), states_of()
    group(queue=queue, left=2)
    taken = [state.nodename for state in states[:2]]
    hosts_have(monkeypatch, {host: [Application("extreme", group="x")] for host in taken})
    request = spec(count=2, uuid=queue[0])
    assert run(states, request, HPCDedicatedHostFilter()) == states
    # Nova's own filter leaves those alone that hpc_sched would have removed.
    weights(states[:2], request)
    [decision] = read_decisions(log)
    assert decision["decision"] == "refused"
    assert "no host is left" in decision["reason"]


def test_a_plan_for_vms_of_other_requests_has_the_part_of_its_own(group, log):
    queue, states = queue_of(6), states_of()
    group(queue=queue, left=2)
    schedule(states, spec(count=2, uuid=queue[0]), queue[:2], ["n01", "n09"])
    [decision] = read_decisions(log)
    assert sum(decision["plan"]["hosts"].values()) == 6
    assert sum(decision["own_plan"]["hosts"].values()) == 2
    assert decision["own_plan"]["hop_bytes"] == 1  # two hosts of one leaf


def test_its_part_of_a_plan_is_where_the_group_would_have_placed_it(group, log):
    """Two of the VMs before it are of another request: theirs are the first places."""
    queue = queue_of(6)
    own, weigher = queue[2:4], HopByteWeigher()
    group(queue=queue, left=2)
    CONF.set_override("mode", "active", "hpc_sched")
    hosts, _ = functional_states.schedule(states_of(), spec(count=2, uuid=own[0]), own, weigher)
    CONF.set_override("mode", "shadow", "hpc_sched")
    schedule(states_of(), spec(count=2, uuid=own[0]), own, ["n01", "n09"])
    *_, decision = read_decisions(log)
    assert decision["own_plan"]["hosts"] == dict.fromkeys(hosts, 1)


def released(states: States) -> None:
    for state in states:
        state.updated = None  # as Nova does after NoValidHost


@pytest.mark.parametrize("claimed", [2, 0])
def test_a_request_that_nova_refuses_has_a_landing_nowhere(group, log, claimed):
    queue, states = queue_of(4), states_of()
    group(queue=queue, left=4)
    request = spec(count=4, uuid=queue[0])
    run(states, request, *(made() for made in FILTERS))
    for host in ["n01", "n02"][:claimed]:
        place(states, [host], request)
    released(states)
    with mock.patch.object(landed_record, "IDLE", 0.0):
        [landing] = read_landings(log)
    assert landing["landed"]["released"] is True
    assert sum(landing["landed"]["hosts"].values()) == claimed


@pytest.mark.parametrize("hosts", [["n01", "n02"], []], ids=["landed", "without a claim"])
def test_a_request_that_is_freed_is_logged_with_what_was_claimed_after_the_last_look(
    group, log, hosts
):
    """Placement may take seconds for a claim, while Nova calls nothing of hpc_sched."""
    queue, states = queue_of(2), states_of()
    group(queue=queue, left=2)
    request = spec(count=2, uuid=queue[0])
    run(states, request, *(made() for made in FILTERS))
    with mock.patch.object(landed_record, "QUIET", 0.0):
        landed_record.write_all()
    for host in hosts:
        place(states, [host], request)
    seen = [weakref.ref(state) for state in states]
    del states, request
    gc.collect()
    [landing] = read_landings(log)
    assert landing["landed"]["hosts"] == dict.fromkeys(hosts, 1)
    assert landing["landed"]["released"] == (not hosts)
    gc.collect()
    assert not [one for one in seen if one() is not None]
    assert not served_requests._sessions


def test_no_host_state_outlives_its_request(group, log):
    queue, states = queue_of(2), states_of()
    group(queue=queue, left=2)
    schedule(states, spec(count=2, uuid=queue[0]), queue, ["n01", "n02"])
    seen = [weakref.ref(state) for state in states]
    del states
    assert read_landings(log)
    gc.collect()
    assert not [one for one in seen if one() is not None]


def test_further_vms_and_filters_are_not_planned_again(group, log, monkeypatch):
    queue, states = queue_of(3), states_of()
    group(queue=queue, left=3)
    decided: list[object] = []
    answer: Callable[..., object] = GroupPlacement.answer
    monkeypatch.setattr(
        GroupPlacement, "answer", lambda *a, **k: decided.append(1) or answer(*a, **k)
    )
    request = spec(count=3, uuid=queue[0])
    run(states, request, *(made() for made in FILTERS))
    number = len(decided)
    schedule(states, request, queue, ["n01", "n09", "n17"])
    assert len(decided) == number
    assert len(read_decisions(log)) == 1
