"""Classes that sites can add by entry point."""

from importlib import metadata
from typing import Any


def classes(namespace: str) -> list[Any]:
    """Return the classes of an entry point group, by name; raises if one cannot be loaded."""
    points = metadata.entry_points(group=namespace)
    return [point.load() for point in sorted(points, key=lambda point: point.name)]
