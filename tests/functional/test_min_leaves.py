"""``hpc:min_leaves`` from the flavor to the hosts: a bound at least, through Nova and its filters.

Fabric and flavors of :mod:`tests.functional.test_wishes`: three leaves a pod, four hosts each.
"""

from collections import Counter

import nova.conf
import pytest
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.read.instances import request_instances
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.cloud_kinds import PODS
from tests.functional.pods import FABRIC as EIGHT_LEAVES
from tests.functional.pods import names, states_of
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import (
    claims_succeed,
    known,
    offered,
    ours,
    queue_of,
    read_decisions,
    run,
    spec,
    weigh,
    why_refused,
    wishing,
)
from tests.functional.test_wishes import FABRIC, cloud, fault_of, flavor, leaves

__all__ = ["cloud", "flavor"]

CONF = nova.conf.CONF

through_nova = cloud_mark(PODS)
on_host_states = pytest.mark.usefixtures("two_pods")


@through_nova
def test_a_group_uses_as_many_leaves_as_required_and_those_nearest_to_each_other(
    cloud, boot, flavor
):
    group = cloud.server_group("three leaves", "anti-affinity")
    hosts = cloud.hosts_of(boot(flavor(min_leaves="3"), count=4, group=group)).values()
    # Two VMs on one leaf, one on each of the pod's two others: 2 pairs are 3 hops nearer.
    counts = Counter(map(FABRIC.leaf_of, hosts))
    assert sorted(counts.values()) == [1, 1, 2]
    assert len({FABRIC.ancestors(host)[1] for host in hosts}) == 1
    apart = {"la1": 1, "lb1": 1, "lc1": 1, "la2": 1}
    assert hop_bytes_of_counts(topology=FABRIC, counts=Counter(hosts)) == hop_bytes_of_counts(
        topology=FABRIC, counts=apart
    )


@through_nova
def test_vms_created_one_by_one_are_each_on_a_leaf_of_their_own_until_there_are_enough(
    cloud, boot, flavor
):
    group = cloud.server_group("one by one on leaves", "soft-anti-affinity")
    hosts: list[str] = []
    for number in range(4):
        hosts += cloud.hosts_of(boot(flavor(min_leaves="3"), group=group)).values()
        assert len(leaves(hosts)) == min(number + 1, 3)


@through_nova
def test_a_request_smaller_than_the_final_size_is_spread_at_once(cloud, boot, flavor):
    group = cloud.server_group("a part first", "anti-affinity")
    wishes = flavor(min_leaves="2", group_size="6")
    hosts = list(cloud.hosts_of(boot(wishes, count=2, group=group)).values())
    assert len(leaves(hosts)) == 2
    hosts += cloud.hosts_of(boot(wishes, count=4, group=group)).values()
    assert (len(set(hosts)), len(leaves(hosts))) == (6, 2)


@through_nova
def test_a_group_is_refused_where_the_cloud_has_fewer_leaves(cloud, boot, flavor):
    group = cloud.server_group("seven leaves", "soft-anti-affinity")
    message = fault_of(cloud, boot(flavor(min_leaves="7"), count=7, group=group))
    assert "group of 7 needs at least 7 leaf switches: largest gang that fits" in message
    assert "6" in message


@on_host_states
@pytest.mark.parametrize("claims", [False, True], ids=["without gang claims", "with gang claims"])
def test_a_later_vm_is_offered_no_leaf_of_its_group_while_leaves_are_missing(group, claims):
    CONF.set_override("gang_claims", claims, "hpc_sched")
    group(left=3, queue=queue_of(3))
    request = spec(count=3, extra_specs=wishing(min_leaves=2))
    states = run(states_of(), request, HPCGroupFilter())
    assert len(states) == len(EIGHT_LEAVES.hosts)
    on_one_leaf = [state for state in states if EIGHT_LEAVES.leaf_of(state.host) == "leaf1"]
    for number, state in enumerate(on_one_leaf[:2]):
        # As Nova does where others took every other host meanwhile.
        request.instance_uuid = queue_of(3)[number]
        run(states, request, HPCGroupFilter(), index=number)
        state.consume_from_request(request)
    request.instance_uuid = queue_of(3)[2]
    left = names(run(states, request, HPCGroupFilter(), index=2))
    assert left == {host for host in EIGHT_LEAVES.hosts if EIGHT_LEAVES.leaf_of(host) != "leaf1"}


