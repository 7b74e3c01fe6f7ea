"""Parts of a YAML description, checked one by one: keys, lists and texts, with their lines."""

from collections.abc import Sequence

import yaml

from hpc_sched.topology.readers.reader_errors import InvalidItemError
from hpc_sched.yaml_nodes import is_null, kind_of, line_of


def invalid(node: yaml.Node, text: str) -> InvalidItemError:
    """Return the error of a node."""
    return InvalidItemError(line_of(node), text)


def mapping(
    node: yaml.Node, what: str, known: Sequence[str], needed: str = "", without: str = ""
) -> dict[str, yaml.Node]:
    """Return values by key; InvalidItemError for no mapping, a key not ``known`` or given twice.

    :param needed: a key that must be given
    :param without: text of the error where it is not
    """
    if not isinstance(node, yaml.MappingNode):
        raise invalid(node, f"{what}: expected keys ({', '.join(known)}), found {kind_of(node)}")
    found: dict[str, yaml.Node] = {}
    for key_node, value in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else kind_of(key_node)
        if key not in known:
            raise invalid(key_node, f"unknown key {key!r} in {what}; known: {', '.join(known)}")
        if key in found:
            raise invalid(key_node, f"key {key!r} stands twice in {what}")
        found[key] = value
    if needed and needed not in found:
        raise invalid(node, without)
    return found


def items(node: yaml.Node, what: str) -> list[yaml.Node]:
    """Return the items of a list; raises InvalidItemError for another node."""
    if not isinstance(node, yaml.SequenceNode):
        raise invalid(node, f"{what}: expected a list, found {kind_of(node)}")
    found: list[yaml.Node] = node.value
    return found


def text(node: yaml.Node, what: str) -> str:
    """Return a text as written; raises InvalidItemError for another node, or an empty one.

    YAML would read a host called 0123 as a number.
    """
    if not isinstance(node, yaml.ScalarNode) or is_null(node):
        raise invalid(node, f"{what}: expected text, found {kind_of(node)}")
    found = str(node.value).strip()
    if not found:
        raise invalid(node, f"{what} is empty")
    return found
