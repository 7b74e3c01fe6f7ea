"""Whatever decides about placement is in core: scheduler, snapshot and simulator call it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hpc_sched"

# They build a GroupRequest each, from their own state, and ask it.
BUILDERS = ("nova_glue", "snapshot", "sim", "status", "cli")
# Rules of other schedulers, and the published algorithms as a whole; the plan is not theirs.
POLICIES = PACKAGE / "sim" / "policies"

# Module of core to the names that decide; a builder imports none of them.
DECIDING = {
    "plan.planner": {"attempts", "plan", "solve", "solve_most", "solve_sizes"},
    "plan.rejection": {"largest_gang", "rejected"},
    "plan.ranking": {
        "plan_order",
        "spare_order",
        "added_hops",
        "hosts_with_spares",
        "permitted_hosts",
    },
    "plan.problem": {"Problem"},
    "by_service.plan_by_service": {
        "plan_by_service",
        "plan_on_one_service",
        "rejected_on_one_service",
    },
    "by_service.service_rooms": {"largest", "room_on"},
    "constraints.server_group_policy": {
        "apply",
        "branches",
        "by_service",
        "fewest_per_host",
        "keeps",
        "open_room",
        "shared_out",
    },
    "processors.processor_ranking": {"best_first"},
    "sharing.mdobp": {"order", "places"},
    "classic.listing_1": {"leaf_weights", "host_order", "group_places", "listing1"},
    "classic.build_plan": {"build_plan"},
}
# What a policy of the simulator may take of them: the published algorithms, and a refusal.
OF_POLICIES = {"plan.rejection", "plan.problem", "sharing.mdobp", "classic"}
# Types in annotations, without a call.
TYPES = {"Problem"}


def modules(part: str) -> Iterator[Path]:
    return (path for path in sorted((PACKAGE / part).rglob("*.py")))


def deciding_names(path: Path) -> set[str]:
    """Return the deciding functions of core that a module uses, as ``module.name``."""
    tree = ast.parse(path.read_text())
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    imported: dict[str, str] = {}  # name in the module to the module of core
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        for alias in node.names:
            module = node.module.removeprefix("hpc_sched.core").removeprefix(".")
            if not node.module.startswith("hpc_sched.core"):
                continue
            whole = f"{module}.{alias.name}".removeprefix(".")
            if whole in DECIDING:
                imported[alias.asname or alias.name] = whole
            elif alias.name in DECIDING.get(module, set()) and (
                alias.name not in TYPES or (alias.asname or alias.name) in called
            ):
                found.add(f"{module}.{alias.name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = imported.get(node.value.id, "")
            if node.attr in DECIDING.get(module, set()):
                found.add(f"{module}.{node.attr}")
    return found


@pytest.mark.parametrize("part", BUILDERS)
def test_no_builder_of_requests_decides_by_itself(part):
    for path in modules(part):
        found = deciding_names(path)
        if path.is_relative_to(POLICIES):
            found = {
                name
                for name in found
                if not any(name.startswith(allowed) for allowed in OF_POLICIES)
            }
        assert not found, f"{path.relative_to(ROOT)} decides: {sorted(found)}"


def test_the_names_that_decide_exist():
    for module, names in DECIDING.items():
        path = PACKAGE / "core" / f"{module.replace('.', '/')}.py"
        defined = {
            node.name
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert names <= defined, module


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("from hpc_sched.core.plan.planner import solve", id="a function"),
        pytest.param(
            "from hpc_sched.core.constraints import server_group_policy\n"
            "server_group_policy.apply(1)",
            id="a function of a module",
        ),
        pytest.param(
            "from hpc_sched.core.plan.problem import Problem\nProblem(1)", id="a problem made"
        ),
    ],
)
def test_a_module_that_decides_is_found(tmp_path, text):
    path = tmp_path / "module.py"
    path.write_text(text)
    assert deciding_names(path)


def test_each_of_the_three_builds_a_group_request():
    for part in ("nova_glue/read", "snapshot", "sim"):
        texts = [path.read_text() for path in modules(part)]
        assert any(re.search(r"GroupRequest(\.of)?\(\n", text) for text in texts), part
