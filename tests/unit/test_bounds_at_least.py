"""Bounds at least, for VMs that Nova places one by one on hosts that the filters keep."""

import random

import numpy as np
import pytest

from hpc_sched.core import leaf_slots
from hpc_sched.core.constraints import Bounds, Constraints
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.problem import tie_order
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import TimeLimit
from hpc_sched.topology import Topology
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
        tie=tie_order(topology, case.group_id),
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
        own = [(first + number) % plan.count for number in numbers]
        at_own = np.bincount(
            [topology.index_of(plan.places[slot]) for slot in own], minlength=len(there)
        )
        # No place is exchanged without need.
        assert (slots == own) == (request.broken_by(at_own) is None), f"seed {seed}"
        exchanged += slots != own
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
    """Plans of too many steps to be proven, on 20 pods of 25 leaves with 20 hosts of one VM."""
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
    if most is None:
        quick = fabrics.only_plans(solve(problem, count, bounds, TimeLimit.after(0)))
        assert (quick.hop_bytes, len(quick.leaves)) == (by_hand, least)
