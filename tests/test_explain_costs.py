"""hpc-sched explain of what constraints cost, and of switches that a plan does not use.

The record's fabric; a VM fills a host::

                         core
              /                       \\
            pod1                      pod2
       /     |     \\               /       \\
    leaf1  leaf2  leaf3         leaf4     leaf5
    2 free 2 free 2 free        4 free    1 free, 1 dedicated, 1 full of others
"""

import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.cli import main
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit
from hpc_sched.snapshot.log import decision_costs
from hpc_sched.snapshot.log.logged_decisions import entry_of
from tests.counted_calls import calls_of
from tests.snapshots import saved
from tests.turned_clock import SteppedClock, installed

INPUT = {
    "levels": ["leaf", "pod", "core"],
    "tree": {
        "core": {
            "pod1": {"leaf1": "2*1", "leaf2": "2*1", "leaf3": "2*1"},
            "pod2": {"leaf4": "4*1", "leaf5": "1*0/1 1*1 1*0/1x0"},
        }
    },
    "heights": {},
    "max_per_host": 1,
    "removed": ["dedicated hosts"],
}
RECORD = {
    "time": "t1",
    "request_id": "req-1",
    "instance": "vm",
    "group": "job",
    "policy": "anti-affinity",
    "wishes": {"require": None, "max_leaves": 2, "homogeneous": "prefer"},
    "left": 6,
    "awaiting": 6,
    "removed": {"dedicated hosts": 1, "the VMs of others": 1},
    "decision": "planned",
    "plan": {
        "leaves": {"leaf4": 4, "leaf1": 2},
        "hosts": {f"n{number}": 1 for number in range(6)},
        "hop_bytes": 47,
    },
    "input": INPUT,
}
# Six VMs cost 3 + 12 * 3 hops in pod1, 7 + 8 * 3 in pod2 with three hosts of leaf5.
TEXT = """\
  without     hpc:max_leaves=2: Hop-Byte 39 (8 less), 3 leaves
              filter: dedicated hosts: Hop-Byte 31 (16 less), 2 leaves
              filter: the VMs of others: Hop-Byte 31 (16 less), 2 leaves
              cost nothing: policy anti-affinity
"""


def costs(record: dict[str, Any], *names: str, limit: TimeLimit = NO_LIMIT) -> list[str]:
    """Return the lines that a record's constraints have, without a topology at hand."""
    found = decision_costs.costs_of(entry_of(record), names, lambda: None, limit)
    return [] if found is None else [line for _, line in decision_costs.lines(found)]


def explain(capsys, folder: Path, record: Any, *arguments: str) -> str:
    path = folder / "decisions.json"
    path.write_text(json.dumps(record) + "\n")
    assert main.main(["explain", "job", "--decision-log", str(path), *arguments]) == 0
    return capsys.readouterr().out


def test_constraints_and_filters_are_shown_with_their_costs(tmp_path, capsys):
    assert TEXT in explain(capsys, tmp_path, RECORD)


def test_the_costs_are_data_too(tmp_path, capsys):
    found = json.loads(explain(capsys, tmp_path, RECORD, "--json", "--why-not", "leaf5"))
    assert found["input"] == INPUT
    said = found["counterfactual"]
    costs = {one["without"]: (one["hop_bytes"], one["less"]) for one in said["without"]}
    assert costs["hpc:max_leaves=2"] == (39, 8)
    assert costs["all of these"] == (31, 16)
    assert said["why_not"][0]["name"] == "leaf5"
    assert said["why_not"][0]["one"] == {
        "hop_bytes": 43,
        "more": -4,
        "leaves": 3,
        "is_proven": True,
    }


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("leaf4", "leaf4: it is used: 4 of 6 planned VMs are there"),
        ("core", "core: it is used: 6 of 6 planned VMs are there"),
        ("n1", "n1: it is used: 1 planned VM"),
        (
            "leaf5",
            "leaf5: a plan with it needs more leaves than allowed (hpc:max_leaves=2); it has room "
            "for 1 of 6 VMs",
        ),
        (
            "leaf9",
            "leaf9: the record does not name it: none of its hosts was a candidate, or it is a "
            "host, or not in the fabric (name a topology with --topology)",
        ),
    ],
)
def test_a_switch_is_used_or_there_is_a_reason(name, answer):
    assert answer in costs(RECORD, name)


