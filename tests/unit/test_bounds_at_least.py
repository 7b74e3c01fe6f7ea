"""Bounds at least, for VMs that Nova places one by one on hosts that the filters keep."""

import random

import numpy as np
import pytest

from hpc_sched.core import leaf_slots
from hpc_sched.core.constraints import Bounds, Constraints
from hpc_sched.core.constraints.server_group_policy import hard_policy
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.plan.time_limit import TimeLimit
from hpc_sched.topology import Topology
from hpc_sched.topology.fabric_order import in_fabric_order
from tests.unit import fabrics, small_cases


def request_of(case: fabrics.Case, *, left: int) -> GroupRequest:
    """Return the group of a case, of which one request creates some VMs."""
    topology = case.fabric
    counts = [
        {**dict.fromkeys(topology.hosts, 0), **found} for found in (case.capacity, case.members)
    ]
    room, members = (np.array([found[host] for host in topology.hosts]) for found in counts)
    return GroupRequest(
        topology=topology,
        tie=TieOrder(topology, case.group_id),
        host_index=None,
        room=room,
        members=members,
        left=left,
        awaiting=case.count,
        constraints=Constraints(
            require=case.require, max_leaves=case.max_leaves, min_leaves=case.min_leaves
        ),
        pack_hosts=case.pack_hosts,
    )


def asked(
    leaves: dict[str, int],
    *,
    room: int = 1,
    members: dict[str, int] | None = None,
    left: int = 1,
    policy: str | None = None,
    services: list[str] | None = None,
    **constraints: int,
) -> GroupRequest:
    """Return a group on a row of leaves whose hosts take some VMs each."""
    fabric = fabrics.row_of_leaves(leaves)
    places = list(zip(services or fabric.hosts, fabric.hosts, strict=True))
    on_hosts = {place: (members or {}).get(place[1], 0) for place in places}
    counts = np.array([on_hosts[place] for place in places])
    return GroupRequest(
        topology=fabric,
        tie=TieOrder(fabric, "group"),
        host_index=None,
        room=np.full(len(places), room),
        members=counts,
        left=left,
        awaiting=left,
        constraints=Constraints(**constraints),
        server_group_policy=policy,
        hard_policy=hard_policy(policy, None, on_hosts, places, fabric.leaf_index),
    )


def leaves_with(request: GroupRequest) -> int:
    return len(np.unique(request.topology.leaf_index[request.members > 0]))


def test_vms_on_any_hosts_that_pass_keep_the_bound_and_never_run_out_of_hosts():
    walked = 0
    for seed in range(600):
        case, dice = small_cases.random_case(seed), random.Random(seed)
        request = request_of(case, left=case.count)
        plan = request.decide()
        if not case.min_leaves or not isinstance(plan, Plan):
            continue
        needed = min(case.min_leaves, leaves_with(request) + case.count)
        kept = request.permitted(plan)
        while request.left:
            kept &= request.permitted_next()
            hosts = np.flatnonzero(kept & (request.room > 0)).tolist()
            assert hosts, f"seed {seed}: no host for {request.left} VMs"
            request = request.after(np.bincount([dice.choice(hosts)], minlength=len(kept)))
        assert leaves_with(request) >= needed, f"seed {seed}"
        walked += 1
    assert walked > 100


def test_the_first_slots_of_a_plan_for_more_vms_than_the_request_has_keep_the_bound():
    spread = 0
    for seed in range(400):
        case = small_cases.random_case(seed)
        before = request_of(case, left=1)
        plan = before.decide()
        if not case.min_leaves or not isinstance(plan, Plan):
            continue
        request, host = before, before.topology.index_of
        for number, place in enumerate(plan.places, 1):
            request = request.after(np.bincount([host(place)], minlength=len(request.room)))
            missing = max(case.min_leaves - leaves_with(before), 0)
            assert leaves_with(request) - leaves_with(before) >= min(number, missing), (
                f"seed {seed}"
            )
        spread += plan.count > 1
    assert spread > 60


def test_some_vms_of_a_group_keep_the_bound_by_themselves_whatever_slots_they_have():
    exchanged = 0
    for seed in range(600):
        case, dice = small_cases.random_case(seed), random.Random(seed)
        request = request_of(case, left=1)
        plan = request.decide()
        if not isinstance(plan, Plan):
            continue
        topology, first = case.fabric, dice.randrange(plan.count)
        numbers = sorted(dice.sample(range(plan.count), dice.randint(1, plan.count)))
        slots = leaf_slots.own_slots(request, plan, first, numbers)
        assert len(set(slots)) == len(slots) == len(numbers), f"seed {seed}"
        hosts = [topology.index_of(plan.places[slot]) for slot in slots]
        there = np.bincount(hosts, minlength=len(request.room))
        assert request.broken_by(there) is None, f"seed {seed}"
        # VMs of one request stay next to each other where a slot is beyond the plan.
        first %= plan.count - numbers[-1]
        own = [first + number for number in numbers]
        at_own = np.bincount(
            [topology.index_of(plan.places[slot]) for slot in own], minlength=len(there)
        )
        # No place is exchanged without need.
        is_same = set(slots) == set(own)
        assert is_same == (request.broken_by(at_own) is None), f"seed {seed}"
        assert hosts == in_fabric_order(topology, hosts), f"seed {seed}"
        exchanged += not is_same
    assert exchanged > 15


