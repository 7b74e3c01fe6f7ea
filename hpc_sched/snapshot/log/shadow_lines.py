"""The lines of a decision log as the report on shadow mode reads them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from hpc_sched.core.logged.decision_summary import LANDED, SHADOW, LoggedLanding

# Decisions that wait for their landing; the oldest one is given up beyond it.
MAX_WAITING = 100_000
MAX_SAME = 16  # decisions on one request, as Nova schedules it again, that wait
MAX_VMS = 1_000_000  # of a request; no record of hpc_sched has more
MAX_SECONDS = 1e6  # likewise


class LinePlan(msgspec.Struct, frozen=True):
    """A plan."""

    leaves: dict[str, int] = {}
    hop_bytes: float | None = None


class Line(msgspec.Struct, frozen=True):
    """What a report has of a record; older releases write fewer fields, newer ones more."""

    time: str = ""
    request_id: str | None = None
    instance: str | None = None
    left: int | None = None
    decision: str = ""
    mode: str = ""
    project: str | None = None
    seconds: float | None = None
    times: dict[str, float] | None = None
    plan: LinePlan | None = None
    own_plan: LinePlan | None = None
    degraded: list[str] | None = None
    proven: bool = True
    landed: LoggedLanding | None = None

    @property
    def vms(self) -> int:
        """Number of VMs of the request."""
        return min(max(self.left or 0, 0), MAX_VMS)

    @property
    def plan_of_request(self) -> LinePlan | None:
        """The plan for the VMs of the request."""
        return self.own_plan or self.plan

    def seconds_of(self, part: str) -> float:
        """Return the seconds of a part of the decision's time."""
        return bounded_seconds((self.times or {}).get(part))


def bounded_seconds(found: float | None) -> float:
    """Return seconds of a record, 0 if it has none."""
    return min(max(found or 0.0, 0.0), MAX_SECONDS)


@dataclass(slots=True)
class ShadowReader:
    """Reads decisions with their landings. Bounded memory, linear in the lines."""

    since: datetime | None = None  # UTC; of decisions
    until: datetime | None = None
    unreadable: int = 0  # lines that are no records
    others: int = 0  # records that are not of shadow mode
    outside: int = 0  # decisions outside the period
    unmatched: int = 0  # landings without a decision
    # Decisions by request, oldest first; None for one outside the period.
    _waiting: dict[tuple[str | None, str | None], list[Line | None]] = field(default_factory=dict)

    def pairs(self, lines: Iterable[bytes]) -> Iterator[tuple[Line, LoggedLanding | None]]:
        """Yield each decision with the landing that follows it, or None.

        :param lines: of logs, each oldest first
        """
        for text in lines:
            try:
                line = msgspec.json.decode(text, type=Line)
                at = datetime.fromisoformat(line.time).replace(tzinfo=UTC)
            except (ValueError, RecursionError):
                self.unreadable += bool(text.strip())
                continue
            if line.mode != SHADOW:
                self.others += 1
                continue
            key = (line.request_id, line.instance)
            if line.decision == LANDED:
                if key not in self._waiting:
                    self.unmatched += 1
                    continue
                # Each of them has a landing, in the order of the decisions.
                decided = self._waiting[key].pop(0)
                if not self._waiting[key]:
                    del self._waiting[key]
                if decided is not None:
                    yield decided, line.landed
                continue
            is_inside = (self.since is None or self.since <= at) and (
                self.until is None or at < self.until
            )
            self.outside += not is_inside
            same = self._waiting.setdefault(key, [])
            same.append(line if is_inside else None)
            if len(same) > MAX_SAME:
                yield from _without_landing([same.pop(0)])
            if len(self._waiting) > MAX_WAITING:
                yield from _without_landing(self._waiting.pop(next(iter(self._waiting))))
        for same in self._waiting.values():
            yield from _without_landing(same)
        self._waiting.clear()


def _without_landing(
    decisions: Iterable[Line | None],
) -> Iterator[tuple[Line, None]]:
    return ((decided, None) for decided in decisions if decided is not None)
