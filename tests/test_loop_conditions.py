"""The condition of a comprehension makes no set anew for each element: that is quadratic."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "hpc_sched"
MAKERS = {"set", "frozenset", "dict", "list", "tuple", "sorted"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def makes_anew(node: ast.AST) -> bool:
    """True for what makes a collection: a union, intersection or difference, set(), sorted()."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr | ast.BitAnd)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in MAKERS


def parts_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below, but for calls of isinstance: a union there is one of types."""
    if isinstance(node, ast.Call) and "isinstance" in names(node.func):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from parts_of(child)


def made_in_conditions(code: str) -> Iterator[str]:
    """Yield what conditions make for each element, although it is the same for all of them."""
    for found in ast.walk(ast.parse(code)):
        if not isinstance(found, COMPREHENSIONS):
            continue
        elements = {name for each in found.generators for name in names(each.target)}
        conditions = [condition for each in found.generators for condition in each.ifs]
        for condition in conditions:
            named = [one for one in ast.walk(condition) if isinstance(one, ast.NamedExpr)]
            own = elements.union(*(names(one.target) for one in named))
            for part in parts_of(condition):
                if makes_anew(part) and names(part).isdisjoint(own):
                    yield f"line {part.lineno}: {ast.unparse(part)}"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("[a for a in b if a not in c.keys() | d]", ["line 1: c.keys() | d"]),
        ("[a for a in b if a in set(c)]", ["line 1: set(c)"]),
        ("[a for a in b if set(a) & c]", []),
    ],
    ids=["a union", "a set", "of each element"],
)
def test_what_is_made_for_each_element_is_found(code: str, expected: list[str]):
    assert list(made_in_conditions(code)) == expected


def test_no_condition_makes_for_each_element_what_is_the_same_for_all():
    found = {
        str(path.relative_to(PACKAGE)): made
        for path in sorted(PACKAGE.rglob("*.py"))
        if (made := list(made_in_conditions(path.read_text())))
    }
    assert not found
