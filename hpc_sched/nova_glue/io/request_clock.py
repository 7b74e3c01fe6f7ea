"""How long hpc_sched takes for a request, from each of Nova's calls until it returns, by part."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hpc_sched import clock
from hpc_sched.core.decision_entry import PARTS


@dataclass
class RequestClock:
    """The parts of a request's time; used only by the thread that serves it.

    A part that runs within another one takes its time from that: so they add up to the whole.
    """

    _spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    _part: str | None = None  # that runs now; None between Nova's calls
    _since: float = 0.0  # monotonic time

    @contextmanager
    def part(self, name: str, since: float | None = None) -> Iterator[None]:
        """Count the time of this block as a part.

        :param since: when the part began, if no other one runs: a monotonic time
        """
        before = self._part
        self._switch(name)
        if since is not None and before is None:
            self._since = since
        try:
            yield
        finally:
            self._switch(before)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each part up to now."""
        self._switch(self._part)
        return dict(self._spent)

    def _switch(self, name: str | None) -> None:
        now = clock.current.monotonic()
        if self._part is not None:
            self._spent[self._part] += now - self._since
        self._part, self._since = name, now
