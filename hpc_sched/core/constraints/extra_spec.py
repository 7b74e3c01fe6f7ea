"""An extra spec of the ``hpc:`` namespace. nova-api imports it: no numpy here.

Tenants write hints and the rules of server groups. These limits hold for them even where Nova
accepts more.
"""

from typing import NamedTuple

NAMESPACE = "hpc:"
# The longest accepted value: Nova's own limit for an extra spec. Nova does not limit hints.
MAX_VALUE = 255

# Nova's own type int accepts what Python's int() does: blanks, signs, 1_6, other digits.
WHOLE_NUMBER = r"[1-9][0-9]{0,5}"
# Levels are named in the topology file, which nova-api does not have: only names that no file
# can have are refused, such as those with control characters or Unicode's two line breaks.
LEVEL = r"(?=\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,255}(?<=\S)"
LEVEL_EXPECTED = (
    "the name of a level of 1 to 255 characters, without blanks at its ends and control characters"
)


class ExtraSpec(NamedTuple):
    """An extra spec of flavors, as nova-api checks it."""

    name: str
    pattern: str  # of the whole value
    expected: str  # a valid value, in words
    description: str
    most: int | None = None  # of a number


def one_of(choices: tuple[str, ...]) -> str:
    """Return the description of a valid choice, for errors."""
    return f"one of {', '.join(choices)}"


def number_up_to(most: int) -> str:
    """Return the description of a valid number, for errors."""
    return f"a whole number from 1 to {most}"
