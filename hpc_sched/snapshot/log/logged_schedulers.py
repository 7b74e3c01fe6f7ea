"""The schedulers that decision logs name, and in what they differ."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from hpc_sched.core.decision_entry import LoggedScheduler
from hpc_sched.snapshot.log.logged_decisions import Record, entry_of

# What must be equal for schedulers to decide alike: field and name.
COMPARED = (
    ("version", "version of hpc_sched"),
    ("options", "options"),
    ("topology", "topology"),
    ("interference", "interference index"),
)
NONE = "none"


@dataclass(frozen=True, slots=True)
class SeenScheduler:
    """A scheduler as its newest record has it."""

    scheduler: LoggedScheduler
    time: str  # of that record; UTC, ISO 8601


def seen_in(records: Iterable[Record]) -> dict[str, SeenScheduler]:
    """Return the newest of each scheduler's records, by host. Linear, in any order of records.

    Records without a scheduler, written by older versions, are left out.
    """
    newest: dict[str, SeenScheduler] = {}
    for record in records:
        # Without the fields of other parts: a log has many records.
        entry = entry_of({key: record[key] for key in ("scheduler", "time") if key in record})
        if entry.scheduler is None or not entry.scheduler.host:
            continue
        host = entry.scheduler.host
        if host not in newest or newest[host].time < entry.time:
            newest[host] = SeenScheduler(entry.scheduler, entry.time)
    return dict(sorted(newest.items()))


def differences(schedulers: Mapping[str, LoggedScheduler]) -> Iterator[str]:
    """Yield a sentence for each part in which schedulers differ; none if they decide alike.

    :param schedulers: by the name that the sentences have for each
    """
    for field, title in COMPARED:
        names: dict[str, list[str]] = {}
        for name, scheduler in schedulers.items():
            names.setdefault(getattr(scheduler, field) or NONE, []).append(name)
        if len(names) > 1:
            values = (f"{value} ({', '.join(where)})" for value, where in names.items())
            yield f"{title} differ{'' if title == 'options' else 's'}: {'; '.join(values)}"
