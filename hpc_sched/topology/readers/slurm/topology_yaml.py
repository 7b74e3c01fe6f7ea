"""The grammar of Slurm's topology.yaml: several topologies, of which one tree is read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from hpc_sched import exceptions, yaml_nodes
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.slurm.switch_graph import SwitchLine
from hpc_sched.yaml_nodes import is_null, kind_of, line_of

# The file, a topology, its tree, the switches, a switch.
MAX_NESTING = 16
_TYPES = ("tree", "block", "flat", "ring", "torus3d")
_TOPOLOGY_KEYS = ("topology", "cluster_default", *_TYPES)
_TREE_KEYS = ("switches",)
_SWITCH_KEYS = ("switch", "children", "nodes")
_TRUE = ("true", "yes", "on", "1", "y")
_FALSE = ("false", "no", "off", "0", "n")


@dataclass(frozen=True, slots=True)
class _Named:
    """One topology of the file."""

    name: str
    line: int
    kind: str
    body: yaml.Node
    default: bool


def switches_of(content: bytes, tree: str | None, problems: Problems) -> list[SwitchLine]:
    """Return the switches of one tree of a topology.yaml, in its order; linear in its length.

    :param tree: its name; else the first topology with ``cluster_default``, else the only tree
    :param problems: gets what is wrong
    :raises exceptions.TopologyError: where that is much, or there is no such tree
    """
    root = yaml_nodes.compose(content, problems.path, exceptions.TopologyError, MAX_NESTING)
    if root is None or is_null(root):
        raise problems.error(None, "the file is empty")
    if not isinstance(root, yaml.SequenceNode):
        raise problems.error(line_of(root), f"expected a list of topologies, found {kind_of(root)}")
    chosen = _chosen(list(_topologies(root.value, problems)), tree, problems)
    keys = _mapping(chosen.body, f"tree of topology {chosen.name!r}", _TREE_KEYS, problems)
    switches = keys.get("switches")
    if not isinstance(switches, yaml.SequenceNode):
        problems.stop()
        found = "nothing" if switches is None else kind_of(switches)
        raise problems.error(
            line_of(switches or chosen.body),
            f"switches of topology {chosen.name!r}: expected a list, found {found}",
        )
    return [line for item in switches.value for line in _switch(item, problems)]


def _topologies(items: Sequence[yaml.Node], problems: Problems) -> Iterator[_Named]:
    lines: dict[str, int] = {}
    for item in items:
        keys = _mapping(item, "a topology", _TOPOLOGY_KEYS, problems)
        name = _text(keys.get("topology"), "a topology's name", problems) if keys else None
        if not keys or name is None:
            if keys and "topology" not in keys:
                problems.note(line_of(item), "a topology has no name (key 'topology')")
            continue
        line = line_of(keys["topology"])
        if lines.setdefault(name, line) != line:
            problems.note(line, f"topology {name!r} stands twice, first on line {lines[name]}")
        # What Slurm prints has all keys, those of other kinds without a value.
        kinds = [
            kind
            for kind in _TYPES
            if kind in keys and not is_null(keys[kind]) and _truth(keys[kind]) is not False
        ]
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none"
            problems.note(
                line, f"topology {name!r}: expected one of {', '.join(_TYPES)}, found {found}"
            )
            continue
        default = False
        if "cluster_default" in keys and not is_null(keys["cluster_default"]):
            told = _truth(keys["cluster_default"])
            if told is None:
                problems.note(
                    line_of(keys["cluster_default"]),
                    f"topology {name!r}: cluster_default: expected true or false, found "
                    f"{kind_of(keys['cluster_default'])}",
                )
            default = bool(told)
        yield _Named(name, line, kinds[0], keys[kinds[0]], default)


def _chosen(found: Sequence[_Named], tree: str | None, problems: Problems) -> _Named:
    """Return the tree that is wanted."""
    problems.stop()
    names = [each.name for each in found if each.kind == "tree"]
    trees = f"trees in the file: {', '.join(names[:20]) or 'none'}"
    defaults = [each for each in found if each.default]
    if tree is not None:
        wanted = [each for each in found if each.name == tree]
        if not wanted:
            raise problems.error(None, f"there is no topology {tree!r}; {trees}")
    elif defaults:
        wanted = defaults
        for other in defaults[1:]:
            problems.remark(
                other.line,
                f"topology {other.name!r} is a cluster_default too; the first one, "
                f"{defaults[0].name!r}, is read",
            )
    else:
        wanted = [each for each in found if each.kind == "tree"]
        if len(wanted) != 1:
            raise problems.error(
                None,
                "expected a name (topology_name), a topology with cluster_default, or one "
                f"tree alone; {trees}",
            )
    if wanted[0].kind != "tree":
        raise problems.error(
            wanted[0].line,
            f"topology {wanted[0].name!r}: expected a tree, found {wanted[0].kind!r}; {trees}",
        )
    return wanted[0]


def _switch(item: yaml.Node, problems: Problems) -> Iterator[SwitchLine]:
    """Yield the switch of an item; nothing where it is wrong."""
    keys = _mapping(item, "a switch", _SWITCH_KEYS, problems)
    if not keys:
        return
    if "switch" not in keys:
        problems.note(line_of(item), "a switch has no name (key 'switch')")
        return
    name = _text(keys["switch"], "a switch's name", problems)
    if name is None:
        return
    line = line_of(keys["switch"])
    lists: dict[str, str | None] = {}
    for key in ("nodes", "children"):
        node = keys.get(key)
        if (
            node is None
            or is_null(node)
            or (isinstance(node, yaml.ScalarNode) and not node.value.strip())
        ):
            continue  # Slurm prints such keys where there is nothing to say
        lists[key] = _text(node, f"switch {name!r}: {key}", problems)
        if lists[key] is None:
            return
    if len(lists) == 2:
        # Slurm does the same, with a warning.
        problems.remark(line, f"switch {name!r} has nodes: its children are left out")
        del lists["children"]
    yield SwitchLine(name, line, lists.get("nodes"), lists.get("children"))


def _mapping(
    node: yaml.Node, what: str, known: Sequence[str], problems: Problems
) -> dict[str, yaml.Node]:
    """Return the values of a mapping by key; none where it is wrong."""
    if not isinstance(node, yaml.MappingNode):
        problems.note(
            line_of(node), f"{what}: expected keys ({', '.join(known)}), found {kind_of(node)}"
        )
        return {}
    found: dict[str, yaml.Node] = {}
    for key_node, value in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else kind_of(key_node)
        if key not in known:
            problems.note(
                line_of(key_node), f"unknown key {key!r} in {what}; known: {', '.join(known)}"
            )
            return {}
        if key in found:
            problems.note(line_of(key_node), f"key {key!r} stands twice in {what}")
            return {}
        found[key] = value
    if not found:
        problems.note(line_of(node), f"{what} has no keys; known: {', '.join(known)}")
    return found


def _text(node: yaml.Node | None, what: str, problems: Problems) -> str | None:
    """Return a text as it is written; None where there is none."""
    if node is None:
        return None
    if not isinstance(node, yaml.ScalarNode) or is_null(node):
        problems.note(line_of(node), f"{what}: expected text, found {kind_of(node)}")
        return None
    text = str(node.value).strip()
    if not text:
        problems.note(line_of(node), f"{what} is empty")
        return None
    return text


def _truth(node: yaml.Node) -> bool | None:
    """Return what a node says of yes and no; None where it says neither."""
    said = str(node.value).strip().lower() if isinstance(node, yaml.ScalarNode) else ""
    if said in _TRUE:
        return True
    return False if said in _FALSE else None
