"""Values by name in a short text: ``sync=0.5,async=0.5``, ``levels=3,radix=48``."""

from collections.abc import Callable, Collection

from hpc_sched import decimals, exceptions


def texts(
    text: str,
    what: str,
    names: Collection[str],
    form: str,
    cut: Callable[[str, str], tuple[str, str, str]] = str.rpartition,
) -> dict[str, str]:
    """Return the value of each name as a text, in the order of the names in the text.

    :param form: form of the text in errors, ``LEVEL=FACTOR,...``
    :param cut: ``str.partition`` if values may hold an equals sign, else names may
    :raises exceptions.ConfigError: for an invalid or repeated name
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (each.strip() for each in cut(part, "="))
        if not equals:
            raise error(what, form, text)
        if name not in names:
            raise error(what, f"{form} with names of {', '.join(names) or 'nothing'}", name)
        if name in found:
            raise error(what, f"{form} with each name once", f"{name} again")
        found[name] = value
    return found


def numbers(
    text: str, what: str, names: Collection[str], form: str, lowest: float, highest: float
) -> dict[str, float]:
    """Return the number of each name, in the order of the names in the text.

    :raises exceptions.ConfigError: as :func:`texts` does, or for a number that is invalid or out
        of bounds
    """
    found: dict[str, float] = {}
    for name, value in texts(text, what, names, form).items():
        number = decimals.number_in(value)
        if number is None or not lowest <= number <= highest:
            raise error(what, f"{name} from {lowest:g} to {highest:g}", value)
        found[name] = number
    return found


def error(what: str, expected: str, found: str) -> exceptions.ConfigError:
    """Return an error that says what was expected and what was found."""
    return exceptions.ConfigError(f"{what}: expected {expected}, found {found[:80]!r}")
