"""The keys of the ``hpc:`` namespace. nova-api imports them: no numpy here."""

import re

from hpc_sched.core.constraints.extra_spec import NAMESPACE, ExtraSpec, one_of
from hpc_sched.core.constraints.values import ALL

APP_CLASS = "hpc:app_class"
APP_CLASSES = ("extreme", "sync", "async", "none")
HOPS, BOTTLENECK, ISOLATED = OBJECTIVES = ("hops", "bottleneck", "isolated")

# A cache score. float() alone would accept nan, inf, signs and exponents.
# Finite for every text of at most MAX_VALUE characters.
DECIMAL = r"[0-9]+(\.[0-9]+)?"

# The longest quotation of an invalid value in an error text.
MAX_SHOWN = 80
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


# What TableRow.text expects of a name of an application.
NAME = (EXPECTED, is_name)


# What ranks send each other, as core.traffic.stated_pattern reads it. The names are those of
# core.traffic.patterns, which needs numpy; a test compares the two.
TRAFFIC = ExtraSpec(
    "hpc:pattern",
    r"uniform|alltoall|broadcast|bt|doubling|halo1|none|ring"
    r"|halo2(:[1-9][0-9]{0,3}x[1-9][0-9]{0,3})?|halo3(:[1-9][0-9]{0,3}(x[1-9][0-9]{0,3}){2})?"
    r"|matrix:[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
    "alltoall, broadcast, bt, doubling, halo1 to halo3, none, ring, uniform, halo2:8x4 or "
    "matrix:NAME",
    "What the VMs of the group, as the ranks of one application, send each other, for plans by "
    "bottleneck: ``uniform``, one of the simulator's patterns, a grid with stated sides "
    "(``halo2:8x4``), or ``matrix:NAME``, a file of the operator's "
    "(``[hpc_sched] pattern_directory``). Default: ``uniform``, all VMs send the same to all "
    "others.",
)

_SPECS = (
    ExtraSpec(
        APP_CLASS,
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
        "hpc:objective",
        "|".join(OBJECTIVES),
        one_of(OBJECTIVES),
        "What the plan of a group is best by; of flavors alone, hints do not count. ``hops``: the "
        "least Hop-Byte, so the fewest and nearest leaf switches. ``bottleneck``: the least "
        "traffic by capacity on any link, so more leaf switches; no more harm to others than "
        "``[hpc_sched] bottleneck_tradeoff`` allows. ``isolated``: no uplinks that other isolated "
        "groups use, or the group is refused. Default: ``hops``.",
    ),
    TRAFFIC,
    *(constraint.spec for constraint in ALL),
)
EXTRA_SPECS = tuple(sorted(_SPECS, key=lambda spec: spec.name))

KEYS = tuple(spec.name for spec in EXTRA_SPECS)
NAMES = tuple(key.removeprefix(NAMESPACE) for key in KEYS)
# Constraints on the place: misspelt, they would be dropped silently.
CONSTRAINT_KEYS = (
    *(constraint.spec.name for constraint in ALL if constraint.binds_place),
    "hpc:objective",
)


def meant_key(key: str, known: tuple[str, ...]) -> str | None:
    """Return the known key nearest to an unknown one, or None if that is no misspelling.

    A key is misspelt in at most ``MAX_TYPOS`` letters, whatever its case.
    """
    text = key.lower()
    near = (other for other in known if abs(len(text) - len(other)) <= MAX_TYPOS)
    found = min(((_count_typos(text, other), other) for other in near), default=None)
    return found[1] if found is not None and found[0] <= MAX_TYPOS else None


def _count_typos(text: str, other: str) -> int:
    """Return the edit distance (Levenshtein) of two texts, ``MAX_TYPOS`` + 1 if it is more."""
    # What all keys begin with changes nothing.
    text, other = text.removeprefix(NAMESPACE), other.removeprefix(NAMESPACE)
    row = list(range(len(other) + 1))
    for i, letter in enumerate(text, 1):
        above, row = row, [i]
        for j, expected in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != expected)))
        if min(row) > MAX_TYPOS:
            return MAX_TYPOS + 1
    return row[-1]
