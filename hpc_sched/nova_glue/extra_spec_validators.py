"""Validators of flavor extra specs of the ``hpc:`` namespace in nova-api.

Loaded by stevedore (group ``nova.api.extra_spec_validators``) and used from microversion 2.86
on. Nova refuses every key of a namespace with validators that has none itself, such as a
misspelt ``hpc:requir``. Nova logs a warning if this module cannot be imported, but does not
start if ``register`` raises.

The scheduler checks every value again: flavors may be older than this module, and scheduler
hints are not validated here. Where the two differ, the API is stricter.
"""

from nova import exception
from nova.api.validation.extra_specs import base

from hpc_sched.core import extra_spec_names
from hpc_sched.core.extra_spec_names import (
    APP_CLASSES,
    DECIMAL,
    HOMOGENEOUS,
    MAX_GROUP_SIZE,
    MAX_LEAVES,
)

# Nova's own type int accepts what Python's int() does: blanks, signs, 1_6, other digits.
_WHOLE_NUMBER = r"[1-9][0-9]{0,5}"
# Levels are named in the topology file, which nova-api does not have: only names that no file
# can have are refused, such as those with control characters or Unicode's two line breaks.
_LEVEL = r"(?=\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,255}(?<=\S)"


class Validator(base.ExtraSpecValidator):
    """An extra spec whose refusal names the key and the expected value.

    Nova's own text has only the value and a regular expression, although one request may set
    many keys.
    """

    def validate(self, name: str, value: str) -> None:
        """Check one extra spec.

        :raises nova.exception.ValidationError: for a wrong value; HTTP 400 to the client
        """
        try:
            super().validate(name, value)
            is_good = "max" not in self.value or int(value) <= self.value["max"]
        except exception.ValidationError:
            is_good = False
        if not is_good:
            expected = self.value["description"]
            raise exception.ValidationError(
                f"Validation failed; {name}={value!r}: expected {expected}."
            )


def register() -> list[base.ExtraSpecValidator]:
    """Return the validators of all keys in the ``hpc:`` namespace; Nova calls this once."""
    return [
        _one_of(
            "hpc:app_class",
            APP_CLASSES,
            "What the group's VMs run, which decides how they are placed. ``extreme``: tightly "
            "coupled, packed under as few leaf switches as possible, on hosts without VMs of "
            "others. ``sync``: tightly coupled, packed by leaf, with little interference from "
            "neighbours. ``async``: loosely coupled, consolidated, not placed by topology. "
            "``none``: not HPC, placed as if hpc_sched were not there. Default: the option "
            "``[hpc_sched] default_app_class``, ``sync`` as delivered.",
        ),
        _text(
            "hpc:app_name",
            extra_spec_names.PATTERN,
            extra_spec_names.EXPECTED,
            "The application that the VMs run, as the interference index "
            "(``[hpc_sched] interference_file``) calls it: it is kept away from the "
            "applications that the index marks as bad company. Default: none, no application "
            "of the index.",
        ),
        _text(
            "hpc:cache_score",
            DECIMAL,
            "a decimal number >= 0 without sign or exponent, such as 12.5",
            "How hard one VM uses the last-level cache, in units of 100,000 misses per second. "
            "A host takes VMs until the sum of their scores reaches ``[hpc_sched] "
            "cache_score_limit`` (``sync_cache_score_limit`` where one of them is of class "
            "``sync``). Default: 0.",
        ),
        _number(
            "hpc:group_size",
            MAX_GROUP_SIZE,
            "How many VMs the group will have in the end, for users who create them one by "
            "one: the first is placed where there is room for all. It refuses a request only "
            "where ``hpc:require`` or ``hpc:max_leaves`` cannot be kept for that number, and is "
            "ignored on moves. Default: the VMs that "
            "have been requested so far.",
        ),
        _level(
            "hpc:require",
            "The level of the fabric under one switch of which all VMs of the group must fit "
            "(as delivered ``leaf``, ``pod`` or ``core``; the topology file may rename them). "
            "A group that does not fit is refused before anything is claimed. Default: none, "
            "the group is packed as well as room allows.",
        ),
        _level(
            "hpc:prefer",
            "The level of the fabric under one switch of which all VMs of the group should "
            "be, where there is room; otherwise they spread further. Levels are named as for "
            "``hpc:require``. Default: none.",
        ),
        _number(
            "hpc:max_leaves",
            MAX_LEAVES,
            "Under how many leaf switches the group may spread at most. A group that needs "
            "more is refused. Default: no limit.",
        ),
        _one_of(
            "hpc:homogeneous",
            HOMOGENEOUS,
            "Whether all VMs of a request go to processors of one type. ``true``: a group that "
            "no single type can hold is refused. ``prefer``: it is mixed. ``false``: types do "
            "not matter. Lower case here, while the scheduler compares without case. Default: "
            "the option ``[hpc_sched] default_homogeneous``, ``prefer`` as delivered.",
        ),
    ]


def _one_of(name: str, choices: tuple[str, ...], description: str) -> Validator:
    expected = f"one of {', '.join(choices)}"
    value = {"type": str, "description": expected, "enum": list(choices)}
    return Validator(name=name, description=description, value=value)


def _text(name: str, pattern: str, expected: str, description: str) -> Validator:
    value = {"type": str, "description": expected, "pattern": pattern}
    return Validator(name=name, description=description, value=value)


def _number(name: str, most: int, description: str) -> Validator:
    expected = f"a whole number from 1 to {most}"
    value = {"type": str, "description": expected, "pattern": _WHOLE_NUMBER, "max": most}
    return Validator(name=name, description=description, value=value)


def _level(name: str, description: str) -> Validator:
    expected = (
        "the name of a level of 1 to 255 characters, without blanks at its ends and control "
        "characters"
    )
    return _text(name, _LEVEL, expected, description)
