"""The clock: a heap of events, ordered by time, kind and entry."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum


class EventKind(IntEnum):
    """Kinds of events; of events at one time the lower kind comes first.

    Kinds that free resources come before those that take them, so a job can start at the moment
    when another ends.
    """

    END = 0
    REPAIR = 1
    FAILURE = 2
    SUBMIT = 3
    SAMPLE = 4
    WAKE = 5


_FEWEST_REMOVED = 50  # cancelled events, at a time

Event = tuple[float, EventKind, int, Callable[[], None]]  # time in s, kind, entry number, action


@dataclass(slots=True)
class Engine:
    """Queue of pending events. Deterministic: no wall clock, no random numbers."""

    now: float = 0.0
    _heap: list[Event] = field(default_factory=list)
    _entries: int = 0
    _cancelled: set[int] = field(default_factory=set)

    def enter(self, time: float, kind: EventKind, action: Callable[[], None]) -> int:
        """Enter an event, and return its number. O(log events).

        :raises ValueError: for a time in the past, infinity or NaN
        """
        if not (self.now <= time < math.inf):
            raise ValueError(f"an event at {time} was entered at {self.now}")
        heapq.heappush(self._heap, (time, kind, self._entries, action))
        self._entries += 1
        return self._entries - 1

    def cancel(self, entry: int) -> None:
        """Cancel an event that has not happened, by its number. O(log events) on average."""
        self._cancelled.add(entry)
        # An end far ahead may be entered anew very often: cancelled events are at most half of all.
        if len(self._cancelled) > max(len(self._heap) // 2, _FEWEST_REMOVED):
            self._heap = [event for event in self._heap if event[2] not in self._cancelled]
            heapq.heapify(self._heap)
            self._cancelled.clear()

    def peek(self) -> float:
        """Return the time of the next event, or infinity."""
        while self._cancelled and self._heap and self._heap[0][2] in self._cancelled:
            self._cancelled.remove(heapq.heappop(self._heap)[2])
        return self._heap[0][0] if self._heap else math.inf

    def step(self) -> EventKind:
        """Advance the clock to the next event, run its action and return its kind. O(log events).

        :raises IndexError: without a pending event
        """
        self.peek()
        self.now, kind, _, action = heapq.heappop(self._heap)
        action()
        return kind
