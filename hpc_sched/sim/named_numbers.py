"""Numbers by name in a short text: ``sync=0.5,async=0.5``, ``leaf=1,pod=1.1``."""

from collections.abc import Collection

from hpc_sched import decimals, exceptions


def read(
    text: str, what: str, names: Collection[str], form: str, lowest: float, highest: float
) -> dict[str, float]:
    """Return the number of each name, in the order of the text.

    :param form: form of the text in errors, ``LEVEL=FACTOR,...``
    :raises exceptions.ConfigError: for an invalid or repeated name, or a number that is invalid
        or out of bounds
    """
    numbers: dict[str, float] = {}
    for each in text.split(","):
        name, equals, stated = (part.strip() for part in each.rpartition("="))
        if not equals:
            raise _error(what, form, text)
        if name not in names:
            raise _error(what, f"{form} with names of {', '.join(names) or 'nothing'}", name)
        if name in numbers:
            raise _error(what, f"{form} with each name once", f"{name} again")
        number = decimals.number_in(stated)
        if number is None or not lowest <= number <= highest:
            raise _error(what, f"{name} from {lowest:g} to {highest:g}", stated)
        numbers[name] = number
    return numbers


def _error(what: str, expected: str, found: str) -> exceptions.ConfigError:
    return exceptions.ConfigError(f"{what}: expected {expected}, found {found[:80]!r}")
