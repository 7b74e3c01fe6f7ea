"""Folded host names, ``node[001-018]``, read and written with ClusterShell's NodeSet."""

import re
from collections.abc import Iterable, Mapping, Sequence

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.RangeSet import RangeSetException

# Far above any fabric, and still cheap to expand.
MAX_HOSTS = 1_000_000

_PART = re.compile(r"(?:[^,\[]|\[[^\[\]]*\])+")  # between commas outside brackets
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"\s*([0-9]+)(?:-([0-9]+)(?:/([0-9]+))?)?\s*\Z")
# NodeSet's own language has groups (which may run commands), set operators and wildcards;
# a topology names hosts and nothing else.
_FORBIDDEN = re.compile(r"[@!&^*?%\s\x00-\x1f\x7f]")
_LAST_NUMBER = re.compile(r"(.*?)([0-9]+)([^0-9]*)\Z")
MANY = 500  # names that NodeSet folds at a time
_NUMBER = re.compile(r"[0-9]+")
PLAIN = re.compile(r"[A-Za-z0-9._-]+\Z")
MAX_NAME = 255


def _count(text: str) -> int:
    """Return an upper bound of the names in a text without commas outside brackets."""
    total = 1
    for body in _BRACKETS.findall(text):
        size = 0
        for part in body.split(","):
            found = _RANGE.match(part)
            if not found:
                raise ValueError(f"bad range {part!r} in {text!r}: expected numbers as in [1-4,7]")
            low, high, step = found.groups()
            size += 1
            if high is not None:
                if int(high) < int(low):
                    raise ValueError(f"bad range {part!r} in {text!r}: it ends before it begins")
                if int(step or 1) == 0:
                    raise ValueError(f"bad range {part!r} in {text!r}: a step of 0")
                size += (int(high) - int(low)) // int(step or 1)
        total *= size
    return total


def expand(text: str) -> list[str]:
    """Return the names of a text such as ``r[1-2]n[01-18],login1``, in natural order.

    :raises ValueError: for a text that is no list of host names, or more than ``MAX_HOSTS``
    """
    stripped = text.strip()
    if not stripped:
        raise ValueError("an empty host name")
    wrong = _FORBIDDEN.search(re.sub(r",\s+", ",", stripped))
    if wrong:
        raise ValueError(f"character {wrong.group()!r} in host name {text!r}")
    if _BRACKETS.sub("", stripped).strip("[]") != _BRACKETS.sub("", stripped):
        raise ValueError(f"bad range in {text!r}: a bracket without its partner")
    if sum(map(_count, _PART.findall(stripped))) > MAX_HOSTS:
        raise ValueError(f"{text!r} stands for more than {MAX_HOSTS} hosts")
    # NodeSet merges parts in quadratic time where names have several numbers: one at a time.
    parts = _parts(stripped)
    if "" in parts:
        raise ValueError(f"bad range in {text!r}: a comma too many")
    try:
        names = [
            str(node)
            for part in parts
            for node in ([part] if PLAIN.match(part) else NodeSet(part, resolver=RESOLVER_NOGROUP))
        ]
    except (NodeSetException, RangeSetException) as error:
        raise ValueError(f"bad range in {text!r}: {error}") from error
    return names if len(parts) == 1 else sorted(dict.fromkeys(names), key=_natural)


def _parts(text: str) -> list[str]:
    """Return the parts between commas outside brackets, empty ones included."""
    marked = _BRACKETS.sub(lambda found: found.group().replace(",", "\0"), text)
    return [part.strip().replace("\0", ",") for part in marked.split(",")]


def _natural(name: str) -> tuple[list[str], list[tuple[int, str, int]]]:
    """Return a sort key: the text of a name, then its numbers, of any length."""
    digits = [(number.lstrip("0"), len(number)) for number in _NUMBER.findall(name)]
    return _NUMBER.split(name), [(len(value), value, width) for value, width in digits]


def fold(names: Iterable[str]) -> str:
    """Return host names folded for output, ``node[001-018],login1``.

    Names with characters of NodeSet's ranges, groups or operators, and longer ones than DNS
    allows, follow unfolded.
    """
    plain: list[str] = []
    odd: list[str] = []
    for name in sorted(names):
        (plain if PLAIN.match(name) and len(name) <= MAX_NAME else odd).append(name)
    if len(plain) > MANY:
        plain = _rows(plain)
    if len(plain) <= MANY:
        plain = [str(NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP))] if plain else []
    return ",".join(plain + odd)


def fold_counts(counts: Mapping[str, int]) -> list[str]:
    """Return hosts folded by their counts, highest first: ``node[001-004]: 2 each, node005: 1``."""
    by_count: dict[int, list[str]] = {}
    for host, count in counts.items():
        by_count.setdefault(count, []).append(host)
    return [
        f"{fold(names)}: {count}{' each' if len(names) > 1 else ''}"
        for count, names in sorted(by_count.items(), reverse=True)
    ]


def _rows(names: Iterable[str]) -> list[str]:
    """Return names folded by their last number alone; linear but for sorting."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name in names:
        found = _LAST_NUMBER.match(name)
        before, number, after = found.groups() if found else (name, "", "")
        rows.setdefault((before, after), []).append(f"{number}{after}")
    folded = []
    for (before, _), rest in rows.items():
        # NodeSet would fold the other numbers too.
        together = str(NodeSet.fromlist([f"x{part}" for part in rest], resolver=RESOLVER_NOGROUP))
        folded += [f"{before}{part.strip().removeprefix('x')}" for part in _parts(together)]
    return folded


def written(names: Sequence[str]) -> list[str]:
    """Return texts, folded first, that ``expand`` reads as these names; or raise ValueError."""
    plain = [name for name in names if PLAIN.match(name)]
    texts = [fold(plain)] if plain else []
    if texts and sorted(expand(texts[0])) != sorted(plain):
        texts = plain
    odd = [name for name in names if not PLAIN.match(name)]
    for name in odd:
        if expand(name) != [name]:
            raise ValueError(f"{name!r} would be read as {', '.join(expand(name)[:3])}")
    return texts + odd
