"""hpc-sched explain: standard output, standard error and exit code."""

import gzip
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.cli import main
from hpc_sched.snapshot.log import logged_decisions, record_text
from hpc_sched.snapshot.source import snapshot_file
from tests.snapshots import group, saved, server, uuid_of


def planned(at: str, **fields: Any) -> dict[str, Any]:
    """Return the record of a plan."""
    return {
        "time": at,
        "request_id": f"req-{at}",
        "instance": f"vm-{at}",
        "instances": [f"vm-{at}", f"second-{at}"],
        "group": uuid_of("job"),
        "policy": "anti-affinity",
        "app_class": "sync",
        "wishes": {"require": "pod", "prefer": None, "max_leaves": None, "homogeneous": "prefer"},
        "left": 3,
        "awaiting": 5,
        "members": {"leaf01": 2},
        "candidates": {"leaf01": {"hosts": 2, "room": 2}, "leaf02": {"hosts": 4, "room": 3}},
        "removed": {"no room for one VM": 1, "processor type other than new": 8},
        "decision": "planned",
        "seconds": 0.00125,
        "plan": {
            "leaves": {"leaf01": 2, "leaf02": 1},
            "hosts": {"n03": 1, "n04": 1, "n05": 1},
            "hop_bytes": 18.0,
            "least": 15.0,
        },
        **fields,
    }


REFUSED = {
    "time": "t9",
    "instance": "vm-t9",
    "group": None,
    "app_class": "sync",
    "left": 9,
    "awaiting": 9,
    "members": {},
    "candidates": {},
    "removed": {},
    "decision": "refused",
    "seconds": 0.001,
    "reason": "group of 9 needs one leaf: largest gang that fits under one leaf: 8 on leaf04",
    "rejection": {
        "reason": "not this",
        "count": 9,
        "fits": {"level": "leaf", "vms": 8, "switch": "leaf04"},
        "largest": [
            {"level": "leaf", "vms": 8, "switch": "leaf04"},
            {"level": "pod", "vms": 16, "switch": "pod2"},
        ],
    },
}


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "decisions.json"
    path.write_text(lines(planned("t1"), REFUSED, planned("t2")))
    return str(path)