def test_what_else_can_be_said_of_a_switch_follows():
    found = costs(RECORD, "leaf5")
    assert found[-2:] == [
        "of its hosts: 1 full because of the VMs of others, 1 removed by a filter: dedicated hosts",
        "a VM there without hpc:max_leaves=2: Hop-Byte 43 (4 less), 3 leaves",
    ]
    # The one that comes first of three equal leaves is a matter of the group's uuid.
    assert costs(RECORD, "leaf3")[-1] == (
        "leaf3: a plan with it costs the same, but comes later in the group's tie order"
    )


def changed(tree: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return RECORD | {"input": INPUT | {"tree": tree}, **fields}


def test_hosts_that_no_plan_could_use_are_counted_by_reason():
    tree = {"core": {"leaf1": "6*1", "leaf2": "3*0 2*1!0 1*-+1"}}
    record = changed(tree, plan=RECORD["plan"] | {"leaves": {"leaf1": 6}, "hop_bytes": 33})
    record["input"] |= {"shunned": ["failed builds"]}
    record["shunned"] = {"failed builds": {"count": 2, "hosts": ["x1", "x2"]}}
    assert (
        "leaf2: none of its hosts can be used: 3 no room for one VM, 2 shunned: failed builds"
    ) in costs(record, "leaf2")
    assert "x1: it is shunned: failed builds" in costs(record, "x1")


def test_a_refusal_names_the_constraint_without_which_there_was_a_plan():
    record = RECORD | {"decision": "refused", "plan": None, "reason": "no"}
    record["wishes"] = {"require": "leaf", "max_leaves": None}
    assert costs(record, "leaf1") == [
        "hpc:require=leaf: 6 VMs in 3 leaves, Hop-Byte 39",
        "all of these: 6 VMs in 2 leaves, Hop-Byte 31",
        "no plan either: policy anti-affinity, filter: dedicated hosts, filter: the VMs of others",
        "leaf1: there is no plan: it has room for 2 of 6 VMs",
    ]
    record["wishes"] = {}
    assert costs(record) == [
        "costs are not known: there is a plan: the reason is none of its constraints"
    ]


def test_a_refused_group_may_have_room_enough_under_a_switch():
    record = changed({"core": {"leaf1": "9*1", "leaf2": "9*1"}}, wishes={"max_leaves": 1})
    record |= {"decision": "refused", "plan": None, "left": 10, "awaiting": 10}
    record["input"] |= {"levels": ["leaf", "core"]}
    found = costs(record, "core", "leaf1")
    assert "core: there is no plan: it has room for 18 VMs, 10 are wanted" in found
    assert "leaf1: there is no plan: it has room for 9 of 10 VMs" in found


def test_a_filter_whose_hosts_have_no_known_room_has_no_cost():
    record = RECORD | {"removed": {"dedicated hosts": 4}}
    assert "filter: dedicated hosts: not known: the room of 3 hosts is not known" in costs(record)


def test_records_without_the_planners_input_are_explained_as_before(tmp_path, capsys):
    old = {key: value for key, value in RECORD.items() if key != "input"}
    assert "without" not in explain(capsys, tmp_path, old)
    assert (
        "  without     costs are not known: the record does not have what the planner was given\n"
        in explain(capsys, tmp_path, old, "--why-not", "leaf1")
    )


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"plan": RECORD["plan"] | {"hop_bytes": 46}}, "has another cost than the logged one"),
        ({"proven": False}, "the plan is not proven best"),
        ({"plan": RECORD["plan"] | {"hosts": {"n1": 1}}}, "no cost of a plan for its VMs"),
        ({"wishes": {"require": "rack"}}, "there is no level 'rack'"),
        ({"wishes": {"max_leaves": "two"}}, "max_leaves: expected a whole number from 1 to 999999"),
        ({"left": 10**9, "awaiting": 10**9}, "too many to plan again"),
    ],
)
def test_where_the_record_does_not_give_the_plan_there_are_no_numbers(fields, why):
    [line] = costs(RECORD | fields)
    assert line.startswith("costs are not known: ")
    assert why in line


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"core": {}},
        {"core": "9999999*1"},
        {"core": "2*1 x"},
        {"core": {"leaf1": 3}},
        {"core": {"leaf1": ""}},
        {"core": {"leaf1": "2*1", "pod": {"leaf1": "2*1"}}},
        {"core": {"leaf1": "2*9999999+9999999"}},
        {"core": {"leaf\x1b[2J": "x\x1b[2J*"}},
    ],
    ids=lambda tree: json.dumps(tree)[:40],
)
def test_a_damaged_tree_gives_no_numbers(tree):
    [line] = costs(changed(tree), "leaf1")
    assert line.startswith("costs are not known: the record is damaged: ")


