"""hpc-sched check schedulers: standard output, standard error and exit code."""

import gzip
import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hpc_sched.cli import main
from hpc_sched.snapshot.log import logged_decisions, logged_schedulers


def line(host: str, minute: int = 0, **parts: object) -> str:
    """Return a line of the decision log of a controller, written at a minute."""
    same = {"version": "1.0", "options": "aaaa", "topology": "bbbb", "interference": None}
    record = {"time": f"2026-05-04T08:{minute:02}:00", "scheduler": {"host": host, **same, **parts}}
    return f"{json.dumps(record)}\n"


@pytest.fixture
def logs(tmp_path: Path) -> list[str]:
    """Return the logs of two controllers that decide alike."""
    paths = [tmp_path / "ctl1.jsonl", tmp_path / "ctl2.jsonl"]
    for path in paths:
        path.write_text(line(path.stem))
    return [str(path) for path in paths]


def run(*arguments: str) -> int:
    return main.main(["check", "schedulers", *arguments])


def test_controllers_that_decide_alike_are_exit_code_0(logs, capsys):
    assert run(*logs) == 0
    *table, last = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table if row[0] == "|"]
    assert cells == [
        ["Host", "Version", "Options", "Topology", "Interference", "Mode", "Last record"],
        ["ctl1", "1.0", "aaaa", "bbbb", "none", "active", "2026-05-04T08:00:00"],
        ["ctl2", "1.0", "aaaa", "bbbb", "none", "active", "2026-05-04T08:00:00"],
    ]
    assert last == "2 schedulers seen, no difference."


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("version", "version of hpc_sched differs: 1.0 (ctl1, ctl2); cccc (ctl3)"),
        ("options", "options differ: aaaa (ctl1, ctl2); cccc (ctl3)"),
        ("topology", "topology differs: bbbb (ctl1, ctl2); cccc (ctl3)"),
        ("interference", "interference index differs: none (ctl1, ctl2); cccc (ctl3)"),
    ],
)
def test_a_difference_is_named_with_the_controllers_and_is_exit_code_1(
    logs, tmp_path, capsys, part, text
):
    third = tmp_path / "ctl3.jsonl"
    third.write_text(line("ctl3", **{part: "cccc"}))
    assert run(*logs, str(third)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == text


def test_a_scheduler_in_shadow_mode_is_named_and_differs_from_active_ones(logs, tmp_path, capsys):
    third = tmp_path / "ctl3.jsonl"
    third.write_text(line("ctl3").replace("{", '{"mode": "shadow", ', 1))
    assert run(*logs, str(third)) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "mode differs: active (ctl1, ctl2); shadow (ctl3)",
        "In shadow mode, without effect on VMs: ctl3.",
    ]
    assert run(str(third)) == 0


def test_the_newest_record_of_a_controller_counts_in_whatever_log_it_is(tmp_path, logs):
    old = tmp_path / "old.jsonl"
    old.write_text(line("ctl1", 5) + line("ctl1", 0, options="cccc"))
    assert run(*logs, str(old)) == 0
    old.write_text(line("ctl1", 9, options="cccc"))
    assert run(*logs, str(old)) == 1


def test_standard_input_may_have_the_logs_of_all(monkeypatch, capsys):
    text = (line("ctl1") + line("ctl2", options="cccc")).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert run("-", "-f", "value", "-c", "Host", "-c", "Options") == 1
    assert capsys.readouterr().out == "ctl1 aaaa\nctl2 cccc\n"


def test_lines_of_older_versions_and_damaged_ones_are_left_out(tmp_path, logs, capsys):
    path = tmp_path / "mixed.jsonl"
    path.write_text(
        '{"time": "2026-05-04T08:00:00", "decision": "planned"}\n'
        '{"scheduler": 7}\n{"scheduler": {"host": 7}}\n{"scheduler": {}}\n[]\n{"sched\n\xff\n'
        + line("ctl3")[:-9]
    )
    assert run(*logs, str(path)) == 0
    assert "ctl3" not in capsys.readouterr().out