@on_host_states
@pytest.mark.parametrize("claims", [False, True], ids=["without gang claims", "with gang claims"])
@pytest.mark.parametrize("is_planned", [False, True], ids=["not weighed", "its plan is logged"])
def test_a_later_vm_without_a_leaf_of_its_own_is_refused_once_with_the_reason(
    group, monkeypatch, caplog, tmp_path, claims, is_planned
):
    caplog.set_level("INFO", "hpc_sched")
    log = tmp_path / "decisions"
    CONF.set_override("decision_log", str(log), "hpc_sched")
    queue = queue_of(3)
    group(left=3, queue=queue)
    if claims:
        claims_succeed(monkeypatch, queue)
    request = spec(count=3, uuid=queue[0], extra_specs=wishing(min_leaves=3))
    states = run(offered(states_of()), request, HPCGroupFilter())
    if is_planned:
        weigh(HopByteWeigher(), states, request)
    on_one_leaf = [state for state in states if EIGHT_LEAVES.leaf_of(state.host) == "leaf1"]
    on_one_leaf[0].consume_from_request(request)
    request.instance_uuid = queue[1]
    why = (
        "2 more of a group with 1 member needs at least 3 leaf switches: no room beside its members"
    )
    for _ in range(2):
        # It does not raise: a VM of the request is placed.
        assert run(on_one_leaf, request, HPCGroupFilter(), index=1) == []
    *planned, refused = read_decisions(log)
    assert [record["decision"] for record in planned] == ["planned"] * is_planned
    assert (refused["decision"], refused["reason"]) == ("refused", why)
    assert len([line for line in ours(caplog) if f"refused: {why}; " in line]) == 1
    assert known(request).group.held_places() == {}


@on_host_states
def test_alternates_for_a_group_that_is_placed_are_not_refused(group):
    group(left=1, queue=queue_of(1))
    request = spec(extra_specs=wishing(min_leaves=3), uuid=queue_of(1)[0])
    states = run(states_of(), request, HPCGroupFilter())
    states[0].consume_from_request(request)
    assert run(states[1:4], request, HPCGroupFilter(), index=1) == states[1:4]


@on_host_states
def test_hosts_left_out_have_the_reason_that_is_true(group, tmp_path):
    log = tmp_path / "decisions"
    CONF.set_override("decision_log", str(log), "hpc_sched")
    group({"n01": 1}, left=1, queue=queue_of(1))
    request = spec(extra_specs=wishing(require="pod", min_leaves=2))
    states = run(states_of(), request, HPCGroupFilter())
    assert len(states) == 12
    weigh(HopByteWeigher(), states, request)
    [record] = read_decisions(log)
    assert record["removed"] == {
        "under a leaf that the group uses already (hpc:min_leaves)": 4,
        "outside the required switch, the leaves allowed or the island": 16,
    }


@on_host_states
def test_a_moving_vm_of_a_group_on_the_fewest_leaves_goes_to_a_leaf_without_members(group):
    group({"n01": 1, "n05": 1}, left=1, is_move=True)
    request = spec(extra_specs=wishing(min_leaves=3))
    left = names(run(states_of(), request, HPCGroupFilter()))
    assert left == set(EIGHT_LEAVES.hosts) - {f"n{number:02}" for number in range(1, 9)}


@on_host_states
@pytest.mark.parametrize(
    ("wishes", "text"),
    [
        (
            {"min_leaves": 3, "max_leaves": 2},
            "hpc:min_leaves=3 and hpc:max_leaves=2 contradict each other",
        ),
        (
            {"min_leaves": 3, "group_size": 2},
            "hpc:min_leaves=3 and hpc:group_size=2 contradict each other",
        ),
        (
            {"min_leaves": 2, "require": "leaf"},
            "group of 2 needs one leaf and at least 2 leaf switches",
        ),
        ({"min_leaves": 0}, "hpc:min_leaves='0': expected a whole number from 1 to 999999"),
        ({"min_leave": 2}, "unknown extra spec hpc:min_leave; did you mean hpc:min_leaves?"),
    ],
)
def test_a_group_whose_wishes_exclude_each_other_is_refused(group, wishes, text):
    group(left=2, queue=queue_of(2))
    assert text in why_refused(states_of(), spec(count=2, extra_specs=wishing(**wishes)))


CONTRADICTIONS = [
    ({"min_leaves": 3, "max_leaves": 2}, "hpc:min_leaves=3 and hpc:max_leaves=2"),
    ({"min_leaves": 3, "group_size": 2}, "hpc:min_leaves=3 and hpc:group_size=2"),
]