def explain(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main.main(["explain", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def times(capsys, *arguments: str) -> list[str]:
    """Return the times of the decisions that are found."""
    code, out, _ = explain(capsys, *arguments, "--json")
    assert code == 0
    return [json.loads(line)["time"] for line in out.splitlines()]


def test_a_plan_in_words(log, capsys):
    assert explain(capsys, "req-t1", "--decision-log", log) == (
        0,
        "t1  planned: server group job-uuid\n"
        "  request     req-t1\n"
        "  first VM    vm-t1\n"
        "  asked       class sync, policy anti-affinity, require=pod, homogeneous=prefer\n"
        "  VMs         3 to place, 2 more of the group await one\n"
        "  members     2 in leaf01 (2)\n"
        "  candidates  6 hosts with room for 5 in 2 leaf switches\n"
        "              leaf01: 2 hosts, room for 2\n"
        "              leaf02: 4 hosts, room for 3\n"
        "  left out    1 hosts: no room for one VM\n"
        "              8 hosts: processor type other than new\n"
        "  plan        3 in leaf01 (2), leaf02 (1)\n"
        "  hosts       n[03-05]: 1 each\n"
        "  cost        Hop-Byte 18, least possible without wishes 15 (3 more)\n"
        "  took        1.2 ms\n",
        "",
    )


def test_a_plan_that_is_not_proven_best_says_so(tmp_path, capsys):
    path = tmp_path / "late.json"
    late = planned("t3", proven=False)
    path.write_text(lines(late, late | {"plan": late["plan"] | {"least": None}}))
    out = explain(capsys, "req-t3", "--decision-log", str(path))[1]
    assert [line for line in out.splitlines() if "cost" in line] == [
        "  cost        Hop-Byte 18, least possible without wishes 15 (3 more); not proven best",
        "  cost        Hop-Byte 18; not proven best",
    ]


def test_a_claim_of_all_vms_at_once_is_said(tmp_path, capsys):
    path = tmp_path / "claims.json"
    held, failed = {"vms": 3, "transactions": 2}, {"transactions": 1}
    path.write_text(lines(planned("t4", claim=held), planned("t4", claim=failed)))
    out = explain(capsys, "req-t4", "--decision-log", str(path))[1]
    assert [line for line in out.splitlines() if "claimed" in line] == [
        "  claimed     3 at once, 2 transactions",
        "  claimed     not at once: 1 transaction failed",
    ]


def test_a_refusal_in_words_says_what_would_have_fitted(log, capsys):
    assert explain(capsys, "vm-t9", "--decision-log", log)[1] == (
        "t9  refused: a request without a server group\n"
        "  first VM    vm-t9\n"
        "  asked       class sync\n"
        "  VMs         9 to place\n"
        f"  reason      {REFUSED['reason']}\n"
        "  would fit   8 under one leaf (leaf04)\n"
        "              16 under one pod (pod2)\n"
        "  took        1.0 ms\n"
    )


def test_only_a_new_group_would_fit_where_the_members_break_a_constraint(tmp_path, capsys):
    path = tmp_path / "apart.json"
    rejection = REFUSED["rejection"] | {"fits": None}
    path.write_text(lines(REFUSED | {"rejection": rejection}))
    out = explain(capsys, "vm-t9", "--decision-log", str(path))[1]
    assert "  new group   8 under one leaf (leaf04)\n              16 under one pod (pod2)\n" in out
    assert "would fit" not in out


def test_a_group_that_grew_has_several_decisions_newest_last(log, capsys):
    job = uuid_of("job")
    assert times(capsys, job, "--decision-log", log) == ["t1", "t2"]
    assert times(capsys, job, "--decision-log", log, "--last") == ["t2"]
    assert explain(capsys, job, "--decision-log", log)[1].count("planned: server group") == 2


def test_a_vm_that_a_record_names_among_others_is_found(log, capsys):
    assert times(capsys, "second-t2", "--decision-log", log) == ["t2"]


def test_rotated_files_are_read_too_oldest_first(tmp_path, capsys):
    path = tmp_path / "decisions.json"
    path.write_text(lines(planned("t5")))
    (tmp_path / "decisions.json.1").write_text(lines(planned("t4")))
    (tmp_path / "decisions.json.10.gz").write_bytes(
        gzip.compress(lines(planned("t1"), planned("t2")).encode())
    )
    (tmp_path / "decisions.json.2").write_text(lines(planned("t3")))
    (tmp_path / "decisions.json.bak").write_text(lines(planned("t0")))
    job = uuid_of("job")
    assert times(capsys, job, "--decision-log", str(path)) == ["t1", "t2", "t3", "t4", "t5"]
    assert times(capsys, "req-t1", "--decision-log", str(path)) == ["t1"]


def test_lines_longer_than_a_block_half_lines_and_other_text_do_no_harm(tmp_path, capsys):
    path = tmp_path / "decisions.json"
    hosts = {f"n{number:05}": 1 for number in range(20_000)}
    long = planned("t1", plan={"hosts": hosts, "leaves": {"leaf01": 20_000}})
    half = json.dumps(planned("t3"))[:-20]
    path.write_text("req-t1 no JSON\n\n" + lines(long, planned("t2"), ["job-uuid"]) + half)
    assert times(capsys, uuid_of("job"), "--decision-log", str(path)) == ["t1", "t2"]
    assert (
        "hosts       n[00000-19999]: 1 each"
        in explain(capsys, "req-t1", "--decision-log", str(path))[1]
    )


def test_a_log_that_has_just_been_rotated_away_is_read_on_in_the_older_file(tmp_path, capsys):
    path = tmp_path / "decisions.json"
    (tmp_path / "decisions.json.1").write_text(lines(planned("t1")))
    assert times(capsys, uuid_of("job"), "--decision-log", str(path)) == ["t1"]


def test_numbers_that_json_does_not_know_make_no_record(tmp_path, capsys):
    path = tmp_path / "decisions.json"
    text = lines(planned("t1"), planned("t2"), planned("t3"))
    path.write_text(text.replace('"t1"', "NaN").replace('"t2"', "1e999"))
    assert times(capsys, uuid_of("job"), "--decision-log", str(path)) == ["t3"]


def test_an_argument_that_is_no_text_is_not_found(log, capsys):
    code, out, err = explain(capsys, "req-\udcff", "--decision-log", log)
    assert (code, out) == (1, "")
    assert err.startswith("no decision on 'req-\\udcff' in ")


def test_of_a_packed_log_no_more_is_kept_than_is_wanted(tmp_path):
    path = tmp_path / "decisions.json"
    path.write_text("")
    packed = tmp_path / "decisions.json.1.gz"
    packed.write_bytes(gzip.compress(lines(planned("t1"), planned("t2")).encode() * 20_000))
    tracemalloc.start()
    try:
        found = logged_decisions.newest(path, 1).records
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [record["time"] for record in found] == ["t2"]
    assert most < 5_000_000


def test_of_more_records_than_the_limit_the_newest_are_explained(tmp_path, capsys, monkeypatch):
    path = tmp_path / "decisions.json"
    path.write_text(lines(*(planned(f"t{number}") for number in range(10, 60))))
    # A record has some 50 values.
    monkeypatch.setattr(logged_decisions, "MAX_VALUES", 500)
    code, out, err = explain(capsys, uuid_of("job"), "--decision-log", str(path), "--json")
    found = [json.loads(line)["time"] for line in out.splitlines()]
    assert code == 0
    assert found == [f"t{number}" for number in range(60 - len(found), 60)]
    assert 5 < len(found) < 50
    assert err == (
        f"note: {path}: records before {found[0]} are left out: with them there are more than "
        "500 JSON values\n"
    )


def test_a_snapshot_has_the_newest_records_up_to_the_limit(tmp_path, capsys, monkeypatch):
    log, conf, new = (tmp_path / name for name in ("decisions.json", "nova.conf", "new.json"))
    log.write_text(lines(*(planned(f"t{number}") for number in range(10, 60))))
    conf.write_text(f"[hpc_sched]\ndecision_log = {log}\n")
    monkeypatch.setattr(logged_decisions, "MAX_VALUES", 500)
    old = saved(tmp_path, [server("a", "n01")], [])
    save = ["snapshot", "save", str(new), "--snapshot", old, "--config-file", str(conf)]
    assert main.main(save) == 0
    assert f"note: {log}: records before " in capsys.readouterr().err
    assert snapshot_file.read(new).decisions[-1]["time"] == "t59"


def test_a_pipe_is_not_waited_for(tmp_path, capsys):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    code, _, err = explain(capsys, "req-1", "--decision-log", str(path))
    assert code == 1
    assert f"{path}: cannot be read: expected a regular file" in err


def test_a_line_longer_than_any_record_is_left_out(tmp_path, capsys):
    path = tmp_path / "decisions.json"
    path.write_bytes(
        lines(planned("t0")).encode() + b"x" * 10_000_000 + b"\n" + lines(planned("t1")).encode()
    )
    assert times(capsys, uuid_of("job"), "--decision-log", str(path)) == ["t0", "t1"]


def test_only_as_much_is_read_as_the_newest_one_needs(tmp_path, capsys):
    path = tmp_path / "decisions.json"
    path.write_text(lines(planned("t1")))
    # Would be an error if it were opened.
    (tmp_path / "decisions.json.1.gz").write_bytes(b"no gzip")
    job = uuid_of("job")
    assert times(capsys, job, "--decision-log", str(path), "--last") == ["t1"]
    code, out, err = explain(capsys, job, "--decision-log", str(path))
    assert (code, out) == (1, "")
    assert f"{path}.1.gz: cannot be read: " in err


def test_a_snapshot_brings_its_own_decisions_and_knows_names(tmp_path, capsys):
    vms = [server("a", "n01"), server("b", "n02")]
    path = saved(tmp_path, vms, [group("job", vms)], decisions=(planned("t1"), planned("t2")))
    assert times(capsys, uuid_of("job"), "--snapshot", path) == ["t1", "t2"]
    code, out, err = explain(capsys, "job", "--snapshot", path, "--last", "--json")
    assert (code, err) == (0, "note: looking for decisions on job-uuid\n")
    assert json.loads(out)["time"] == "t2"


def test_a_vm_that_no_record_names_is_found_by_its_request_then_by_its_group(tmp_path, capsys):
    first = server("first", "n01", reservation_id="r-1")
    later = server("later", "n02", reservation_id="r-1")
    grown = server("grown", "n03", reservation_id="r-2")
    other = server("other", "n03", reservation_id="r-3")
    old = {"instance": first.uuid, "group": None, "decision": "planned", "time": "old"}
    path = saved(
        tmp_path,
        [first, later, grown, other],
        [group("job", [grown])],
        decisions=(old, planned("t1")),
    )
    assert times(capsys, "later", "--snapshot", path) == ["old"]
    assert times(capsys, later.uuid, "--snapshot", path) == ["old"]
    assert times(capsys, grown.uuid, "--snapshot", path) == ["t1"]
    code, out, err = explain(capsys, other.uuid, "--snapshot", path)
    assert (code, out) == (1, "")
    assert f"no decision on '{other.uuid}' in {path}" in err


def test_a_snapshot_that_is_saved_anew_keeps_as_many_decisions_as_requested(tmp_path, capsys):
    records = (planned("t1"), planned("t2"))
    old = saved(tmp_path, [server("a", "n01")], [], decisions=records)
    new = str(tmp_path / "new.json")
    for count, kept in (("1", records[1:]), ("0", ()), ("9", records)):
        save = ["snapshot", "save", new, "--snapshot", old, "--decisions", count]
        assert main.main(save) == 0
        assert f"new.json: 16 hosts, 1 server, 0 server groups, {len(kept)} decision" in (
            capsys.readouterr().err
        )
        assert snapshot_file.read(new).decisions == kept


def test_what_is_nowhere_names_what_is_called_much_the_same(tmp_path, capsys):
    path = saved(tmp_path, [server("worker-1", "n01")], [group("job17", [])])
    code, _, err = explain(capsys, "job71", "--snapshot", path)
    assert code == 1
    assert "there is no server or server group 'job71': there is job17" in err
    assert "no decision on 'req-1'" in explain(capsys, "req-1", "--snapshot", path)[2]


def test_the_log_of_nova_conf_is_read_where_none_is_named(log, tmp_path, capsys):
    conf = tmp_path / "nova.conf"
    conf.write_text(f"[hpc_sched]\ndecision_log = {log}\n")
    assert times(capsys, "req-t1", "--config-file", str(conf)) == ["t1"]
    conf.write_text("[hpc_sched]\n")
    code, _, err = explain(capsys, "req-t1", "--config-file", str(conf))
    assert code == 1
    assert "[hpc_sched] decision_log is not set" in err


def test_a_log_that_is_not_there_is_named(tmp_path, capsys):
    path = str(tmp_path / "nothing")
    code, out, err = explain(capsys, "req-1", "--decision-log", path)
    assert (code, out) == (1, "")
    assert f"{path}: cannot be read: No such file or directory" in err


def test_without_a_cloud_the_error_says_that_it_could_have_helped(log, capsys, monkeypatch):
    for name in ("OS_CLOUD", "OS_AUTH_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", "/nonexistent.yaml")
    code, _, err = explain(capsys, "job", "--decision-log", log)
    assert code == 1
    assert "no decision on 'job' in" in err
    assert "the cloud cannot be asked for its name or group: " in err


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"decision": None, "plan": [], "members": 1, "wishes": "x", "seconds": "long"},
        {"candidates": {"leaf01": 3}, "plan": {"hosts": {"a b": "x"}, "hop_bytes": "much"}},
        {"rejection": {"largest": [1, {}]}, "removed": {"a": None}, "left": None},
        {"rejection": {"largest": 5}, "seconds": 10**400},
        {"plan": {"hosts": {"n1": 10**400}, "hop_bytes": 10**400, "least": 1}},
    ],
    ids=lambda record: str(record)[:60],
)
def test_records_that_lack_what_is_always_there_are_explained_nevertheless(record):
    assert record_text.text_of(record)


