"""openstack hpc ... in a real shell of python-openstackclient, where no cloud is needed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_sched.cli import main
from tests.snapshots import FABRIC, HOSTS, group, saved, server
from tests.test_cli_topology import BROKEN, BROKEN_LINES

pytest.importorskip("openstackclient")
pytestmark = pytest.mark.ci

# What osc-lib 4.0, of the time of Nova 31, writes after each command that needs no cloud.
NO_SESSION = "Could not clean up: 'ClientManager' object has no attribute 'session'\n"
NAMES = ["explain", "fits", "group show", "topology show"]
# Only what `openstack` itself imports: pip's script imports no more.
SHELL = "import sys, openstackclient.shell as shell\nshell.OpenStackShell.NAME = 'openstack'\n"


def openstack(
    *arguments: str, folder: Path | None = None, end: str = "", code: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run openstack in a process of its own.

    :param end: what a shell appends to the command
    :param code: lines to run before it
    """
    script = f"{SHELL}{code}sys.exit(shell.main())"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OS_")}
    done = subprocess.run(
        ["bash", "-c", f'"$@" {end}', "bash", sys.executable, "-c", script, *arguments],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    done.stderr = done.stderr.replace(NO_SESSION, "")
    return done


@pytest.fixture(scope="module")
def listed() -> str:
    """Return the list of all commands, and check what the shell has imported for it."""
    code = "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    done = openstack("--help", code=code)
    assert done.returncode == 0
    modules = done.stderr.split()
    assert "hpc_sched.osc.commands" in modules
    ours = {name for name in modules if name.split(".")[0] == "hpc_sched"}
    assert ours == {
        "hpc_sched",
        "hpc_sched.osc",
        "hpc_sched.osc.commands",
        "hpc_sched.osc.client_plugin",
    }
    assert not {"numpy", "msgspec", "ClusterShell"} & set(modules)
    return " ".join(done.stdout.split())


@pytest.mark.default
@pytest.mark.parametrize("name", NAMES)
def test_the_list_of_all_commands_has_the_first_sentence_of_the_help(listed, capsys, name: str):
    assert main.main(["help", *name.split()]) == 0
    text = capsys.readouterr().out
    [title] = re.findall(r"\n\n([A-Z].*?)\.(?: |\n\n)", text, re.DOTALL)[:1]
    assert f"hpc {name} {' '.join(title.split())}" in listed


@pytest.mark.parametrize("name", NAMES)
def test_the_help_names_the_command_of_the_shell(name: str):
    done = openstack("help", "hpc", *name.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: openstack hpc {name} ")
    assert f"openstack hpc {name} " in done.stdout.split("\nexamples:")[1]
    assert f"hpc-sched {name}" not in done.stdout
    assert "--snapshot FILE" in done.stdout
    assert " --cloud" not in done.stdout
    assert "\nexit codes: " in done.stdout


def test_the_shell_lists_the_commands():
    done = openstack(*["command", "list", "--group", "openstack.hpc.v1", "-f", "json"])
    [row] = json.loads(done.stdout)
    assert row["Commands"] == [f"hpc {name}" for name in NAMES]


def test_the_shell_completes_the_commands():
    done = openstack("complete")
    assert done.returncode == 0
    assert "cmds_hpc='explain fits group topology'" in done.stdout
    assert re.search(r"cmds_hpc_fits='.*--flavor", done.stdout)


def test_a_version_that_does_not_exist_is_reported_by_the_shell(tmp_path: Path):
    (tmp_path / "clouds.yaml").write_text("clouds: {odd: {hpc_api_version: 2}}\n")
    done = openstack("--os-cloud", "odd", "hpc", "fits", folder=tmp_path)
    assert done.returncode == 2
    assert "hpc API version 2 is not in supported versions: 1" in done.stderr


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Save a snapshot of names with control codes and with letters that a terminal lacks."""
    vm = server("\x1b[31mred\u0436", "n01")
    fabric = FABRIC.replace("leaf01", "leaf\u0436")
    saved(tmp_path, [vm], [group("job", [vm])], topology=fabric)
    return tmp_path


@pytest.mark.parametrize("form", ["table", "value", "json"])
def test_letters_that_the_terminal_lacks_come_out_escaped(odd: Path, form: str):
    line = ["topology", "show", "--snapshot", "state.json", "-f", form]
    done = openstack("hpc", *line, folder=odd, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "leaf\\u0436" in done.stdout


def test_what_a_terminal_would_obey_is_escaped(odd: Path):
    done = openstack("hpc", "group", "show", "job", "--snapshot", "state.json", folder=odd)
    assert done.returncode == 0
    assert "\\x1b[31mred" in done.stdout
    assert "\x1b" not in done.stdout


def test_every_problem_of_a_broken_file_is_reported(odd: Path):
    (odd / "bad.yaml").write_text(BROKEN)
    line = ["hpc", "topology", "show", "bad.yaml", "--snapshot", "state.json"]
    done = openstack(*line, folder=odd)
    assert (done.returncode, done.stdout) == (1, "")
    first, *others = done.stderr.splitlines()
    assert [first.removesuffix(" (and 2 more problems)"), *others] == BROKEN_LINES


def test_a_name_that_is_not_in_the_log_is_reported_where_there_is_no_cloud(tmp_path: Path):
    (tmp_path / "shadow.jsonl").write_text("")
    line = ["hpc", "explain", "foo", "--decision-log", "shadow.jsonl"]
    done = openstack(*line, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "no decision on 'foo' in shadow.jsonl; and the cloud cannot be asked for its name or "
        "group: the cloud: "
    )


def test_a_closed_standard_error_adds_nothing_to_the_output(tmp_path: Path):
    saved(tmp_path, hosts=(*HOSTS, "x1"))
    line = ["hpc", "fits", "--snapshot", "state.json", "--vcpus", "1", "--ram", "1", "-f", "json"]
    done = openstack(*line, folder=tmp_path)
    assert (done.returncode, "note: " in done.stderr) == (0, True)
    closed = openstack(*line, folder=tmp_path, end="2>&-")
    assert (closed.returncode, closed.stdout) == (0, done.stdout)


@pytest.mark.parametrize(
    ("count", "code", "err"),
    [
        pytest.param("15", 0, "", id="it fits"),
        pytest.param("16", 4, "the time is over: waited ", id="the time is over"),
        pytest.param("17", 3, "not waited: without any VM ", id="it never fits"),
    ],
)
def test_a_wait_ends_as_in_hpc_sched(tmp_path: Path, count: str, code: int, err: str):
    saved(tmp_path, [server("vm", "n01")])
    line = ["hpc", "fits", "--snapshot", "state.json", "--vcpus", "16", "--ram", "1", "--summary"]
    done = openstack(*line, "--count", count, "--wait", "0", "-f", "json", folder=tmp_path)
    assert (done.returncode, json.loads(done.stdout)[0]["Readings"]) == (code, 1)
    assert err in done.stderr


def test_a_reader_that_goes_away_leaves_no_traceback(odd: Path):
    line = ["hpc", "topology", "show", "--snapshot", "state.json"]
    done = openstack(*line, folder=odd, end="| true; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")


def test_a_full_disk_is_a_failure(odd: Path):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    line = ["hpc", "topology", "show", "--snapshot", "state.json"]
    done = openstack(*line, folder=odd, end="> /dev/full")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
