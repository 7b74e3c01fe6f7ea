"""ServedGroup: for how many VMs a group is planned, and what its refusals say."""

from dataclasses import replace

import pytest
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.phases import ServedGroup
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.pods import hosts_below, states_of
from tests.functional.states import (
    States,
    known,
    queue_of,
    run,
    schedule,
    served,
    spec,
    why_refused,
    wishing,
)

pytestmark = pytest.mark.usefixtures("two_pods")


def state_of(states: States, **request: object) -> ServedGroup:
    """Return the state of a group whose first VM is to be placed."""
    return served(spec(**request), states)


@pytest.mark.parametrize(
    ("said", "constraints", "members", "active", "sizes"),
    [
        pytest.param({"left": 3}, {}, {}, 3, (3,), id="a request alone"),
        pytest.param(
            {"queue": queue_of(4), "left": 3, "orphans": 1}, {}, {}, 3, (4, 3), id="one orphan"
        ),
        pytest.param({"queue": queue_of(9), "left": 1}, {}, {}, 9, (9, 1), id="others wait too"),
        pytest.param(
            {"queue": queue_of(9), "left": 1, "orphans": 5},
            {},
            {},
            4,
            (9, 4, 1),
            id="others wait, and orphans",
        ),
        pytest.param(
            {"left": 1}, {"group_size": 6}, {"n01": 2}, 4, (4, 1), id="what the group lacks"
        ),
        pytest.param(
            {"left": 1},
            {"group_size": 6, "require": "pod"},
            {"n01": 2},
            4,
            (4,),
            id="what the group lacks must fit where it is required under one switch",
        ),
        pytest.param(
            {"queue": queue_of(9), "left": 1, "orphans": 8},
            {"group_size": 3},
            {},
            3,
            (9, 3, 1),
            id="a size counts more than orphans",
        ),
        pytest.param(
            {"left": 1, "is_move": True},
            {"group_size": 6, "require": "pod"},
            {"n01": 2},
            4,
            (4, 1),
            id="a move, for which room for the others is no condition",
        ),
    ],
)
def test_a_group_is_planned_for_all_who_wait_then_for_those_somebody_works_on_then_for_its_own(
    group, said, constraints, members, active, sizes
):
    group(members, **said)
    state = state_of(states_of(), count=said["left"], extra_specs=wishing(**constraints))
    request = state.group.request()
    assert (request.active, request.sizes) == (active, sizes)


def test_sizes_shrink_with_every_vm_that_is_placed(group):
    group(queue=queue_of(4), left=3, orphans=1)
    states, request = states_of(), spec(count=3, uuid=uuids.vm000)
    for number, sizes in enumerate([(4, 3), (3, 2), (2, 1)]):
        request.instance_uuid = getattr(uuids, f"vm{number:03}")
        state = served(request, states)
        assert state.group.request().sizes == sizes
        states[number].consume_from_request(request)


def test_one_orphan_does_not_keep_a_group_of_three_from_the_leaf_that_it_prefers(group):
    # Four would be nearest to each other in leaf5 and leaf6; leaf1 has room for three.
    states = [*states_of("leaf1")[:3], *states_of("leaf5")[:2], *states_of("leaf6")[:2]]
    group(queue=queue_of(4), left=3, orphans=1)

    def placed(**constraints: object) -> set[str]:
        for state in states:
            state.num_instances = state.vcpus_used = 0
            state.free_ram_mb = state.total_usable_ram_mb
        request = spec(count=3, uuid=uuids.vm000, extra_specs=wishing(**constraints))
        return set(schedule(states, request, queue_of(3), HopByteWeigher(), [HPCGroupFilter()])[0])

    assert placed(prefer="leaf") == hosts_below("leaf1") - {"n04"}
    assert placed() <= hosts_below("leaf5", "leaf6")


def refusal(state: ServedGroup, states: States) -> tuple[str, str]:
    """Return what operator and tenant read of a group that has no plan."""
    request = state.group.request(state.positions(states))
    answer = state.group.answer(request)
    assert isinstance(answer, Rejection)
    found = request.refusal(answer)
    return found.operator, found.tenant


def test_a_new_group_with_hard_affinity_reads_what_fits_on_one_host(group):
    group(left=5)
    states = states_of("leaf1", "leaf2")
    states[2].vcpus_used = 4
    state = state_of(states, count=5, vcpus=4, group_policy="affinity")
    expected = (
        "5 VMs of a group with policy affinity need one host: largest gang that fits on one host: 4"
    )
    assert refusal(state, states) == (expected, expected)


def test_a_group_with_hard_affinity_reads_what_fits_on_its_members_host(group):
    group({"n01": 1}, left=4)
    states = states_of("leaf1")
    states[0].vcpus_used = 4
    state = state_of(states, count=4, vcpus=4, group_policy="affinity")
    expected = (
        "4 VMs of a group with policy affinity need the members' host: "
        "largest gang that fits there: 3"
    )
    assert refusal(state, states) == (expected, expected)


def test_hard_affinity_is_no_reason_where_one_host_holds_the_group(group):
    group(left=5)
    states = states_of("leaf1")
    state = state_of(states, count=5, vcpus=4, group_policy="affinity")
    request = state.group.request(state.positions(states))
    answer = state.group.answer(request)
    assert isinstance(answer, Rejection)
    found = request.refusal(replace(answer, count=4))
    assert "affinity" not in found.operator + found.tenant


def test_a_group_with_hard_affinity_that_fits_on_one_host_has_a_plan(group):
    group(left=4)
    states = states_of("leaf1")
    request = spec(count=4, vcpus=4, group_policy="affinity")
    assert run(states, request, HPCGroupFilter()) == states
    state = known(request)
    answer = state.group.decisions.answer
    assert isinstance(answer, Plan)
    assert list(answer.hosts.values()) == [4]


def test_the_size_of_the_group_is_named_where_more_than_this_request_must_fit(group):
    group(left=1)
    states = states_of("leaf1", "leaf5")
    constraints = wishing(require="leaf", group_size=5)
    operator, tenant = refusal(state_of(states, extra_specs=constraints), states)
    assert operator.endswith(" (hpc:group_size=5); VCPU runs out first")
    assert tenant.endswith(" (hpc:group_size=5); VCPU runs out first")
    group(left=9)
    told = why_refused(states, spec(count=9, extra_specs=wishing(group_size=9)))
    assert "group of 9 does not fit" in told
    assert "hpc:group_size" not in told
