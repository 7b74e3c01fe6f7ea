"""The schedulers that decision logs name, and in what they differ."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from hpc_sched import terminal_text
from hpc_sched.core.logged.decision_summary import LoggedScheduler
from hpc_sched.snapshot.log.logged_decisions import Record, entry_of
from hpc_sched.topology.grouping import by_key

# What must be equal: field and name.
COMPARED = (
    ("version", "version of hpc_sched"),
    ("options", "options"),
    ("topology", "topology"),
    ("interference", "interference index"),
)
NONE = "none"
ACTIVE = "active"
# A host name's length in Nova's databases. Longer values are not those of a scheduler.
_MAX_LENGTH = 255


@dataclass(frozen=True, slots=True)
class SeenScheduler:
    """A scheduler as its newest record has it: short texts on one line, without control codes."""

    scheduler: LoggedScheduler
    time: str  # of that record; UTC, ISO 8601
    mode: str = ""  # SHADOW, or empty if it places VMs


def seen_in(records: Iterable[Record]) -> dict[str, SeenScheduler]:
    """Return the newest of each scheduler's records, by host. Linear, in any order of records.

    Records without a scheduler, written by older versions, are left out.
    """
    newest: dict[str, SeenScheduler] = {}
    for record in records:
        # Without the fields of other parts: a log has many records.
        entry = entry_of(
            {key: record[key] for key in ("mode", "scheduler", "time") if key in record}
        )
        if (found := entry.scheduler) is not None and found.host:
            seen = SeenScheduler(found, entry.time, entry.mode)
            newest[found.host] = max(newest.get(found.host, seen), seen, key=lambda one: one.time)
    shown = (_shown(one) for one in newest.values())
    return {one.scheduler.host: one for one in sorted(shown, key=lambda one: one.scheduler.host)}


def _shown(seen: SeenScheduler) -> SeenScheduler:
    """Return a scheduler with texts for people: anyone may have written the log."""
    values = asdict(seen.scheduler).items()
    scheduler = LoggedScheduler(**{key: value and _text(value) for key, value in values})
    return SeenScheduler(scheduler, _text(seen.time), _text(seen.mode))


def _text(value: str) -> str:
    text = terminal_text.text_of(value[: _MAX_LENGTH + 1])
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 3]}..."


def differences(schedulers: Mapping[str, SeenScheduler]) -> Iterator[str]:
    """Yield a sentence for each part in which schedulers differ; none without a difference.

    :param schedulers: by the name that the sentences have for each
    """
    modes = {name: one.mode or ACTIVE for name, one in schedulers.items()}
    for title, found in (
        ("mode", modes),
        *(
            (title, {name: getattr(one.scheduler, field) for name, one in schedulers.items()})
            for field, title in COMPARED
        ),
    ):
        names = by_key((value or NONE, name) for name, value in found.items())
        if len(names) > 1:
            values = (f"{value} ({', '.join(where)})" for value, where in names.items())
            yield f"{title} differ{'' if title == 'options' else 's'}: {'; '.join(values)}"
