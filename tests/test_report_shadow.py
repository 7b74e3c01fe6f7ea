"""hpc-sched report shadow: rows, page, standard error and exit codes."""

import gzip
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import hpc_sched.page
from hpc_sched.cli import main
from hpc_sched.snapshot.log import log_lines, logged_decisions, shadow_lines, shadow_totals
from hpc_sched.snapshot.log.shadow_lines import ShadowReader
from hpc_sched.snapshot.log.shadow_totals import ShadowTotals, size_class, size_text

_numbers = itertools.count()


def plan(**leaves: int) -> dict[str, Any]:
    """Return a plan of a cost that its leaves do not show."""
    return {"leaves": leaves, "hosts": {f"h-{leaf}": n for leaf, n in leaves.items()}}


def decided(
    decision: str = "planned", left: int = 4, project: str | None = "red", **more: Any
) -> dict[str, Any]:
    number = next(_numbers)
    return {
        "time": "2026-11-02T08:00:00.5",
        "request_id": f"req-{number}",
        "instance": f"vm-{number}",
        "group": None,
        "left": left,
        "decision": decision,
        "mode": "shadow",
        **({} if project is None else {"project": project}),
        **more,
    }


def landed(decision: dict[str, Any], cost: float | None = 9, **more: Any) -> dict[str, Any]:
    same = {key: decision[key] for key in ("request_id", "instance", "group", "left")}
    outcome = {
        "leaves": {"leaf1": decision["left"]},
        "hosts": {"n1": decision["left"]},
        "hop_bytes": cost,
        "planned": {"leaf1": decision["left"]},
        "as_planned": False,
        "released": False,
        **more,
    }
    return {
        "time": "2026-11-02T08:00:02",
        **same,
        "decision": "landed",
        "mode": "shadow",
        "landed": outcome,
    }


def planned(cost: float, left: int = 4, **more: Any) -> dict[str, Any]:
    return decided(left=left, plan={**plan(leaf1=left), "hop_bytes": cost}, **more)


def failed(decision: dict[str, Any]) -> dict[str, Any]:
    return landed(decision, None, leaves={}, hosts={}, planned=None, released=True)


def written(path: Path, *records: object) -> str:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return str(path)


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main.main(["report", "shadow", *arguments, "-f", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def total(rows: list[dict[str, Any]]) -> dict[str, Any]:
    [row] = [row for row in rows if (row["Project"], row["VMs"]) == ("all", "all")]
    return row


def test_plans_and_landings_are_summed_by_project_and_size(tmp_path, capsys):
    small, large, other = planned(6, 2), planned(45, 10, seconds=0.5), planned(10, 2, project=None)
    outcomes = [
        landed(small, 8, leaves={"leaf1": 1, "leaf2": 1}),
        landed(large, 60),
        landed(other, 10),
    ]
    rows = report(capsys, written(tmp_path / "log", small, large, other, *outcomes))
    shown = [(r["Project"], r["VMs"], r["Requests"], r["Plan"], r["Stock"]) for r in rows]
    assert shown == [
        ("red", "2-4", 1, 6, 8),
        ("red", "9-16", 1, 45, 60),
        ("red", "all", 2, 51, 68),
        ("unknown", "2-4", 1, 10, 10),
        ("all", "2-4", 2, 16, 18),
        ("all", "9-16", 1, 45, 60),
        ("all", "all", 3, 61, 78),
    ]
    found = total(rows)
    assert (found["Saved %"], found["Seconds"], found["New VMs"]) == (21.8, 0.5, 14)
    assert (found["Plan leaves"], found["Stock leaves"]) == (3, 4)


def test_refusals_are_counted_by_what_nova_did(tmp_path, capsys):
    three = [decided("refused", reason="no room") for _ in range(3)]
    log = written(tmp_path / "log", *three, landed(three[0], None), failed(three[1]))
    found = total(report(capsys, log))
    assert [found[f"Refused{name}"] for name in (", placed", " by both", ", open")] == [1, 1, 1]
    assert (found["Compared"], found["Plan"], found["Saved %"]) == (0, 0, None)


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        pytest.param(lambda _one: [], shadow_totals.NO_LANDING, id="no landing"),
        pytest.param(lambda one: [failed(one)], shadow_totals.FAILED, id="failed"),
        pytest.param(
            lambda one: [landed(one, hosts={"n1": 3})], shadow_totals.IN_PART, id="in part"
        ),
        pytest.param(
            lambda one: [landed(one, planned=None)], shadow_totals.NOT_BY_TOPOLOGY, id="async"
        ),
        pytest.param(lambda one: [landed(one, None)], shadow_totals.ON_ISLANDS, id="islands"),
        pytest.param(lambda one: [landed(one, -1)], shadow_totals.ON_ISLANDS, id="a wrong cost"),
        pytest.param(lambda one: [landed(one, 5e-324)], shadow_totals.ON_ISLANDS, id="a tiny cost"),
    ],
)
def test_a_plan_that_is_not_compared_is_counted_and_named(tmp_path, capsys, outcome, why):
    one, compared = planned(6), planned(7)
    log = written(tmp_path / "log", one, *outcome(one), compared, landed(compared, 8))
    assert main.main(["report", "shadow", log]) == 0
    assert f"1 request not compared: {why}" in capsys.readouterr().out.splitlines()
    found = total(report(capsys, log))
    assert (found["Compared"], found["Not compared"], found["Plan"], found["Stock"]) == (1, 1, 7, 8)


