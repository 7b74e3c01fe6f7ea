"""HPCRackCapacityFilter: the leaves of the plan, and spares."""

from collections.abc import Callable, Sequence

import nova.conf
import pytest
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.filters import rack_capacity
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.group_filter import GroupFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue.answer import passing
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Written
from hpc_sched.nova_glue.session import PlacementSession
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional import states
from tests.functional.pods import (
    FABRIC,
    hosts_below,
    names,
    states_of,
)
from tests.functional.states import (
    States,
    begin,
    queue_of,
    read_decisions,
    run,
    spec,
    wishing,
)

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")

# It draws the leaves of the group so that in the order of the fabric, in which its VMs are placed,
# the one that is not filled is the last.
LAST_LEAF_NOT_FILLED = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def claimed(monkeypatch) -> Callable[..., States]:
    """Return hosts on which the plan of a request can be claimed, by default all."""

    def claimed_(count: int) -> States:
        states.claims_succeed(monkeypatch, queue_of(count))
        return states.offered(states_of())

    return claimed_


def test_the_leaves_of_the_plan_stay_with_as_much_again_for_lost_claims(group, claimed):
    CONF.set_override("max_attempts", 3, "scheduler")
    group({"n05": 1}, queue=queue_of(3), left=3)
    hosts = claimed(3)
    kept = run(hosts, spec(count=3, uuid=uuids.vm000), *_group_and_rack())
    # 2 * 3 places and two retries on hosts without a member: its leaf and two more of its pod.
    assert hosts_below("leaf2") <= names(kept) <= hosts_below("pod1")
    assert len(kept) == 12
    assert kept == [state for state in hosts if state in kept]


def test_without_a_claim_every_host_within_the_constraints_stays(group, claimed, monkeypatch):
    """Others may take the places of the plan, and what is removed now stays removed."""
    group(queue=queue_of(3), left=3)
    hosts = claimed(3)
    monkeypatch.setattr(allocations, "write", lambda *_: Written(Answer.FAILED))
    request = spec(count=3, uuid=uuids.vm000)
    assert run(hosts, request, *_group_and_rack()) == hosts
    request = spec(count=3, uuid=uuids.vm000, extra_specs=wishing(require="pod"))
    kept = run(hosts, request, *_group_and_rack())
    assert names(kept) in (hosts_below("pod1"), hosts_below("pod2"))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 12, 16, 30])
@pytest.mark.parametrize("attempts", [1, 3, 10])
def test_hosts_for_all_vms_and_all_retries_stay_where_there_are_so_many(
    group, claimed, count, attempts
):
    CONF.set_override("max_attempts", attempts, "scheduler")
    group(queue=queue_of(count), left=count)
    kept = run(claimed(count), spec(count=count, uuid=uuids.vm000), *_group_and_rack())
    assert len(kept) >= min(count + attempts - 1, 32)


def test_vms_that_others_have_requested_find_their_hosts_too(group, claimed):
    group(queue=queue_of(12), left=1)
    assert len(run(claimed(1), spec(uuid=uuids.vm000), *_group_and_rack())) >= 14


@pytest.mark.parametrize(
    ("constraints", "count", "most"),
    [
        ({"require": "leaf"}, 2, 4),
        ({"require": "pod"}, 12, 16),
        ({"max_leaves": 3}, 12, 12),
        ({"require": "pod", "prefer": "leaf"}, 4, 16),
    ],
)
def test_spares_never_lead_outside_what_is_required(group, constraints, count, most):
    CONF.set_override("max_attempts", 30, "scheduler")
    group(left=count)
    kept = run(
        states_of(), spec(count=count, extra_specs=wishing(**constraints)), *_group_and_rack()
    )
    assert len(kept) == most
    level = {"leaf": 0, "pod": 1}.get(str(constraints.get("require")), 2)
    assert len({FABRIC.ancestors(host)[level] for host in names(kept)}) == 1
    alone = run(
        states_of(), spec(count=count, extra_specs=wishing(**constraints)), HPCRackCapacityFilter()
    )
    assert names(alone) == names(kept)


def _group_and_rack() -> list[GroupFilter]:
    return [HPCGroupFilter(), HPCRackCapacityFilter()]


def test_without_a_leaf_that_holds_the_group_it_widens_level_by_level(group, claimed):
    CONF.set_override("max_attempts", 1, "scheduler")
    group(queue=queue_of(8), left=8)
    kept = run(claimed(8), spec(count=8, uuid=uuids.vm000), *_group_and_rack())
    assert names(kept) in (hosts_below("pod1"), hosts_below("pod2"))


def test_a_group_without_a_plan_passes_as_it_came_unless_it_requires_one(group):
    group(left=33)
    hosts = states_of()
    assert run(hosts, spec(count=33), HPCRackCapacityFilter()) == hosts
    for constraints in ({"require": "core"}, {"max_leaves": 8}):
        request = spec(count=33, extra_specs=wishing(**constraints))
        assert run(hosts, request, HPCRackCapacityFilter()) == []


def test_a_class_without_topology_keeps_all_hosts(group):
    group(left=2)
    hosts = states_of()
    request = spec(count=2, extra_specs=wishing(app_class="async"))
    assert run(hosts, request, HPCRackCapacityFilter()) == hosts


