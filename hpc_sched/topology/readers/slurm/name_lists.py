"""Slurm's folded lists of switches and nodes, unfolded within bounds."""

import re
from dataclasses import dataclass, field

from hpc_sched.topology import hostlist

# The longest name that Nova stores for a host.
MAX_LENGTH = 255
# Of all lists of a file. A fat tree of 90,000 hosts with every link listed has 200,000.
MAX_NAMES = 2 * hostlist.MAX_HOSTS

# To Slurm blanks are commas, except in brackets.
_PART = re.compile(r"(?:[^\s,\[\]]+|\[[^\[\]]*\]|[\[\]])+", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9._-]+\Z")


@dataclass(frozen=True, slots=True)
class NameList:
    """An unfolded list, without repetitions, in the order of the text."""

    names: tuple[str, ...]
    twice: tuple[str, ...] = ()  # repeated names


class TooManyNames(ValueError):
    """The lists of a file hold more names than any fabric has."""


@dataclass
class Unfolding:
    """Unfolds the lists of one file; equal texts are unfolded once."""

    _known: dict[str, NameList] = field(default_factory=dict)
    _count: int = 0

    def names_of(self, text: str) -> NameList:
        """Return the names of a list, such as ``cn[001-018],gpu[1-4]``.

        Linear in the length of the text and the number of names.

        :raises ValueError: for a part that is no name or range
        :raises TooManyNames: once all lists so far hold more than ``MAX_NAMES``
        """
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._unfolded(text)
        return found

    def _unfolded(self, text: str) -> NameList:
        names: dict[str, None] = {}
        twice: dict[str, None] = {}
        for part in _PART.findall(text):
            unfolded = [part] if _PLAIN.match(part) else hostlist.expand(part)
            self._count += len(unfolded)
            if self._count > MAX_NAMES:
                raise TooManyNames(f"the lists so far stand for more than {MAX_NAMES} names")
            for name in unfolded:
                if name in names:
                    twice[name] = None
                check(name)
                names[name] = None
        return NameList(tuple(names), tuple(twice))


def check(name: str) -> None:
    """Check a name.

    :raises ValueError: for one that is too long or cannot be printed
    """
    if len(name) > MAX_LENGTH:
        raise ValueError(f"expected a name of at most {MAX_LENGTH} characters, found {len(name)}")
    if not name.isprintable():
        raise ValueError(f"expected a name that can be printed, found {name!r}")
