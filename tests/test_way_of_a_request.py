"""What the shape of the glue promises: small classes and functions in its five phases."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GLUE = ROOT / "hpc_sched" / "nova_glue"
PHASES = ("read", "decide", "claim", "answer", "record")
# The session takes a request through the phases.
SESSIONS = [GLUE / f"{name}session.py" for name in ("", "active_", "shadow_")] + [
    GLUE / "phases.py"
]
MODULES = [*(path for phase in PHASES for path in sorted((GLUE / phase).rglob("*.py"))), *SESSIONS]

# The most members of a stateful class that others use, and lines of a function.
MOST_MEMBERS = 12
MOST_LINES = 40


def is_frozen(found: ast.ClassDef) -> bool:
    """True if instances of a class do not change."""
    names = {ast.unparse(base) for base in found.bases}
    texts = [ast.unparse(decorator) for decorator in found.decorator_list]
    return bool(names & {"NamedTuple", "Protocol", "enum.Enum"}) or any(
        "frozen=True" in text for text in texts
    )


def members_of(found: ast.ClassDef) -> set[str]:
    """Return the public methods, properties and attributes of a class."""
    named = {
        node.name for node in found.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    named |= {
        node.target.id
        for node in found.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    named |= {
        node.attr
        for node in ast.walk(found)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == "self"
    }
    return {name for name in named if not name.startswith("_")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(GLUE)))
def test_no_stateful_class_has_more_members_than_one_can_keep_in_mind(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and not is_frozen(node):
            members = members_of(node)
            assert len(members) <= MOST_MEMBERS, f"{node.name}: {sorted(members)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(GLUE)))
def test_no_function_is_longer_than_a_screen(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < MOST_LINES, node.name
