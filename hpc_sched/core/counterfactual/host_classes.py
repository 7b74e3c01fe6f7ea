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
``l`` number of the rate of its link, if most hosts have another one, for a plan by bottleneck
====  ==========================================================================================

A host with members that was no candidate, nor removed by a filter of hpc_sched, has the room ``-``.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, get_type_hints

NOT_A_CANDIDATE = -1
NONE = -1


class Part(NamedTuple):
    """How a number is written in a word. The default of its field is left out."""

    mark: str  # in front of it
    number: str  # regular expression; ``-`` is -1
    repeat: str = "?"  # how often it may be there, as in a regular expression


class HostClass(NamedTuple):
    """What hosts that are alike have in common: the parts of a word, in their order."""

    # In VMs; NOT_A_CANDIDATE for a host that has members only.
    room: Annotated[int, Part("*", "[0-9]{1,7}|-", "")]
    free: Annotated[int, Part("/", "[0-9]{1,7}")] = 0  # without the VMs of others, if larger
    members: Annotated[int, Part("+", "[0-9]{1,7}")] = 0
    shunned: Annotated[tuple[int, ...], Part("!", "[0-9]{1,3}", "*")] = ()
    removed: Annotated[int, Part("x", "[0-9]{1,3}")] = NONE
    type_: Annotated[int, Part("t", "[0-9]{1,4}|-")] = 0  # NONE: not known
    service: Annotated[int, Part("s", "[0-9]{1,7}")] = NONE
    host: Annotated[int, Part("h", "[0-9]{1,7}")] = NONE
    link: Annotated[int, Part("l", "[0-9]{1,6}")] = NONE

    def __str__(self) -> str:
        """Return the word without the number of hosts in front."""
        texts = []
        for value, (name, part) in zip(self, _PARTS.items(), strict=True):
            if value != self._field_defaults.get(name):
                numbers = value if isinstance(value, tuple) else (value,)
                texts += [f"{part.mark}{'-' if one < 0 else one}" for one in numbers]
        return "".join(texts)


_PARTS: dict[str, Part] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(HostClass, include_extras=True).items()
}
_WORD = re.compile(
    "([1-9][0-9]{0,6})"
    + "".join(
        f"((?:{re.escape(part.mark)}(?:{part.number})){part.repeat})" for part in _PARTS.values()
    )
)


def classes_in(text: str) -> Iterator[tuple[int, HostClass]]:
    """Yield the number of hosts and the class of each word of a leaf's text.

    :raises ValueError: for a word that is no class
    """
    for word in text.split():
        found = _WORD.fullmatch(word)
        if found is None:
            raise ValueError(f"expected hosts such as 18*2+1, found {word[:40]!r}")
        hosts, *texts = found.groups()
        values: dict[str, Any] = {}
        for text_of_part, (name, part) in zip(texts, _PARTS.items(), strict=True):
            numbers = [-1 if one == "-" else int(one) for one in text_of_part.split(part.mark)[1:]]
            if numbers:
                values[name] = tuple(numbers) if part.repeat == "*" else numbers[0]
        yield int(hosts), HostClass(**values)