@pytest.mark.parametrize("record", [planned("t1"), REFUSED], ids=["planned", "refused"])
def test_a_record_is_read_into_the_fields_that_it_was_written_from(record):
    entry = logged_decisions.entry_of(record)
    assert logged_decisions.entry_of(json.loads(json.dumps(entry.as_json()))) == entry
    assert json.loads(json.dumps(entry.as_json())) == {"request_id": None, **record}


def test_a_record_of_a_newer_release_is_in_words_but_for_what_changed():
    text = record_text.text_of(planned("t1", plan=["another form"], more=1, left="three"))
    assert "asked       class sync" in text
    assert "8 hosts: processor type other than new" in text
    assert "Hop-Byte" not in text


def test_a_record_in_words_does_not_steer_the_terminal():
    text = record_text.text_of(planned("t1\x1b[2J", reason="no\nroom"))
    assert text.startswith("t1\\x1b[2J  planned")
    assert "no\\nroom" in text


def test_many_leaves_are_not_all_listed():
    leaves = {f"leaf{number}": {"hosts": 1, "room": 1} for number in range(500)}
    text = record_text.text_of(planned("t1", candidates=leaves))
    assert "500 hosts with room for 500 in 500 leaf switches" in text
    assert "and 476 more leaves" in text
    assert len(text.splitlines()) < 50


