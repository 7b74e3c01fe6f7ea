"""Problems and remarks on one description, collected with their lines."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from hpc_sched import exceptions
from hpc_sched.topology.hostlist import truncated

# The first ones are corrected first; a file with more is read again afterwards.
MAX_PROBLEMS = 100
MAX_REMARKS = 100
MAX_SHOWN = 200  # characters of a command, or of what it prints


Item = TypeVar("Item")
Found = TypeVar("Found")


class InvalidItemError(Exception):
    """A line, if any, and a text: an item of a description is wrong, those after it can be read."""


class Problems:
    """Collector of all problems and remarks of one reader; ``path`` begins each, if any."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self._problems: list[str] = []
        self._remarks: list[str] = []
        self._more_remarks = 0

    def note(self, line: int | None, text: str) -> None:
        """Add a problem, on a line from 1 or on all; at ``MAX_PROBLEMS`` raise as :meth:`stop`."""
        self._problems.append(self._sentence(line, text))
        if len(self._problems) >= MAX_PROBLEMS:
            self.stop()

    def of_each(self, items: Iterable[Item], read: Callable[[Item], Found]) -> list[Found]:
        """Return what is read of each item, but for those that are :meth:`collecting`'s."""
        found = []
        for item in items:
            with self.collecting():
                found.append(read(item))
        return found

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Note an :class:`InvalidItemError` as a problem, and continue after the block."""
        try:
            yield
        except InvalidItemError as error:
            self.note(*error.args)

    def remark(self, line: int | None, text: str) -> None:
        """Add a remark on something corrected or doubtful."""
        if len(self._remarks) < MAX_REMARKS:
            self._remarks.append(self._sentence(line, text))
        else:
            self._more_remarks += 1

    def check_number(
        self, number: int, most: int, what: str, line: int | None = None, found: object = "more"
    ) -> None:
        """Raise a TopologyError for more things than are allowed."""
        if number > most:
            raise self.error(line, f"expected at most {most} {what}, found {found}")

    def stop(self) -> None:
        """Raise a TopologyError with all problems so far, if there are any."""
        if self._problems:
            raise exceptions.TopologyError(*self._problems)

    def error(self, line: int | None, text: str) -> exceptions.TopologyError:
        """Return the error of all problems so far and a last one."""
        return exceptions.TopologyError(*self._problems, self._sentence(line, text))

    @property
    def remarks(self) -> tuple[str, ...]:
        """The first ``MAX_REMARKS`` remarks, and the number of the others."""
        more = [f"{self.path}: and {self._more_remarks} more remarks"]
        return (*self._remarks, *(more if self._more_remarks else ()))

    def _sentence(self, line: int | None, text: str) -> str:
        where = ":".join(str(part) for part in (self.path, line) if part)
        # A line of a hostile file may be as long as the file.
        return f"{where}: {truncated(text)}" if where else truncated(text)


def shown_command(command: Sequence[str]) -> str:
    """Return a command for error texts, truncated."""
    return truncated(shlex.join(command), MAX_SHOWN)


def first_of(names: Sequence[str]) -> str:
    """Return the first name, and the number of the others."""
    return repr(names[0]) + (f" (and {len(names) - 1} more)" if len(names) > 1 else "")


def matches(pattern: re.Pattern[str] | None, *texts: str) -> bool:
    """True if there is no pattern, or one of some texts has a match."""
    return pattern is None or any(map(pattern.search, texts))


def pattern_of(text: str | None, option: str) -> re.Pattern[str] | None:
    """Return a compiled regular expression, None for no text; the error names the option."""
    try:
        return re.compile(text) if text else None
    except (re.error, OverflowError, RecursionError) as error:
        raise exceptions.TopologyError(
            f"{option}: expected a regular expression, found {text!r}: {error}"
        ) from error
