"""The events of a soak, drawn from a seed alone: the same seed gives the same events.

What an event meets, which VM or which host, follows from its own numbers and from what is there
when its turn comes.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

# How often each happens, in the busy times and in the quiet ones that follow them.
KINDS = {
    "create": (30, 10),
    "grow": (12, 4),
    "delete": (18, 30),
    "cold migrate": (6, 6),
    "live migrate": (6, 6),
    "resize": (6, 6),
    "shelve": (5, 4),
    "unshelve": (5, 6),
    "host fails": (3, 3),
    "evacuate": (8, 8),
    "host recovers": (3, 4),
    "topology": (2, 2),
    "bad topology": (2, 2),
    "SIGHUP": (2, 2),
}
BUSY, PERIOD = 130, 200  # events
AT_ONCE = (1, 2, 4, 4, 4)  # how many events come together


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens, with numbers of its own."""

    kind: str
    seed: int

    @property
    def dice(self) -> random.Random:
        """The event's own random numbers, from their beginning."""
        return random.Random(self.seed)


def rounds(seed: int, events: int) -> Iterator[list[Event]]:
    """Yield the events of a life, those together that come at the same time."""
    dice = random.Random(seed)
    drawn = 0
    while drawn < events:
        together = min(dice.choice(AT_ONCE), events - drawn)
        weights = [pair[drawn % PERIOD >= BUSY] for pair in KINDS.values()]
        kinds = dice.choices(list(KINDS), weights, k=together)
        yield [Event(kind, dice.getrandbits(64)) for kind in kinds]
        drawn += together
