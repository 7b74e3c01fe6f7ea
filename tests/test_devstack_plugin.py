"""devstack/plugin.sh: each phase, in a shell with the functions of devstack.

With HPC_SCHED_TEST_DEVSTACK, a checkout of devstack, they are its own; else those of
devstack_functions.sh.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc_sched import conf
from tests import nova_conf_reading
from tests.deployment_tools import tool

pytestmark = pytest.mark.ci

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "devstack"
DEVSTACK = os.environ.get("HPC_SCHED_TEST_DEVSTACK")
INI_FUNCTIONS = (
    Path(DEVSTACK) / "inc" / "ini-config" if DEVSTACK else ROOT / "tests" / "devstack_functions.sh"
)
NOVA_FILTERS = "ComputeFilter,ServerGroupAntiAffinityFilter,SameHostFilter"
OURS = ["HPCHomogeneityFilter", "HPCGroupFilter", "HPCRackCapacityFilter"]

# What stack.sh has when it sources the plugin: it ends at the first command that fails.
SHELL = """
set -o errexit
sudo() { "$@"; }
die() { echo "$2" >&2; exit 1; }
echo_summary() { :; }
define_plugin() { :; }
pip_install() { echo "pip_install $*"; }
is_service_enabled() { grep -qwE "$(tr " " "|" <<< "$*")" <<< "$ENABLED"; }
"""


class Stack:
    """A folder with what devstack has written before it calls the plugin."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "nova.conf"
        self.placement = folder / "placement.conf"
        self.topology = folder / "etc" / "topology.yaml"
        self.conf.write_text(
            "[DEFAULT]\ndebug = True\n\n[filter_scheduler]\n"
            f"enabled_filters = {NOVA_FILTERS}\n\n[scheduler]\nworkers = 2\n"
        )
        self.placement.write_text("[placement]\n")
        programs = folder / "bin"
        programs.mkdir()
        for name, code in (
            ("hpc-sched", f'exec "{sys.executable}" -m hpc_sched.cli.main "$@"'),
            ("hpc-sched-status", 'echo "status $*"; exit "${STATUS:-0}"'),
        ):
            (programs / name).write_text(f"#!/bin/bash\n{code}\n")
            (programs / name).chmod(0o755)

    def run(self, *phase: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Source settings and plugin as devstack does."""
        script = (
            f"{SHELL}source {INI_FUNCTIONS}\nsource {PLUGIN}/settings\n"
            f'source {PLUGIN}/plugin.sh "$@"\n'
        )
        environment = {
            "PATH": os.environ["PATH"],
            "HOSTNAME": "stack",
            "DEST": "/opt/stack",
            "ENABLED": "n-api,n-sch,n-cpu,placement-api",
            "VIRT_DRIVER": "fake",
            "NUMBER_FAKE_NOVA_COMPUTE": "5",
            "NOVA_CONF": str(self.conf),
            "NOVA_FILTERS": NOVA_FILTERS,
            "NOVA_BIN_DIR": str(self.folder / "bin"),
            "PLACEMENT_CONF": str(self.placement),
            "HPC_SCHED_TOPOLOGY_FILE": str(self.topology),
        }
        return subprocess.run(
            ["bash", "-c", script, "stack.sh", *phase],
            env=environment | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def configured(self, **variables: str) -> dict[str, Any]:
        """Run the phase post-config and return what nova-scheduler reads."""
        done = self.run("stack", "post-config", **variables)
        assert done.returncode == 0, done.stderr
        return nova_conf_reading.read(self.conf)

    def leaves(self) -> dict[str, list[str]]:
        """Return the hosts of each leaf of the topology file."""
        [spine] = yaml.safe_load(self.topology.read_text())["switches"]
        return {leaf["name"]: leaf["hosts"] for leaf in spine["switches"]}


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


def test_the_scripts_have_no_finding_of_shellcheck():
    shellcheck = tool("shellcheck")
    done = subprocess.run(
        [shellcheck, "-s", "bash", PLUGIN / "plugin.sh", PLUGIN / "settings"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_package_is_installed_with_the_commands_of_openstackclient(stack: Stack):
    done = stack.run("stack", "install")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "pip_install -e /opt/stack/hpc_sched[osc]\n"


def test_nova_reads_the_filters_and_weighers_with_a_generated_topology(stack: Stack):
    pytest.importorskip("nova")
    found = stack.configured()
    assert found["available_filters"] == [
        "nova.scheduler.filters.all_filters",
        "hpc_sched.filters.all_filters",
    ]
    assert found["enabled_filters"] == [*NOVA_FILTERS.split(","), *OURS]
    assert found["unknown_filters"] == []
    assert "HopByteWeigher" in found["weighers"]
    assert "RAMWeigher" in found["weighers"]
    defaults = {opt.dest: opt.default for opt in conf.OPTS}
    changed = {key: value for key, value in found["hpc_sched"].items() if value != defaults[key]}
    assert changed.pop("topology_file") == str(stack.topology)
    assert changed.keys() <= {"default_app_class"}
    assert found["hpc_sched"]["default_app_class"] == "sync"
    assert stack.leaves() == {
        "leaf1": ["stack1", "stack2"],
        "leaf2": ["stack3", "stack4", "stack5"],
    }
    assert "allocation_conflict_retry_count = 1" in stack.placement.read_text()
    # What devstack has set before stays.
    assert "debug = True" in stack.conf.read_text()
    assert "workers = 2" in stack.conf.read_text()


def test_a_second_run_changes_nothing(stack: Stack):
    stack.run("stack", "post-config")
    files = (stack.conf, stack.placement, stack.topology)
    # devstack's own function moves the lines of a repeated key.
    before = [sorted(path.read_text().splitlines()) for path in files]
    done = stack.run("stack", "post-config")
    assert (done.returncode, done.stderr) == (0, "")
    assert [sorted(path.read_text().splitlines()) for path in files] == before


def test_what_other_plugins_have_enabled_stays(stack: Stack):
    pytest.importorskip("nova")
    ram = "nova.scheduler.weights.ram.RAMWeigher"
    others = "nova.scheduler.filters.compute_filter.ComputeFilter"
    stack.conf.write_text(
        f"[filter_scheduler]\navailable_filters = {others}\nenabled_filters = ComputeFilter\n"
        f"weight_classes = {ram}\n"
    )
    found = stack.configured(HPC_SCHED_FILTERS="ComputeFilter,HPCGroupFilter")
    assert found["available_filters"] == [others, "hpc_sched.filters.all_filters"]
    assert found["enabled_filters"] == ["ComputeFilter", "HPCGroupFilter"]
    assert found["weighers"] == ["HopByteWeigher", "RAMWeigher"]


def test_every_variable_is_an_option(stack: Stack):
    pytest.importorskip("nova")
    log = stack.folder / "decisions.json"
    wanted: dict[str, Any] = {
        "default_app_class": "none",
        "decision_log": str(log),
        "bunch_weight_multiplier": 1.5,
        "hop_byte_weight_multiplier": 2.5,
        "mdobp_weight_multiplier": 3.5,
        "rack_capacity_weight_multiplier": 4.5,
        "whole_leaf_weight_multiplier": 5.5,
    }
    if "mode" in {opt.dest for opt in conf.OPTS}:
        wanted["mode"] = "shadow"
    variables = {f"HPC_SCHED_{name.upper()}": str(value) for name, value in wanted.items()}
    found = stack.configured(**variables)["hpc_sched"]
    assert {name: found[name] for name in wanted} == wanted
    # The settings name no option that does not exist.
    script = f"source {PLUGIN}/settings; compgen -v HPC_SCHED_"
    done = subprocess.run(
        ["bash", "-c", f"define_plugin() {{ :; }}\n{script}"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    own = {"dir", "filters", "weighers", "hosts", "leaves", "mode"}
    names = {line.removeprefix("HPC_SCHED_").lower() for line in done.stdout.split()} - own
    assert names
    assert names <= set(found)


@pytest.mark.parametrize(
    ("variables", "leaves"),
    [
        ({"HPC_SCHED_HOSTS": "a b c", "HPC_SCHED_LEAVES": "3"}, [["a"], ["b"], ["c"]]),
        ({"HPC_SCHED_HOSTS": "a", "HPC_SCHED_LEAVES": "4"}, [["a"]]),
        ({"NUMBER_FAKE_NOVA_COMPUTE": "2", "HPC_SCHED_LEAVES": "1"}, [["stack1", "stack2"]]),
    ],
)
def test_hosts_are_spread_over_the_leaves(stack: Stack, variables, leaves):
    assert stack.run("stack", "post-config", **variables).returncode == 0
    assert list(stack.leaves().values()) == leaves


def test_the_compute_of_a_real_hypervisor_is_this_host(stack: Stack):
    assert stack.run("stack", "post-config", VIRT_DRIVER="libvirt").returncode == 0
    name = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip()
    assert stack.leaves() == {"leaf1": [name]}


def test_a_topology_of_the_user_is_neither_written_nor_removed(stack: Stack):
    shutil.copytree(ROOT / "docs" / "examples", stack.topology.parent)
    content = stack.topology.read_text()
    assert stack.run("stack", "post-config").returncode == 0
    assert stack.run("clean").returncode == 0
    assert stack.topology.read_text() == content


def test_clean_removes_the_generated_topology(stack: Stack):
    stack.run("stack", "post-config")
    assert stack.topology.exists()
    for _ in range(2):
        done = stack.run("clean")
        assert (done.returncode, done.stderr) == (0, "")
        assert not stack.topology.parent.exists()


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"HPC_SCHED_LEAVES": "two"}, "HPC_SCHED_LEAVES=two: expected a whole number >= 1"),
        ({"HPC_SCHED_HOSTS": "a a"}, "the topology cannot be used"),
        ({"HPC_SCHED_TOPOLOGY_DRIVER": "slurm"}, "the topology cannot be used"),
    ],
)
def test_a_topology_that_cannot_be_used_ends_stack_sh(stack: Stack, variables, error: str):
    done = stack.run("stack", "post-config", **variables)
    assert done.returncode == 1
    assert error in done.stderr


@pytest.mark.parametrize(("status", "code"), [("0", 0), ("1", 0), ("2", 1), ("255", 1)])
def test_the_last_phase_ends_stack_sh_where_the_status_check_fails(stack: Stack, status, code):
    done = stack.run("stack", "extra", STATUS=status)
    assert done.returncode == code
    assert done.stdout == f"status --config-file {stack.conf} upgrade check\n"


@pytest.mark.parametrize("phase", [["source"], ["stack", "pre-install"], ["unstack"]])
def test_other_phases_do_nothing(stack: Stack, phase: list[str]):
    before = stack.conf.read_text()
    done = stack.run(*phase)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert stack.conf.read_text() == before


def test_a_host_with_computes_alone_is_left_alone(stack: Stack):
    for phase in (["stack", "install"], ["stack", "post-config"], ["stack", "extra"], ["clean"]):
        done = stack.run(*phase, ENABLED="n-cpu")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not stack.topology.exists()
