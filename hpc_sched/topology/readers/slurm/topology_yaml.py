"""The grammar of Slurm's topology.yaml: several topologies, one of which is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import yaml

from hpc_sched import exceptions, yaml_nodes
from hpc_sched.topology.readers.reader_errors import Problems
from hpc_sched.topology.readers.slurm.blocks import BlockList
from hpc_sched.topology.readers.slurm.switch_graph import SwitchLine
from hpc_sched.topology.readers.yaml_items import invalid, items, mapping, text
from hpc_sched.yaml_nodes import is_null, kind_of, line_of

# The file, a topology, its tree or blocks, the switches, a switch.
MAX_NESTING = 16
_TYPES = ("tree", "block", "flat", "ring", "torus3d")
_READ = ("tree", "block")
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1", "y"), True),
    **dict.fromkeys(("false", "no", "off", "0", "n"), False),
}


@dataclass(frozen=True, slots=True)
class _NamedTopology:
    name: str
    line: int
    kind: str
    body: yaml.Node
    default: bool


def read(content: bytes, name: str | None, problems: Problems) -> list[SwitchLine] | BlockList:
    """Return the switches or blocks of one topology in its order; linear in its length.

    :param name: of the topology; else the first with ``cluster_default``, else the only tree, else
        the only one of blocks
    :raises exceptions.TopologyError: where no single one can be chosen, or as Problems does
    """
    root = yaml_nodes.compose(content, problems.path, exceptions.TopologyError, MAX_NESTING)
    if root is None or is_null(root):
        raise problems.error(None, "the file is empty")
    if not isinstance(root, yaml.SequenceNode):
        raise problems.error(line_of(root), f"expected a list of topologies, found {kind_of(root)}")
    found = problems.of_each(root.value, partial(_topology, problems=problems, lines={}))
    problems.stop()
    chosen = _chosen(found, name, problems)
    if chosen.kind == "block":
        return _blocks(chosen, problems)
    switches: list[yaml.Node] = []
    with problems.collecting():
        fields = _fields(chosen.body, f"tree of topology {chosen.name!r}", ("switches",))
        switches = items(fields["switches"], f"switches of topology {chosen.name!r}")
    problems.stop()
    return problems.of_each(switches, partial(_switch, problems=problems))


def _blocks(chosen: _NamedTopology, problems: Problems) -> BlockList:
    found = BlockList()
    blocks: list[yaml.Node] = []
    where = f"topology {chosen.name!r}"
    with problems.collecting():
        fields = _fields(chosen.body, f"block of {where}", ("block_sizes", "blocks"))
        sizes = fields.get("block_sizes")
        if sizes is not None and not is_null(sizes):
            found.line = line_of(sizes)
            each = items(sizes, f"block_sizes of {where}")
            found.sizes = [text(size, f"block_sizes of {where}").strip() for size in each]
        if "blocks" not in fields:
            raise invalid(chosen.body, f"block of {where} has no blocks (key 'blocks')")
        blocks = items(fields["blocks"], f"blocks of {where}")
    problems.stop()
    found.blocks = problems.of_each(blocks, _block)
    return found


def _topology(item: yaml.Node, problems: Problems, lines: dict[str, int]) -> _NamedTopology:
    fields, name = _named(item, ("topology", "cluster_default", *_TYPES))
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
        raise invalid(
            stated,
            f"topology {name!r}: cluster_default: expected true or false, found {kind_of(stated)}",
        )
    return _NamedTopology(name, line, kinds[0], fields[kinds[0]], bool(default))


def _chosen(
    found: Sequence[_NamedTopology], name: str | None, problems: Problems
) -> _NamedTopology:
    trees, blocks = ([each for each in found if each.kind == kind] for kind in _READ)
    names = (", ".join(each.name for each in some[:20]) or "none" for some in (trees, blocks))
    known = f"trees in the file: {'; blocks: '.join(names)}"
    named = [each for each in found if each.name == name]
    defaults = [each for each in found if each.default]
    if name is not None and not named:
        raise problems.error(None, f"there is no topology {name!r}; {known}")
    alone = trees or blocks
    if not named and not defaults and len(alone) != 1:
        raise problems.error(
            None,
            "expected a name (topology_name), a topology with cluster_default, or one tree or one "
            f"of blocks alone; {known}",
        )
    chosen = (named or defaults or alone)[0]
    for other in [] if named else defaults[1:]:
        problems.remark(
            other.line,
            f"topology {other.name!r} is a cluster_default too; the first one, "
            f"{chosen.name!r}, is read",
        )
    if chosen.kind not in _READ:
        raise problems.error(
            chosen.line,
            f"topology {chosen.name!r}: expected a tree or blocks, found {chosen.kind!r}; {known}",
        )
    return chosen


def _block(item: yaml.Node) -> SwitchLine:
    fields, name = _named(item, ("block", "nodes"))
    lists = _texts(fields, ("nodes",), f"block {name!r}")
    return SwitchLine(name, line_of(fields["block"]), lists.get("nodes"))


def _switch(item: yaml.Node, problems: Problems) -> SwitchLine:
    fields, name = _named(item, ("switch", "children", "nodes"))
    line = line_of(fields["switch"])
    lists = _texts(fields, ("nodes", "children"), f"switch {name!r}")
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


def _named(item: yaml.Node, known: Sequence[str]) -> tuple[dict[str, yaml.Node], str]:
    """Return the values of a topology, block or switch, and its name: that of the first key."""
    key = known[0]
    fields = _fields(item, f"a {key}", known)
    if key not in fields:
        raise invalid(item, f"a {key} has no name (key {key!r})")
    return fields, text(fields[key], f"a {key}'s name")


def _texts(fields: Mapping[str, yaml.Node], keys: Sequence[str], owner: str) -> dict[str, str]:
    """Return the texts of some keys; Slurm prints keys without a value too."""
    return {
        key: text(fields[key], f"{owner}: {key}")
        for key in keys
        if key in fields and not _is_blank(fields[key])
    }


def _is_blank(node: yaml.Node) -> bool:
    return is_null(node) or (isinstance(node, yaml.ScalarNode) and not node.value.strip())


def _boolean(node: yaml.Node) -> bool | None:
    return _BOOLEANS.get(node.value.strip().lower()) if isinstance(node, yaml.ScalarNode) else None