def landed(at: str, leaves: dict[str, int], hosts: dict[str, int], **fields: Any) -> dict[str, Any]:
    """Return the record of where the VMs of the plan of a time landed."""
    decision = planned(at)
    return {
        **{key: decision[key] for key in ("request_id", "instance", "instances", "group", "left")},
        "time": f"{at} later",
        "decision": "landed",
        "landed": {
            "leaves": leaves,
            "hosts": hosts,
            "hop_bytes": 24.0,
            "planned": decision["plan"]["leaves"],
            "as_planned": False,
            "released": False,
            **fields,
        },
    }


def written(tmp_path: Path, *records: Any) -> str:
    path = tmp_path / "landed.json"
    path.write_text(lines(*records))
    return str(path)


def landed_lines(text: str) -> list[str]:
    found = text.splitlines()
    first = next(i for i, line in enumerate(found) if line.startswith("  landed"))
    return [line for line in found[first:] if line]


def test_a_plan_and_where_its_vms_landed_are_one_answer(tmp_path, capsys):
    hosts = {"n03": 1, "n04": 1, "n05": 1}
    there = landed("t1", {"leaf01": 2, "leaf02": 1}, hosts, as_planned=True)
    path = written(tmp_path, planned("t1"), planned("t2"), there)
    _, out, _ = explain(capsys, uuid_of("job"), "--decision-log", path)
    first, second = out.split("\n\n")
    assert first.startswith("t1  planned")
    assert landed_lines(first) == ["  landed      3 in leaf01 (2), leaf02 (1), as planned"]
    assert "landed" not in second


