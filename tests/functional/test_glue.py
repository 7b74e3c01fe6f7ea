"""The glue on real Nova objects: capacity, policies, requests, claims that are lost, threads."""

import gc
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest import mock

import nova.conf
import numpy as np
import pytest
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import weights as nova_weights
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.core import extra_spec_names
from hpc_sched.core.constraints import server_group_policy
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.read.nova_claims import NovaClaims
from hpc_sched.nova_glue.read.room import host_state_room
from hpc_sched.nova_glue.record import landed_record
from hpc_sched.weighers import bunch
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.clouds import four_by_eight, write_topology
from tests.functional.states import (
    configured,
    host_state,
    known,
    place,
    queue_of,
    run,
    spec,
    weigh,
    wishing,
)

CONF = nova.conf.CONF
LEAVES = four_by_eight()


@pytest.fixture(autouse=True)
def options(tmp_path) -> Iterator[None]:
    """Read the fabric of four leaves of eight; undo what a test sets."""
    with configured(write_topology(tmp_path, LEAVES)):
        yield


def from_spec(request: objects.RequestSpec) -> request_spec.RequestedGroup | None:
    return request_spec.from_spec(request, loaded_topology.current().topology.levels)


def all_hosts() -> list[host_manager.HostState]:
    return [host_state(host) for below in LEAVES.values() for host in below]


@pytest.mark.parametrize(
    ("fields", "demand", "expected"),
    [
        ({}, {"VCPU": 4}, 4),
        ({"vcpus_used": 5}, {"VCPU": 4}, 2),
        ({"cpu_allocation_ratio": 2.0}, {"VCPU": 4}, 8),
        ({"free_ram_mb": 10000}, {"VCPU": 1, "MEMORY_MB": 4096}, 2),
        ({"free_ram_mb": 0, "ram_allocation_ratio": 1.5}, {"MEMORY_MB": 4096}, 8),
        ({"disk_mb_used": 990 * 1024, "free_disk_mb": -5}, {"DISK_GB": 4}, 2),
        ({}, {"CUSTOM_FPGA": 3, "VCPU": 8}, 2),
        ({"vcpus_used": 16}, {"VCPU": 1}, 0),
        ({"vcpus_used": 16, "allocation_candidates": [{}]}, {"VCPU": 1}, 1),
        ({"vcpus_total": 0, "total_usable_ram_mb": 0}, {"CUSTOM_METAL": 1}, 1),
        ({"vcpus_used": 10}, {"PCPU": 3}, 2),
    ],
    ids=[
        "processors bound",
        "used processors do not count",
        "overcommitted processors count",
        "memory bounds",
        "overcommitted memory counts",
        "disk goes by what is used, not by what is least available",
        "a class that the host says nothing of does not bound",
        "a full host takes none",
        "a host that Placement offers takes one",
        "bare metal takes one",
        "pinned processors are not overcommitted",
    ],
)
def test_the_capacity_of_a_host(fields, demand, expected):
    assert host_state_room.capacity(host_state("n01", **fields), demand) == expected


@pytest.mark.parametrize(
    ("relax", "host", "is_relaxed"),
    [
        ("never", "n02", False),
        ("named_host", None, False),
        ("named_host", "n02", True),
        ("always", None, True),
    ],
)
def test_the_guarantees_of_a_move_are_preferences_where_relax_moves_says_so(
    relax, host, is_relaxed
):
    CONF.set_override("relax_moves", relax, "hpc_sched")
    request = spec(extra_specs=wishing(require="leaf"))
    levels = loaded_topology.current().topology.levels
    assert request_spec.hpc_specs_of(request, levels).constraints.bounds.level == "leaf"
    where = objects.Destination(cell=objects.CellMapping(uuid=uuids.cell1))
    if host is not None:
        where.host = host
    request.requested_destination = where
    found = request_spec.hpc_specs_of(request, levels).constraints
    assert found.values == {"prefer" if is_relaxed else "require": "leaf"}


def bounded(states, room, *, members=(), placed=None, left=4, leaf=None, **request) -> list[int]:
    asked = from_spec(spec(count=left, **request))
    leaf = np.zeros(len(states), np.int64) if leaf is None else np.array(leaf)
    limit = bound_of(asked, members, states, leaf)
    if limit is not None and placed is not None:
        limit = limit.with_placed(np.array(placed))
    return server_group_policy.apply(limit, np.array(room), [left]).tolist()