def test_full_hosts_go_and_the_decision_says_how_many(group, claimed, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    CONF.set_override("max_attempts", 1, "scheduler")
    group(queue=queue_of(2), left=2)
    hosts = claimed(2)
    for state in hosts[8:]:
        state.vcpus_used = 16
        state.allocation_candidates = []
    kept = run(hosts, spec(count=2, uuid=uuids.vm000), *_group_and_rack())
    assert len(kept) == 4
    [told] = read_decisions(tmp_path / "decisions")
    assert told["removed"] == {
        "outside the plan's leaves and spares": 28,
        "no room for one VM": 24,
    }


def _begun(
    hosts: States,
    request: objects.RequestSpec,
    vms: int,
    losing: Sequence[int] = (),
) -> States:
    """Return the hosts that are left when some VMs are placed, the request being at the next."""
    kept, _, _ = begin(hosts, request, queue_of(vms), HopByteWeigher(), _group_and_rack(), losing)
    request.instance_uuid = queue_of(vms + 1)[-1]
    return kept


@pytest.fixture
def often(monkeypatch):
    """The filter runs again after every 4 VMs; 64 are more than the fabric has hosts."""
    for module in (rack_capacity, passing):
        monkeypatch.setattr(module, "VMS_A_RUN", 4)


def test_it_runs_again_after_every_64_vms():
    rack = HPCRackCapacityFilter()
    assert [i for i in range(200) if rack.run_filter_for_index(i)] == [0, 64, 128, 192]


@pytest.mark.parametrize(
    ("count", "leaves"),
    [
        # Leaves of four for the VMs that are left, and as many of spares.
        (12, [6, 4, 2]),
        # The leaf of the ninth VM alone would have no place for four spares.
        (9, [5, 3, 2]),
    ],
)
def test_spares_that_are_not_needed_any_more_go(group, often, claimed, count, leaves):
    CONF.set_override("max_attempts", 1, "scheduler")
    group(queue=queue_of(count), left=count)
    for placed, number in zip((0, 4, 8), leaves, strict=True):
        request = spec(count=count, uuid=uuids.vm000)
        request.instance_group.uuid = LAST_LEAF_NOT_FILLED
        before = _begun(claimed(count), request, placed)
        after = run(before, request, *_group_and_rack(), index=placed)
        free = {state.host for state in after if not state.num_instances}
        assert len(free) == 4 * number
        assert len({FABRIC.leaf_of(host) for host in free}) == number
        assert run(after, request, *_group_and_rack(), index=placed + 1) == after


def test_hosts_with_a_vm_of_a_group_with_soft_anti_affinity_are_no_spares(group, often, claimed):
    """What is used up there HostState may not tell, and as alternates Nova skips them."""
    CONF.set_override("max_attempts", 1, "scheduler")
    group(queue=queue_of(6), left=6)
    request = spec(count=6, uuid=uuids.vm000, vcpus=4)
    request.instance_group.uuid = LAST_LEAF_NOT_FILLED
    before = _begun(claimed(6), request, 4)
    # A leaf with a VM on each host, and two leaves without a VM.
    assert [sum(state.num_instances == n for state in before) for n in (0, 1)] == [8, 4]
    after = run(before, request, *_group_and_rack(), index=4)
    assert after == [state for state in before if not state.num_instances]


@pytest.mark.parametrize("losing", range(4))
def test_no_spare_goes_once_a_claim_is_lost(group, often, claimed, losing):
    """Also where the last VM before the filter runs has lost it, or the first of all."""
    CONF.set_override("max_attempts", 1, "scheduler")
    group(queue=queue_of(12), left=12)
    request = spec(count=12, uuid=uuids.vm000)
    before = _begun(claimed(12), request, 4, [losing])
    assert run(before, request, *_group_and_rack(), index=4) == before


def test_no_spare_goes_where_another_weigher_decides(group, often, claimed):
    CONF.set_override("max_attempts", 1, "scheduler")
    group(queue=queue_of(9), left=9)
    request = spec(count=9, uuid=uuids.vm000)
    kept = run(claimed(9), request, *_group_and_rack())
    # One of each leaf that is left.
    others = list({FABRIC.leaf_of(state.host): state for state in kept}.values())[:4]
    for state in others:
        state.consume_from_request(request)
    request.instance_uuid = uuids.vm004
    assert run(kept, request, *_group_and_rack(), index=4) == kept


def test_nothing_is_refused_once_vms_are_placed(group, often, claimed, monkeypatch):
    """To refuse then would leave the claims of those without an owner."""
    group(queue=queue_of(8), left=8)
    request = spec(count=8, uuid=uuids.vm000, extra_specs=wishing(require="core"))
    kept = _begun(claimed(8), request, 4)
    free = [state for state in kept if not state.num_instances][:3]
    # Three places for the four VMs that are left.
    assert run(free, request, HPCRackCapacityFilter(), index=4) == free
    monkeypatch.setattr(PlacementSession, "_read", lambda *_: 1 / 0)
    assert run(free, request, HPCRackCapacityFilter(), index=4) == free


def test_for_alternates_the_list_stays_as_it_is(group, often, claimed):
    """Nova runs the filters once more, with the number of the last VM, when all are placed."""
    group(queue=queue_of(5), left=5)
    request = spec(count=5, uuid=uuids.vm000)
    kept = _begun(claimed(5), request, 5)
    request.instance_uuid = uuids.vm004
    assert run(kept, request, *_group_and_rack(), index=4) == kept
