"""Nova's objects as its databases keep them: JSON of a primitive with its fields inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_FIELDS = "nova_object.data"

Fields = Mapping[str, Any]


class Unreadable(ValueError):
    """A row does not hold what Nova writes there."""


def fields(primitive: Any) -> Fields:
    """Return the fields of a serialised object.

    :raises Unreadable: where it is none
    """
    found = primitive.get(_FIELDS) if isinstance(primitive, dict) else None
    if not isinstance(found, dict):
        raise Unreadable("no serialised object of Nova")
    return found


def fields_in(text: str | None) -> Fields:
    """Return the fields of the object in a column.

    :raises Unreadable: where there is none
    """
    return fields(_parsed(text))


def flavors_in(text: str | None) -> dict[str, Fields]:
    """Return the flavors in the column of a VM, by cur, old and new; those that there are.

    :raises Unreadable: where they are not what Nova writes
    """
    found = _parsed(text)
    if not isinstance(found, dict):
        raise Unreadable("no flavors")
    return {name: fields(flavor) for name, flavor in found.items() if flavor is not None}


def mapping(value: Any) -> Fields:
    """Return a field that is a dictionary, an empty one where it is null or absent.

    :raises Unreadable: where it is something else
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable("no dictionary where one is expected")
    return value


def number(found: Fields, name: str) -> int:
    """Return a field that is a whole number, 0 where it is null or absent.

    :raises Unreadable: where it is something else
    """
    value = found.get(name) or 0
    if not isinstance(value, int):
        raise Unreadable(f"{name} is no whole number")
    return value


def problem(uuid: str, what: str, error: Unreadable) -> str:
    """Return what the operator is told of a row that cannot be read."""
    return f"the {what} of instance {uuid} in Nova's database cannot be read: {error}"


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"no JSON: {error}") from error
