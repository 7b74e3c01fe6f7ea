"""openstack hpc ... in a real shell of python-openstackclient, on the Nova in this process.

The cloud is drawn at SHOWN in :mod:`tests.functional.cloud_kinds`.
Each command line runs twice, as hpc-sched ... --cloud test and as openstack --os-cloud test hpc ...
"""

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import wsgi_intercept
from keystoneauth1 import fixture

from hpc_sched.cli import main
from tests.functional import cloud_file
from tests.functional.cloud_kinds import SHOWN
from tests.functional.clouds import SAMPLE_CONF
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.test_osc_shell import NO_SESSION

shell = pytest.importorskip("openstackclient.shell")

pytestmark = cloud_mark(SHOWN)

Run = Callable[..., tuple[int, str, str]]


@contextmanager
def keystone(cloud: TestedCloud) -> Iterator[str]:
    """Serve tokens for the user admin, in place of Keystone, and return the URL."""
    token = fixture.V3Token(user_name=cloud_file.ADMIN, project_name="admin")
    for type_, url in (
        ("compute", cloud.api.base_url),
        ("placement", cloud.placement_fixture.endpoint),
    ):
        token.add_service(type_).add_standard_endpoints(public=url, region="here")

    def app(environment: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        status, content = "200 OK", fixture.DiscoveryList("http://keystone.test", v2=False)
        if environment["REQUEST_METHOD"] == "POST":
            user = json.load(environment["wsgi.input"])["auth"]["identity"]["password"]["user"]
            is_right = (user["name"], user["password"]) == (cloud_file.ADMIN, "right")
            status, content = ("201 Created", token) if is_right else ("401 Unauthorized", {})
        start(status, [("Content-Type", "application/json"), ("X-Subject-Token", cloud_file.ADMIN)])
        return [json.dumps(content).encode()]

    # Nova's fixtures have taken the place of sockets already, on the old releases of threads too.
    wsgi_intercept.add_wsgi_intercept("keystone.test", 80, lambda: app)
    try:
        yield "http://keystone.test/v3"
    finally:
        wsgi_intercept.remove_wsgi_intercept("keystone.test", 80)


@pytest.fixture
def folder(shared_cloud: TestedCloud, tmp_path: Path) -> Iterator[Path]:
    """Write nova.conf, clouds.yaml and a copy of topology and decision log of the cloud."""
    for name in ("topology.yaml", "decisions.json"):
        shutil.copy(shared_cloud.folder / name, tmp_path)
    (tmp_path / "nova.conf").write_text(
        f"{SAMPLE_CONF.read_text()}\n[hpc_sched]\ntopology_file = {tmp_path / 'topology.yaml'}\n"
        f"decision_log = {tmp_path / 'decisions.json'}\n"
    )
    with cloud_file.written(shared_cloud, tmp_path / "clouds.yaml"), keystone(shared_cloud) as url:
        (tmp_path / "keystone").write_text(url)
        yield tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> Run:
    """Return a function that runs a command line in one of the two."""
    # cliff reads the name of the program once, from pytest's arguments.
    monkeypatch.setattr(shell.OpenStackShell, "NAME", "openstack")
    monkeypatch.chdir(folder)

    def run_(program: Callable[[list[str]], int], *arguments: str) -> tuple[int, str, str]:
        handlers, level = list(logging.root.handlers), logging.root.level
        try:
            code = program(list(arguments))
        except SystemExit as end:
            code = end.code
        finally:
            logging.root.handlers[:] = handlers
            logging.root.setLevel(level)
        captured = capsys.readouterr()
        # Nova logs in this process, and its API a line for each request.
        talk = [line for line in captured.err.splitlines(True) if not line.startswith("127.0.0.1 ")]
        # Of an object in the text of a refused connection.
        err = re.sub(" at 0x[0-9a-f]+", "", "".join(talk).replace(NO_SESSION, ""))
        return code, captured.out, err

    return run_


@pytest.fixture
def both(run: Run) -> Run:
    """Return a function that runs a command in both programs, and checks that they agree."""

    def both_(line: str, cloud: str = "test") -> tuple[int, str, str]:
        arguments = line.split()
        code, out, err = run(main.main, *arguments, "--cloud", cloud)
        in_shell = run(shell.main, "--os-cloud", cloud, "hpc", *arguments)
        assert in_shell == (code, out, err.replace(f"cloud {cloud}: ", "the cloud: "))
        return in_shell

    return both_


CONF = "--config-file nova.conf"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("fits --flavor two -f json", 0),
        ("fits --flavor two --count 8 --level leaf -f csv", 0),
        ("fits --flavor two --count 8 --level leaf -f yaml", 0),
        ("fits --flavor two --count 8 --summary -f value -c Hop-Byte", 0),
        ("fits --flavor whole --count 9 -f json", 3),
        ("group show job -f json", 0),
        ("group show job -f csv", 0),
        ("group show job --summary -f value", 0),
        ("fits --flavor two", 0),
        ("fits --flavor two --count 8 --level leaf", 0),
        ("fits --flavor two --count 8 --summary", 0),
        ("fits --flavor two --count 2 --group job", 0),
        ("fits --vcpus 3 --ram 64 --count 4 --policy anti-affinity -c VMs", 0),
        ("fits --flavor whole --count 9", 3),
        ("fits --flavor whole --count 3 --level leaf --summary", 3),
        ("group show job", 0),
        ("group show job --summary", 0),
    ],
)
def test_the_shell_prints_what_hpc_sched_prints(both, line: str, code: int):
    found, out, _ = both(f"{line} {CONF}")
    assert found == code
    assert out


