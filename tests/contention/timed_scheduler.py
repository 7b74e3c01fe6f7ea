"""A scheduler that measures, apart from the plugin's own clock, how long Nova waits for the plugin.

Run as ``tests.functional.scheduler_process``, with a file as first argument: for each decision it
gets a line with the seconds in the plugin's filters and weighers, from the request's first call to
the return of that in which the decision was made, and the sum of the parts that the decision says.
The second argument is a file with the seconds by which each statement that this process sends to
the API database is delayed; none as long as there is no such file.
"""

from __future__ import annotations

import functools
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.functional import scheduler_process, statements  # the first chooses Nova's threads


class _Measured(threading.local):
    """What this thread has measured of its request."""

    spec: Any = None
    seconds = 0.0
    decision: dict[str, Any] | None = None


def install(path: Path) -> None:
    """Measure all calls of Nova to filters and weighers."""
    # The modules of the plugin need the classes of Nova's objects.
    scheduler_process.objects.register_all()
    from hpc_sched.filters.group_filter import GroupFilter
    from hpc_sched.nova_glue.io import decision_log
    from hpc_sched.weighers.group_weigher import GroupWeigher

    measured, lock = _Measured(), threading.Lock()

    def timed(real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def call(self: Any, listed: Any, spec: Any) -> Any:
            if measured.spec is not spec:
                measured.spec, measured.seconds = spec, 0.0
            began = time.perf_counter()
            try:
                return real(self, listed, spec)
            finally:
                measured.seconds += time.perf_counter() - began
                if measured.decision is not None:
                    found = {
                        "instance": measured.decision["instance"],
                        "measured": measured.seconds,
                        "parts": sum(measured.decision["times"].values()),
                    }
                    measured.decision = None
                    with lock, path.open("a") as file:
                        file.write(json.dumps(found) + "\n")

        return call

    real_append = decision_log.append

    def append(log: str, entry: dict[str, Any]) -> None:
        measured.decision = entry
        real_append(log, entry)

    decision_log.append = append
    GroupFilter.filter_all = timed(GroupFilter.filter_all)
    GroupWeigher.weigh_objects = timed(GroupWeigher.weigh_objects)


def delay(seconds: Path) -> Callable[[statements.Statement], None]:
    """Return what delays a statement to the API database."""

    def wait(sent: statements.Statement) -> None:
        if seconds.exists():
            url = scheduler_process.CONF.api_database.connection
            if sent.url.database == sa.make_url(url).database:
                time.sleep(float(seconds.read_text()))

    return wait


def main() -> None:
    """Serve until stdin ends."""
    install(Path(sys.argv.pop(1)))
    with statements.each(delay(Path(sys.argv.pop(1)))):
        scheduler_process.main()


if __name__ == "__main__":
    main()
