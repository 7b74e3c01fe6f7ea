"""The grammar of Slurm's topology.yaml: several topologies, of which one tree is read."""

from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from hpc_sched import exceptions, yaml_nodes
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.slurm.switch_graph import SwitchLine
from hpc_sched.topology.readers.yaml_file import invalid, items, mapping, text
from hpc_sched.yaml_nodes import is_null, kind_of, line_of

# The file, a topology, its tree, the switches, a switch.
MAX_NESTING = 16
_TYPES = ("tree", "block", "flat", "ring", "torus3d")
_TOPOLOGY_KEYS = ("topology", "cluster_default", *_TYPES)
_TREE_KEYS = ("switches",)
_SWITCH_KEYS = ("switch", "children", "nodes")
_BOOLEANS = dict.fromkeys(("true", "yes", "on", "1", "y"), True)
_BOOLEANS |= dict.fromkeys(("false", "no", "off", "0", "n"), False)


@dataclass(frozen=True, slots=True)
class _NamedTopology:
    name: str
    line: int
    kind: str
    body: yaml.Node
    default: bool


def switches_of(content: bytes, tree: str | None, problems: Problems) -> list[SwitchLine]:
    """Return the switches of one tree of a topology.yaml, in its order; linear in its length.

    :param tree: its name; else the first topology with ``cluster_default``, else the only tree
    :raises exceptions.TopologyError: where no single tree can be chosen, or as Problems does
    """
    root = yaml_nodes.compose(content, problems.path, exceptions.TopologyError, MAX_NESTING)
    if root is None or is_null(root):
        raise problems.error(None, "the file is empty")
    if not isinstance(root, yaml.SequenceNode):
        raise problems.error(line_of(root), f"expected a list of topologies, found {kind_of(root)}")
    found = []
    lines: dict[str, int] = {}
    for item in root.value:
        with problems.collecting():
            found.append(_topology(item, lines, problems))
    problems.stop()
    chosen = _chosen(found, tree, problems)
    switches: list[yaml.Node] = []
    with problems.collecting():
        fields = _fields(chosen.body, f"tree of topology {chosen.name!r}", _TREE_KEYS)
        switches = items(fields["switches"], f"switches of topology {chosen.name!r}")
    problems.stop()
    read = []
    for item in switches:
        with problems.collecting():
            read.append(_switch(item, problems))
    return read


def _topology(item: yaml.Node, lines: dict[str, int], problems: Problems) -> _NamedTopology:
    fields = _fields(item, "a topology", _TOPOLOGY_KEYS)
    if "topology" not in fields:
        raise invalid(item, "a topology has no name (key 'topology')")
    name = text(fields["topology"], "a topology's name")
    line = line_of(fields["topology"])
    if lines.setdefault(name, line) != line:
        problems.note(line, f"topology {name!r} stands twice, first on line {lines[name]}")
    # What Slurm prints has all keys, those of other kinds without a value.
    given = [kind for kind in _TYPES if kind in fields and not is_null(fields[kind])]
    kinds = [kind for kind in given if _boolean(fields[kind]) is not False]
    if len(kinds) != 1:
        wanted, found = ", ".join(_TYPES), " and ".join(kinds) or "none"
        raise invalid(
            fields["topology"], f"topology {name!r}: expected one of {wanted}, found {found}"
        )
    stated = fields.get("cluster_default")
    default = False if stated is None or is_null(stated) else _boolean(stated)
    if stated is not None and default is None:
        what = f"topology {name!r}: cluster_default"
        raise invalid(stated, f"{what}: expected true or false, found {kind_of(stated)}")
    return _NamedTopology(name, line, kinds[0], fields[kinds[0]], bool(default))


def _chosen(
    found: Sequence[_NamedTopology], tree: str | None, problems: Problems
) -> _NamedTopology:
    of_kind = [each for each in found if each.kind == "tree"]
    trees = f"trees in the file: {', '.join(each.name for each in of_kind[:20]) or 'none'}"
    named = [each for each in found if each.name == tree]
    defaults = [each for each in found if each.default]
    if tree is not None and not named:
        raise problems.error(None, f"there is no topology {tree!r}; {trees}")
    if not named and not defaults and len(of_kind) != 1:
        missing = "expected a name (topology_name), a topology with cluster_default, or one tree"
        raise problems.error(None, f"{missing} alone; {trees}")
    chosen = (named or defaults or of_kind)[0]
    for other in [] if named else defaults[1:]:
        problems.remark(
            other.line,
            f"topology {other.name!r} is a cluster_default too; the first one, "
            f"{chosen.name!r}, is read",
        )
    if chosen.kind != "tree":
        where = f"topology {chosen.name!r}"
        raise problems.error(
            chosen.line, f"{where}: expected a tree, found {chosen.kind!r}; {trees}"
        )
    return chosen


def _switch(item: yaml.Node, problems: Problems) -> SwitchLine:
    fields = _fields(item, "a switch", _SWITCH_KEYS)
    if "switch" not in fields:
        raise invalid(item, "a switch has no name (key 'switch')")
    name = text(fields["switch"], "a switch's name")
    line = line_of(fields["switch"])
    # Slurm prints keys without a value too.
    lists = {
        key: text(fields[key], f"switch {name!r}: {key}")
        for key in ("nodes", "children")
        if key in fields and not _is_blank(fields[key])
    }
    if len(lists) == 2:
        # Slurm does the same, with a warning.
        problems.remark(line, f"switch {name!r} has nodes: its children are left out")
        del lists["children"]
    return SwitchLine(name, line, lists.get("nodes"), lists.get("children"))


def _fields(node: yaml.Node, what: str, known: Sequence[str]) -> dict[str, yaml.Node]:
    found = mapping(node, what, known)
    if not found:
        raise invalid(node, f"{what} has no keys; known: {', '.join(known)}")
    return found


def _is_blank(node: yaml.Node) -> bool:
    return is_null(node) or (isinstance(node, yaml.ScalarNode) and not node.value.strip())


def _boolean(node: yaml.Node) -> bool | None:
    return _BOOLEANS.get(node.value.strip().lower()) if isinstance(node, yaml.ScalarNode) else None