def test_decisions_of_one_request_are_compared_in_their_order(tmp_path, capsys):
    """A live migration schedules again at once if the host that it got turns out to be unfit."""
    first, other = planned(6), planned(10, left=8)
    again = {key: first[key] for key in ("request_id", "instance")}
    second = {**planned(7), **again}
    log = written(tmp_path / "log", first, second, other, landed(first, 8), landed(second, None))
    assert main.main(["report", "shadow", log]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert f"1 request not compared: {shadow_totals.ON_ISLANDS}" in shown
    assert not [line for line in shown if "without its decision" in line]
    found = total(report(capsys, log))
    assert (found["Compared"], found["Plan"], found["Stock"]) == (1, 6, 8)


def test_explain_has_the_landings_of_one_request_in_the_order_of_its_decisions():
    first = planned(6)
    second = {**planned(7), **{key: first[key] for key in ("request_id", "instance")}}
    records = [first, second, landed(first, 8), landed(second, 9)]
    pairs = logged_decisions.with_landings(records)
    assert pairs == [(first, records[2]), (second, records[3])]


def test_a_plan_for_other_requests_too_counts_with_the_vms_of_its_own(tmp_path, capsys):
    own = {**plan(leaf1=2, leaf2=2), "hop_bytes": 14}
    one = planned(100, 9, own_plan=own) | {"left": 4}
    found = total(report(capsys, written(tmp_path / "log", one, landed(one, 16))))
    assert (found["Plan"], found["Stock"], found["Plan leaves"]) == (14, 16, 2)


def test_requests_without_a_plan_and_doubtful_plans_are_counted(tmp_path, capsys):
    unproven, degraded = planned(6, proven=False), planned(6, degraded=["Placement"])
    nothing = decided("no plan", reason="no topology: t.yaml: missing")
    log = written(tmp_path / "log", unproven, degraded, nothing, landed(nothing))
    found = total(report(capsys, log))
    assert (found["No plan"], found["Unproven"], found["Degraded"]) == (1, 1, 1)


def test_rotated_and_packed_files_are_read_once_in_the_order_of_time(tmp_path, capsys):
    first, second, third = planned(6), planned(7), planned(8)
    packed = tmp_path / "log.2.gz"
    text = f"{json.dumps(first)}\n".encode()
    packed.write_bytes(gzip.compress(text))
    # The landing is in the file after that of the decision.
    written(tmp_path / "log.1", landed(first), second, landed(second), third)
    log = written(tmp_path / "log", landed(third))
    older = [str(packed), str(tmp_path / "log.1")]
    for names in ([log], [log, *older], [*older, log]):
        found = total(report(capsys, *names))
        assert (found["Requests"], found["Compared"], found["Plan"]) == (3, 3, 21)


def test_a_period_has_the_decisions_from_its_beginning_to_before_its_end(tmp_path, capsys):
    days = [planned(day) | {"time": f"2026-11-0{day}T00:00:00"} for day in (1, 2, 3)]
    log = written(tmp_path / "log", *(one for day in days for one in (day, landed(day))))
    found = total(report(capsys, log, "--since", "2026-11-02", "--until", "2026-11-03T00:00"))
    assert (found["Requests"], found["Plan"]) == (1, 2)
    assert main.main(["report", "shadow", log, "--since", "2027-01-01"]) == 1
    assert "no decision of shadow mode; 3 decisions left out" in capsys.readouterr().err


def test_the_help_says_which_decisions_a_period_has(capsys):
    assert main.main(["report", "shadow", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--since TIME only decisions of this time or later, UTC: a date such as 2026-" in text
    assert "--until TIME only decisions before this time, UTC: a date such as 2026-" in text


@pytest.mark.parametrize(
    "wrong",
    [
        ["--since", "monday"],
        ["--since", "0001-01-01T00:00+10:00"],
        ["--since", "2026-11-02", "--until", "2026-11-02"],
    ],
    ids=" ".join,
)
def test_a_wrong_period_is_exit_code_2(tmp_path, capsys, wrong):
    assert main.main(["report", "shadow", written(tmp_path / "log"), *wrong]) == 2
    assert "expected a" in capsys.readouterr().err


def test_hostile_lines_are_skipped_and_counted(tmp_path, capsys):
    one = planned(6)
    path = Path(written(tmp_path / "log", one, landed(one, 7)))
    hostile = [
        b"\xff\xfe",
        b'{"time": 7}',
        b'{"time": "2026-11-02T08:00:00", "mode": "shadow", "decision": "planned"',
        b'{"time": "yesterday", "mode": "shadow", "decision": "planned"}',
        b'{"plan": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"time": "2026-11-02T08:00:00", "mode": "shadow", "left": 1e999}',
        json.dumps({**decided(), "plan": {"hop_bytes": "much"}}).encode(),
    ]
    path.write_bytes(b"\n".join(hostile) + b"\n\n" + path.read_bytes())
    assert main.main(["report", "shadow", str(path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert f"{len(hostile)} lines left out: that cannot be read" in shown


def test_absurd_times_of_decisions_leave_the_sums_numbers(tmp_path, capsys):
    log = written(tmp_path / "log", *(planned(6, seconds=1.7e308) for _ in range(2)))
    assert main.main(["report", "shadow", log, "-f", "json"]) == 0
    assert "Infinity" not in capsys.readouterr().out


def test_names_of_projects_do_not_reach_the_terminal_as_they_are(tmp_path, capsys):
    one = planned(6, project="\x1b[31mred<script>")
    log = written(tmp_path / "log", one)
    page = tmp_path / "page.html"
    assert main.main(["report", "shadow", log, "--html", str(page)]) == 0
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "\x1b" not in page.read_text()
    assert "red&lt;script&gt;" in page.read_text()


def test_records_of_active_mode_and_of_older_releases_are_left_out(tmp_path, capsys):
    active = {**planned(6), "mode": ""}
    older = {"time": "2026-05-04T08:00:00", "decision": "planned", "plan": {"hop_bytes": 3}}
    only = planned(6)
    log = written(tmp_path / "log", active, older, only, landed(only))
    assert total(report(capsys, log))["Requests"] == 1
    assert main.main(["report", "shadow", written(tmp_path / "old", active, older)]) == 1
    assert "no decision of shadow mode; 2 records left out" in capsys.readouterr().err


def test_memory_is_bounded_by_the_decisions_that_wait_and_the_projects(monkeypatch):
    monkeypatch.setattr(shadow_lines, "MAX_WAITING", 10)
    monkeypatch.setattr(shadow_totals, "MAX_PROJECTS", 5)
    reader, totals = ShadowReader(), ShadowTotals()
    lines = (json.dumps(planned(1, project=f"p{i}")).encode() for i in range(100))
    largest = 0
    for _ in totals.add_all(reader.pairs(lines)):
        largest = max(largest, len(reader._waiting))
    assert largest <= 10
    assert totals.all.sums["requests"] == 100
    same = planned(1)
    found = list(reader.pairs(json.dumps(same).encode() for _ in range(100)))
    assert len(found) == 100
    assert len({project for project, _, _ in totals.rows()}) == 5 + len(("others", "all"))


def test_size_classes_are_powers_of_two():
    assert [size_text(size_class(n)) for n in (0, 1, 2, 4, 5, 8, 9, 16, 17, 512, 513)] == [
        *("1", "1", "2-4", "2-4", "5-8", "5-8", "9-16", "9-16", "17-32", "257-512", "513-1024")
    ]


def test_the_page_has_the_table_and_a_picture_and_loads_nothing(tmp_path, capsys):
    one = planned(6)
    page = tmp_path / "page.html"
    log = written(tmp_path / "log", one, landed(one, 9))
    for _ in range(2):
        assert main.main(["report", "shadow", log, "--html", str(page)]) == 0
        text = page.read_text()
        assert "<svg" in text
        assert "1.50" in text
        assert "http" not in text.replace("http-equiv", "")
        assert capsys.readouterr().err == f"{page}: written\n"
    assert text == page.read_text()


def test_without_the_packages_of_the_page_it_says_which_to_install(tmp_path, monkeypatch, capsys):
    for name in ("shadow_page", "picture", "template"):
        monkeypatch.delitem(sys.modules, f"hpc_sched.page.{name}", raising=False)
        monkeypatch.delattr(hpc_sched.page, name, raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    log = written(tmp_path / "log", planned(6))
    assert main.main(["report", "shadow", log, "--html", str(tmp_path / "page")]) == 1
    assert "--html needs the package matplotlib" in capsys.readouterr().err


def test_a_log_that_cannot_be_read_is_named(tmp_path, capsys):
    assert main.main(["report", "shadow", str(tmp_path / "none")]) == 1
    assert f"{tmp_path}/none: cannot be read: No such file" in capsys.readouterr().err
    damaged = tmp_path / "log.gz"
    damaged.write_bytes(gzip.compress(json.dumps(planned(6)).encode() * 100)[:-12])
    assert main.main(["report", "shadow", str(damaged)]) == 1
    assert f"{damaged}: cannot be read: " in capsys.readouterr().err


def test_a_file_that_has_been_read_is_not_read_again_by_another_name(tmp_path):
    log = Path(written(tmp_path / "log", planned(6)))
    (tmp_path / "link").symlink_to(log)
    seen: set[tuple[int, int]] = set()
    assert len(list(log_lines.oldest_first(str(log), seen))) == 1
    assert list(log_lines.oldest_first(str(tmp_path / "link"), seen)) == []
