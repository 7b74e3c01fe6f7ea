"""Folded host names, ``node[001-018]``, in the notation of ClusterShell's NodeSet."""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from ClusterShell.RangeSet import RangeSet, RangeSetException

from hpc_sched.topology import plurals
from hpc_sched.topology.fabric_order import natural_key
from hpc_sched.topology.grouping import by_key

# The largest machines have some 160,000 hosts. A million names are expanded in seconds.
MAX_NAMES = 1_000_000

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"\s*([0-9]+)(?:-([0-9]+)(?:/([0-9]+))?)?\s*\Z")
# NodeSet's own language has groups (which may run commands), set operators and wildcards;
# a topology names hosts and nothing else.
_FORBIDDEN = re.compile(r"[@!&^*?%\s\x00-\x1f\x7f]")
_LAST_NUMBER = re.compile(r"(.*?)([0-9]+)([^0-9]*)\Z")
# A longer number is no number to a program with 64 bits.
_SHORT_ENDING = re.compile(r"(?<![0-9])[0-9]{1,15}\Z")
MANY = 500  # names that NodeSet folds at a time
_LONG_NUMBER = re.compile(r"[0-9]{100}")  # NodeSet reads no number above 1e100
PLAIN = re.compile(r"[A-Za-z0-9._-]+\Z")
MAX_NAME = 255
MAX_SHOWN = 400  # longer lists in lines for people are cut
_SHOWN = 80
_COUNTED = 10**15  # more names are not counted exactly


class TooManyNamesError(ValueError):
    """The lists of one description stand for more names than allowed."""


@dataclass(slots=True)
class Expansion:
    """Expands the lists of one description, which stand for at most ``most`` names in all."""

    noun: str = "host name"  # for errors
    most: int = field(default_factory=lambda: MAX_NAMES)
    found: int = 0  # names so far; repeated ones count

    def expand(self, text: str) -> list[str]:
        """Return the names of a text such as ``r[1-2]n[01-18],login1``, in natural order.

        :raises TooManyNamesError: before anything is expanded
        :raises ValueError: for a text that is no list of host names
        """
        stripped = text.strip()
        if not stripped:
            raise ValueError("an empty host name")
        # Before the text is split: each comma adds a name or more.
        commas = stripped.count(",")
        if commas:
            self._check(commas + 1, text, "at least ")
        wrong = _FORBIDDEN.search(re.sub(r",\s+", ",", stripped))
        if wrong:
            raise ValueError(f"character {wrong.group()!r} in host name {_shown(text)}")
        if set("[]") & set(_BRACKETS.sub("", stripped)):
            raise ValueError(f"bad range in {_shown(text)}: a bracket without its partner")
        parts = _parts(stripped)
        self.count(sum(map(_count, parts)), text)
        if "" in parts:
            raise ValueError(f"bad range in {_shown(text)}: a comma too many")
        try:
            found = (_names_of(part) if "[" in part else [part] for part in parts)
            names = list(itertools.chain.from_iterable(found))
        except RangeSetException as error:
            raise ValueError(f"bad range in {_shown(text)}: {error}") from error
        if "," not in stripped and stripped.count("[") < 2:
            return names  # one range, whose names are in order and differ
        return sorted(dict.fromkeys(names), key=natural_key)

    def count(self, number: int, text: str) -> None:
        """Add the names that a text stands for, or raise TooManyNamesError."""
        self._check(number, text)
        self.found += number

    def _check(self, number: int, text: str, least: str = "") -> None:
        if self.found + number <= self.most:
            return
        if number >= _COUNTED:
            least = "at least "
        what = f"{_shown(text)} expands to {least}{plurals.text(number, self.noun)}"
        total = f", together with those before {self.found + number}" if self.found else ""
        raise TooManyNamesError(f"{what}{total}; at most {self.most}")


def expand(text: str) -> list[str]:
    """Return the names of a text that is the only one; raises as :meth:`Expansion.expand` does."""
    return Expansion().expand(text)


def _count(part: str) -> int:
    """Return an upper bound of the names in a part, up to ``_COUNTED``; ValueError if it is bad."""
    total, longest, bodies = 1, len(part), _BRACKETS.findall(part)
    for body in bodies:
        size = width = 0
        for item in body.split(","):
            found = _RANGE.match(item)
            if not found:
                raise ValueError(
                    f"bad range {item[:_SHOWN]!r} in {_shown(part)}: expected numbers as in [1-4,7]"
                )
            low, high = found[1], found[2] or found[1]
            # Python reads numbers of 4,300 digits.
            if len(item) > MAX_NAME and (digits := max(map(len, found.groups("")))) > MAX_NAME:
                raise ValueError(
                    f"expected numbers of at most {MAX_NAME} digits, found {digits} in "
                    f"{_shown(part)}"
                )
            if int(high) < int(low):
                raise ValueError(f"bad range {item!r} in {_shown(part)}: it ends before it begins")
            step = int(found[3] or 1)
            if step == 0:
                raise ValueError(f"bad range {item!r} in {_shown(part)}: a step of 0")
            size += 1 + (int(high) - int(low)) // step
            width = max(width, len(high))
        total = min(total * size, _COUNTED)
        longest += width - len(body) - 2
    if bodies and longest > MAX_NAME:
        raise ValueError(
            f"expected names of at most {MAX_NAME} characters, found {longest} in {_shown(part)}"
        )
    return total


