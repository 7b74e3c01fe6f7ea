"""What a nova-scheduler loads in the default configuration: no module of a feature that is off."""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_sched.nova_glue import optional_modules

# Statements without docstrings and imports, so that a module in two parts counts as it did, of all
# modules that are loaded after one request of each kind. They include the search for filters that
# count VMs, 60, and the use of their caps in rooms, 45; the trees of hosts with devices and their
# candidates, 580; the plans of a group on bare metal, 260; the VMs of others that are kept between
# requests and corrected, 300; leaves as arrays, the bounds by which a plan leaves out most of the
# tree, and its searches, 450.
MOST_STATEMENTS = 11_217
# Start of a module's name to what turns it on.
OFF = {
    "hpc_sched.metrics": "metrics_address",
    "hpc_sched.nova_glue.exporter": "metrics_address",
    "hpc_sched.nova_glue.io.decision_log": "decision_log",
    "hpc_sched.core.logged.decision_entry": "decision_log",
    "hpc_sched.nova_glue.record.logged_entry": "decision_log",
    "hpc_sched.nova_glue.record.logged_input": "decision_log",
    "hpc_sched.core.counterfactual": "decision_log",
    "hpc_sched.core.plan.gathering": "gather_groups",
    "hpc_sched.nova_glue.decide.single_vms": "whole_leaf_weight_multiplier",
    "hpc_sched.core.fragmentation.fill_order": "whole_leaf_weight_multiplier",
    "hpc_sched.core.by_service.coverage": "a bound on leaves on bare metal",
    "hpc_sched.core.by_service.leaf_choice": "a bound on leaves on bare metal",
    "hpc_sched.nova_glue.shadow_session": "mode",
    "hpc_sched.nova_glue.read.caps.filter_caps": "a filter that counts VMs",
    "hpc_sched.core.room.host_caps": "a filter that counts VMs",
    "hpc_sched.core.sharing.interference_file": "interference_file",
    "hpc_sched.table_file": "interference_file",
    "hpc_sched.topology.readers.command_output": "topology_command",
    "hpc_sched.topology.readers.name_map": "topology_name_map",
    "hpc_sched.topology.compare": "a topology that has changed",
    "hpc_sched.topology.hierarchy": "another topology_driver",
    "hpc_sched.nova_glue.io.aggregates_driver": "another topology_driver",
    "hpc_sched.configuration.config_files": "an option with an error",
    "hpc_sched.snapshot": "a command",
    "hpc_sched.sim": "a command",
    "hpc_sched.cli": "a command",
    "hpc_sched.status": "a command",
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("loaded")
    (folder / "index.csv").write_text("WRF,LU,0.9,0.9\n")
    settings = (
        "mode=shadow",
        f"interference_file={folder / 'index.csv'}",
        f"decision_log={folder / 'decisions'}",
        "metrics_address=127.0.0.1:0",
        "gather_groups=true",
    )
    command = [sys.executable, "-m", "tests.functional.loading_scheduler", str(folder), *settings]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert ended.returncode == 0, ended.stderr
    assert "ERROR" not in ended.stderr
    assert len(re.findall(r"members; planned \d in leaf", ended.stderr)) == 6
    found: dict[str, list[str]] = json.loads(ended.stdout)
    return found


def statements(name: str) -> int:
    """Return the number of statements of a module, docstrings and imports left out."""
    nodes = list(ast.walk(ast.parse(inspect.getsource(importlib.import_module(name)))))
    with_docstrings = (ast.Module, ast.ClassDef, ast.FunctionDef)
    documented = [node for node in nodes if isinstance(node, with_docstrings)]
    docstrings = sum(ast.get_docstring(node) is not None for node in documented)
    imports = sum(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes)
    return sum(isinstance(node, ast.stmt) for node in nodes) - docstrings - imports


def is_below(name: str, start: str) -> bool:
    return name == start or name.startswith(f"{start}.")


def test_no_module_of_a_feature_that_is_off_is_loaded(loaded):
    found = {
        name: option
        for name in loaded["requests"]
        for start, option in OFF.items()
        if is_below(name, start)
    }
    assert not found


def test_the_statements_that_are_loaded_are_bounded(loaded):
    assert sum(map(statements, loaded["requests"])) <= MOST_STATEMENTS


@pytest.mark.parametrize("option", optional_modules.MODULES)
def test_what_an_option_turns_on_is_loaded_at_the_start(loaded, option):
    assert set(optional_modules.MODULES[option]) <= set(loaded[option])


def test_each_option_with_modules_turns_on_what_is_off_by_default(loaded):
    for option, names in optional_modules.MODULES.items():
        for name in names:
            assert [OFF[start] for start in OFF if is_below(name, start)] == [option]
