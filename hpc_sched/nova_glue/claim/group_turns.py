"""Requests of one server group take turns within a scheduler, and share what they look up.

Parallel single creates into a group each look up all the others in Placement, and break each
other's constraints. One at a time, each knows what those before it in this process have claimed,
and only requests of other schedulers are left to look for.
"""

import math
import threading
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from nova import context as nova_context
from nova.scheduler import host_manager

from hpc_sched import clock
from hpc_sched.core.logged.decision_summary import TURNS
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.io import request_deadline
from hpc_sched.nova_glue.read.instances import in_flight_instances
from hpc_sched.nova_glue.read.instances.group_members import GroupMembership
from hpc_sched.nova_glue.read.instances.in_flight_instances import LookupResult, Place

# Seconds for which what was looked up for one request will do for the plans of others.
RECENT = 1.0

Places = Mapping[str, Place | None]  # by instance; None for those without one


@dataclass(eq=False)
class GroupTurn:
    """What the requests of a group that are served at the same time know of each other.

    Shared by their threads. Holds something for each instance of the group at the most.
    """

    claiming: threading.Lock = field(default_factory=threading.Lock)
    looking_up: threading.Lock = field(default_factory=threading.Lock)
    # Instances whose requests wait for their turn to claim.
    _waiting: set[str] = field(default_factory=set)
    # Claims of this process by instance, with the HostStates of their request as places.
    _claims: dict[str, tuple[GangClaim, Sequence[Place]]] = field(default_factory=dict)
    # What was looked up, and when that was answered: a monotonic time.
    _seen: dict[str, tuple[Place | None, float]] = field(default_factory=dict)

    @contextmanager
    def taken(self, instance_uuid: str) -> Iterator[bool]:
        """Wait until it is a request's turn to claim; yield whether it had to wait.

        At most ``cell_timeout``, and until the request's deadline: then it goes on all the same.

        :param instance_uuid: of the request, which has claimed nothing yet
        """
        self._waiting.add(instance_uuid)
        try:
            with _locked(self.claiming) as has_waited:
                self._waiting.discard(instance_uuid)
                yield has_waited
        finally:
            self._waiting.discard(instance_uuid)

    def add_claim(
        self, gang: GangClaim, uuids: Iterable[str], states: Sequence[host_manager.HostState]
    ) -> None:
        """Note what a request has claimed, and may claim again on other HostStates of it."""
        places = [(state.host, state.nodename) for state in states]
        self._claims.update(dict.fromkeys(uuids, (gang, places)))

    def look_up(
        self,
        context: nova_context.RequestContext,
        consumers: Iterable[str],
        states: Sequence[host_manager.HostState],
        changing: Collection[str] = (),
        known: Places | None = None,
        *,
        anew: bool = False,
    ) -> LookupResult:
        """Return where instances are claimed, as of a second ago at the most.

        Looks up those that no other request of this process has, one request after the other; see
        :func:`in_flight_instances.places_of`.

        :param changing: instances of which only a look-up now will do
        :param known: what this request itself has looked up already
        :param anew: whether that of others a moment ago will not do: other schedulers may have
            claimed meanwhile
        """
        since = math.inf if anew else clock.current.monotonic() - RECENT
        with nullcontext() if anew else _locked(self.looking_up):
            seen = {uuid: place for uuid, (place, at) in list(self._seen.items()) if at >= since}
            left_out, sure = set(changing), self._sure()
            there = {uuid: place for uuid, place in (seen | sure).items() if uuid not in left_out}
            there |= known or {}
            asked = list(consumers)
            lacking = [uuid for uuid in asked if uuid not in there]
            found = in_flight_instances.places_of(context, lacking, states)
            now = clock.current.monotonic()
            new = {uuid: found.places.get(uuid) for uuid in lacking if uuid not in found.missed}
            self._seen.update({uuid: (place, now) for uuid, place in new.items()})
            places = {uuid: place for uuid in asked if (place := there.get(uuid)) is not None}
            return replace(found, places=found.places | places)

    def with_claims(self, found: GroupMembership) -> GroupMembership:
        """Return members with what this process has claimed for others of the group.

        Only members that the RequestSpec proves lack these; it may be older.
        """
        if not found.is_unread:
            return found
        claims = self._sure().items()
        others = {uuid: at for uuid, at in claims if at is not None and uuid not in found.queue}
        if not others:
            return found
        members = found.members + Counter(others.values())
        return replace(found, members=members, in_flight=others)

    def _sure(self) -> dict[str, Place | None]:
        """Return what this process itself has claimed, and what waits for its turn to be claimed.

        It holds for instances that are not created yet: later Nova may move them.
        """
        # Copies: a request that did not wait any longer may change them meanwhile.
        waiting: dict[str, Place | None] = dict.fromkeys(list(self._waiting))
        claimed = {
            uuid: places[place.position]
            for uuid, (gang, places) in list(self._claims.items())
            if (place := gang.place_of(uuid)) is not None
        }
        return waiting | claimed


# They live as long as the state of a request of the group.
_turns: weakref.WeakValueDictionary[str, GroupTurn] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def turn_of(group_uuid: str | None) -> GroupTurn:
    """Return what the requests of a group share.

    :param group_uuid: None for an implicit group, which has one request alone
    """
    if group_uuid is None:
        return GroupTurn()
    with _lock:
        return _turns.setdefault(group_uuid, GroupTurn())


@contextmanager
def _locked(lock: threading.Lock) -> Iterator[bool]:
    """Hold a lock, or nothing after the request's deadline; yield whether it was held by others."""
    is_free = has_it = lock.acquire(blocking=False)
    if not is_free:
        with request_deadline.charged(TURNS):
            has_it = clock.current.acquire(lock, request_deadline.remaining())
    try:
        yield not is_free
    finally:
        if has_it:
            lock.release()
