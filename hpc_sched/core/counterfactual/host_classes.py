"""Hosts of one leaf by class, as the text of a decision record.

Hosts with equal numbers are interchangeable for the cost of a plan. Each class is one word,
``18*2+1``: 18 hosts with room for 2 VMs and 1 member each. The parts of a word:

====  ==========================================================================================
``/`` room without the VMs of others, if it is larger
``+`` members of the group
``!`` number of a reason why Nova shuns the host; several
``x`` number of the filter that removed the host; it has its room in ``/``
``t`` number of the processor type, - if it is not known; 0, the best, is left out
``s`` number of the service host, if a service of the request has several nodes
``h`` number of the host, if it has several hypervisors
====  ==========================================================================================

A host with members that was no candidate, nor removed by a filter of hpc_sched, has the room ``-``.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

NOT_A_CANDIDATE = -1
NONE = -1

_WORD = re.compile(
    r"(?P<count>[1-9][0-9]{0,6})\*(?P<room>[0-9]{1,7}|-)(?:/(?P<free>[0-9]{1,7}))?"
    r"(?:\+(?P<members>[0-9]{1,7}))?(?P<shunned>(?:![0-9]{1,3})*)(?:x(?P<removed>[0-9]{1,3}))?"
    r"(?:t(?P<type>[0-9]{1,4}|-))?(?:s(?P<service>[0-9]{1,7}))?(?:h(?P<host>[0-9]{1,7}))?"
)


class HostClass(NamedTuple):
    """Hosts that are alike."""

    hosts: int  # number of them
    room: int  # in VMs; NOT_A_CANDIDATE for a host that has members only
    free: int  # room without the VMs of others
    members: int = 0
    shunned: tuple[int, ...] = ()
    removed: int = NONE
    type_: int = 0  # NONE: not known
    service: int = NONE
    host: int = NONE

    def __str__(self) -> str:
        room = "-" if self.room == NOT_A_CANDIDATE else f"{self.room}"
        marks = (
            ("s", self.service),
            ("h", self.host),
        )
        type_ = "-" if self.type_ == NONE else f"{self.type_}"
        return (
            f"{self.hosts}*{room}"
            + (f"/{self.free}" if self.free > max(self.room, 0) else "")
            + (f"+{self.members}" if self.members else "")
            + "".join(f"!{number}" for number in self.shunned)
            + (f"x{self.removed}" if self.removed != NONE else "")
            + (f"t{type_}" if self.type_ else "")
            + "".join(f"{mark}{number}" for mark, number in marks if number != NONE)
        )


def classes_in(text: str) -> Iterator[HostClass]:
    """Yield the classes of a leaf's text.

    :raises ValueError: for a word that is no class
    """
    for word in text.split():
        found = _WORD.fullmatch(word)
        if found is None:
            raise ValueError(f"expected hosts such as 18*2+1, found {word[:40]!r}")
        room = NOT_A_CANDIDATE if found["room"] == "-" else int(found["room"])
        yield HostClass(
            hosts=int(found["count"]),
            room=room,
            free=max(int(found["free"] or 0), room, 0),
            members=int(found["members"] or 0),
            shunned=tuple(int(number) for number in found["shunned"].split("!")[1:]),
            removed=_number(found["removed"]),
            type_=NONE if found["type"] == "-" else int(found["type"] or 0),
            service=_number(found["service"]),
            host=_number(found["host"]),
        )


def _number(text: str | None) -> int:
    return NONE if text is None else int(text)