@pytest.mark.default
@pytest.mark.parametrize(
    "rest", ["topology.yaml", "topology.yaml -f json", f"{CONF} -f csv --depth 1"]
)
def test_a_topology_is_shown_with_what_runs_on_the_cloud_of_the_shell(both, rest: str):
    code, out, err = both(f"topology show {rest}")
    assert code == 0
    assert "1 hypervisor not in this topology" in err
    assert "vms" in out.lower()


@pytest.mark.parametrize(("end", "start"), [("", "planned: "), ("--json --last", '{"')])
def test_decisions_are_explained(both, end: str, start: str):
    code, out, err = both(f"explain job --decision-log decisions.json {end}")
    assert code == 0
    assert start in out
    assert err.startswith("note: looking for decisions on ")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("fits --flavor tow --count 2 --config-file nova.conf", "there is no flavor 'tow'"),
        ("fits --flavor two", "name a topology with --topology"),
        ("fits --flavor two --level nowhere --count 2 --config-file nova.conf", "no level"),
        ("group show jbo --config-file nova.conf", "jbo"),
        ("topology show missing.yaml", "missing.yaml: cannot be read"),
        ("topology show broken.yaml", "broken.yaml:1: "),
        ("explain nothing --decision-log decisions.json", "nothing"),
        ("explain nothing --decision-log missing.json", "missing.json"),
    ],
)
def test_an_error_is_a_line_and_exit_code_1(both, folder: Path, line: str, error: str):
    (folder / "broken.yaml").write_text("switches: [{name: s, host: n1}, {hosts: n2, name: 7}]\n")
    code, out, err = both(line)
    assert (code, out) == (1, "")
    assert error in err
    assert "Traceback" not in err


@pytest.mark.parametrize("cloud", ["reader", "no-placement", "no-placement-rights", "gone"])
def test_a_cloud_that_cannot_be_read_is_the_same_error(both, cloud: str):
    code, out, err = both(f"group show job {CONF}", cloud)
    assert (code, out) == (1, "")
    # keystoneauth has a line of its own in old releases.
    starts = ("Nova: GET ", "Placement: GET ", "the cloud: ")
    assert len([line for line in err.splitlines() if line.startswith(starts)]) == 1


@pytest.mark.parametrize(
    "line",
    [
        "fits --config-file nova.conf",
        "fits --flavor two --summary",
        "fits --flavor two --count none",
        "topology show -c Switch",
        "explain",
    ],
)
def test_wrong_usage_is_exit_code_2_before_anything_is_read(run, line: str):
    alone = run(main.main, *line.split())
    in_shell = run(shell.main, "hpc", *line.split())
    assert (in_shell[0], in_shell[1]) == (alone[0], alone[1]) == (2, "")
    assert in_shell[2].splitlines()[-1] == f"openstack hpc{alone[2].splitlines()[-1][9:]}"


def test_the_cloud_is_named_by_the_option_of_the_shell_alone(run):
    code, _, err = run(shell.main, *["hpc", "fits", "--flavor", "two", "--cloud", "test"])
    assert code == 2
    assert "--cloud" in err.splitlines()[-1]
    code, out, _ = run(shell.main, *f"hpc group show job {CONF} --os-cloud test".split())
    assert (code, out.count("worker")) == (0, 3)


def test_a_snapshot_needs_no_cloud_and_no_rights(run, monkeypatch):
    saved = run(main.main, *f"snapshot save state.json {CONF} --cloud test".split())
    assert saved[0] == 0
    monkeypatch.delenv("OS_CLIENT_CONFIG_FILE")
    line = ["fits", "--snapshot", "state.json", "--flavor", "two", "-f", "json"]
    assert run(shell.main, "hpc", *line) == run(main.main, *line)
    line = ["fits", "--flavor", "two", *CONF.split()]
    code, out, err = run(shell.main, "hpc", *line)
    assert (code, out) == (1, "")
    assert re.search(r"\bauth", err.splitlines()[0])
    assert "Traceback" not in err


@pytest.mark.parametrize(("password", "code"), [("right", 0), ("wrong", 1)])
def test_the_shell_authenticates_with_its_own_options(run, folder: Path, password: str, code: int):
    auth = {
        "auth-url": (folder / "keystone").read_text(),
        "username": "admin",
        "project-name": "admin",
        "user-domain-name": "Default",
        "project-domain-name": "Default",
        "password": password,
    }
    options = [f"--os-{name}={value}" for name, value in auth.items()]
    line = f"hpc fits --flavor two {CONF}".split()
    found = run(shell.main, *options, *line)
    if code == 0:
        assert found == run(main.main, *line[1:], "--cloud", "test")
    else:
        assert found[:2] == (1, "")
        assert re.fullmatch(r".*\(HTTP 401\).*\n", found[2])
