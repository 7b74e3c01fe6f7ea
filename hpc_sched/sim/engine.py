"""The clock: events on a heap, taken in the order of time, kind and entry."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum


class EventKind(IntEnum):
    """What happens; of events at one time the lower number comes first.

    What gives room comes before what takes it, so a job can start the moment another ends.
    """

    END = 0
    REPAIR = 1
    FAILURE = 2
    SUBMIT = 3
    SAMPLE = 4


Event = tuple[float, EventKind, int, Callable[[], None]]  # time in s, kind, number of entry, action


@dataclass(slots=True)
class Engine:
    """Events that are still to come. No wall clock, no chance: same entries, same order."""

    now: float = 0.0
    _heap: list[Event] = field(default_factory=list)
    _entries: int = 0

    def enter(self, time: float, kind: EventKind, action: Callable[[], None]) -> None:
        """Enter an event. O(log events).

        :raises ValueError: for a time that is past or none
        """
        if not (self.now <= time < math.inf):
            raise ValueError(f"an event at {time} was entered at {self.now}")
        heapq.heappush(self._heap, (time, kind, self._entries, action))
        self._entries += 1

    def peek(self) -> float:
        """Return the time of the next event, infinity where none is left."""
        return self._heap[0][0] if self._heap else math.inf

    def step(self) -> Event:
        """Let the next event happen and return it; the clock shows its time. O(log events).

        :raises IndexError: where none is left
        """
        event = heapq.heappop(self._heap)
        self.now = event[0]
        event[3]()
        return event

    def __len__(self) -> int:
        return len(self._heap)