@on_host_states
@pytest.mark.parametrize(("wishes", "text"), CONTRADICTIONS)
def test_wishes_that_contradict_each_other_refuse_a_move_and_are_not_said_to_be_ignored(
    group, warnings, wishes, text
):
    group({"n01": 1, "n05": 1}, left=1, is_move=True)
    told = why_refused(states_of(), spec(extra_specs=wishing(**wishes)))
    assert told.endswith(f"{text} contradict each other")
    assert warnings() == []


@on_host_states
@pytest.mark.parametrize(("wishes", "text"), CONTRADICTIONS)
def test_wishes_that_are_said_to_be_ignored_are(group, warnings, wishes, text):
    def order(is_move: bool, **wishes: int) -> list[str]:
        group({"n01": 1, "n05": 1}, left=1, is_move=is_move)
        request = spec(extra_specs=wishing(**wishes))
        return weigh(HopByteWeigher(), states_of(), request)

    # No filter refuses them.
    for is_move in (False, True):
        assert order(is_move, **wishes) == order(is_move)
    assert warnings() == [f"{text} contradict each other"] * 2
    CONF.set_override("relax_moves", "always", "hpc_sched")
    group({"n01": 1, "n05": 1}, left=1, is_move=True)
    request = spec(extra_specs=wishing(**wishes))
    request.requested_destination = objects.Destination(cell=objects.CellMapping(uuid=uuids.cell1))
    states = states_of("leaf1", "leaf2")
    assert run(states, request, HPCGroupFilter()) == states
    assert warnings() == [f"{text} contradict each other"] * 3


@on_host_states
def test_a_group_on_one_host_cannot_have_several_leaves(group):
    group(queue=queue_of(1))
    request = spec(group_policy="affinity", extra_specs=wishing(min_leaves=2))
    assert "hpc:min_leaves=2 and policy affinity contradict each other" in why_refused(
        states_of(), request
    )


@on_host_states
def test_the_first_vm_is_placed_though_the_final_size_needs_more_leaves_than_there_are(group):
    group(queue=queue_of(1))
    request = spec(extra_specs=wishing(min_leaves=9, max_leaves=9, group_size=12))
    assert len(run(states_of(), request, HPCGroupFilter())) == len(EIGHT_LEAVES.hosts)


@on_host_states
def test_members_on_fewer_leaves_refuse_nothing_by_themselves(group):
    group({"n01": 4}, left=2, queue=queue_of(2))
    request = spec(count=2, extra_specs=wishing(min_leaves=2))
    assert len(run(states_of(), request, HPCGroupFilter())) == len(EIGHT_LEAVES.hosts)


@on_host_states
@pytest.mark.parametrize(
    ("constraints", "numbers", "orphans"),
    [
        pytest.param({"min_leaves": 3}, (0, 1, 2), 0, id="the first VMs of the group"),
        pytest.param({"min_leaves": 3}, (3, 4, 5), 0, id="the last ones"),
        pytest.param({"min_leaves": 3}, (3, 4, 5), 3, id="behind orphans"),
        pytest.param(
            {"min_leaves": 3, "max_leaves": 3, "group_size": 9}, (3, 4, 5), 0, id="within a most"
        ),
        pytest.param({"min_leaves": 2}, (0, 2), 0, id="without a VM that was deleted meanwhile"),
    ],
)
@pytest.mark.parametrize("vcpus", [4, 16], ids=["four VMs a host", "one VM a host"])
def test_the_vms_of_a_request_are_claimed_on_leaves_of_their_own_whatever_slots_they_have(
    group, monkeypatch, constraints, numbers, orphans, vcpus
):
    queue = queue_of(6)
    own = {number - numbers[0]: queue[number] for number in numbers}
    group(left=3, queue=queue, orphans=orphans)
    claims_succeed(monkeypatch, queue)
    monkeypatch.setattr(request_instances, "read", lambda *_: own)
    request = spec(count=3, uuid=own[0], vcpus=vcpus, extra_specs=wishing(**constraints))
    states = offered(states_of())
    for state in states:
        state.allocation_candidates *= 4
    run(states, request, HPCGroupFilter())
    served = known(request).group
    held = {uuid: states[place.position].host for uuid, place in served.held_places().items()}
    assert held.keys() == set(own.values())
    assert len(set(map(EIGHT_LEAVES.leaf_of, held.values()))) == len(own)
    # They are places of the plan, so that the others of the group find theirs in it.
    assert Counter(held.values()) <= Counter(served.decisions.answer.hosts)
