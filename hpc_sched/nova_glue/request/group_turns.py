"""Requests of one server group take turns within a scheduler.

Parallel single creates into a group each look up all the others in Placement, and break each
other's constraints. One at a time, each knows what those before it in this process have claimed,
and only requests of other schedulers are left to look for.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hpc_sched.nova_glue.claim.gang_claim import GangClaim
from hpc_sched.nova_glue.instances.group_members import GroupMembership, Place
from hpc_sched.nova_glue.io import circuit_breaker

# Seconds for which a VM that had no place is not looked up again before a claim.
UNPLACED_FOR = 1.0


@dataclass
class GroupTurn:
    """What the requests of a group that are served at the same time know of each other."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    has_waited: bool = False  # whether the request whose turn it is had to wait
    _claims: dict[str, tuple[GangClaim, Place]] = field(default_factory=dict)
    _unplaced: dict[str, float] = field(default_factory=dict)  # to a time.monotonic()

    def add_claim(self, gang: GangClaim, places: Iterable[tuple[str, Place]]) -> None:
        """Note what a request has claimed."""
        self._claims.update({uuid: (gang, place) for uuid, place in places})

    def add_looked_up(self, found: GroupMembership) -> None:
        """Note which VMs have no place yet."""
        now = time.monotonic()
        self._unplaced = dict.fromkeys(found.queue, now)

    @property
    def claimed(self) -> dict[str, Place | None]:
        """The places that this process has claimed for VMs of the group, as far as they hold."""
        # A copy: a request that did not wait any longer may add its claims meanwhile.
        claims = list(self._claims.items())
        return {uuid: place for uuid, (gang, place) in claims if gang.has(uuid)}

    @property
    def known(self) -> dict[str, Place | None]:
        """The same, and None for VMs that had no place a moment ago."""
        since = time.monotonic() - UNPLACED_FOR
        return {uuid: None for uuid, at in self._unplaced.items() if at >= since} | self.claimed


# A turn lives as long as a request has it or waits for it.
_turns: weakref.WeakValueDictionary[str, GroupTurn] = weakref.WeakValueDictionary()
_lock = threading.Lock()


@contextmanager
def turn(group_uuid: str | None) -> Iterator[GroupTurn]:
    """Wait for a request's turn, at most until its deadline: then it goes on all the same.

    :param group_uuid: None for an implicit group, which has one request alone
    """
    if group_uuid is None:
        yield GroupTurn()
        return
    with _lock:
        own = _turns.setdefault(group_uuid, GroupTurn())
    is_first = own.lock.acquire(blocking=False)
    with circuit_breaker.charged():
        has_it = is_first or own.lock.acquire(timeout=max(0.0, circuit_breaker.remaining()))
    own.has_waited = not is_first
    try:
        yield own
    finally:
        if has_it:
            own.lock.release()
