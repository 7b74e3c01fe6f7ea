"""WholeLeafWeigher on real HostStates, alone and with all of Nova's weighers.

The fabric is that of :mod:`tests.functional.pods`: two pods of four leaves of four hosts.
"""

import random
from collections import Counter
from unittest import mock

import nova.conf
import pytest
from nova import objects
from nova.scheduler import weights
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.nova_glue.decide import single_vms
from hpc_sched.nova_glue.read.room import host_state_room
from hpc_sched.weighers.whole_leaf import WholeLeafWeigher
from tests.functional.pods import FABRIC, states_of
from tests.functional.states import States, host_state, ours, place, queue_of, spec, weigh

CONF = nova.conf.CONF
STOCK = "nova.scheduler.weights.all_weighers"

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.fixture(autouse=True)
def turned_on(two_pods) -> None:
    CONF.set_override("whole_leaf_weight_multiplier", 100000.0, "hpc_sched")


def use(states: States, **used: int) -> None:
    """Let VMs take processors of hosts, and memory in proportion."""
    for state in states:
        taken = used.get(state.host, 0)
        state.vcpus_used, state.num_instances = taken, taken // 4
        state.free_ram_mb = state.total_usable_ram_mb - taken * 4096
        state.free_disk_mb, state.metrics = 1024 * 1000, []


def single(count: int = 1, **fields) -> objects.RequestSpec:
    return spec(**{"group": None, "vcpus": 4, "count": count} | fields)


def weighed(states: States, request: objects.RequestSpec) -> list[float]:
    boxes = [weights.WeighedHost(state, 0.0) for state in states]
    return WholeLeafWeigher().weigh_objects(boxes, request)


def looked_at():
    """Count the hosts of which the room is read."""
    real = host_state_room.capacity
    return mock.patch.object(host_state_room, "capacity", wraps=real)


def test_a_single_vm_goes_to_the_fullest_host_of_the_broken_leaf_of_the_broken_pod():
    states = states_of()
    use(states, n01=4, n17=8, n20=4, n21=8)
    # leaf5 has less room than leaf6, and leaf1 is in a pod with more room.
    assert weigh(WholeLeafWeigher(), states, single())[:5] == ["n17", "n20", "n18", "n19", "n21"]


def test_hosts_that_are_equal_have_equal_weights():
    states = states_of()
    use(states)
    assert set(weighed(states, single())) == {0.0}
    use(states, n17=4)
    found = dict(zip(FABRIC.hosts, weighed(states, single()), strict=True))
    assert found["n17"] > found["n18"] == found["n20"] > found["n21"] > found["n01"]


def test_the_vms_of_one_request_fill_a_host_then_the_leaf():
    states = states_of()
    use(states, n05=8)
    queue, weigher, placed = queue_of(8), WholeLeafWeigher(), []
    request = single(count=8, uuid=queue[0])
    for uuid in queue:
        request.instance_uuid = uuid
        placed.append(place(states, weigh(weigher, states, request), request))
    assert placed[:2] == ["n05", "n05"]
    assert {FABRIC.leaf_of(host) for host in placed} == {"leaf2"}
    assert max(Counter(placed[2:]).values()) == 4


def test_a_host_that_lost_a_claim_goes_last_for_the_rest_of_the_request():
    states = states_of()
    use(states, n05=8)
    queue, weigher = queue_of(2), WholeLeafWeigher()
    request = single(count=2, uuid=queue[0])
    order = weigh(weigher, states, request)
    place(states, order, request, lose={"n05"})
    request.instance_uuid = queue[1]
    assert weigh(weigher, states, request)[-1] == "n05"


@pytest.mark.parametrize(
    "fields",
    [
        {"group": "web", "group_policy": "anti-affinity"},
        {"group": "web", "extra_specs": {"hpc:app_class": "none"}},
        {"extra_specs": {"hpc:app_class": "sync"}},
        {"extra_specs": {"hpc:app_class": "async"}},
        {"count": 4, "extra_specs": {"hpc:app_class": "sync"}},
        {"hints": {"_nova_check_type": ["rebuild"]}},
    ],
    ids=["a group", "a group not HPC", "sync", "async", "an implicit group", "a rebuild"],
)
def test_groups_and_hpc_get_no_weights(group, fields):
    group(queue=queue_of(4), left=4)
    states = states_of()
    use(states, n17=8)
    assert weighed(states, single(**fields)) == []