def test_anti_affinity_leaves_one_vm_a_host():
    states = [host_state("a"), host_state("b"), host_state("c")]
    assert bounded(states, [5, 5, 0], members={("b", "b"): 1}, group_policy="anti-affinity") == [
        1,
        0,
        0,
    ]


def test_anti_affinity_leaves_as_many_as_its_rule_allows_less_those_placed():
    states = [host_state("a"), host_state("b")]
    assert bounded(
        states,
        [5, 5],
        members={("b", "b"): 1},
        placed=[1, 0],
        group_policy="anti-affinity",
        rules={"max_server_per_host": "3"},
    ) == [2, 2]


def test_anti_affinity_counts_by_service_host_where_one_service_has_many_nodes():
    states = [host_state("svc", "node-b"), host_state("svc", "node-a"), host_state("other")]
    assert bounded(states, [1, 1, 1], group_policy="anti-affinity") == [0, 1, 1]


def test_anti_affinity_counts_a_service_in_every_leaf_where_it_has_nodes():
    states = [host_state("svc", node) for node in ("n1", "n2", "n3", "n4")]
    assert bounded(states, [1, 1, 1, 1], leaf=[1, 1, 2, 2], group_policy="anti-affinity") == [
        1,
        0,
        1,
        0,
    ]


def test_affinity_leaves_only_the_host_of_the_members():
    states = [host_state("a"), host_state("b")]
    assert bounded(states, [9, 9], members={("b", "b"): 1}, group_policy="affinity") == [0, 9]


def test_affinity_without_members_leaves_the_hosts_that_take_all():
    states = [host_state("a"), host_state("b")]
    assert bounded(states, [3, 4], group_policy="affinity") == [0, 4]


def limited(states, members=(), leaf=None, **request) -> server_group_policy.HardPolicy:
    asked = from_spec(spec(**request))
    leaf = np.zeros(len(states), np.int64) if leaf is None else np.array(leaf)
    return bound_of(asked, members, states, leaf)


def bound_of(asked, members, states, leaf) -> server_group_policy.HardPolicy | None:
    places = [(state.host, state.nodename) for state in states]
    return server_group_policy.hard_policy(
        asked.policy, asked.max_per_host, Counter(dict(members)), places, leaf
    )


TWO_LEAVES_OF_ONE_SERVICE = [
    ("svc", "n1"),
    ("svc", "n2"),
    ("svc", "n3"),
    ("other", "n4"),
]


def test_a_plan_keeps_anti_affinity_only_where_no_service_takes_more_than_its_share():
    states = [host_state(*place) for place in TWO_LEAVES_OF_ONE_SERVICE]
    limit = limited(states, leaf=[1, 1, 2, 2], group_policy="anti-affinity")
    assert server_group_policy.keeps(limit, np.array([1, 0, 0, 1]))
    assert not server_group_policy.keeps(limit, np.array([1, 0, 1, 0]))
    placed = limit.with_placed(np.array([1, 0, 0, 0]))
    assert not server_group_policy.keeps(placed, np.array([0, 0, 1, 0]))


def test_members_beyond_what_anti_affinity_allows_break_no_plan_of_other_services():
    """The rule may have been 2 when they were placed: only new VMs are judged."""
    states = [host_state(*place) for place in TWO_LEAVES_OF_ONE_SERVICE]
    limit = limited(states, members={("svc", "n1"): 2}.items(), group_policy="anti-affinity")
    assert server_group_policy.keeps(limit, np.array([0, 0, 0, 1]))
    assert not server_group_policy.keeps(limit, np.array([0, 1, 0, 0]))


def test_what_anti_affinity_lets_a_service_take_is_shared_out_once_in_all_leaves():
    states = [host_state(*place) for place in TWO_LEAVES_OF_ONE_SERVICE]
    limit = limited(states, leaf=[1, 1, 2, 2], group_policy="anti-affinity")
    room = np.ones(4, np.int64)
    everywhere = replace(limit, leaf=np.zeros(4, np.int64))
    assert server_group_policy.apply(everywhere, room, [2]).tolist() == [1, 0, 0, 1]
    assert server_group_policy.open_room(limit, room).tolist() == [1, 1, 1, 1]
    placed = limit.with_placed(np.array([1, 0, 0, 0]))
    assert server_group_policy.open_room(placed, room).tolist() == [0, 0, 0, 1]