def test_vms_that_landed_elsewhere_are_shown_with_their_hosts_and_cost(tmp_path, capsys):
    there = landed("t1", {"leaf01": 2, "leaf04": 1}, {"n03": 1, "n04": 1, "n20": 1})
    path = written(tmp_path, planned("t1"), there)
    assert landed_lines(explain(capsys, "vm-t1", "--decision-log", path)[1]) == [
        "  landed      3 in leaf01 (2), leaf04 (1); planned 3 in leaf01 (2), leaf02 (1)",
        "              n[03-04,20]: 1 each",
        "              Hop-Byte 24",
    ]
    there = landed("t1", {"leaf01": 2, "leaf02": 1}, {"n03": 2, "n05": 1}, hop_bytes=None)
    path = written(tmp_path, planned("t1"), there)
    assert landed_lines(explain(capsys, "vm-t1", "--decision-log", path)[1]) == [
        "  landed      3 in leaf01 (2), leaf02 (1), on other hosts than planned",
        "              n03: 2",
        "              n05: 1",
    ]


def test_a_request_that_failed_later_landed_nowhere(tmp_path, capsys):
    there = landed("t1", {"leaf01": 2}, {"n03": 2}, as_planned=None, released=True)
    path = written(tmp_path, planned("t1"), there)
    assert landed_lines(explain(capsys, "req-t1", "--decision-log", path)[1]) == [
        "  landed      nowhere: the request failed, Nova released its claims: 2"
    ]