def test_logs_that_name_no_scheduler_are_an_error(tmp_path, capsys):
    path = tmp_path / "old.jsonl"
    path.write_text('{"time": "2026-05-04T08:00:00", "decision": "planned"}\n')
    assert run(str(path)) == 1
    assert f"{path}: no record names its scheduler" in capsys.readouterr().err


def test_a_log_that_cannot_be_read_is_an_error_that_names_it(tmp_path, logs, capsys):
    assert run(*logs, str(tmp_path / "none")) == 1
    assert f"{tmp_path}/none: cannot be read: No such file or directory" in capsys.readouterr().err


def test_a_packed_log_is_unpacked(tmp_path, logs, capsys):
    packed = tmp_path / "ctl3.jsonl.2.gz"
    packed.write_bytes(gzip.compress(line("ctl3", options="cccc").encode()))
    assert run(*logs, str(packed)) == 1
    assert "cccc (ctl3)" in capsys.readouterr().out
    packed.write_bytes(packed.read_bytes()[:-12])
    assert run(*logs, str(packed)) == 1
    assert f"{packed}: cannot be read: " in capsys.readouterr().err


def test_a_pipe_is_not_waited_for(tmp_path, logs, capsys):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert run(*logs, str(path)) == 1
    assert f"{path}: cannot be read: expected a regular file" in capsys.readouterr().err


def test_standard_input_has_its_name_in_errors(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"{}")))
    assert run("-") == 1
    assert capsys.readouterr().err.startswith("<stdin>: no record names its scheduler")


def test_a_long_name_of_a_host_is_shortened(tmp_path, logs, capsys):
    path = tmp_path / "long.jsonl"
    path.write_text(line("x" * 100_000, options="y" * 100_000))
    assert run(*logs, str(path)) == 1
    table = capsys.readouterr().out.splitlines()
    assert max(map(len, table)) < 1000
    assert any("x" * 252 + "... |" in row for row in table)


def test_fields_of_another_type_are_left_out_and_the_others_compared(tmp_path, logs, capsys):
    path = tmp_path / "newer.jsonl"
    path.write_text(line("ctl3", interference=5, version=None, options="cccc"))
    assert run(*logs, str(path)) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "version of hpc_sched differs: 1.0 (ctl1, ctl2); none (ctl3)",
        "options differ: aaaa (ctl1, ctl2); cccc (ctl3)",
    ]


@pytest.mark.parametrize("arguments", [[], ["-", "-"]], ids=str)
def test_wrong_usage_is_exit_code_2(arguments):
    assert run(*arguments) == 2


def test_hosts_cannot_write_to_the_terminal(tmp_path, capsys):
    path = tmp_path / "ctl.jsonl"
    path.write_text(line("\x1b[2Jctl1") + line("ctl2", options="\x1b[31m"))
    for form in ("table", "value", "csv"):
        assert run(str(path), "-f", form) == 1
        assert "\x1b" not in capsys.readouterr().out


def test_recent_records_are_those_of_the_last_bytes_newest_first(tmp_path):
    path, rotated = tmp_path / "log", tmp_path / "log.1"
    rotated.write_text(line("ctl1", 1) + line("ctl1", 2))
    path.write_text(line("ctl1", 3) + line("ctl1", 4))

    def minutes(lines: int) -> list[str]:
        found = logged_decisions.recent(path, lines * len(line("ctl1")))
        return [record["time"][14:16] for record in found]

    assert [minutes(n) for n in (0, 1, 3, 9)] == [
        *([], ["04"], ["04", "03", "02"]),
        ["04", "03", "02", "01"],
    ]


def test_compressed_files_are_not_unpacked_for_recent_records(tmp_path):
    (tmp_path / "log").write_text(line("ctl1"))
    (tmp_path / "log.1.gz").write_bytes(b"no gzip")
    found = logged_schedulers.seen_in(logged_decisions.recent(tmp_path / "log", 1 << 20))
    assert found.keys() == {"ctl1"}
