"""A hold as a consumer of Placement: all that is to be said of it is amounts of resource classes.

=============================  ===========================================================
``CUSTOM_HPC_SCHED_VCPU``      the amount of Nova's class VCPU that is held; so for all classes
``CUSTOM_HPC_SCHED_UNTIL``     when the hold ends: seconds since 1970
``CUSTOM_HPC_SCHED_MOVING``    1 if the instance is being placed there now; else none
``CUSTOM_HPC_SCHED_NODE_0``    the nodename as a number, its lowest digit, and so on: a digit is
                               an amount of 1 to :data:`LARGEST`
=============================  ===========================================================

The consumer's uuid is the instance's with some bits inverted: an instance has allocations of its
own. It has version 8 where Nova's have version 4, so it is the uuid of no instance.
"""

import hashlib
import re
import uuid
from collections.abc import Mapping

from hpc_sched.nova_glue.io.hold import Hold

LARGEST = 2**31 - 1  # that Placement takes for one amount
PREFIX = "CUSTOM_HPC_SCHED_"
UNTIL, MOVING = f"{PREFIX}UNTIL", f"{PREFIX}MOVING"
_NODE = f"{PREFIX}NODE_"
# Of a class with a name that leaves no room for the prefix: a digest of the name is enough.
_SHORTENED = f"{PREFIX}SHA256_"
_LONGEST = 255  # letters in the name of a class
_DIGIT = re.compile(rf"{_NODE}(\d+)\Z")
_INVERTED = 0x68706373_6368_C564_0000_686F6C647321

# Of most names; each letter takes the room of 5.3 bits, else 8.
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-._"
_BASE = len(_LETTERS) + 1  # no letter is the digit 0: it would vanish at the end


def consumer_of(instance: str) -> str:
    """Return the uuid of the consumer of an instance's hold, or the reverse."""
    return str(uuid.UUID(int=uuid.UUID(instance).int ^ _INVERTED))


def amounts_of(hold: Hold) -> dict[str, int]:
    """Return the amounts of a hold by resource class of hpc_sched."""
    found = {class_of(name): amount for name, amount in hold.amounts.items() if amount > 0}
    found |= {f"{_NODE}{i}": digit + 1 for i, digit in enumerate(_digits(hold.node))}
    found[UNTIL] = hold.until
    if hold.is_moving:
        found[MOVING] = 1
    return found


def class_of(name: str) -> str:
    """Return the class of hpc_sched for one of Nova's."""
    if len(PREFIX) + len(name) <= _LONGEST:
        return PREFIX + name
    return _SHORTENED + hashlib.sha256(name.encode()).hexdigest().upper()


def is_shortened(own_class: str) -> bool:
    """True if only a list of all resource classes says of which class of Nova's this one is."""
    return own_class.startswith(_SHORTENED)


def hold_of(
    consumer: str, amounts: Mapping[str, int], shortened: Mapping[str, str] | None = None
) -> Hold | None:
    """Return the hold of a consumer with some amounts; None if it is none.

    :param shortened: Nova's class for each shortened one; what it lacks is no class of Nova's
    """
    shortened = shortened or {}
    digits = {int(found[1]): amounts[name] for name in amounts if (found := _DIGIT.match(name))}
    if UNTIL not in amounts or not digits or sorted(digits) != list(range(len(digits))):
        return None
    node = _name([digits[i] - 1 for i in range(len(digits))])
    if node is None:
        return None
    is_said = (UNTIL, MOVING)
    held = {
        shortened.get(name, name.removeprefix(PREFIX)): amount
        for name, amount in amounts.items()
        if name.startswith(PREFIX)
        and name not in is_said
        and not _DIGIT.match(name)
        and (name in shortened or not is_shortened(name))
    }
    return Hold(consumer_of(consumer), node, held, amounts[UNTIL], is_moving=MOVING in amounts)


def _digits(name: str) -> list[int]:
    """Return a nodename as the digits of a number, the lowest one first."""
    is_plain = all(letter in _LETTERS for letter in name)
    number = 0
    if is_plain:
        for letter in reversed(name):
            number = number * _BASE + _LETTERS.index(letter) + 1
    else:
        number = int.from_bytes(b"\x01" + name.encode())
    number = 2 * number + is_plain
    found = []
    while number:
        number, digit = divmod(number, LARGEST)
        found.append(digit)
    return found


def _name(digits: list[int]) -> str | None:
    """Return the nodename of some digits; None if they are of none."""
    number = 0
    for digit in reversed(digits):
        number = number * LARGEST + digit
    number, is_plain = divmod(number, 2)
    if not is_plain:
        try:
            return number.to_bytes((number.bit_length() + 7) // 8)[1:].decode()
        except UnicodeDecodeError:
            return None
    letters = []
    while number:
        number, digit = divmod(number, _BASE)
        if not digit:
            return None
        letters.append(_LETTERS[digit - 1])
    return "".join(letters)
