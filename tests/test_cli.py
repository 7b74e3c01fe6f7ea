"""The command hpc-sched: standard output, standard error and exit code."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from hpc_sched import topology
from hpc_sched.cli import demo_command, main
from tests.snapshots import HOSTS, flavor, saved
from tests.test_report_shadow import landed, planned, written


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]):
    assert main.main(["--help"]) == 0
    assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", sorted(point.name for point in entry_points(group="hpc_sched.cli"))
)
def test_the_help_of_every_command_tells_its_exit_codes(capsys, command: str):
    assert main.main([*command.split("_"), "--help"]) == 0
    assert "exit codes" in capsys.readouterr().out


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]):
    assert main.main([]) == 0
    assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("form", ["table", "csv", "value", "json", "yaml", "text"])
def test_letters_that_the_terminal_lacks_come_out_escaped(tmp_path: Path, form, encoding):
    path = tmp_path / "topology.yaml"
    path.write_text("switches:\n- {name: \u0436, hosts: n1}\n", encoding="utf-8")
    done = _run("topology", "show", str(path), "-f", form, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u0436" in done.stdout


def test_a_closed_standard_output_is_told_in_a_line():
    done = _run("topology", "--help", before="exec 1>&-")
    assert (done.returncode, done.stderr) == (1, b"standard output: is closed\n")


def test_a_closed_standard_input_is_an_empty_one():
    done = _run("topology", "validate", "-", before="exec 0<&-")
    assert done.returncode == 1
    assert done.stdout.startswith(b"<stdin>: expected a topology")
    assert b"as in yaml:FILE" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        "fits --snapshot state.json --flavor half -f json",
        "metrics --snapshot state.json",
        "report shadow log -f json",
    ],
)
def test_a_closed_standard_error_changes_neither_output_nor_exit_code(
    tmp_path: Path, monkeypatch, arguments: str
):
    saved(tmp_path, hosts=(*HOSTS, "x1"), flavors=[flavor(app_class="sync")])
    decision = planned(7)
    written(tmp_path / "log", decision, landed(decision))
    monkeypatch.chdir(tmp_path)
    done = _run(*arguments.split())
    assert done.returncode == 0
    assert done.stderr or "log" in arguments
    closed = _run(*arguments.split(), before="exec 2>&-")
    assert (closed.returncode, closed.stdout) == (0, done.stdout)


def _run(*arguments: str, before: str = ":", **environment: str):
    """Run hpc-sched as a shell does, after a command of that shell."""
    command = f'{before}; exec "$0" -m hpc_sched.cli.main "$@"'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, *arguments],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]):
    assert main.main(["dmeo"]) == 2
    assert "'dmeo' is not a hpc-sched command" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--leaves", "0"], "--hosts 36 --leaves 0: expected at least one leaf"),
        (["--hosts", "3"], "--hosts 3 --leaves 4: expected at least one leaf and a host a leaf"),
        (["--pods", "5"], "--leaves 4 --pods 5: expected at least one pod and a leaf a pod"),
        (["--group-size", "0"], "--group-size 0: expected at least 1"),
        (["--group-size", "30"], "--group-size 30 grows to 45: more than the 36 hosts"),
        (["--hosts", "1000"], "1000 hosts: the demo starts a compute service for each"),
        (["--topology", "/nowhere"], "/nowhere: cannot be read: No such file or directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_demo_that_cannot_be_fails_before_it_starts(capsys, arguments, error):
    assert main.main(["demo", *arguments]) == 1
    captured = capsys.readouterr()
    assert error in captured.err
    assert captured.out == ""


def test_without_nova_the_demo_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(demo_command.importlib.util, "find_spec", lambda _name: None)
    assert main.main(["demo"]) == 1
    assert "pip install 'hpc-sched[demo]'" in capsys.readouterr().err


def test_samples_that_are_nowhere_are_an_error_that_names_the_places():
    with pytest.raises(Exception, match=r"nothing\.sample is at none of .*etc/nothing\.sample"):
        demo_command.path_of("nothing.sample")


def test_the_picture_shows_the_leaves_of_both_runs_side_by_side():
    # core over leaf1 (a, b, c) and leaf2 (d, e)
    fabric = topology.Topology.from_tree({"core": {"leaf1": ["a", "b", "c"], "leaf2": ["d", "e"]}})

    def result(first: list[str], then: list[str], cost: int) -> dict:
        steps = [
            {
                "count": len(hosts),
                "hosts": dict.fromkeys(hosts, 1),
                "hop_bytes": cost,
                "least": 1,
                "failed": 0,
                "seconds": 1.5,
            }
            for hosts in (first, first + then)
        ]
        return {"busy": ["c"], "steps": steps}

    text = demo_command.render(
        fabric, {"A": result(["a", "d"], ["e"], 3), "B": result(["d", "e"], ["a"], 1)}
    )
    rows = [line.split() for line in text.splitlines()]
    assert ["leaf1", "1", ".", "x", "2", ".", "x"] in rows
    assert ["leaf2", "1", "2", "1", "1"] in rows
    assert ["Hop-Byte", "cost", "3", "1"] in rows
