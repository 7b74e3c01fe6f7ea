"""Dataclasses out of what a JSON document holds, each value judged by its field's type."""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpc_sched import exceptions

# Enough to recognise a value, however long it is.
_MAX_SHOWN = 60
_WORDS: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
    types.NoneType: "null",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file a value stands; its text is made only for an error."""

    file: str
    above: "Place | None" = None
    key: str | int = ""

    def __str__(self) -> str:
        return "" if self.above is None else f"{self.above}[{self.key!r}]"

    def at(self, key: str | int) -> "Place":
        """Return the place one key further in."""
        return Place(self.file, self, key)

    def error(self, text: str) -> exceptions.SnapshotError:
        """Return an error that names file and key."""
        return exceptions.SnapshotError(f"{self.file}: {str(self) or 'document'}: {text}")


def value_of(kind: Any, found: Any, place: Place) -> Any:
    """Return a value of a type out of what JSON gave for it. Linear in its size.

    Knows str, int, float, bool, None, Any, unions of them, ``tuple[X, ...]``,
    ``Mapping[str, X]`` and dataclasses of these; numbers are finite.

    :raises exceptions.SnapshotError: naming file, key, what was expected and what was found
    """
    if kind is Any:
        return found
    if dataclasses.is_dataclass(kind):
        return _record(kind, found, place)
    origin = typing.get_origin(kind)
    if origin is types.UnionType:
        if found is None:
            return None
        [inner] = (part for part in typing.get_args(kind) if part is not types.NoneType)
        return value_of(inner, found, place)
    if origin is tuple:
        inner = typing.get_args(kind)[0]
        items = _checked(list, found, place)
        return tuple(value_of(inner, item, place.at(i)) for i, item in enumerate(items))
    if origin is Mapping:
        inner = typing.get_args(kind)[1]
        mapping = _checked(dict, found, place)
        return {key: value_of(inner, item, place.at(key)) for key, item in mapping.items()}
    return _checked(kind, found, place)


def shown(found: Any) -> str:
    """Return what a value is, short enough for a sentence."""
    if isinstance(found, str | int | float) and not isinstance(found, bool):
        text = repr(found[:_MAX_SHOWN]) if isinstance(found, str) else repr(found)
        return text[:_MAX_SHOWN]
    return _WORDS.get(type(found), "something else")


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number that no float comes near
        return False


def _record(kind: Any, found: Any, place: Place) -> Any:
    """Return a dataclass; a key that it does not know is an error, not a loss."""
    mapping = _checked(dict, found, place)
    known = _fields_of(kind)
    values = {}
    for key, item in mapping.items():
        if key not in known:
            raise place.error(f"expected one of {', '.join(known)}, found key {shown(key)}")
        values[key] = value_of(known[key][0], item, place.at(key))
    missing = [key for key, (_, required) in known.items() if required and key not in mapping]
    if missing:
        raise place.error(f"expected key {missing[0]!r}, found none")
    return kind(**values)


@functools.cache
def _fields_of(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field and whether it must be given."""
    hints = typing.get_type_hints(kind)
    none = dataclasses.MISSING
    return {
        field.name: (hints[field.name], field.default is none and field.default_factory is none)
        for field in dataclasses.fields(kind)
    }


def _checked(kind: Any, found: Any, place: Place) -> Any:
    # A bool is an int for isinstance(), and a whole number is as good as any other number.
    is_kind = type(found) is kind or (kind is float and type(found) is int)
    if not is_kind:
        raise place.error(f"expected {_WORDS[kind]}, found {shown(found)}")
    if kind is float and not _is_finite(found):
        raise place.error("expected a finite number, found an infinite one")
    return found
