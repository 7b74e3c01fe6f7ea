"""hpc-sched explain where the time for planning does not suffice; the fabric of the records is
that of :mod:`tests.test_explain_costs`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.cli import main
from hpc_sched.core.counterfactual import open_hosts
from tests.test_explain_costs import RECORD
from tests.turned_clock import SteppedClock, installed

OVER = "the time for planning is over"


def said(capsys, folder: Path, *arguments: str, records: Any = (RECORD,)) -> list[dict[str, Any]]:
    """Return what is said of the constraints of each record."""
    path = folder / "decisions.json"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    line = ["explain", "job", "--decision-log", str(path), "--json", *arguments]
    assert main.main(line) == 0
    return [json.loads(line)["counterfactual"] for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def slow_clock() -> Iterator[None]:
    """Let a second pass with each look at the clock."""
    with installed(SteppedClock(1.0)):
        yield


@pytest.mark.usefixtures("slow_clock")
def test_what_was_planned_before_the_time_was_over_is_shown(tmp_path, capsys):
    names = ["--why-not", "leaf4", "--why-not", "leaf5", "--why-not", "leaf3"]
    known = []
    for seconds in range(0, 120, 3):
        [found] = said(capsys, tmp_path, *names, "--timeout", f"{seconds + 0.5}")
        answers = {one["name"]: one["reason"] for one in found["why_not"]}
        assert answers["leaf4"] == "it is used: 4 of 6 planned VMs are there"
        number = sum(one["hop_bytes"] is not None for one in found["without"])
        number += sum(reason != OVER for reason in answers.values())
        assert found["note"] in (None, OVER)
        known.append(number)
    assert known[0] == 1
    # Four constraints, each of them, and all; three names.
    assert known[-1] == 8
    # There were times with costs, but without answers to some names, or with these to some.
    assert len(set(known)) > 4
    assert known == sorted(known)


def test_what_the_record_states_needs_no_time(tmp_path, capsys):
    record = RECORD | {"shunned": {"failed builds": {"count": 1, "hosts": ["x1"]}}}
    names = [f"--why-not={name}" for name in ("n1", "leaf1", "pod2", "x1", "leaf5")]
    [found] = said(capsys, tmp_path, *names, "--timeout", "0", records=[record])
    assert [one["reason"] for one in found["why_not"]] == [
        "it is used: 1 planned VM",
        "it is used: 2 of 6 planned VMs are there",
        "it is used: 4 of 6 planned VMs are there",
        "it is shunned: failed builds",
        OVER,
    ]
    assert (found["note"], found["without"]) == (OVER, [])


def test_a_decision_is_planned_again_once_however_many_names_there_are(
    tmp_path, capsys, monkeypatch
):
    count = dict.fromkeys(("planned_again", "open_hosts"), 0)

    def counted(name: str) -> None:
        called = getattr(open_hosts, name)

        def call(*arguments: Any) -> Any:
            count[name] += 1
            return called(*arguments)

        monkeypatch.setattr(open_hosts, name, call)

    for name in count:
        counted(name)
    names = [f"--why-not={name}" for name in ("leaf2", "leaf3", "leaf5")]
    [found] = said(capsys, tmp_path, *names)
    assert all(one["one"] is not None for one in found["why_not"])
    assert count == {"planned_again": 1, "open_hosts": 1}


@pytest.mark.usefixtures("slow_clock")
def test_the_newest_decisions_are_planned_first(tmp_path, capsys):
    records = [RECORD | {"time": f"t{number}", "request_id": f"r{number}"} for number in range(5)]
    found = said(capsys, tmp_path, "--timeout", "40", records=records)
    has_numbers = [bool(one["without"]) for one in found]
    assert has_numbers == sorted(has_numbers)
    assert 0 < sum(has_numbers) < len(records)


def test_text_has_both_the_reason_for_no_costs_and_the_answers(tmp_path, capsys):
    path = tmp_path / "decisions.json"
    path.write_text(json.dumps(RECORD) + "\n")
    line = ["explain", "job", "--decision-log", str(path), "--timeout", "0", "--why-not", "leaf1"]
    assert main.main(line) == 0
    assert (
        f"  without     costs are not known: {OVER}\n"
        "  why not     leaf1: it is used: 2 of 6 planned VMs are there\n"
    ) in capsys.readouterr().out
