"""What installed packages offer at the entry points of a group."""

import os
import sys
from functools import lru_cache
from importlib import metadata
from typing import Any


def points(group: str) -> metadata.EntryPoints:
    """Return the entry points of a group.

    They are read again where a folder of ``sys.path`` has changed, as by an installation: to read
    those of all of Nova's packages takes some 20 ms, a thousand times as long as to ask for that.
    """
    return _points(group, tuple((path, _changed(path)) for path in sys.path))


def classes(namespace: str) -> list[Any]:
    """Return the classes of an entry point group, by name; raises if one cannot be loaded."""
    return [point.load() for point in sorted(points(namespace), key=lambda point: point.name)]


def _changed(path: str) -> int | None:
    """Return the time of the last change of a folder or an archive, in ns, or None."""
    try:
        return os.stat(path or os.curdir).st_mtime_ns
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=32)
def _points(group: str, folders: tuple[tuple[str, int | None], ...]) -> metadata.EntryPoints:
    return metadata.entry_points(group=group)
