"""Nova's objects as its databases store them: JSON of a primitive with the fields inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_FIELDS = "nova_object.data"

Fields = Mapping[str, Any]


class Unreadable(ValueError):
    """A row does not hold what Nova writes there."""


def fields(primitive: Any) -> Fields:
    """Return the fields of a serialized object.

    :raises Unreadable: if it is none
    """
    found = primitive.get(_FIELDS) if isinstance(primitive, dict) else None
    if not isinstance(found, dict):
        raise Unreadable("no serialised object of Nova")
    return found


def fields_in(text: str | None) -> Fields:
    """Return the fields of the object in a column.

    :raises Unreadable: if there is none
    """
    return fields(_parsed(text))


def flavors_in(text: str | None) -> dict[str, Fields]:
    """Return the flavors in an instance's column, by "cur", "old" and "new" if set.

    :raises Unreadable: if the column holds anything else
    """
    found = _parsed(text)
    if not isinstance(found, dict):
        raise Unreadable("no flavors")
    return {name: fields(flavor) for name, flavor in found.items() if flavor is not None}


def mapping(value: Any) -> Fields:
    """Return a field that is a dictionary; an empty one for None.

    :raises Unreadable: if it is anything else
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable("no dictionary where one is expected")
    return value


def number(found: Fields, name: str) -> int:
    """Return a field that is an integer; 0 if it is null or absent.

    :raises Unreadable: if it is anything else
    """
    value = found.get(name) or 0
    if not isinstance(value, int):
        raise Unreadable(f"{name} is no whole number")
    return value


def problem(uuid: str, what: str, error: Unreadable) -> str:
    """Return the log text for a row that cannot be read."""
    return f"the {what} of instance {uuid} in Nova's database cannot be read: {error}"


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"no JSON: {error}") from error
