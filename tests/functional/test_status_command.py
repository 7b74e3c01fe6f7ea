"""hpc-sched-status as operators run it: a process of its own, with a nova.conf.

Most are forks of a process that has imported Nova. Those that depend on the import run the script.
"""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from hpc_sched.demo import nova_cloud  # noqa: F401 - first of all Nova: it chooses native threads
from tests.functional.clouds import SAMPLE_CONF
from tests.functional.command_server import CommandServer
from tests.functional.database_files import write_conf, write_databases
from tests.functional.trees import write_tree

pytestmark = pytest.mark.ci

PROGRAM = Path(sys.executable).with_name("hpc-sched-status")
HOSTS = ["n1", "n2", "n3"]


# The in-process cloud has chosen native threads for all processes that this one starts.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name != "OS_NOVA_DISABLE_EVENTLET_PATCHING"
}


Done = subprocess.CompletedProcess[str]
Checks = Callable[[Path], tuple[int, dict[str, dict[str, Any]]]]


def run_script(*arguments: object) -> Done:
    command = [str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)


def results(done: Done) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code, and the lines of the table by their names."""
    assert "Traceback" not in done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["name"] == "Upgrade Check Results"
    return done.returncode, {check["check"]: check for check in found["checks"]}


@pytest.fixture(scope="module")
def server() -> Iterator[CommandServer]:
    server = CommandServer(ENVIRONMENT)
    yield server
    server.close()


@pytest.fixture
def run(server: CommandServer) -> Callable[..., Done]:
    """Return what runs hpc-sched-status."""
    return functools.partial(server.run, "hpc_sched.cli.status_command")


@pytest.fixture
def checks(run: Callable[..., Done]) -> Checks:
    """Return what runs the checks on a nova.conf."""
    return lambda config: results(run("--config-file", config, "upgrade", "check", "--json"))


@pytest.fixture
def topology(tmp_path: Path) -> dict[str, dict[str, str]]:
    path = write_tree(tmp_path / "topology.yaml", {"core": {"leaf1": HOSTS}})
    return {"hpc_sched": {"topology_file": str(path), "default_app_class": "sync"}}


@pytest.fixture
def sample(topology: dict[str, dict[str, str]]) -> str:
    """Return what the sample enables, its section [hpc_sched] left out."""
    return SAMPLE_CONF.read_text().partition("[hpc_sched]")[0]


def test_a_cloud_that_is_set_up_as_the_sample_says_passes_every_check(tmp_path, topology, sample):
    databases = write_databases(tmp_path, HOSTS, {"balancers": "anti-affinity"})
    config = write_conf(tmp_path / "nova.conf", databases, topology, text=sample)
    done = run_script("--config-file", config, "upgrade", "check")
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[1].strip("| ") == "Upgrade Check Results"
    results = [line.strip("| ") for line in lines if "Result: " in line]
    assert set(results) == {"Result: Success"}
    assert len(results) == 20
    assert "| Check: Topology " in done.stdout
    assert "All 3 enabled computes are in it." in done.stdout


def test_a_warning_is_exit_code_1_and_a_failure_2(checks, tmp_path, topology, sample):
    databases = write_databases(tmp_path, [*HOSTS, "n4"], {"balancers": "anti-affinity"})
    config = write_conf(tmp_path / "nova.conf", databases, topology, text=sample)
    code, found = checks(config)
    assert code == 1
    assert {name for name, check in found.items() if check["result"]} == {"Topology"}
    assert "1 of 4 enabled computes are not in the topology" in found["Topology"]["details"]

    del topology["hpc_sched"]["default_app_class"]
    code, found = checks(write_conf(config, databases, topology, text=sample))
    assert code == 2
    assert found["Server groups"]["result"] == 2
    assert "balancers (" in found["Server groups"]["details"]


def test_options_of_a_folder_count_and_an_option_set_to_its_default_is_set(
    run, tmp_path, topology, sample
):
    databases = write_databases(tmp_path, HOSTS, {"balancers": "anti-affinity"})
    folder = tmp_path / "nova.conf.d"
    folder.mkdir()
    write_conf(folder / "10-base.conf", databases, text=sample)
    write_conf(folder / "20-hpc.conf", topology, text="cell_timout = 3")
    done = run("--config-dir", folder, "upgrade", "check", "--json")
    found = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert found["Server groups"]["details"] == "default_app_class = sync is set."
    assert found["Options"]["details"] == (
        f"{folder}/20-hpc.conf: [hpc_sched] cell_timout is no option and has no effect: did you "
        "mean cell_timeout?"
    )


def test_without_databases_the_other_checks_still_run(checks, tmp_path, topology, sample):
    missing = {"api_database": {"connection": f"sqlite:///{tmp_path}/empty.sqlite"}}
    del topology["hpc_sched"]["default_app_class"]
    config = write_conf(tmp_path / "nova.conf", missing, topology, text=sample)
    code, found = checks(config)
    assert code == 2
    failed = {name for name, check in found.items() if check["result"] == 2}
    assert failed == {
        "Topology",
        "Multipliers",
        "Failed builds",
        "Application classes",
        "Server groups",
        "Shared hosts",
        "Placement results",
        "Placement candidates",
        "Schedulers",
    }
    for name in failed:
        database, section = ("API database", "api_database")
        if name == "Schedulers":
            database, section = ("database", "database")
        assert f"cannot be read from Nova's {database}: " in found[name]["details"]
        assert f"see [{section}] connection in nova.conf" in found[name]["details"]
    # What could be checked of them is.
    assert "3 hosts, 1 leaf, depth 2" in found["Topology"]["details"]
    assert found["Filters"]["result"] == found["Weighers"]["result"] == 0


@pytest.mark.parametrize(
    ("connection", "error"),
    [
        ("mysql+none://nova:s3cret@127.0.0.1/nova_api", "Can't load plugin"),
        ("mysql+pymysql//nova:s3cret@127.0.0.1/nova_api", "Could not parse"),
        ("mysql+pymysql://nova:s3/cret@127.0.0.1:port/nova_api", "invalid literal for int"),
        ("sqlite:////nowhere/nova_api.sqlite", "unable to open database file"),
    ],
    ids=["no driver", "no url", "no port", "no file"],
)
def test_a_connection_that_cannot_be_had_is_a_failure_without_the_password(
    checks, tmp_path, topology, sample, connection, error
):
    config = write_conf(
        tmp_path / "nova.conf",
        {"api_database": {"connection": connection}},
        topology,
        text=sample,
    )
    code, found = checks(config)
    assert code == 2
    assert error in found["Topology"]["details"]
    assert "cret" not in json.dumps(found)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[api_database]\nconnection = mysql+pymysql://nova:$s3cret@127.0.0.1/x\n", "written $$"),
        ("[database]\nmysql_sql_mode = $s3cret\n", "written $$"),
        ("[database]\nconnection = mysql+pymysql://nova:ab\ns3cret@127.0.0.1/x\n", "nova.conf:3"),
        ("[DEFAULT]\ntransport_url = rabbit://nova:s3cret@host:port/\n", "transport_url"),
        ("[DEFAULT]\ntransport_url = none://nova:s3cret@host/\n", "transport_url"),
        ("[DEFAULT]\ntransport_url = rabbit://nova:s3cret@[host/\n", "transport_url"),
    ],
    ids=[
        "a dollar in a password",
        "a dollar elsewhere",
        "a password on two lines",
        "a queue without a port",
        "a queue without a driver",
        "a queue without a host",
    ],
)
def test_no_error_of_a_nova_conf_that_cannot_be_read_has_a_password(
    server, run, tmp_path, text, error
):
    (tmp_path / "nova.conf").write_text(text)
    option = ("--config-file", tmp_path / "nova.conf")
    shown = server.run("hpc_sched.cli.main", "topology", "show", *option)
    done = run(*option, "upgrade", "check")
    for one in (shown, done):
        assert "s3cret" not in one.stdout + one.stderr
        assert "Traceback" not in one.stderr
    assert (done.returncode, done.stdout) == (255, "")
    assert error in done.stderr


def test_a_nova_conf_that_is_not_utf_8_ends_the_import_of_nova_with_its_name(tmp_path):
    path = tmp_path / "nova.conf"
    path.write_bytes(b"[DEFAULT]\n# \xe9\n")
    done = run_script("--config-file", path, "upgrade", "check")
    assert (done.returncode, done.stdout) == (255, "")
    assert f"{path}: cannot be read: 'utf-8' codec can't decode byte 0xe9" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_nova_conf_that_ends_the_import_of_nova_is_an_error_without_its_password(tmp_path):
    # Nova 33 and later read it at import, for the threads to use.
    (tmp_path / "nova.conf").write_text(
        "[database]\nconnection = mysql+pymysql://nova:ab\ns3cret@127.0.0.1/x\n"
    )
    done = run_script("--config-file", tmp_path / "nova.conf", "upgrade", "check")
    assert (done.returncode, done.stdout) == (255, "")
    assert "nova.conf:3" in done.stderr
    assert "s3cret" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("section", "line", "check", "text"),
    [
        ("filter_scheduler", "host_subset_size = many", "Host subset", "host_subset_size"),
        ("hpc_sched", "cell_timeout = 0", "Options", "cell_timeout"),
    ],
)
def test_a_value_that_cannot_be_read_is_a_failure_of_its_check(
    checks, tmp_path, topology, section, line, check, text
):
    databases = write_databases(tmp_path, HOSTS)
    config = write_conf(tmp_path / "nova.conf", databases, topology, text=f"[{section}]\n{line}")
    code, found = checks(config)
    assert code == 2
    assert found[check]["result"] == 2
    assert text in found[check]["details"]


def test_wrong_usage_and_a_nova_conf_that_cannot_be_read_are_errors_not_failures(run, tmp_path):
    broken = tmp_path / "broken.conf"
    broken.write_text("[hpc_sched\n")
    binary = tmp_path / "binary.conf"
    binary.write_bytes(b"\xff")
    queue = tmp_path / "queue.conf"
    queue.write_text("[DEFAULT]\ntransport_url = rabbitt://\n")
    for arguments, error in (
        ((), "the following arguments are required: command"),
        (("upgrade", "chekc"), "invalid choice: 'chekc'"),
        (("--config-file", tmp_path / "none.conf", "upgrade", "check"), "none.conf"),
        (("--config-file", broken, "upgrade", "check"), "broken.conf"),
        (
            ("--config-file", binary, "upgrade", "check"),
            f"{binary}: cannot be read: 'utf-8' codec can't decode byte 0xff",
        ),
        (("--config-file", tmp_path, "upgrade", "check"), "Is a directory"),
        (("--config-file", queue, "upgrade", "check"), "transport_url of nova.conf"),
    ):
        done = run(*arguments)
        assert done.returncode == 255, arguments
        assert error in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""


@pytest.mark.skipif(
    bool(cfg.find_config_files(project="nova", prog="nova-scheduler")),
    reason="this machine has a nova.conf",
)
def test_without_any_nova_conf_there_is_nothing_to_check(run):
    done = run("upgrade", "check")
    assert done.returncode == 255
    assert "there is no nova.conf where Nova's services look" in done.stderr
    assert "(nova.conf or nova-scheduler.conf in ~/.nova, ~, /etc/nova and /etc)" in done.stderr
    assert "name it with --config-file or --config-dir" in done.stderr


def test_it_runs_on_the_threads_that_nova_conf_chooses(tmp_path, topology, sample):
    databases = write_databases(tmp_path, HOSTS)
    threads = {"DEFAULT": {"concurrency_backend": "eventlet"}}
    config = write_conf(tmp_path / "nova.conf", threads, databases, topology, text=sample)
    assert results(run_script("--config-file", config, "upgrade", "check", "--json"))[0] == 0


def test_the_texts_of_two_schedulers_show_the_option_that_differs(run, tmp_path, topology, sample):
    databases = write_databases(tmp_path)
    shown = []
    for number, limit in enumerate((7, 8)):
        ours = {"hpc_sched": topology["hpc_sched"] | {"cell_timeout": f"{limit}"}}
        host = {"DEFAULT": {"host": f"ctl{number}"}}
        config = write_conf(tmp_path / "nova.conf", host, databases, ours, text=sample)
        done = run("--config-file", config, "scheduler", "show")
        assert (done.returncode, done.stderr) == (0, f"nova-scheduler on ctl{number}\n")
        shown.append(done.stdout.splitlines())
    assert re.match(r"hpc_sched \S+: options \w{8}, topology \w{8}$", shown[1][0])
    different = [pair for pair in zip(*shown, strict=True) if pair[0] != pair[1]]
    assert different[1:] == [("[hpc_sched] cell_timeout = 7", "[hpc_sched] cell_timeout = 8")]


def test_a_closed_standard_error_adds_nothing_to_the_output(tmp_path, topology, sample):
    config = write_conf(tmp_path / "nova.conf", write_databases(tmp_path), topology, text=sample)
    for arguments, code in (
        (("--config-file", config, "scheduler", "show"), 0),
        (("--config-file", tmp_path / "none.conf", "scheduler", "show"), 255),
    ):
        done = run_script(*arguments)
        assert done.returncode == code
        assert done.stderr
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", PROGRAM, *arguments]
        closed = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        assert (closed.returncode, closed.stdout) == (code, done.stdout)


def test_help_and_version_are_no_errors(run):
    done = run("--help")
    assert done.returncode == 0
    assert "2 a failure, 255 an error" in " ".join(done.stdout.split())
    assert run("--version").returncode == 0


def test_without_nova_the_command_says_what_to_install():
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'nova':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "from hpc_sched.cli.status_command import main\n"
        "sys.exit(main(['upgrade', 'check']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 255
    assert done.stderr.startswith("hpc-sched-status: ")
    assert "pip install 'hpc-sched[nova]'" in done.stderr
    assert done.stdout == ""
