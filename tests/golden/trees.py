"""Fabrics drawn from a seed: one leaf, rows, unbalanced pods, four levels, islands.

::

      one leaf        row              pods                 deep
                                                             core
       leaf1         core              core                 /    \\
       /   \\        /    \\           /  |   \\            row1   row2
      n     n    leaf1  leaf2     pod1 pod2 leaf4         /         \\
                                  /  \\    \\             pod1       pod2
                               leaf1 leaf2 leaf3       leaf1       leaf2 ..
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

SHAPES = ("leaf", "row", "row", "pods", "pods", "pods", "deep", "islands")


@dataclass(frozen=True)
class Fabric:
    """Nested switches, as topology files have them, and the processor types that some state."""

    shape: str
    tree: Mapping[str, Any]
    processors: Mapping[str, str]  # switch to its stated type
    leaf_of: Mapping[str, str]  # host to its leaf

    @property
    def hosts(self) -> list[str]:
        """The hosts as the tree has them, leaf by leaf."""
        return list(self.leaf_of)

    @property
    def switches(self) -> list[str]:
        """All switches, leaves included."""
        return _switches(self.tree)


def draw(dice: random.Random, most_hosts: int = 5) -> Fabric:
    """Return a fabric.

    :param most_hosts: below one leaf
    """
    leaves, pods, rows = count(1), count(1), count(1)
    names = [f"n{number:03}" for number in range(1, 400)]
    dice.shuffle(names)

    def leaf() -> list[str]:
        return [names.pop() for _ in range(dice.randint(1, most_hosts))]

    def row(most: int) -> dict[str, Any]:
        return {f"leaf{next(leaves)}": leaf() for _ in range(dice.randint(1, most))}

    def pods_(most: int) -> dict[str, Any]:
        found: dict[str, Any] = {f"pod{next(pods)}": row(3) for _ in range(dice.randint(1, most))}
        # Some leaves are below the root itself.
        return found | (row(2) if dice.random() < 0.25 else {})

    def root(shape: str) -> Any:
        if shape == "leaf":
            return leaf() + leaf()
        if shape == "row":
            return row(6)
        if shape == "deep":
            return {f"row{next(rows)}": pods_(2) for _ in range(dice.randint(2, 3))}
        return pods_(4)

    shape = dice.choice(SHAPES)
    if shape == "islands":
        tree = {"core1": root(dice.choice(("row", "pods"))), "core2": root(dice.choice(SHAPES[:4]))}
    else:
        tree = {"core": root(shape)}
    stated = {
        name: dice.choice(("gold", "silver"))
        for name in _switches(tree)
        if name.startswith("leaf") and dice.random() < 0.12
    }
    return Fabric(shape, tree, stated, _leaves(tree))


def text_of(fabric: Fabric) -> dict[str, Any]:
    """Return a fabric as the content of a topology file."""

    def entry(name: str, below: Any) -> dict[str, Any]:
        stated = {"processor": fabric.processors[name]} if name in fabric.processors else {}
        if isinstance(below, Mapping):
            return {"name": name, **stated, "switches": [entry(*item) for item in below.items()]}
        return {"name": name, **stated, "hosts": below}

    return {"switches": [entry(*item) for item in fabric.tree.items()]}


def _switches(tree: Mapping[str, Any]) -> list[str]:
    found = []
    for name, below in tree.items():
        found += [name, *(_switches(below) if isinstance(below, Mapping) else [])]
    return found


def _leaves(tree: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, below in tree.items():
        found |= _leaves(below) if isinstance(below, Mapping) else dict.fromkeys(below, name)
    return found