def test_affinity_is_tried_on_one_service_after_the_other_that_takes_all():
    states = [host_state(*place) for place in TWO_LEAVES_OF_ONE_SERVICE]
    limit = limited(states, group_policy="affinity", count=2)
    room = np.ones(4, np.int64)
    rooms = [r.tolist() for r in server_group_policy.by_service(limit, room, [2], 0 * room)]
    assert rooms == [[1, 1, 1, 0]]
    assert server_group_policy.keeps(limit, np.array([1, 1, 0, 0]))
    assert not server_group_policy.keeps(limit, np.array([1, 0, 0, 1]))
    placed = limit.with_placed(np.array([0, 0, 0, 1]))
    assert not server_group_policy.keeps(placed, np.array([1, 0, 0, 0]))


@pytest.mark.parametrize("app_class", extra_spec_names.APP_CLASSES)
def test_no_class_of_application_makes_an_error_of_ours(group, caplog, app_class):
    """The guard would hide it: its answer looks like a good one."""
    group(left=4)
    request = spec(count=4, extra_specs={"hpc:app_class": app_class})
    states = all_hosts()
    for one in (HPCHomogeneityFilter(), HPCGroupFilter(), HPCRackCapacityFilter()):
        states = one.filter_all(states, request)
        assert len(states) >= 4
    weigh(HopByteWeigher(), states, request)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(
    "request_spec",
    [
        lambda: spec(group=None),
        lambda: spec(extra_specs={"hpc:app_class": "none"}),
        lambda: spec(extra_specs={"hpc:app_class": "async"}),
        lambda: spec(hints={"_nova_check_type": ["rebuild"]}),
    ],
    ids=["a single VM", "class none", "class async", "a rebuild"],
)
def test_requests_without_a_group_to_place_get_no_weights_and_stay_as_they_are(
    request_spec, monkeypatch
):
    weigher = bunch.BunchWeigher()
    weighed = [nova_weights.WeighedHost(state, 0.0) for state in all_hosts()]
    assert weigher.weigh_objects(weighed, request_spec()) == []
    # Nova takes that as it is, and does not ask for the multiplier of every host.
    monkeypatch.setattr(weigher, "weight_multiplier", None)
    states = all_hosts()
    assert weigh(weigher, states, request_spec()) == [state.nodename for state in states]


@pytest.mark.parametrize(
    ("said", "is_group"),
    [
        ({}, False),
        ({"hpc:app_class": "none"}, False),
        ({"hpc:app_class": "fast"}, False),
        ({"hpc:require": "leaf"}, False),
        ({"hpc:app_class": "async"}, True),
        ({"hpc:app_class": "Sync"}, True),
    ],
    ids=["nothing", "none", "no class that exists", "a constraint", "async", "sync"],
)
def test_a_multi_create_without_a_server_group_is_one_where_a_class_is_named(said, is_group):
    assert (from_spec(spec(group=None, count=2, extra_specs=said)) is not None) == is_group
    assert from_spec(spec(group=None, count=1, extra_specs=said)) is None
    hints = spec(group=None, count=2, hints={key: [value] for key, value in said.items()})
    assert from_spec(hints) is None
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    hints = spec(group=None, count=2, hints={key: [value] for key, value in said.items()})
    assert (from_spec(hints) is not None) == is_group


def test_all_multi_creates_but_those_of_class_none_are_groups_where_the_option_says_so():
    CONF.set_override("implicit_groups", True, "hpc_sched")
    assert from_spec(spec(group=None, count=2)) is not None
    assert from_spec(spec(group=None, count=1)) is None
    assert from_spec(spec(group=None, count=2, extra_specs={"hpc:app_class": "none"})) is None


def test_hints_count_only_where_they_are_allowed_and_the_flavor_wins():
    hint = {"hpc:app_class": ["none"]}
    assert from_spec(spec(hints=hint)) is not None
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    assert from_spec(spec(hints=hint)) is None
    flavor = {"hpc:app_class": "extreme"}
    assert from_spec(spec(hints=hint, extra_specs=flavor)).hpc_specs.app_class == "extreme"


@pytest.mark.parametrize("hint", [["fast"], ["sync", "none"], ["x" * 5000]])
def test_a_bad_hint_is_ignored_with_one_warning_a_request(group, caplog, hint):
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    group(left=2)
    weigher, states = bunch.BunchWeigher(), all_hosts()
    request = spec(count=2, hints={"hpc:app_class": hint})
    for _ in range(3):
        weigh(weigher, states, request)
    told = [record for record in caplog.records if "hpc:app_class" in record.getMessage()]
    assert [record.levelname for record in told] == ["WARNING"]
    assert len(told[0].getMessage()) < 300


