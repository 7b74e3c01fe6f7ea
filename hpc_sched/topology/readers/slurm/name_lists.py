"""Lists of switches and nodes as Slurm writes them, unfolded within bounds."""

import re
from dataclasses import dataclass, field

from hpc_sched.topology import hostlist

# The longest name that Nova stores for a host.
MAX_LENGTH = 255
# In all lists of a file together. A fat tree of 90,000 hosts that names every link has 200,000.
MAX_NAMES = 2 * hostlist.MAX_HOSTS

# Slurm takes blanks for commas, except in brackets.
_PART = re.compile(r"(?:[^\s,\[\]]+|\[[^\[\]]*\]|[\[\]])+", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9._-]+\Z")


@dataclass(frozen=True, slots=True)
class NameList:
    """An unfolded list: every name once, in the order of the text."""

    names: tuple[str, ...]
    twice: tuple[str, ...] = ()  # those that stand twice in it


class TooManyNames(ValueError):
    """A file whose lists together stand for more names than any fabric has."""


@dataclass
class Unfolding:
    """Unfolds the lists of one file; equal texts are unfolded once."""

    _known: dict[str, NameList] = field(default_factory=dict)
    _count: int = 0

    def names_of(self, text: str) -> NameList:
        """Return the names of a list, such as ``cn[001-018],gpu[1-4]``.

        Linear in the length of the text and the number of names.

        :raises ValueError: where a part is no name or range
        :raises TooManyNames: where the lists so far stand for more than ``MAX_NAMES``
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
    """Go on where a name can be one.

    :raises ValueError: for one that is too long or cannot be printed
    """
    if len(name) > MAX_LENGTH:
        raise ValueError(f"expected a name of at most {MAX_LENGTH} characters, found {len(name)}")
    if not name.isprintable():
        raise ValueError(f"expected a name that can be printed, found {name!r}")
