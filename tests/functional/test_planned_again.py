"""Decisions of the scheduler, planned again by their records: the same cost, the same refusal."""

import json
from collections import Counter
from pathlib import Path

import pytest

from hpc_sched.core.plan.time_limit import NO_LIMIT
from hpc_sched.snapshot.log import decision_costs
from hpc_sched.snapshot.log.logged_decisions import entry_of
from tests.golden import requests

SEEDS = range(3, requests.CASES, 60)
# A request may be refused because something about it is not known.
OTHER_REASON = "there is a plan: the reason is none of its constraints"


@pytest.mark.ci
def test_requests_of_all_kinds_are_planned_again_at_the_logged_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(requests, "_VARYING", ("time", "seconds", "request_id", "scheduler"))
    found = Counter[str]()
    for case in requests.cases(tmp_path, SEEDS):
        for decision in case["decisions"]:
            entry = entry_of(json.loads(json.dumps(decision)))
            costs = decision_costs.costs_of(entry, (), lambda: None, NO_LIMIT)
            if costs is None:
                # Without a group that was read, or of a class that is not placed by topology.
                assert not entry.candidates or entry.app_class == "async", case["seed"]
                continue
            if costs.note == OTHER_REASON:
                assert entry.decision == "refused", case["seed"]
                continue
            assert costs.note is None, (case["seed"], costs.note)
            found[entry.decision] += 1
            found["costs"] += sum(one.hop_bytes is not None for one in costs.without)
    assert found["planned"] > 8
    assert found["refused"] > 4
    assert found["costs"] > 15
