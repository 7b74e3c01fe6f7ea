"""The path of an operator in README.rst, where nothing is installed but the wheel and Nova.

Environments are made with pip and the constraints of the release of Nova that the tests run on,
and all commands run in an empty folder: nothing is imported from the checkout or the environment of
the tests. ``.ci/release`` runs these with the wheel that it has built (HPC_SCHED_TEST_DIST) and an
environment with that and Nova (HPC_SCHED_TEST_ENVIRONMENT); by themselves they make both.
"""

import configparser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VERSION = metadata.version("hpc-sched")
try:
    NOVA = metadata.version("nova")
except metadata.PackageNotFoundError:  # the tests of the wheel alone run without it
    NOVA = max((ROOT / "constraints").glob("nova-*.txt")).stem.removeprefix("nova-")
CONSTRAINTS = ROOT / "constraints" / f"nova-{NOVA}.txt"
README = (ROOT / "README.rst").read_text()

pytestmark = pytest.mark.nightly("processes", "installs the wheel and Nova with pip")

# What only parts of the package need, by the extra that brings it.
BROUGHT_BY = {
    "nova": {"nova", "keystoneauth1", "sqlalchemy"},
    "demo": {"fixtures", "oslotest", "placement", "testtools"},
    "cloud": {"openstack"},
    "sim": {"jinja2", "joblib", "markupsafe", "matplotlib", "tqdm"},
    "distributed": {"distributed"},
    "metrics": {"prometheus_client"},
    "osc": {"openstackclient", "osc_lib"},
}
IMPORTS = """
import importlib, importlib.metadata, importlib.util, json
missing = {}
if importlib.util.find_spec("nova"):
    # As a service does before it imports what nova.conf names.
    from hpc_sched.nova_glue import nova_release
    nova_release.choose_threads()
    from nova import objects
    objects.register_all()
for path in importlib.metadata.distribution("hpc-sched").files:
    if path.parts[0] == "hpc_sched" and path.suffix == ".py":
        module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        try:
            importlib.import_module(module)
        except Exception as error:
            cause = error
            while cause and not isinstance(cause, ModuleNotFoundError):
                cause = cause.__cause__ or cause.__context__
            if cause is None:
                raise
            missing.setdefault(cause.name.split(".")[0], []).append(module)
print(json.dumps(missing))
"""
HELPS = """
import importlib.metadata, sys
from hpc_sched.cli.main import main
for point in importlib.metadata.entry_points(group="hpc_sched.cli"):
    assert main([*point.name.split("_"), "--help"]) == 0, point.name
    print(point.name, file=sys.stderr)
"""
# As nova-scheduler and nova-api find what entry points and nova.conf name.
SEEN_BY_NOVA = """
import importlib.metadata, json, sys
from hpc_sched.nova_glue import nova_release
nova_release.choose_threads()
from nova import config, objects
from nova.api.validation.extra_specs import validators
from nova.conf import CONF
from nova.scheduler import filters, weights
config.parse_args(["nova-scheduler", "--config-file", sys.argv[1]])
objects.register_all()
for point in importlib.metadata.distribution("hpc-sched").entry_points:
    if point.group.startswith(("nova.", "oslo.", "hpc_sched.filters", "hpc_sched.weighers",
                               "hpc_sched.topology", "console_scripts", "hpc_sched.cli",
                               "hpc_sched.policies", "hpc_sched.queues")):
        point.load()
chosen = CONF.filter_scheduler
known = filters.HostFilterHandler().get_matching_classes(chosen.available_filters)
weighers = weights.HostWeightHandler().get_matching_classes(chosen.weight_classes)
validators.load_validators()
print(json.dumps({
    "filters": [name for name in chosen.enabled_filters if name in {c.__name__ for c in known}],
    "enabled": chosen.enabled_filters,
    "weighers": [c.__name__ for c in weighers if c.__module__.startswith("hpc_sched")],
    "validators": sorted(name for name in validators.VALIDATORS if name.startswith("hpc:")),
}))
"""