def test_the_raw_number_is_the_same_for_all_hosts_of_a_leaf(group):
    CONF.set_override("bunch_weight_scale", "listing1", "hpc_sched")
    group({"n01": 1, "n09": 2}, left=7)
    states = [state for state in all_hosts() if state.host not in ("n01", "n09", "n10")]
    weighed = [nova_weights.WeighedHost(state, 0.0) for state in states]
    numbers = bunch.BunchWeigher().weigh_objects(weighed, spec(count=7))
    by_leaf = {
        leaf: {n for n, state in zip(numbers, states, strict=True) if state.host in below}
        for leaf, below in LEAVES.items()
    }
    # first * (8 + 1) + second: 1 + 7 and 1; 2 + 6 and 2; 7 and 0.
    assert by_leaf == {"leaf1": {73.0}, "leaf2": {74.0}, "leaf3": {63.0}, "leaf4": {63.0}}


def test_a_short_name_finds_its_host_unless_two_hosts_would_share_it():
    names = loaded_topology.current()
    assert names.name_of("n01.example.org", None) == "n01"
    states = [host_state("n01.a"), host_state("n01.b"), host_state("n02.a")]
    found, unknown = names.names.find_all([(state.host, state.nodename) for state in states])
    assert found == ["n01.a", "n01.b", "n02"]
    assert unknown == ["n01.a", "n01.b"]


def test_hosts_that_lost_a_claim_go_last_for_the_rest_of_the_request(group):
    weigher, states = bunch.BunchWeigher(), all_hosts()
    queue = [getattr(uuids, f"vm{number}") for number in range(8)]
    group(queue=queue, left=8)
    request = spec(count=8, uuid=queue[0])
    first = weigh(weigher, states, request)
    lost = set(first[:3])
    placed = []
    for uuid in queue:
        request.instance_uuid = uuid
        order = weigh(weigher, states, request)
        if placed:
            assert set(order[-3:]) == lost
        placed.append(place(states, order, request, lose=lost))
    assert len(set(placed)) == 8
    assert not lost & set(placed)


def test_a_host_that_lost_a_claim_is_no_longer_last_once_it_takes_a_vm():
    """The first one loses the first claim and takes the second VM: it has room all the same."""
    states = all_hosts()[:3]
    claims = NovaClaims(states, [])

    def tried(*positions: int) -> list[int]:
        """Return the hosts that lost once Nova has tried these, of which the last one took it."""
        weights_ = {position: 1.0 - rank for rank, position in enumerate(positions)}
        claims.remember([nova_weights.WeighedHost(states[i], weights_[i]) for i in positions])
        states[positions[-1]].num_instances += 1
        return claims.observe(uuids.instance, states).lost.tolist()

    assert tried(0, 1, 2) == [0, 1]
    assert tried(2, 0) == [1, 2]


def test_where_nova_chooses_at_random_among_the_best_the_best_has_lost_no_claim(group):
    CONF.set_override("host_subset_size", 2, "filter_scheduler")
    weigher, states = bunch.BunchWeigher(), all_hosts()
    queue = queue_of(4)
    group(queue=queue, left=4)
    request = spec(count=4, uuid=queue[0])
    first, second = weigh(weigher, states, request)[:2]
    leaf = next(below for below in LEAVES.values() if first in below)
    assert second in leaf
    assert place(states, [second], request) == second
    request.instance_uuid = queue[1]
    assert first in weigh(weigher, states, request)[: len(leaf) - 1]


def test_after_the_last_vm_the_alternates_are_hosts_that_are_free(group):
    weigher, states = bunch.BunchWeigher(), all_hosts()
    queue = [uuids.vm0, uuids.vm1]
    group(queue=queue, left=2)
    request = spec(count=2, uuid=uuids.vm0)
    placed = []
    for uuid in queue:
        request.instance_uuid = uuid
        placed.append(place(states, weigh(weigher, states, request), request))
    alternates = weigh(weigher, states, request)
    assert set(alternates[-2:]) == set(placed)
    leaf = next(below for below in LEAVES.values() if placed[0] in below)
    assert set(alternates[:6]) <= set(leaf)


def test_each_vm_of_a_queue_has_a_first_choice_of_its_own(group):
    weigher = bunch.BunchWeigher()
    queue = [getattr(uuids, f"vm{number}") for number in range(16)]
    group(queue=queue, left=1)
    first = [weigh(weigher, all_hosts(), spec(uuid=uuid))[0] for uuid in queue]
    assert len(set(first)) == 16
    assert len({leaf for leaf, below in LEAVES.items() if set(first) & set(below)}) == 2