def test_a_flavor_that_says_that_it_is_not_hpc_is_placed_as_one_that_says_nothing():
    states = states_of()
    use(states, n17=8)
    found = weighed(states, single(extra_specs={"hpc:app_class": "none"}))
    assert found
    assert found == weighed(states, single())


def test_as_delivered_it_weighs_nothing_and_reads_nothing():
    CONF.clear_override("whole_leaf_weight_multiplier", "hpc_sched")
    states = states_of()
    use(states, n17=8)
    with looked_at() as capacity:
        assert weighed(states, single()) == []
    assert not capacity.called


def test_metadata_of_an_aggregate_turns_it_on_for_its_hosts():
    CONF.clear_override("whole_leaf_weight_multiplier", "hpc_sched")
    states = states_of()
    use(states, n17=8, n01=12)
    for state in states[16:]:
        metadata = {"whole_leaf_weight_multiplier": "100"}
        state.aggregates = [objects.Aggregate(metadata=metadata)]
    # On the others stock Nova decides, and here nothing does.
    assert weigh(WholeLeafWeigher(), states, single())[0] == "n17"


def test_in_shadow_mode_it_weighs_nothing():
    CONF.set_override("mode", "shadow", "hpc_sched")
    states = states_of()
    use(states, n17=8)
    assert weighed(states, single()) == []


def test_an_error_is_logged_and_weighs_all_hosts_alike(caplog):
    states = states_of()
    with mock.patch.object(single_vms, "FillOrder", side_effect=RuntimeError):
        assert weighed(states, single()) == []
    assert [text for text in ours(caplog) if "WholeLeafWeigher failed" in text]


def test_each_host_is_looked_at_once_for_all_vms_of_a_request():
    states = states_of()
    use(states)
    queue, weigher = queue_of(6), WholeLeafWeigher()
    request = single(count=6, uuid=queue[0])
    with looked_at() as capacity:
        for uuid in queue:
            request.instance_uuid = uuid
            place(states, weigh(weigher, states, request), request)
    assert capacity.call_count == len(states)


def test_the_sizes_of_hosts_are_those_that_a_check_of_empty_hosts_reads():
    shapes = [{}, {"vcpus_total": 64}, {"cpu_allocation_ratio": 4.0}, {"vcpus_total": 0}]
    states = [host_state(f"n{i:02}", **shapes[i % 4]) for i in range(1, 17)]
    demand = {"VCPU": 4, "MEMORY_MB": 1024}
    wanted = [host_state_room.empty_capacity(state, demand) for state in states]
    assert host_state_room.empty_of_states(states, demand).tolist() == wanted
    assert len({*wanted}) == 3


def test_with_bare_metal_broken_leaves_are_filled_too():
    states = [host_state("ironic", node, vcpus_total=0, vcpus_used=0) for node in FABRIC.hosts]
    # Nodes in use are no candidates.
    candidates = [state for state in states if state.nodename not in ("n09", "n17", "n18")]
    assert set(weigh(WholeLeafWeigher(), candidates, single())[:2]) == {"n19", "n20"}


@pytest.mark.parametrize("seed", range(5))
def test_with_all_of_novas_weighers_vms_that_come_and_go_leave_whole_leaves_free(seed):
    """Stock Nova breaks every leaf, by the same VMs."""

    def whole(*paths: str) -> int:
        dice, states, running = random.Random(seed), states_of(), []
        use(states)
        handler = weights.HostWeightHandler()
        made = [one() for one in handler.get_matching_classes([STOCK, *paths])]
        for number in range(120):
            if len(running) >= 48:
                state, request = running.pop(dice.randrange(len(running)))
                state.vcpus_used -= request.flavor.vcpus
                state.free_ram_mb += request.flavor.memory_mb
                state.num_instances -= 1
                state.num_io_ops = 0
            request = single(uuid=getattr(uuids, f"vm{number}"))
            request.flavor.memory_mb = 16384
            candidates = [state for state in states if state.vcpus_used <= 12]
            dice.shuffle(candidates)
            for state in candidates:
                state.num_io_ops = 0
            [best, *_] = handler.get_weighed_objects(made, candidates, request)
            best.obj.consume_from_request(request)
            running.append((best.obj, request))
        used = {FABRIC.leaf_of(state.host) for state in states if state.num_instances}
        return len(FABRIC.leaves) - len(used)

    assert whole("hpc_sched.weighers.whole_leaf.WholeLeafWeigher") >= 3
    assert whole() == 0
