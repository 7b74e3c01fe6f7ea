"""The weighers of plan and build plan, VM by VM as Nova goes through a request."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import nova.conf
import pytest

from hpc_sched.weighers.bunch import BunchWeigher
from hpc_sched.weighers.hop_byte import HopByteWeigher
from hpc_sched.weighers.rack_capacity import RackCapacityWeigher
from tests.functional.pods import (
    FABRIC,
    add_island,
    hop_bytes,
    hosts_below,
    least,
    states_of,
)
from tests.functional.states import (
    FILTERS,
    States,
    host_state,
    queue_of,
    schedule,
    spec,
    weigh,
    wishing,
)

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("chain", [(), FILTERS], ids=["the weigher alone", "behind the filters"])
def test_a_group_of_sixteen_reaches_the_planners_optimum_vm_by_vm(group, seed, chain):
    taken = random.Random(seed).sample(sorted(FABRIC.hosts), 12)
    states = states_of()
    for state in states:
        state.vcpus_used = 16 if state.host in taken else 0
    queue = queue_of(16)
    group(queue=queue, left=16)
    request = spec(count=16, uuid=queue[0])
    placed, _ = schedule(states, request, queue, HopByteWeigher(), [made() for made in chain])
    assert len(set(placed)) == 16
    assert hop_bytes(placed) == least(dict.fromkeys(set(FABRIC.hosts) - set(taken), 1), 16)


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity", "anti-affinity"])
def test_hosts_that_take_several_vms_reach_the_optimum_too(group, policy):
    CONF.set_override("fragmentation_price", "0", "hpc_sched")
    states = states_of()
    numbers = random.Random(3)
    for state in states:
        state.vcpus_used = 4 * numbers.randrange(5)
    free = {state.host: (16 - state.vcpus_used) // 4 for state in states}
    queue = queue_of(16)
    group(queue=queue, left=16)
    request = spec(count=16, uuid=queue[0], vcpus=4, group_policy=policy)
    placed, _ = schedule(states, request, queue, HopByteWeigher(), [made() for made in FILTERS])
    if policy != "soft-affinity":
        free = {host: min(room, 1) for host, room in free.items()}
    by_leaf = Counter(FABRIC.leaf_of(host) for host in placed)
    assert all(count <= free[host] for host, count in Counter(placed).items())
    assert hop_bytes(placed) == least(free, 16)
    assert sum(by_leaf.values()) == 16


@pytest.mark.parametrize("seed", range(6))
def test_with_half_of_the_first_claims_lost_the_group_ends_complete_under_its_pod(group, seed):
    """As many spares as failures under the pod: every host there is needed."""
    losing = random.Random(seed).sample(range(8), 4)
    free = sorted(hosts_below("pod1"))[: 8 + 4] + sorted(hosts_below("pod2"))[:4]
    states = states_of()
    for state in states:
        state.vcpus_used = 0 if state.host in free else 16
    queue = queue_of(8)
    group(queue=queue, left=8)
    request = spec(count=8, uuid=queue[0], extra_specs=wishing(require="pod"))
    placed, lost = schedule(
        states, request, queue, HopByteWeigher(), [made() for made in FILTERS], losing
    )
    assert len(set(placed)) == 8
    assert set(placed) <= hosts_below("pod1")
    assert not set(placed) & set(lost)
    left = hosts_below("pod1") & set(free) - set(lost)
    assert hop_bytes(placed) == least(dict.fromkeys(left, 1), 8, require="pod")


def test_more_lost_claims_than_spares_never_lead_outside_the_required_pod(group):
    queue = queue_of(15)
    group(queue=queue, left=15)
    request = spec(count=15, uuid=queue[0], extra_specs=wishing(require="pod"))
    # Sixteen hosts under a pod: one may be lost.
    placed, lost = schedule(
        states_of(), request, queue, HopByteWeigher(), [made() for made in FILTERS], [7]
    )
    assert len({FABRIC.ancestors(host)[1] for host in [*placed, *lost]}) == 1


def test_where_no_filter_refuses_a_wish_that_cannot_be_met_the_group_is_packed_without_it(group):
    queue = queue_of(6)
    group(queue=queue, left=6)
    request = spec(count=6, uuid=queue[0], extra_specs=wishing(require="leaf"))
    placed, _ = schedule(states_of(), request, queue, HopByteWeigher())
    assert hop_bytes(placed) == least(dict.fromkeys(FABRIC.hosts, 1), 6)


def test_a_group_too_large_for_the_cloud_is_placed_as_far_as_it_goes(group):
    queue = queue_of(40)
    group(queue=queue, left=40)
    request = spec(count=40, uuid=queue[0])
    placed, _ = schedule(states_of(), request, queue[:32], HopByteWeigher())
    assert set(placed) == set(FABRIC.hosts)


def test_members_on_two_islands_draw_the_next_vm_near_them(group, two_pods):
    add_island(two_pods)
    group({"n01": 2, "m1": 1}, left=1)
    states = [*states_of("leaf1", "leaf2", "leaf5")[1:], host_state("m2")]
    order = weigh(HopByteWeigher(), states, spec())
    leaves = [FABRIC.leaf_of(host) if host in FABRIC else host for host in order]
    assert leaves == ["leaf1"] * 3 + ["leaf2"] * 4 + ["m2"] + ["leaf5"] * 4


def racks_with_room(rooms: Mapping[str, Sequence[int]]) -> States:
    """Return hosts that take as many VMs of 4 processors as is said, leaf by leaf."""
    states = states_of(*rooms)
    for state in states:
        leaf = FABRIC.leaf_of(state.host)
        state.vcpus_used = 16 - 4 * rooms[leaf][FABRIC.hosts_of(leaf).index(state.host)]
    return states


ROOMS = {"leaf1": [1, 2, 0, 1], "leaf3": [4, 1, 3, 2], "leaf6": [2, 4, 1, 0]}


def test_the_build_plan_is_followed_through_the_whole_request(group):
    states = racks_with_room(ROOMS)
    queue = queue_of(12)
    group(queue=queue, left=12)
    request = spec(count=12, uuid=queue[0], vcpus=4, group_policy="soft-affinity")
    placed, _ = schedule(states, request, queue, RackCapacityWeigher())
    # leaf3 holds 10, and does not fall behind leaf6 with 7 once its VMs stand there.
    assert placed == ["n09"] * 4 + ["n11"] * 3 + ["n12"] * 2 + ["n10"] + ["n22"] * 2


def test_best_fit_begins_with_the_racks_that_leave_least_over(group):
    CONF.set_override("rack_selection", "best_fit", "hpc_sched")
    for count, expected in ((4, {"leaf1"}), (7, {"leaf6"}), (11, {"leaf1", "leaf6"})):
        queue = queue_of(count)
        group(queue=queue, left=count)
        request = spec(count=count, uuid=queue[0], vcpus=4, group_policy="soft-affinity")
        placed, _ = schedule(racks_with_room(ROOMS), request, queue, RackCapacityWeigher())
        assert {FABRIC.leaf_of(host) for host in placed} == expected


def test_a_host_that_lost_a_claim_does_not_stop_the_build_plan(group):
    states = racks_with_room(ROOMS)
    queue = queue_of(6)
    group(queue=queue, left=6)
    request = spec(count=6, uuid=queue[0], vcpus=4, group_policy="soft-affinity")
    placed, lost = schedule(states, request, queue, RackCapacityWeigher(), losing=[0])
    assert lost == ["n09"]
    assert placed == ["n11"] * 3 + ["n12"] * 2 + ["n10"]


@pytest.mark.parametrize("weigher_class", [HopByteWeigher, RackCapacityWeigher])
def test_requests_without_a_group_to_place_weigh_all_hosts_alike(weigher_class):
    for request in (
        spec(group=None),
        spec(extra_specs=wishing(app_class="none")),
        spec(hints={"_nova_check_type": ["rebuild"]}),
    ):
        # Nova sorts stably: equal weights leave the order as it was.
        assert weigh(weigher_class(), states_of(), request) == list(FABRIC.hosts)


@pytest.mark.parametrize("chain", [(), FILTERS], ids=["the weigher alone", "behind the filters"])
@pytest.mark.parametrize("losing", [[], [0], [2, 5]], ids=["no claim is lost", "one", "two"])
@pytest.mark.parametrize("made", [HopByteWeigher, BunchWeigher, RackCapacityWeigher])
def test_soft_anti_affinity_takes_a_host_for_each_vm_where_a_leaf_would_hold_all(
    group, made, losing, chain
):
    queue = queue_of(12)
    group({"n01": 1}, queue=queue, left=12)
    request = spec(count=12, uuid=queue[0], vcpus=4)
    weighed = made()
    placed, _ = schedule(states_of(), request, queue, weighed, [cls() for cls in chain], losing)
    assert len({*placed, "n01"}) == 13


def test_soft_anti_affinity_fills_hosts_evenly_where_the_group_needs_them_twice(group):
    queue = queue_of(40)
    group(queue=queue, left=40)
    request = spec(count=40, uuid=queue[0], vcpus=4)
    placed, _ = schedule(
        states_of(), request, queue, HopByteWeigher(), [cls() for cls in FILTERS], [30]
    )
    assert max(Counter(placed).values()) == 2