def test_a_bug_of_ours_weighs_all_hosts_alike_and_is_logged(group, monkeypatch, caplog):
    def broken(*_args: object, **_said: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(group_members, "read", broken)
    weigher = bunch.BunchWeigher()
    weighed = [nova_weights.WeighedHost(state, 0.0) for state in all_hosts()]
    request = spec(count=2)
    assert weigher.weigh_objects(weighed, request) == []
    assert weigher.weigh_objects(weighed, request) == []
    assert [r.exc_info is not None for r in caplog.records if "BunchWeigher" in r.getMessage()] == [
        True
    ]


def test_the_multiplier_is_overridden_by_the_hosts_aggregates():
    weigher = bunch.BunchWeigher()
    aggregate = objects.Aggregate(metadata={"bunch_weight_multiplier": "7.5"})
    assert weigher.weight_multiplier(host_state("n01")) == 100000.0
    assert weigher.weight_multiplier(host_state("n01", aggregates=[aggregate])) == 7.5


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_multiplier_that_is_no_finite_number_is_ignored(value):
    aggregate = objects.Aggregate(metadata={"bunch_weight_multiplier": value})
    assert bunch.BunchWeigher().weight_multiplier(host_state("n01", aggregates=[aggregate])) == 1e5


def test_while_hosts_are_weighed_each_has_its_own_multiplier(group):
    """n01 and n02 are under one leaf, which takes the group; an aggregate turns n02 away."""
    group(queue=queue_of(2), left=2)
    against = objects.Aggregate(metadata={"bunch_weight_multiplier": "-1"})
    plain = objects.Aggregate(metadata={"availability_zone": "nova"})
    weigher = bunch.BunchWeigher()
    order = weigh(weigher, all_hosts(), spec(count=2))
    leaf = next(below for below in LEAVES.values() if order[0] in below)
    states = all_hosts()
    for state in states:
        state.aggregates = [plain, against] if state.host == order[0] else [plain]
    assert weigh(weigher, states, spec(count=2, uuid=uuids.another))[-1] == order[0]
    # The next request of this thread meets other hosts, and aggregates that say nothing.
    again = weigh(weigher, all_hosts(), spec(count=2, uuid=uuids.third))
    assert again[0] in leaf


def test_what_is_known_of_a_request_goes_in_the_garbage_collection_that_takes_its_spec(group):
    """A RequestSpec is a cycle of references; what hangs on it must not be another one."""
    group(queue=queue_of(4), left=4)
    request = spec(count=4)
    states = all_hosts()
    run(states, request, HPCHomogeneityFilter(), HPCGroupFilter(), HPCRackCapacityFilter())
    weigh(HopByteWeigher(), states, request)
    state = weakref.ref(known(request).group)
    hosts_ = [weakref.ref(host) for host in states]
    with mock.patch.object(landed_record, "QUIET", 0.0):
        landed_record.write_all()
    gc.collect()
    del request, states
    gc.collect()
    assert state() is None
    assert not any(host() for host in hosts_)


def test_eight_threads_with_different_groups_on_one_weigher_do_not_mix(monkeypatch):
    """Each group has members in a leaf of its own and must be sent there, every time."""
    weigher = bunch.BunchWeigher()
    leaves = list(LEAVES)
    start = threading.Barrier(8)
    home = {getattr(uuids, f"g{number}"): leaves[number % 4] for number in range(8)}

    def read(
        request: request_spec.RequestedGroup, *_: object, **_said: object
    ) -> group_members.GroupMembership:
        members = Counter({(host, host): 1 for host in LEAVES[home[request.group_uuid]][:2]})
        return group_members.GroupMembership(members, (request.instance_uuid,), 4, False)

    monkeypatch.setattr(group_members, "read", read)

    def serve(number: int) -> bool:
        start.wait()
        expected = set(LEAVES[home[getattr(uuids, f"g{number}")]])
        for turn in range(25):
            states = all_hosts()
            request = spec(group=f"g{number}", count=4, uuid=getattr(uuids, f"t{number}x{turn}"))
            placed = set()
            for _ in range(4):
                placed.add(place(states, weigh(weigher, states, request), request))
            if not (placed <= expected and len(placed) == 4):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(serve, range(8))) == [True] * 8
    assert vars(weigher) == {}
    gc.collect()
    ours = {getattr(uuids, f"t{number}x{turn}") for number in range(8) for turn in range(25)}
    assert not ours & {kept.instance_uuid for kept in list(served_requests._sessions)}
