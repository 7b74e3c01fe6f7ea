"""HPCRackCapacityFilter: the leaves of the plan, and spares."""

import nova.conf
import pytest
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.filters.base import GroupFilter
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from tests.functional.pods import (
    FABRIC,
    hosts_below,
    names,
    states_of,
)
from tests.functional.states import (
    queue_of,
    read_decisions,
    run,
    spec,
    wishing,
)

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


def test_the_leaves_of_the_plan_stay_with_as_much_again_for_lost_claims(group):
    CONF.set_override("max_attempts", 3, "scheduler")
    group({"n05": 1}, left=3)
    states = states_of()
    kept = run(states, spec(count=3), HPCRackCapacityFilter())
    # 2 * 3 places and two retries: the member's leaf and another of its pod.
    assert hosts_below("leaf2") <= names(kept) <= hosts_below("pod1")
    assert len(kept) == 8
    assert kept == [state for state in states if state in kept]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 12, 16, 30])
@pytest.mark.parametrize("attempts", [1, 3, 10])
def test_hosts_for_all_vms_and_all_retries_stay_where_there_are_so_many(group, count, attempts):
    CONF.set_override("max_attempts", attempts, "scheduler")
    group(left=count)
    kept = run(states_of(), spec(count=count), HPCRackCapacityFilter())
    assert len(kept) >= min(count + attempts - 1, 32)


def test_vms_that_others_have_requested_find_their_hosts_too(group):
    group(queue=queue_of(12), left=1)
    assert len(run(states_of(), spec(uuid=uuids.vm000), HPCRackCapacityFilter())) >= 14


@pytest.mark.parametrize(
    ("wishes", "count", "most"),
    [
        ({"require": "leaf"}, 2, 4),
        ({"require": "pod"}, 12, 16),
        ({"max_leaves": 3}, 12, 12),
        ({"require": "pod", "prefer": "leaf"}, 4, 16),
    ],
)
def test_spares_never_lead_outside_what_is_required(group, wishes, count, most):
    CONF.set_override("max_attempts", 30, "scheduler")
    group(left=count)
    kept = run(states_of(), spec(count=count, extra_specs=wishing(**wishes)), *_group_and_rack())
    assert len(kept) == most
    level = {"leaf": 0, "pod": 1}.get(str(wishes.get("require")), 2)
    assert len({FABRIC.ancestors(host)[level] for host in names(kept)}) == 1
    alone = run(
        states_of(), spec(count=count, extra_specs=wishing(**wishes)), HPCRackCapacityFilter()
    )
    assert names(alone) == names(kept)


def _group_and_rack() -> list[GroupFilter]:
    return [HPCGroupFilter(), HPCRackCapacityFilter()]


def test_without_a_leaf_that_holds_the_group_it_widens_level_by_level(group):
    CONF.set_override("max_attempts", 1, "scheduler")
    group(left=8)
    kept = run(states_of(), spec(count=8), HPCRackCapacityFilter())
    assert names(kept) in (hosts_below("pod1"), hosts_below("pod2"))


def test_a_group_without_a_plan_passes_as_it_came_unless_it_requires_one(group):
    group(left=33)
    states = states_of()
    assert run(states, spec(count=33), HPCRackCapacityFilter()) == states
    for wishes in ({"require": "core"}, {"max_leaves": 8}):
        request = spec(count=33, extra_specs=wishing(**wishes))
        assert run(states, request, HPCRackCapacityFilter()) == []


def test_a_class_without_topology_keeps_all_hosts(group):
    group(left=2)
    states = states_of()
    request = spec(count=2, extra_specs=wishing(app_class="async"))
    assert run(states, request, HPCRackCapacityFilter()) == states


def test_full_hosts_go_and_the_decision_says_how_many(group, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    CONF.set_override("max_attempts", 1, "scheduler")
    group(left=2)
    states = states_of()
    for state in states[8:]:
        state.vcpus_used = 16
    kept = run(states, spec(count=2), HPCRackCapacityFilter())
    assert len(kept) == 4
    [told] = read_decisions(tmp_path / "decisions")
    assert told["removed"] == {
        "outside the plan's leaves and spares": 28,
        "no room for one VM": 24,
    }
