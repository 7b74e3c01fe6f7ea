"""YAML files as trees of nodes, so that every error can name its line."""

from typing import Any

import yaml

from hpc_sched import exceptions

# The C loader reads 10,000 hosts ten times faster; it may be missing from the wheel.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULL = "tag:yaml.org,2002:null"


def compose(
    content: bytes, name: str, error: type[exceptions.HPCSchedError], max_nesting: int
) -> yaml.Node | None:
    """Return the root of a YAML document, or None; linear in its length.

    Aliases are not expanded: an alias is the node that it names.

    :param name: of the file, in errors
    :param max_nesting: maximum depth of lists and keys, counted before composing: libyaml
        overflows the stack of the process on some ten thousand open brackets
    :raises error: naming file and line
    """
    try:
        deep = _too_deep(content, max_nesting)
        root: yaml.Node | None = None if deep else yaml.compose(content, Loader=LOADER)
    except yaml.YAMLError as failure:
        mark = getattr(failure, "problem_mark", None)
        where = name if mark is None else f"{name}:{mark.line + 1}"
        problem = getattr(failure, "problem", None) or str(failure).splitlines()[0]
        raise error(f"{where}: not YAML: {problem}") from failure
    except (RecursionError, ValueError) as failure:
        raise error(f"{name}: not YAML: {failure}") from failure
    if deep:
        raise error(f"{name}:{deep}: lists and keys are nested deeper than {max_nesting}")
    return root


def line_of(node: yaml.Node | yaml.Event) -> int:
    """Return the line, from 1, on which a node begins."""
    mark = node.start_mark
    return int(mark.line) + 1 if mark else 1


def kind_of(node: yaml.Node) -> str:
    """Return a description of a node for errors."""
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "keys and values"
    return "nothing" if is_null(node) else f"{node.value!r}"


def is_null(node: yaml.Node) -> bool:
    """True for a null node."""
    return bool(node.tag == _NULL)


def _too_deep(content: bytes, max_nesting: int) -> int | None:
    """Return the first line that nests deeper than ``max_nesting``, or None."""
    depth = 0
    for event in yaml.parse(content, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > max_nesting:
            return line_of(event)
    return None