def test_a_tree_deeper_than_any_fabric_gives_no_numbers():
    tree: Any = "6*1"
    for number in range(200):
        tree = {f"s{number}": tree}
    [line] = costs(changed(tree))
    assert "expected at most 32 levels" in line


def test_long_names_and_many_words_take_neither_memory_nor_time():
    long = "leaf" * 5_000
    tracemalloc.start()
    try:
        [line] = costs(changed({"core": {long: "99999*1"}}))
        assert "another cost than the logged one" in line
        assert tracemalloc.get_traced_memory()[1] < 300_000_000
    finally:
        tracemalloc.stop()
    found: list[str] = []
    words = changed({"core": {"leaf1": "0*1 " * 1_000_000}})
    assert calls_of(lambda: found.extend(costs(words))) < 1000
    [line] = found
    assert "expected hosts such as 18*2+1, found '0*1'" in line


@pytest.mark.parametrize("seed", range(20))
def test_whatever_was_edited_in_a_record_it_is_explained(tmp_path, capsys, seed):
    draw = random.Random(seed)
    wrong = ["", None, -1, 10**30, 2.5, True, [], {}, "leaf1", "1*1", "\x1b[2J", ["a"], {"a": 1}]
    for _ in range(10):
        record = json.loads(json.dumps(RECORD))
        for _ in range(draw.randint(1, 3)):
            at = draw.choice(
                [record, record["input"], record["plan"], record["wishes"]]
                if all(isinstance(record.get(key), dict) for key in ("input", "plan", "wishes"))
                else [record]
            )
            at[draw.choice([*at, "heights", "services", "processors"])] = draw.choice(wrong)
        record["group"] = "job"
        explain(capsys, tmp_path, record, "--why-not", "leaf5", "--why-not", "x", "--json")


def test_planning_ends_with_its_time(tmp_path, capsys):
    assert costs(RECORD, limit=TimeLimit(0.0)) == [
        "costs are not known: the time for planning is over"
    ]
    assert "without" not in explain(capsys, tmp_path, RECORD, "--timeout", "0")
    leaves = {f"leaf{number:03}": " ".join(f"1*{n}" for n in range(65)) for number in range(500)}
    large = RECORD | {"left": 512, "awaiting": 512, "wishes": {"max_leaves": 20}, "policy": None}
    large |= {"input": INPUT | {"tree": {"core": leaves}, "levels": ["leaf", "core"]}}
    # The first plan is made between two looks at the clock, and no other once the time is over.
    for step, most in ((1.0, 20_000), (0.4, 2_000_000)):
        with installed(SteppedClock(step)):
            calls = calls_of(lambda: explain(capsys, tmp_path, large, "--timeout", "1"))
        assert calls < most


def test_a_host_is_found_by_the_topology_of_the_snapshot(tmp_path, capsys):
    record = changed({"core": {"leaf01": "2*1", "leaf02": "4*1"}}, wishes={}, policy=None)
    record["plan"] = RECORD["plan"] | {"leaves": {"leaf02": 4, "leaf01": 2}, "hop_bytes": 31}
    record["input"] |= {"levels": ["leaf", "core"]}
    path = saved(tmp_path, [], [], decisions=(record,))
    code = main.main(["explain", "job", "--snapshot", path, "--why-not", "n09", "--why-not", "n01"])
    out = capsys.readouterr().out
    assert code == 0
    assert "n09, under leaf03: no candidate is under it: filters before those of hpc_sched" in out
    assert "n01, under leaf01: the leaf is used: 2 of 6 planned VMs are there" in out


def test_the_cost_of_the_final_size_says_for_how_many_vms_it_is():
    """Eight VMs have a place in pod2; the four that exist would fit under leaf1 of pod1."""
    tree = {"pod1": {"leaf1": "4*1"}, "pod2": {"leaf2": "3*1", "leaf3": "3*1", "leaf4": "2*1"}}
    record = {
        **RECORD,
        "wishes": {"group_size": 8},
        "left": 4,
        "awaiting": 4,
        "removed": {},
        "plan": {
            "leaves": {"leaf2": 3, "leaf3": 3, "leaf4": 2},
            "hosts": {f"n{number}": 1 for number in range(8)},
            "hop_bytes": 70,
        },
        "input": {**INPUT, "tree": {"core": tree}, "missing": 8, "removed": []},
    }
    assert costs(record) == [
        "hpc:group_size=8: Hop-Byte 6 (6 less) for the first 4 VMs, 1 leaf",
        "cost nothing: policy anti-affinity",
    ]