def test_the_newest_decision_comes_with_its_landing_alone(tmp_path, capsys):
    leaves, hosts = {"leaf01": 3}, {"n03": 3}
    job = uuid_of("job")
    records = [planned("t1"), planned("t2"), landed("t2", leaves, hosts)]
    path = written(tmp_path, *records)
    assert times(capsys, job, "--decision-log", path, "--last") == ["t2", "t2 later"]
    path = written(tmp_path, *records[:2], landed("t1", leaves, hosts))
    assert times(capsys, job, "--decision-log", path, "--last") == ["t2"]
    assert times(capsys, job, "--decision-log", path) == ["t1", "t1 later", "t2"]


def test_a_landing_whose_decision_is_gone_is_explained_alone(tmp_path, capsys):
    path = written(tmp_path, landed("t1", {"leaf01": 3}, {"n03": 3}))
    for last in ([], ["--last"]):
        out = explain(capsys, "vm-t1", "--decision-log", path, *last)[1]
        assert out.startswith("t1 later  landed: server group job-uuid\n")
        assert "  landed      3 in leaf01 (3); planned 3 in leaf01 (2), leaf02 (1)\n" in out


def test_shunned_hosts_are_named_with_the_reason_and_whether_the_plan_uses_them(tmp_path, capsys):
    shunned = {
        "failed builds (BuildFailureWeigher)": {"count": 70, "hosts": ["n01", "n02"]},
        "SiteWeigher": {"count": 1, "hosts": ["n09"]},
    }
    path = written(
        tmp_path, planned("t1", shunned=shunned), planned("t2", shunned=shunned, uses_shunned=True)
    )
    for name, uses in (("t1", "avoids them"), ("t2", "has to use some of them")):
        out = explain(capsys, f"req-{name}", "--decision-log", path)[1]
        assert (
            "  shunned     SiteWeigher: 1 host: n09\n"
            "              failed builds (BuildFailureWeigher): 70 hosts: n[01-02] and 68 more\n"
            f"              the plan {uses}\n"
        ) in out


@pytest.mark.parametrize(
    "wrong", [{"shunned": {"why": 3}}, {"shunned": {"why": {"count": "x"}}}, {"landed": [1]}]
)
def test_damaged_fields_of_newer_records_are_left_out(tmp_path, capsys, wrong):
    path = written(tmp_path, planned("t1", **wrong))
    code, out, _ = explain(capsys, "req-t1", "--decision-log", path)
    assert code == 0
    assert "shunned" not in out
    assert "landed" not in out


def test_the_scheduler_that_decided_is_shown_where_the_record_has_it():
    scheduler = {"host": "ctl1", "version": "1.2", "options": "aaaa", "topology": "bbbb"}
    text = record_text.text_of(planned("t1", scheduler=scheduler))
    assert text.endswith("\n  scheduler   hpc_sched 1.2 on ctl1: options aaaa, topology bbbb")
    assert "scheduler" not in record_text.text_of(planned("t1"))
    with_index = record_text.text_of(planned("t1", scheduler=scheduler | {"interference": "cc"}))
    assert with_index.endswith("topology bbbb, interference index cc")
