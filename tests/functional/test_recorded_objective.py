"""The decision log has the objective of a group, and explain plans by it again."""

import json

import nova.conf
import pytest

from hpc_sched.core.counterfactual.costs import planned_again
from hpc_sched.core.counterfactual.rebuilt_request import rebuilt
from hpc_sched.core.plan.time_limit import NO_LIMIT
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.snapshot.log.logged_decisions import entry_of
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.pods import states_of
from tests.functional.states import queue_of, read_decisions, schedule, spec

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.fixture
def decisions(tmp_path):
    path = tmp_path / "decisions"
    CONF.set_override("decision_log", str(path), "hpc_sched")
    return lambda: read_decisions(path)


def test_a_decision_by_bottleneck_is_recorded_with_its_links_and_planned_again(group, decisions):
    CONF.set_override("uplink_oversubscription", {"leaf": 4.0}, "hpc_sched")
    group(left=6)
    request = spec(count=6, extra_specs={"hpc:objective": "bottleneck"})
    schedule(states_of(), request, queue_of(6), HopByteWeigher(), [HPCGroupFilter()])
    [record] = decisions()
    assert record["objective"]["name"] == "bottleneck"
    assert record["objective"]["tradeoff"] == "3/10"
    assert record["objective"]["uplinks"]["leaf"] == 100_000
    assert record["objective"]["bottleneck"] > 0
    entry = entry_of(json.loads(json.dumps(record)))
    plan = planned_again(rebuilt(entry), entry, NO_LIMIT)
    assert plan is not None
    assert sorted(plan.leaves.values()) == sorted(record["plan"]["leaves"].values())


def test_a_decision_by_hops_is_recorded_without_an_objective(group, decisions):
    group(left=6)
    request = spec(count=6, extra_specs={})
    schedule(states_of(), request, queue_of(6), HopByteWeigher(), [HPCGroupFilter()])
    [record] = decisions()
    assert "objective" not in record
