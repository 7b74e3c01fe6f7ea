"""The record of a decision by another objective than hops has what it was planned by."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from hpc_sched.core.counterfactual import costs, why_not
from hpc_sched.core.counterfactual.costs import decided
from hpc_sched.core.counterfactual.open_hosts import PlannedAgain
from hpc_sched.core.counterfactual.rebuilt_request import RecordError, rebuilt
from hpc_sched.core.counterfactual.recorded_objective import loads_of, logged_objective
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.time_limit import NO_LIMIT
from hpc_sched.snapshot.log.logged_decisions import entry_of
from hpc_sched.topology import Topology
from tests.unit.recorded_groups import Group, Links, random_group, with_objective

SEEDS = range(400)


@pytest.mark.parametrize("part", range(4))
def test_a_decision_by_an_objective_is_planned_again_as_it_was(part):
    kinds = Counter[str]()
    for seed in SEEDS[part::4]:
        group = with_objective(random_group(seed), seed)
        entry = group.entry()
        again = rebuilt(entry)
        live, answer = decided(group.request(), NO_LIMIT), decided(again.request, NO_LIMIT)
        assert type(live) is type(answer), seed
        assert entry.objective is not None
        kinds[entry.objective.name] += 1
        if not isinstance(live, Plan) or not isinstance(answer, Plan):
            kinds["refused"] += 1
            continue
        if live.is_proven and group.packing is None:
            assert answer.hop_bytes == live.hop_bytes, seed
            before, after = (
                loads_of(group.request(), live.hosts),
                loads_of(again.request, answer.hosts),
            )
            assert (before and before.bottleneck) == (after and after.bottleneck), seed
        if live.is_proven:
            assert costs.planned_again(again, entry, NO_LIMIT) is not None, seed
    assert min(kinds[name] for name in ("bottleneck", "isolated", "refused")) > 5


def test_a_record_of_hops_has_no_objective():
    record = random_group(3).record()
    assert "objective" not in record
    assert logged_objective(random_group(3).request(), None) is None


#             core
#        /      |      \
#    leaf1    leaf2    leaf3      uplinks of 200, 200 and 100 Mb/s
#    a1 a2    b1 b2    c1 c2      a2 has a link of 50 Mb/s, the others of 100
TREE = {"core": {"leaf1": ["a1", "a2"], "leaf2": ["b1", "b2"], "leaf3": ["c1", "c2"]}}
BY_BOTTLENECK = Links(Fraction(3, 10), {"leaf1": 200, "leaf2": 200, "leaf3": 100}, {"a2": 50})


def drawn(links: Links, count: int = 3) -> Group:
    topology = Topology.from_tree(TREE)
    places = [(host, host) for host in topology.hosts]
    return Group(topology, places, [1] * 6, [1] * 6, {}, count, count, links=links)


def test_a_record_has_the_links_of_levels_and_those_that_differ():
    record = drawn(BY_BOTTLENECK).record()
    found = record["objective"]
    assert found | {"bottleneck": 0, "harm": 0} == {
        "name": "bottleneck",
        "tradeoff": "3/10",
        "pattern": None,
        "bottleneck": 0,
        "harm": 0,
        "uplinks": {"leaf": 200},
        "other_uplinks": {"leaf3": 100},
        "host_link": 100,
        "host_links": [50],
        "used": [],
    }
    assert record["input"]["tree"]["core"]["leaf1"] == "1*1 1*1l0"
    # Two VMs in leaf1 or leaf2 and one in leaf3: 1 GB crosses 200 Mb/s and 100 Mb/s.
    assert (found["bottleneck"], found["harm"]) == (80.0, 40.0 + 80.0)


def test_a_record_of_an_isolated_group_has_the_used_uplinks():
    record = drawn(Links(used=("leaf2",))).record()
    assert record["objective"]["used"] == ["leaf2"]
    request = rebuilt(entry_of(record)).request
    assert [request.topology.switches[s].name for s in request.objective.is_used.nonzero()[0]] == [
        "leaf2"
    ]


def test_an_objective_of_a_record_has_the_exact_trade_off():
    request = rebuilt(drawn(BY_BOTTLENECK).entry()).request
    assert isinstance(request.objective, LeastBottleneck)
    assert request.objective.tradeoff == Fraction(3, 10)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"name": "fastest"}, "objective 'fastest': expected bottleneck or isolated"),
        ({"tradeoff": "1e999999999"}, "expected a fraction such as 3/10"),
        ({"host_link": 0}, "rates of links"),
        ({"uplinks": {"leaf": -1}}, "rates of links"),
        ({"host_links": []}, "the record is damaged"),
    ],
)
def test_a_damaged_objective_is_an_error_of_the_record(changed, text):
    record = drawn(BY_BOTTLENECK).record()
    entry = entry_of(json.loads(json.dumps(record)))
    assert entry.objective is not None
    with pytest.raises(RecordError, match=text.replace("(", r"\(")):
        rebuilt(replace(entry, objective=replace(entry.objective, **changed)))


@pytest.mark.parametrize("part", range(4))
def test_what_is_said_of_unused_switches_holds_for_each_way_to_use_them(part):
    reasons = Counter[str]()
    for seed in range(part, 240, 4):
        group = with_objective(random_group(seed), seed)
        entry = group.entry()
        again = PlannedAgain(rebuilt(entry), entry, NO_LIMIT)
        if entry.plan is None or not entry.proven or group.packing is not None:
            continue
        request = again.rebuilt.request
        before = loads_of(request, again.plan.hosts)
        for switch in request.topology.switches:
            found = why_not.why_not(again, switch.name)
            reasons[found.reason.split(":")[0][:20]] += 1
            if found.one is None or found.without is not None or found.one.bottleneck is None:
                continue
            assert before is not None
            is_worse = (found.one.bottleneck, found.one.more) > (1, 0)
            assert is_worse == found.reason.startswith("a plan with at least one"), (seed, found)
    assert len(reasons) > 3


def answer_of(group: Group, switch: str) -> why_not.WhyNot:
    entry = group.entry()
    return why_not.why_not(PlannedAgain(rebuilt(entry), entry, NO_LIMIT), switch)


#             core
#        /      |      \
#    leaf1    leaf2    leaf3      uplinks of 100 Mb/s each, those of leaf3 of 50
#    2 hosts  2 hosts  2 hosts    of one VM each
NARROW = {"leaf1": 100, "leaf2": 100, "leaf3": 50}


def test_a_switch_whose_uplinks_would_be_the_bottleneck_is_said_to_be_it():
    found = answer_of(drawn(Links(None, NARROW), 4), "leaf3")
    assert (
        found.reason == "a plan with at least one VM there has at least 1.50 times the bottleneck"
    )


def test_an_isolated_group_is_said_to_keep_away_from_used_uplinks():
    found = answer_of(drawn(Links(used=("leaf1",)), 4), "leaf1")
    assert found.reason == (
        "other isolated groups use its uplinks, or those that the group then needs "
        "(hpc:objective=isolated); it has room for 2 of 4 VMs"
    )


def test_what_isolation_costs_is_the_hop_byte_without_it():
    group = drawn(Links(used=("leaf1", "leaf2")), 2)
    entry = replace(group, room=[1, 0, 1, 0, 1, 1], free=[1, 0, 1, 0, 1, 1]).entry()
    again = rebuilt(entry)
    plan = costs.planned_again(again, entry, NO_LIMIT)
    [one] = costs.counterfactuals(again, entry, plan, NO_LIMIT)
    assert (one.without, one.less) == ("hpc:objective=isolated", 0)


def test_what_hops_would_have_chosen_is_a_plan_without_the_objective():
    group = drawn(Links(None, dict.fromkeys(NARROW, 100)), 4)
    entry = group.entry()
    again = rebuilt(entry)
    plan = costs.planned_again(again, entry, NO_LIMIT)
    [one] = costs.counterfactuals(again, entry, plan, NO_LIMIT)
    # By bottleneck 2 + 1 + 1: 3 pairs cross a leaf, 4 of them the fuller one. By hops 2 + 2.
    assert one.without == "hpc:objective=bottleneck"
    assert (one.leaves, one.hop_bytes) == (2, 14)
    assert one.bottleneck == 1
