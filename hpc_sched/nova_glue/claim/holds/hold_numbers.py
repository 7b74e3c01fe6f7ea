"""A hold as amounts of resource classes: Placement's lists of consumers say nothing else of them.

=================================  =======================================================
``CUSTOM_HPC_SCHED_VCPU``          the amount of Nova's class VCPU; so for all classes
``CUSTOM_HPC_SCHED_UNTIL``         when the hold ends: seconds since 1970
``CUSTOM_HPC_SCHED_MOVING``        1 if the instance is being placed there now; else none
``CUSTOM_HPC_SCHED_NODE_0`` ...    the nodename as a number, its lowest digit first: a digit is
                                   an amount of 1 to :data:`LARGEST`
``CUSTOM_HPC_SCHED_INSTANCE_0``..  the instance's uuid as a number
=================================  =======================================================

The consumer has a uuid of its own: of two that make one consumer at the same moment Placement may
answer to both that it is done, and remove it as one of them fails. And the instance has allocations
of its own.
"""

import hashlib
import re
import uuid
from collections.abc import Mapping

from hpc_sched.nova_glue.read.hold import Hold

LARGEST = 2**31 - 1  # that Placement takes for one amount
PREFIX = "CUSTOM_HPC_SCHED_"
UNTIL, MOVING = f"{PREFIX}UNTIL", f"{PREFIX}MOVING"
_NODE = f"{PREFIX}NODE_"
# Of a class with a name that leaves no room for the prefix: a digest of the name is enough.
_SHORTENED = f"{PREFIX}SHA256_"
_LONGEST = 255  # letters in the name of a class
_INSTANCE = f"{PREFIX}INSTANCE_"
_OF_UUID = 5  # digits of all uuids: one that is larger than those before needs no class more
_DIGIT = re.compile(rf"({_NODE}|{_INSTANCE})(\d+)\Z")

# Of most names; each letter takes the room of 5.3 bits, else 8.
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-._"
_BASE = len(_LETTERS) + 1  # no letter is the digit 0: it would vanish at the end


def amounts_of(hold: Hold) -> dict[str, int]:
    """Return the amounts of a hold by resource class of hpc_sched."""
    found = {class_of(name): amount for name, amount in hold.amounts.items() if amount > 0}
    instance = uuid.UUID(hold.instance).int
    digits = {_NODE: _digits(_number(hold.node)), _INSTANCE: _digits(instance, _OF_UUID)}
    for prefix, some in digits.items():
        found |= {f"{prefix}{i}": digit + 1 for i, digit in enumerate(some)}
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


def hold_of(amounts: Mapping[str, int], shortened: Mapping[str, str] | None = None) -> Hold | None:
    """Return the hold with some amounts; None if they are of none.

    :param shortened: Nova's class for each shortened one; what it lacks is no class of Nova's
    """
    node, instance = _name(_read(amounts, _NODE)), _read(amounts, _INSTANCE)
    if UNTIL not in amounts or node is None or not 0 < instance < 2**128:
        return None
    shortened = shortened or {}
    held = {
        shortened.get(name, name.removeprefix(PREFIX)): amount
        for name, amount in amounts.items()
        if name.startswith(PREFIX)
        and name not in (UNTIL, MOVING)
        and not _DIGIT.match(name)
        and (name in shortened or not is_shortened(name))
    }
    uuid_ = str(uuid.UUID(int=instance))
    return Hold(uuid_, node, held, amounts[UNTIL], is_moving=MOVING in amounts)


def _digits(number: int, least: int = 0) -> list[int]:
    """Return the digits of a number, the lowest one first, and at least as many."""
    found = list[int]()
    while number or len(found) < least:
        number, digit = divmod(number, LARGEST)
        found.append(digit)
    return found


def _read(amounts: Mapping[str, int], prefix: str) -> int:
    """Return the number that is in amounts; 0 if none is, or a digit of it is missing."""
    digits = {
        int(found[2]): amount - 1
        for name, amount in amounts.items()
        if (found := _DIGIT.match(name)) and found[1] == prefix
    }
    if sorted(digits) != list(range(len(digits))):
        return 0
    return sum(digit * LARGEST**i for i, digit in digits.items())


def _number(name: str) -> int:
    """Return a nodename as a number."""
    if is_plain := all(letter in _LETTERS for letter in name):
        number = 0
        for letter in reversed(name):
            number = number * _BASE + _LETTERS.index(letter) + 1
    else:
        number = int.from_bytes(b"\x01" + name.encode())
    return 2 * number + is_plain


def _name(number: int) -> str | None:
    """Return the nodename of a number; None if it is of none."""
    if not number:
        return None
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
