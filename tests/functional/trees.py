"""Nested switches, as ``Topology.from_tree`` takes them, written as topology files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def write_tree(path: Path, tree: Mapping[str, Any], types: Mapping[str, str] | None = None) -> Path:
    """Write a tree as a topology file and return its path.

    :param types: switch to the processor type that it states
    """

    def entry(name: str, below: Any) -> dict[str, Any]:
        stated = {"processor": types[name]} if types and name in types else {}
        if isinstance(below, Mapping):
            return {"name": name, **stated, "switches": [entry(*item) for item in below.items()]}
        return {"name": name, **stated, "hosts": below}

    path.write_text(yaml.safe_dump({"switches": [entry(*item) for item in tree.items()]}))
    return path


def hosts_below(tree: Any) -> list[str]:
    """Return the hosts of a tree, in their order."""
    if isinstance(tree, Mapping):
        return [host for below in tree.values() for host in hosts_below(below)]
    return list(tree)