def _names_of(part: str) -> Iterable[str]:
    """Return the names of a part; raises RangeSetException.

    Without NodeSet, which takes some 30 us for a part, and reads digits next to a bracket as part
    of the range: a1[9-10] as a[19-110].
    """
    lists: list[Iterable[str]] = [[piece] for piece in _BRACKETS.split(part)]
    lists[1::2] = map(_numbers_in, _BRACKETS.findall(part))
    return map("".join, itertools.product(*lists))


def _numbers_in(body: str) -> Iterable[str]:
    """Return the numbers of a bracket, sorted; raises RangeSetException."""
    if found := _RANGE.match(body):
        low, high, step = found[1], found[2] or found[1], found[3] or "1"
        # RangeSet refuses ends of different widths if one has leading zeros.
        has_zeros = any(len(end) > 1 and end[0] == "0" for end in (low, high))
        if len(low) == len(high) or not has_zeros:
            # It takes some microseconds for each number.
            return (f"{n:0{len(low)}}" for n in range(int(low), int(high) + 1, int(step)))
    numbers: Iterable[str] = RangeSet(body).striter()
    return numbers


def _shown(text: str) -> str:
    return repr(truncated(text, _SHOWN))


def _parts(text: str) -> list[str]:
    """Return the parts between commas outside brackets, empty ones included."""
    marked = _BRACKETS.sub(lambda found: found.group().replace(",", "\0"), text)
    return [part.strip().replace("\0", ",") for part in marked.split(",")]


def fold(names: Iterable[str]) -> str:
    """Return host names folded for output, ``node[001-018],login1``.

    Names with characters of NodeSet's ranges, groups or operators, and longer ones than DNS
    allows, follow unfolded; so do those with a number of a hundred digits.
    """
    kinds = by_key((_can_be_folded(name), name) for name in sorted(names))
    plain, odd = kinds.get(True, []), kinds.get(False, [])
    if len(plain) > MANY:
        plain = _rows(plain)
    if len(plain) <= MANY:
        plain = [str(NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP))] if plain else []
    return ",".join(plain + odd)


def _can_be_folded(name: str) -> bool:
    return bool(PLAIN.match(name)) and len(name) <= MAX_NAME and not _LONG_NUMBER.search(name)


def fold_cut(names: Sequence[str], most: int = MAX_SHOWN) -> str:
    """Return host names folded for a line, cut after ``most`` characters, with their number."""
    folded = fold(names)
    return folded if len(folded) <= most else f"{truncated(folded, most)} ({len(names)})"


def first(names: Sequence[str], most: int = MANY) -> str:
    """Return the first names folded, and the number of the others: ``n[1-500] and 7 more``."""
    more = len(names) - most
    return fold(names[:most]) + (f" and {more} more" if more > 0 else "")


def fold_counts(counts: Mapping[str, int]) -> list[str]:
    """Return hosts folded by their counts, highest first: ``node[001-004]: 2 each, node005: 1``."""
    by_count = by_key((count, host) for host, count in counts.items())
    return [
        f"{fold(names)}: {count}{' each' if len(names) > 1 else ''}"
        for count, names in sorted(by_count.items(), reverse=True)
    ]


def truncated(text: str, most: int = MAX_SHOWN) -> str:
    """Return a text, cut after ``most`` characters."""
    return text if len(text) <= most else f"{text[:most]}..."


def printable(text: str, most: int | None = MAX_NAME) -> str:
    """Return a name that can be shown, cut after ``most`` characters; empty if none is left."""
    return "".join(char if char.isprintable() else " " for char in text).strip()[:most]


def _rows(names: Iterable[str]) -> list[str]:
    """Return names folded by their last number alone; linear but for sorting."""
    found = ((name, _LAST_NUMBER.match(name)) for name in names)
    parts = (match.groups() if match else (name, "", "") for name, match in found)
    rows = by_key(((before, after), f"{number}{after}") for before, number, after in parts)
    folded = []
    for (before, _), rest in rows.items():
        # NodeSet would fold the other numbers too.
        together = str(NodeSet.fromlist([f"x{part}" for part in rest], resolver=RESOLVER_NOGROUP))
        folded += [f"{before}{part.strip().removeprefix('x')}" for part in _parts(together)]
    return folded


def fold_endings(names: Iterable[str]) -> str:
    """Return host names folded by the number at their end, ``node[001-018],r1-x,r2-x``."""
    ending = {name: _SHORT_ENDING.search(name) is not None for name in sorted(names)}
    rows = _rows(name for name, short in ending.items() if short)
    return ",".join(rows + [name for name, short in ending.items() if not short])


def written(names: Sequence[str], folding: Callable[[Iterable[str]], str] = fold) -> list[str]:
    """Return texts, folded first, that ``expand`` reads as these names; or raise ValueError."""
    plain = [name for name in names if PLAIN.match(name)]
    texts = [folding(plain)] if plain else []
    if texts and sorted(expand(texts[0])) != sorted(plain):
        texts = plain
    odd = [name for name in names if not PLAIN.match(name)]
    for name in odd:
        if expand(name) != [name]:
            raise ValueError(f"{name!r} would be read as {', '.join(expand(name)[:3])}")
    return texts + odd
