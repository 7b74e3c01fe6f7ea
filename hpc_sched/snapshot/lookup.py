"""Things of a cloud by the uuid or the name that a person gives."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from hpc_sched import exceptions, terminal_text

_MAX_SHOWN = 5


class Named(Protocol):
    """What has a uuid and a name."""

    @property
    def uuid(self) -> str:
        """The uuid."""

    @property
    def name(self) -> str:
        """The name, which others may have too."""


Thing = TypeVar("Thing", bound=Named)


def one(wanted: str, kind: str, things: Sequence[Thing]) -> Thing:
    """Return the thing of a uuid or a name. Linear in the things.

    :param kind: what an error calls them
    :raises exceptions.SnapshotError: where there is none, naming similar ones, or several
    """
    found = [thing for thing in things if thing.uuid == wanted]
    found = found or [thing for thing in things if thing.name == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        uuids = sorted(thing.uuid for thing in found)
        more = f" and {len(uuids) - _MAX_SHOWN} more" if len(uuids) > _MAX_SHOWN else ""
        raise exceptions.SnapshotError(
            f"{len(found)} {kind}s are called {wanted!r}: expected a uuid, one of "
            f"{', '.join(uuids[:_MAX_SHOWN])}{more}"
        )
    raise exceptions.SnapshotError(f"there is no {kind} {wanted!r}{similar(wanted, things)}")


def similar(wanted: str, things: Sequence[Thing]) -> str:
    """Return the end of a sentence that names things called much the same; empty where none is."""
    return near(wanted, [*(thing.name for thing in things), *(thing.uuid for thing in things)])


def near(wanted: str, names: Iterable[str]) -> str:
    """Return the end of a sentence with the names that are much the same, see :func:`similar`."""
    known = sorted({name for name in names if name})
    found = difflib.get_close_matches(wanted, known, n=_MAX_SHOWN)
    found += [name for name in known if wanted and wanted in name and name not in found]
    shown = [terminal_text.text_of(name) for name in found[:_MAX_SHOWN]]
    return f": there is {', '.join(shown)}" if found else ""
