"""Folded host names, ``node[001-018]``, read and printed with ClusterShell's NodeSet."""

import re
from collections.abc import Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.RangeSet import RangeSetException

# Far above any fabric, far below what would hurt the scheduler that expands it.
MAX_HOSTS = 1_000_000

_PART = re.compile(r"(?:[^,\[]|\[[^\[\]]*\])+")  # between commas that stand outside brackets
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"\s*([0-9]+)(?:-([0-9]+)(?:/([0-9]+))?)?\s*\Z")
# NodeSet's own language has groups (which may run commands), set operators and wildcards;
# a topology names hosts and nothing else.
_FORBIDDEN = re.compile(r"[@!&^*?%\s]")
_PLAIN = re.compile(r"[A-Za-z0-9._-]+\Z")


def _count(text: str) -> int:
    """Return how many names a folded text stands for at most, without unfolding it."""
    return sum(_count_part(part) for part in _PART.findall(text))


def _count_part(text: str) -> int:
    total = 1
    for body in _BRACKETS.findall(text):
        size = 0
        for part in body.split(","):
            found = _RANGE.match(part)
            if not found:
                raise ValueError(f"bad range {part!r} in {text!r}: expected numbers as in [1-4,7]")
            low, high, step = found.groups()
            if high is not None:
                if int(high) < int(low):
                    raise ValueError(f"bad range {part!r} in {text!r}: it ends before it begins")
                if step is not None and int(step) == 0:
                    raise ValueError(f"bad range {part!r} in {text!r}: a step of 0")
                size += (int(high) - int(low)) // int(step or 1) + 1
            else:
                size += 1
        total *= size
    return total


def expand(text: str) -> list[str]:
    """Return the names that a folded text stands for, in natural order.

    :param text: such as ``node[001-018]`` or ``r[1-2]n[01-18],login1``
    :raises ValueError: where the text is no list of host names, or stands for more than
        ``MAX_HOSTS``
    """
    stripped = text.strip()
    if not stripped:
        raise ValueError("an empty host name")
    wrong = _FORBIDDEN.search(re.sub(r",\s+", ",", stripped))
    if wrong:
        raise ValueError(f"character {wrong.group()!r} in host name {text!r}")
    if _BRACKETS.sub("", stripped).strip("[]") != _BRACKETS.sub("", stripped):
        raise ValueError(f"bad range in {text!r}: a bracket without its partner")
    if _count(stripped) > MAX_HOSTS:
        raise ValueError(f"{text!r} stands for more than {MAX_HOSTS} hosts")
    try:
        return [str(node) for node in NodeSet(stripped, resolver=RESOLVER_NOGROUP)]
    except (NodeSetException, RangeSetException) as error:
        raise ValueError(f"bad range in {text!r}: {error}") from error


def fold(names: Iterable[str]) -> str:
    """Return host names folded for people, ``node[001-018],login1``.

    Names that NodeSet would read as ranges, groups or operators follow as they are.
    """
    ordered = sorted(names)
    plain = [name for name in ordered if _PLAIN.match(name)]
    odd = [name for name in ordered if not _PLAIN.match(name)]
    folded = str(NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP))
    return ",".join(([folded] if folded else []) + odd)
