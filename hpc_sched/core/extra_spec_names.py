"""The keys, values and limits of the ``hpc:`` namespace. nova-api imports them: no numpy here.

Tenants write hints and the rules of server groups. These limits hold for them even where Nova
accepts more.
"""

import re
from typing import NamedTuple

APP_CLASSES = ("extreme", "sync", "async", "none")
HOMOGENEOUS = ("true", "prefer", "false")

# A cache score. float() alone would accept nan, inf, signs and exponents.
# Finite for every text of at most MAX_VALUE characters.
DECIMAL = r"[0-9]+(\.[0-9]+)?"

# The longest accepted value: Nova's own limit for an extra spec. Nova does not limit hints.
MAX_VALUE = 255
# The longest quotation of an invalid value in an error text.
MAX_SHOWN = 80
# A single VM makes the planner place a whole group of this size. The time grows with it, to
# seconds on 10,000 hosts that take a thousand VMs each.
MAX_GROUP_SIZE = 4096
# More leaf switches than any fabric has. Larger numbers do not take longer.
MAX_LEAVES = 999_999

NAMESPACE = "hpc:"
# The most letters by which a misspelt key differs from the one that was meant.
MAX_TYPOS = 2
# The most unknown keys that are looked at, and that are reported, misspelt constraints first. Nova
# does not limit the number of hints.
MAX_UNKNOWN = 1024
MAX_REPORTED = 32

PATTERN = r"[A-Za-z0-9._+-]{1,255}"
EXPECTED = "an application's name of 1 to 255 letters, digits and . _ + -"


def is_name(text: str) -> bool:
    """True if a text is a valid name of an application."""
    return re.fullmatch(PATTERN, text) is not None


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


# Nova's own type int accepts what Python's int() does: blanks, signs, 1_6, other digits.
_WHOLE_NUMBER = r"[1-9][0-9]{0,5}"
# Levels are named in the topology file, which nova-api does not have: only names that no file
# can have are refused, such as those with control characters or Unicode's two line breaks.
_LEVEL = r"(?=\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,255}(?<=\S)"
_LEVEL_EXPECTED = (
    "the name of a level of 1 to 255 characters, without blanks at its ends and control characters"
)

EXTRA_SPECS = (
    ExtraSpec(
        "hpc:app_class",
        "|".join(APP_CLASSES),
        one_of(APP_CLASSES),
        "What the group's VMs run, which decides how they are placed. ``extreme``: tightly "
        "coupled, packed under as few leaf switches as possible, on hosts without VMs of "
        "others. ``sync``: tightly coupled, packed by leaf, with little interference from "
        "neighbours. ``async``: loosely coupled, consolidated, not placed by topology. "
        "``none``: not HPC, placed as if hpc_sched were not there, or packed where "
        "``[hpc_sched] mdobp_classes`` names the class. Default: the option "
        "``[hpc_sched] default_app_class``, ``sync`` as delivered.",
    ),
    ExtraSpec(
        "hpc:app_name",
        PATTERN,
        EXPECTED,
        "The application that the VMs run, as the interference index "
        "(``[hpc_sched] interference_file``) calls it: it is kept away from the "
        "applications that the index marks as bad company, and may be placed next to "
        "those with which it, or they, run faster. Default: none, no application of the index.",
    ),
    ExtraSpec(
        "hpc:cache_score",
        DECIMAL,
        "a decimal number >= 0 without sign or exponent, such as 12.5",
        "How hard one VM uses the last-level cache, in units of 100,000 misses per second. "
        "A host takes VMs until the sum of their scores reaches ``[hpc_sched] "
        "cache_score_limit`` (``sync_cache_score_limit`` where one of them is of class "
        "``sync``). Default: 0.",
    ),
    ExtraSpec(
        "hpc:group_size",
        _WHOLE_NUMBER,
        number_up_to(MAX_GROUP_SIZE),
        "How many VMs the group will have in the end, for users who create them one by "
        "one: the first is placed where there is room for all. It refuses a request only "
        "where ``hpc:require`` or ``hpc:max_leaves`` cannot be kept for that number, and is "
        "ignored on moves. Default: the VMs that have been requested so far.",
        most=MAX_GROUP_SIZE,
    ),
    ExtraSpec(
        "hpc:require",
        _LEVEL,
        _LEVEL_EXPECTED,
        "The level of the fabric under one switch of which all VMs of the group must fit "
        "(as delivered ``leaf``, ``pod`` or ``core``; the topology file may rename them). "
        "A group that does not fit is refused before anything is claimed. Default: none, "
        "the group is packed as well as room allows.",
    ),
    ExtraSpec(
        "hpc:prefer",
        _LEVEL,
        _LEVEL_EXPECTED,
        "The level of the fabric under one switch of which all VMs of the group should "
        "be, where there is room; otherwise they spread further. Levels are named as for "
        "``hpc:require``. Default: none.",
    ),
    ExtraSpec(
        "hpc:max_leaves",
        _WHOLE_NUMBER,
        number_up_to(MAX_LEAVES),
        "Under how many leaf switches the group may spread at most. A group that needs "
        "more is refused. Default: no limit.",
        most=MAX_LEAVES,
    ),
    ExtraSpec(
        "hpc:homogeneous",
        "|".join(HOMOGENEOUS),
        one_of(HOMOGENEOUS),
        "Whether all VMs of a request go to processors of one type. ``true``: a group that "
        "no single type can hold is refused. ``prefer``: it is mixed. ``false``: types do "
        "not matter. Lower case here, while the scheduler compares without case. Default: "
        "the option ``[hpc_sched] default_homogeneous``, ``prefer`` as delivered.",
    ),
)

KEYS = tuple(spec.name for spec in EXTRA_SPECS)
# Constraints on the place: misspelt, they would be dropped silently.
_CONSTRAINTS = ("hpc:require", "hpc:max_leaves")


def meant_constraint(key: str) -> str | None:
    """Return the constraint on the place that an unknown key misspells, or None."""
    return _nearest(key, _CONSTRAINTS)


def meant_key(key: str) -> str | None:
    """Return the key that an unknown one misspells, or None; a constraint before others."""
    return meant_constraint(key) or _nearest(key, KEYS)


def _nearest(key: str, known: tuple[str, ...]) -> str | None:
    """Return the nearest key at most ``MAX_TYPOS`` letters away, whatever its case, or None."""
    typos, nearest = min((_count_typos(key.lower(), other), other) for other in known)
    return nearest if typos <= MAX_TYPOS else None


def _count_typos(text: str, other: str) -> int:
    """Return the edit distance (Levenshtein) of two texts, ``MAX_TYPOS`` + 1 if it is more."""
    if abs(len(text) - len(other)) > MAX_TYPOS:
        return MAX_TYPOS + 1
    row = list(range(len(other) + 1))
    for i, letter in enumerate(text, 1):
        above, row = row, [i]
        for j, expected in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != expected)))
        if min(row) > MAX_TYPOS:
            return MAX_TYPOS + 1
    return row[-1]