class Environment:
    """A virtual environment, used from an empty folder."""

    def __init__(self, prefix: Path, folder: Path) -> None:
        self.bin = prefix / "bin"
        self.prefix = prefix
        self.samples = prefix / "etc" / "hpc_sched"
        self.folder = folder
        self.variables = {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            # Neither the current folder nor packages of the user.
            "PYTHONSAFEPATH": "1",
            "PYTHONNOUSERSITE": "1",
        }

    def install(self, *packages: str) -> None:
        """Install packages in the versions of the constraints, with the tests' settings of pip."""
        subprocess.run(
            [self.bin / "pip", "install", "-q", "-c", CONSTRAINTS, *packages],
            cwd=self.folder,
            env={name: text for name, text in os.environ.items() if name != "PYTHONPATH"},
            check=True,
        )

    def run(self, *command: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command that must end with this exit code."""
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def python(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.run("python", "-I", "-c", program, *arguments)


def created(prefix: Path, folder: Path) -> Environment:
    """Return a new virtual environment."""
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", prefix], check=True)
    return Environment(prefix, folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = os.environ.get("HPC_SCHED_TEST_DIST")
    if not folder:
        folder = str(tmp_path_factory.mktemp("dist"))
        command = [sys.executable, ROOT / ".ci" / "dist", folder]
        subprocess.run(command, check=True, capture_output=True)
    return Path(folder) / f"hpc_sched-{VERSION}-py3-none-any.whl"


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with the wheel alone."""
    folder = tmp_path_factory.mktemp("bare")
    environment = created(folder / "venv", folder / "empty")
    environment.install(str(wheel))
    return environment


@pytest.fixture(scope="module")
def with_nova(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with Nova, and then the wheel."""
    folder = tmp_path_factory.mktemp("nova")
    given = os.environ.get("HPC_SCHED_TEST_ENVIRONMENT")
    if given:
        (folder / "empty").mkdir()
        return Environment(Path(given), folder / "empty")
    environment = created(folder / "venv", folder / "empty")
    environment.install(f"nova=={NOVA}")
    environment.install(str(wheel))
    return environment


@pytest.fixture(scope="module")
def with_fixtures(with_nova: Environment, wheel: Path) -> Environment:
    """Return the environment with what Nova's own tests need too."""
    with_nova.install(f"{wheel}[demo]")
    return with_nova


def conf_of(environment: Environment, topology: Path, name: str) -> Path:
    """Write the installed sample of nova.conf for another topology file; return its path."""
    sample = (environment.samples / "nova.conf.sample").read_text()
    assert "topology_file = /etc/hpc_sched/topology.yaml\n" in sample
    path = environment.folder / name
    path.write_text(sample.replace("/etc/hpc_sched/topology.yaml", str(topology)))
    return path


# ------------------------------------------------------------------- the wheel alone


def test_the_commands_run_where_there_is_no_nova(bare: Environment):
    assert bare.run("hpc-sched", "--version").stdout.split() == ["hpc-sched", VERSION]
    shown = bare.run("hpc-sched", "topology", "validate", bare.samples / "topology.yaml.sample")
    links = "uplinks: leaf 4 x 100 Gb/s, pod 2 x 400 Gb/s; oversubscription: leaf 2:1, pod 1:1"
    assert shown.stdout == f"ok: 32 hosts, 4 leaves, depth 3; {links}\n"
    assert len(bare.python(HELPS).stderr.splitlines()) > 15
    said = bare.run("hpc-sched-status", "--help", code=255).stderr
    assert "pip install 'hpc-sched[nova]'" in said


def test_the_package_comes_from_the_wheel(bare: Environment):
    where = bare.python("import hpc_sched; print(hpc_sched.__file__)").stdout.strip()
    assert Path(where).is_relative_to(bare.prefix)


def test_no_module_needs_a_package_that_neither_the_wheel_nor_an_extra_declares(bare: Environment):
    missing = json.loads(bare.python(IMPORTS).stdout)
    assert missing.keys() <= set().union(*BROUGHT_BY.values())
    # Without its extras the wheel is a whole: topology, core, snapshots, commands, the simulator.
    nova = [module for name in BROUGHT_BY["nova"] for module in missing.get(name, ())]
    parts = {module.split(".")[1] for module in nova}
    assert parts == {"demo", "filters", "nova_glue", "status", "weighers"}


# --------------------------------------------------------------- with Nova, by README.rst


def test_pip_changes_no_nova_and_leaves_nothing_unmet(with_nova: Environment):
    with_nova.run("pip", "check")
    assert f"\nVersion: {NOVA}\n" in with_nova.run("pip", "show", "nova").stdout


def test_with_nova_only_extras_are_missing(with_nova: Environment):
    missing = json.loads(with_nova.python(IMPORTS).stdout)
    allowed = set().union(*(names for extra, names in BROUGHT_BY.items() if extra != "nova"))
    assert missing.keys() <= allowed


def test_nova_sees_what_the_sample_of_nova_conf_enables(with_nova: Environment):
    conf = conf_of(with_nova, with_nova.samples / "topology.yaml.sample", "seen.conf")
    seen = json.loads(with_nova.python(SEEN_BY_NOVA, conf).stdout)
    assert seen["filters"] == seen["enabled"]
    assert {"HPCGroupFilter", "HPCHomogeneityFilter", "HPCRackCapacityFilter"} <= set(
        seen["enabled"]
    )
    assert seen["weighers"] == ["HopByteWeigher"]
    assert {"hpc:app_class", "hpc:require", "hpc:max_leaves"} <= set(seen["validators"])


def test_the_sample_of_the_options_is_what_the_installed_entry_point_generates(
    with_nova: Environment,
):
    made = with_nova.run("oslo-config-generator", "--namespace", "hpc_sched").stdout
    assert made == (with_nova.samples / "hpc_sched.conf.sample").read_text()


@pytest.fixture(scope="module")
def installation(with_nova: Environment) -> list[str]:
    """Return the options that name the files of a controller: README.rst, steps 2 and 3."""
    folder = with_nova.folder
    shutil.copy(with_nova.samples / "topology.yaml.sample", folder / "topology.yaml")
    with_nova.run("hpc-sched", "topology", "validate", "topology.yaml")
    sample = conf_of(with_nova, folder / "topology.yaml", "hpc_sched.conf")
    base = configparser.ConfigParser()
    base.read_dict(
        {
            "DEFAULT": {"transport_url": "fake://", "state_path": folder, "host": "ctl1"},
            "scheduler": {"workers": 1},
            "api_database": {"connection": f"sqlite:///{folder}/api.sqlite"},
            "database": {"connection": f"sqlite:///{folder}/cell1.sqlite"},
            "oslo_concurrency": {"lock_path": folder},
            "placement": {"auth_type": "none", "endpoint_override": "http://127.0.0.1:1/"},
        }
    )
    with (folder / "nova.conf").open("w") as file:
        base.write(file)
    files = ["--config-file", str(folder / "nova.conf"), "--config-file", str(sample)]
    # The databases, as Nova's own guide of installation makes them.
    cell0 = f"sqlite:///{folder}/cell0.sqlite"
    for command in (
        ("api_db", "sync"),
        ("cell_v2", "map_cell0", "--database_connection", cell0),
        ("db", "sync"),
        ("cell_v2", "create_cell", "--name", "cell1"),
    ):
        with_nova.run("nova-manage", *files, *command)
    return files


def test_the_status_check_finds_the_installation_right(
    with_nova: Environment, installation: list[str]
):
    assert "``hpc-sched-status upgrade check``" in README
    shown = with_nova.run("hpc-sched-status", *installation, "upgrade", "check").stdout
    assert "Result: Success" in shown
    assert "Result: Warning" not in shown
    assert "32 hosts, 4 leaves, depth 3" in shown


def test_nova_scheduler_starts_with_the_topology(with_nova: Environment, installation: list[str]):
    assert "Topology loaded: 60 hosts, 4 leaves," in README
    log = with_nova.folder / "nova-scheduler.log"
    process = subprocess.Popen(
        [with_nova.bin / "nova-scheduler", *installation, "--log-file", str(log)],
        cwd=with_nova.folder,
        env=with_nova.variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(240):
            text = log.read_text() if log.exists() else ""
            if "Starting scheduler node" in text or process.poll() is not None:
                break
            time.sleep(0.5)
        # A moment for what a worker would complain of.
        time.sleep(2)
        assert process.poll() is None, text
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    text = log.read_text()
    folder = with_nova.folder
    assert f"Topology loaded: 32 hosts, 4 leaves, depth 3 ({folder}/topology.yaml)" in text
    assert f"hpc_sched {VERSION} on ctl1: options " in text
    assert "Starting scheduler node" in text
    assert " CRITICAL " not in text
    # There is no Placement, of which Nova itself complains.
    assert not [line for line in text.splitlines() if " hpc_sched" in line and " ERROR " in line]


def test_nova_scheduler_does_not_start_with_a_wrong_topology(
    with_nova: Environment, installation: list[str]
):
    assert "does not start and logs a ``TopologyError`` with file and line" in " ".join(
        README.split()
    )
    topology, log = with_nova.folder / "wrong.yaml", with_nova.folder / "failed.log"
    topology.write_text("switches:\n- {name: a, hosts: n1}\n- {name: b, hosts: n1}\n")
    error = f"{topology}:3: host 'n1' is under leaf 'a' and leaf 'b'"
    validated = with_nova.run("hpc-sched", "topology", "validate", topology, code=1)
    assert error in validated.stdout + validated.stderr
    files = [*installation[:-1], str(conf_of(with_nova, topology, "wrong.conf"))]
    with_nova.run("nova-scheduler", *files, "--log-file", log, code=1)
    critical = [line for line in log.read_text().splitlines() if " CRITICAL " in line]
    assert [line.endswith(f"TopologyError: {error}") for line in critical] == [True]
    checked = with_nova.run("hpc-sched-status", *files, "upgrade", "check", code=2)
    assert "Result: Failure" in checked.stdout


# --------------------------------------------- with what Nova's own tests need, step 6


def test_a_group_that_is_booted_as_the_readme_says_is_under_one_leaf(
    with_fixtures: Environment, installation: list[str], tmp_path: Path
):
    for words in ("hpc:app_class=sync", "--policy soft-anti-affinity job1", "--min 8 --max 8"):
        assert words in README
    program = shutil.copy(ROOT / "tests" / "booted_group.py", tmp_path)
    done = with_fixtures.run(
        "python", "-I", program, installation[-1], with_fixtures.folder / "topology.yaml"
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert Path(found["package"]).is_relative_to(with_fixtures.prefix)
    status, message = found["refused extra spec"]
    assert status == 400
    assert "hpc:app_class='fast': expected one of extreme, sync, async, none" in message
    assert len(set(found["hosts"])) == 8
    assert len(found["leaves"]) == 1
    [line] = found["log"]
    assert "8 awaiting, 0 members; planned 8 in " in line
    assert "Hop-Byte 28, least possible 28; 8 claimed at once" in line


def test_the_demo_packs_the_group_and_keeps_novas_log_off_the_screen(with_fixtures: Environment):
    size = ["--hosts", "12", "--leaves", "3", "--pods", "1", "--group-size", "4"]
    done = with_fixtures.run("hpc-sched", "demo", "--json", *size)
    results = json.loads(done.stdout)
    plugin = results["with hpc_sched"]["steps"]
    assert [step["count"] for step in plugin] == [4, 6]
    assert plugin[0]["hop_bytes"] == plugin[0]["least"]
    assert results["stock Nova"]["steps"][0]["hop_bytes"] >= plugin[0]["hop_bytes"]
    for line in done.stderr.splitlines():
        assert re.match(r" *\d+ s  (stock Nova|Listing 1 alone|with hpc_sched): ", line)
