"""Threads that write holds at the same moment, on the real Placement and a database server.

A process of its own, as :mod:`tests.protocol.real_placement`: its arguments are the URL of
an empty database, the number of threads, and that of the writes of each. It prints as JSON what
became of them.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest import mock
from uuid import UUID

from hpc_sched.nova_glue import nova_release

nova_release.choose_threads()

import nova.conf
from nova import objects
from nova.scheduler.client import report

from hpc_sched import conf
from hpc_sched.nova_glue.claim.holds import hold_provider, store
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Consumer, Owner, Written
from hpc_sched.nova_glue.read.hold import Hold, Holds
from tests.functional import hold_rows
from tests.protocol.placement_model import Response
from tests.protocol.real_placement import RealPlacement

INSTANCES = [str(UUID(int=number, version=4)) for number in range(1, 7)]
UNTIL = int(time.time()) + 3600


class Adapter:
    """The HTTP methods of a keystoneauth adapter."""

    def __init__(self, placement: RealPlacement) -> None:
        self._placement = placement
        self.additional_headers: dict[str, str] = {}

    def get(self, url: str, **_: Any) -> Response:
        return Response(*self._placement.send("GET", url))

    def post(self, url: str, json: Any = None, **_: Any) -> Response:
        return Response(*self._placement.send("POST", url, json))

    def put(self, url: str, json: Any = None, **_: Any) -> Response:
        return Response(*self._placement.send("PUT", url, json))


class Writers:
    """Each thread reads and writes, again and again."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        # Turn, what was read, replaced and removed, of the writes that are done.
        self.done: list[tuple[int, Holds, Sequence[Hold], Sequence[str]]] = []
        self._sent = threading.local()  # the turn of this thread's last transaction
        self._first = store.read()

    def write(self, owner: Owner, consumers: Sequence[Consumer]) -> Written:
        """Note the turn of a transaction, and send it."""
        [self._sent.turn] = [c.generation for c in consumers if c.uuid == hold_provider.TURN]
        return _write(owner, consumers)

    def run(self, thread: int, writes: int) -> None:
        """Write some holds of all instances."""
        draw = random.Random(thread)
        for number in range(writes):
            holds = store.read() if number else self._first
            some = draw.sample(INSTANCES, 3)
            new = [
                Hold(uuid, f"n{thread}-{number}", {"VCPU": draw.randint(1, 9)}, UNTIL)
                for uuid in some[: draw.randint(0, 2)]
            ]
            answer = store.write(holds, new, some[2:]).answer
            self.answers[answer.name] += 1
            if answer is Answer.DONE:
                self.done.append((self._sent.turn, holds, new, some[2:]))

    def problems(self) -> list[str]:
        """Return how the writes that are done differ from the same ones one after the other."""
        state: dict[str, Hold] = {}
        found = []
        turns = Counter(turn for turn, *_ in self.done)
        found += [f"turn {turn} had {n} writes" for turn, n in turns.items() if n > 1]
        for turn, read, new, gone in sorted(self.done, key=lambda one: one[0]):
            if read.held != state:
                found.append(f"at turn {turn} {read.held} was read, and held was {state}")
            state = {uuid: one for uuid, one in state.items() if uuid not in gone}
            state |= {one.instance: one for one in new}
        if store.read().held != state:
            found.append("what is held in the end is something else")
        if hold_rows.count() != (len(state), len(state)):
            found.append(f"{hold_rows.count()} consumers and records, {len(state)} holds")
        return found


_write = allocations.write


def main() -> None:
    """Print the answers by name, and the problems."""
    logging.disable(logging.CRITICAL)
    objects.register_all()
    conf.register_opts(nova.conf.CONF)
    nova.conf.CONF.set_override("cell_timeout", 300, "hpc_sched")
    client = report.SchedulerReportClient(adapter=Adapter(RealPlacement(sys.argv[1])))
    with mock.patch.object(report, "PLACEMENTCLIENT", client):
        writers = Writers()
        with mock.patch.object(allocations, "write", writers.write):
            count, writes = map(int, sys.argv[2:])
            threads = [threading.Thread(target=writers.run, args=(i, writes)) for i in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        print(json.dumps({"answers": writers.answers, "problems": writers.problems()}))


if __name__ == "__main__":
    main()
