"""YAML files as trees of nodes, so that every error can name its line."""

from typing import Any

import yaml

from hpc_sched import exceptions

# The C loader reads 10,000 hosts ten times faster; it may be missing from the wheel.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# A file of 160,000 hosts with a processor each has 800,000. A million nodes take 0.4 GB.
MAX_NODES = 1_000_000
# Characters of a text that aliases repeat: to read a long one a million times would take hours.
MAX_ALIASED = 255

_NULL = "tag:yaml.org,2002:null"


def compose(
    content: bytes, name: str, error: type[exceptions.HPCSchedError], max_nesting: int
) -> yaml.Node | None:
    """Return the root of a YAML document, or None; linear in its length.

    Aliases are not expanded: an alias is the node that it names. ``MAX_NODES``, ``MAX_ALIASED``
    and the nesting are checked before composing.

    :param name: of the file, in errors
    :param max_nesting: maximum depth of lists and keys: libyaml overflows the stack of the process
        on some ten thousand open brackets
    :raises error: naming file and line
    """
    try:
        excess = _excess(content, max_nesting)
        root: yaml.Node | None = None if excess else yaml.compose(content, Loader=LOADER)
    except yaml.YAMLError as failure:
        mark = getattr(failure, "problem_mark", None)
        where = name if mark is None else f"{name}:{mark.line + 1}"
        problem = getattr(failure, "problem", None) or str(failure).splitlines()[0]
        raise error(f"{where}: not YAML: {problem}") from failure
    except (RecursionError, ValueError) as failure:
        raise error(f"{name}: not YAML: {failure}") from failure
    if excess:
        raise error(f"{name}:{excess}")
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


def _excess(content: bytes, max_nesting: int) -> str | None:
    """Return line and text of the first limit that is exceeded, or None; builds no nodes."""
    nodes = 0
    anchors: list[str | None] = []  # of the lists and keys around an event
    long: set[str | None] = set()  # anchors of long texts and of what contains them
    for event in yaml.parse(content, Loader=LOADER):
        if isinstance(event, yaml.CollectionEndEvent):
            anchors.pop()
        if not isinstance(event, yaml.NodeEvent):
            continue
        nodes += 1
        if nodes > MAX_NODES:
            return (
                f"{line_of(event)}: expected at most {MAX_NODES} lists, keys and texts, found more"
            )
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in long:
                return (
                    f"{line_of(event)}: alias {str(event.anchor)[:MAX_ALIASED]!r} repeats a text "
                    f"of more than {MAX_ALIASED} characters"
                )
            continue
        long.discard(event.anchor)
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor)
            if len(anchors) > max_nesting:
                return f"{line_of(event)}: lists and keys are nested deeper than {max_nesting}"
        elif isinstance(event, yaml.ScalarEvent) and len(event.value) > MAX_ALIASED:
            long.update(anchors, (event.anchor,))
            long.discard(None)
    return None