@pytest.mark.parametrize(
    ("count", "least", "pods"),
    [
        # VMs in each pod: most in one, on each other leaf of the same and the next pods one.
        (64, 32, [57, 7]),
        (200, 60, [165, 25, 10]),
        (512, 100, [437, 25, 25, 25]),
        (500, 300, [225, *[25] * 11]),
    ],
)
@pytest.mark.parametrize("most", [None, 0, 5], ids=["no bound at most", "one number", "both"])
def test_on_an_empty_fabric_no_more_pods_are_used_than_hold_the_required_leaves(
    count, least, pods, most
):
    """On 20 pods of 25 leaves with 20 hosts of one VM; the larger plans take too many steps."""
    fabric = Topology.from_tree(
        {
            "core": {
                f"p{pod}": {
                    f"l{pod}-{leaf}": [f"h{pod}-{leaf}-{i}" for i in range(20)]
                    for leaf in range(25)
                }
                for pod in range(20)
            }
        }
    )
    problem = fabrics.problem_of(fabric, awaiting=count)
    bounds = Bounds(least_leaves=least, most_leaves=None if most is None else least + most)
    # Leaves of the first pod are filled one after the other, with one VM on each of the others.
    full, more = divmod(pods[0] - 25, 19)
    leaves = [*[20] * full, more + 1]
    saved = sum(vms * (vms - 1) for vms in [*pods, *leaves])
    by_hand = 5 * count * (count - 1) // 2 - saved
    plan = fabrics.only_plans(solve(problem, count, bounds))
    assert (plan.hop_bytes, len(plan.leaves)) == (by_hand, least)
    # Ways with as many VMs on as many leaves, of which there are millions, are kept once.
    assert plan.is_proven or count > 64
    if most is None:
        quick = fabrics.only_plans(solve(problem, count, bounds, TimeLimit.after(0)))
        assert (quick.hop_bytes, len(quick.leaves)) == (by_hand, least)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        pytest.param(
            asked({"a": 4, "b": 4}, left=3, min_leaves=3),
            "group of 3 needs at least 3 leaf switches: largest gang that fits: 2 on core "
            "(without these wishes: 4 under one leaf on b, 8 under one pod on core)",
            id="too few leaves",
        ),
        pytest.param(
            asked({"a": 4}, left=2, min_leaves=3),
            "group of 2 needs at least 2 leaf switches: largest gang that fits: 1 on core "
            "(without these wishes: 4 under one leaf on a, 4 under one pod on core)",
            id="fewer VMs than leaves are required",
        ),
        pytest.param(
            asked({"a": 4, "b": 4}, members={"a-00": 1, "b-00": 1}, min_leaves=9),
            "1 more of a group with 2 members needs at least 3 leaf switches: no room beside its "
            "members",
            id="members on all leaves",
        ),
        pytest.param(
            asked({"a": 4, "b": 4}, left=4, min_leaves=3, max_leaves=3),
            "group of 4 needs exactly 3 leaf switches: largest gang that fits in 3 leaf switches: "
            "2 on core (without these wishes: 4 under one leaf on b, 8 under one pod on core)",
            id="both bounds are one number",
        ),
        pytest.param(
            asked({"a": 4, "b": 4}, left=4, min_leaves=3, max_leaves=9),
            "group of 4 needs 3 to 9 leaf switches: largest gang that fits in 9 leaf switches: "
            "2 on core (without these wishes: 4 under one leaf on b, 8 under one pod on core)",
            id="both bounds",
        ),
        pytest.param(
            asked({"a": 4}, room=0, min_leaves=3),
            "group of 1 does not fit: no room",
            id="one VM, which uses a leaf anyway",
        ),
        pytest.param(
            asked({"a": 2}, room=4, left=5, policy="affinity", min_leaves=2),
            "5 VMs of a group with policy affinity need one host and at least 2 leaf switches: "
            "largest gang that fits on one host: 1",
            id="affinity",
        ),
        pytest.param(
            asked({"a": 2}, room=4, members={"a-00": 1}, left=1, policy="affinity", min_leaves=2),
            "1 VMs of a group with policy affinity need the members' host and at least 2 leaf "
            "switches: largest gang that fits there: 0",
            id="affinity with a member",
        ),
    ],
)
def test_a_refusal_says_the_leaves_that_the_group_must_use_and_how_many_vms_fit_so(request_, text):
    answer = request_.decide()
    assert isinstance(answer, Rejection)
    assert request_.refusal(answer).operator == text


@pytest.mark.parametrize(
    ("services", "fault"),
    [
        (
            None,
            "hpc:min_leaves=2 and policy affinity contradict each other: all VMs of the group are "
            "on one host",
        ),
        # Nova takes all nodes of one compute service for one host.
        (["ironic"] * 4, None),
    ],
    ids=["hosts", "bare metal"],
)
def test_affinity_contradicts_a_bound_at_least_unless_a_host_has_several_leaves(services, fault):
    group = asked({"a": 2, "b": 2}, left=2, policy="affinity", services=services, min_leaves=2)
    assert group.policy_fault == fault
    assert isinstance(group.decide(), Plan) == (fault is None)


def test_the_final_size_is_checked_for_the_bound_at_most_only():
    """Four VMs fit on each of 8 leaves; nine leaves are required of the VMs that exist."""
    leaves = {f"leaf{number}": 4 for number in range(8)}
    group = asked(leaves, min_leaves=9, max_leaves=9, group_size=12)
    assert group.contradiction(np.ones(32, dtype=np.int64)) is None
    assert isinstance(group.decide(), Plan)
    few = np.zeros(32, dtype=np.int64)
    few[:8] = 1
    assert group.contradiction(few) == (
        "hpc:max_leaves=9 and hpc:group_size=12 contradict each other: at most 8 VMs of this "
        "flavor fit in 9 leaf switches"
    )
