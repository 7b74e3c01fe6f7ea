"""Where instances in flight have been claimed: their allocations in Placement."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import os_resource_classes as orc
from nova import context as nova_context
from nova import exception
from nova.conf import CONF
from nova.scheduler import host_manager
from nova.scheduler.client import report

from hpc_sched import clock
from hpc_sched.nova_glue.io import placement, request_deadline

Place = tuple[str, str | None]  # host and nodename

# Resource classes of a hypervisor or node itself, as opposed to its devices or a shared disk.
_OF_THE_HOST = {orc.VCPU, orc.PCPU, orc.MEMORY_MB}


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The hosts on which consumers hold allocations, as far as they were looked up."""

    # Consumer to host and nodename, of those that hold an allocation.
    places: dict[str, Place]
    problem: str | None = None  # reason why some were not looked up
    missed: frozenset[str] = frozenset()  # those consumers
    # Those of them without an answer: the others are beyond in_flight_lookups.
    unanswered: frozenset[str] = frozenset()
    # All places of those that move and have several: after an evacuation allocations stay on hosts
    # that are down.
    several: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)

    @property
    def all_places(self) -> dict[str, tuple[Place, ...]]:
        """All places of each consumer that holds an allocation."""
        return {consumer: (place,) for consumer, place in self.places.items()} | dict(self.several)


def places_of(
    context: nova_context.RequestContext,
    consumers: Iterable[str],
    states: Sequence[host_manager.HostState],
    moving_from: Mapping[str, str] | None = None,
    most: int | None = None,
) -> LookupResult:
    """Return host and nodename of each consumer with an allocation, and what went wrong.

    One call to Placement per consumer, at most ``most``, and one for each provider
    outside the HostStates, within the request's deadline. Never raises: the result holds what
    was found before an error or a timeout.

    :param consumers: instance uuids, the most important first
    :param moving_from: instance uuid to a node whose allocation is ignored; of these instances
        all places are found
    :param most: consumers to look up; by default ``in_flight_lookups``
    """
    asked = list(consumers)
    wanted = asked[: CONF.hpc_sched.in_flight_lookups if most is None else most]
    if not wanted:
        return LookupResult({})
    search = _Search(context, wanted, states, moving_from or {})
    problem = _run(search, len(wanted), len(asked))
    # The search may go on meanwhile: what it finds after this counts as missed.
    number = search.done
    found = {consumer: tuple(here) for consumer, here in list(search.places.items()) if here}
    return LookupResult(
        {consumer: here[0] for consumer, here in found.items()},
        problem,
        frozenset(asked[number:]),
        frozenset(wanted[number:]),
        {consumer: here for consumer, here in found.items() if len(here) > 1},
    )


class _Search:
    """Looks up consumers one after the other, in a thread that may be abandoned."""

    def __init__(
        self,
        context: nova_context.RequestContext,
        wanted: Sequence[str],
        states: Sequence[host_manager.HostState],
        moving: Mapping[str, str],
    ) -> None:
        self.places: dict[str, list[Place]] = {}
        self.done = 0
        self._context, self._wanted, self._moving = context, wanted, moving
        self._place_of: dict[str, Place] = {
            state.uuid: (state.host, state.nodename) for state in states
        }
        self._host_of = {state.nodename: state.host for state in states}
        self._until = (
            clock.current.monotonic() + placement.PART_OF_TIME * request_deadline.remaining()
        )

    def run(self) -> None:
        """Look up consumers until time is over."""
        for consumer in self._wanted:
            if clock.current.monotonic() >= self._until:
                break
            client = report.report_client_singleton()
            found = client.get_allocs_for_consumer(self._context, consumer)["allocations"]
            here = self.places.setdefault(consumer, [])
            # Hosts before devices and shared disks.
            for provider in sorted(found, key=lambda uuid: (_is_device(found[uuid]), uuid)):
                if here and (consumer not in self._moving or _is_device(found[provider])):
                    break
                if provider not in self._place_of:
                    node = _nodename(client, self._context, provider)
                    self._place_of[provider] = self._host_of.get(node, node), node
                place = self._place_of[provider]
                if place[1] != self._moving.get(consumer) and place not in here:
                    here.append(place)
            self.done += 1


def _run(search: _Search, wanted: int, asked: int) -> str | None:
    """Run a search; return why instances were not looked up, or None.

    :param wanted: number of those to look up
    :param asked: number of all that were requested
    """
    if problem := placement.ask(search.run):
        return problem
    if search.done < wanted:
        return f"{placement.PLACEMENT}: {search.done} of {wanted} look-ups in time"
    if asked > search.done:
        return f"more than in_flight_lookups={search.done} VMs in flight"
    return None


def _is_device(allocation: Mapping[str, Any]) -> bool:
    return _OF_THE_HOST.isdisjoint(allocation.get("resources", {}))


def _nodename(
    client: report.SchedulerReportClient, context: nova_context.RequestContext, provider: str
) -> str:
    """Return the name of the root of a provider's tree, which is the nodename. One call."""
    for found in client.get_providers_in_tree(context, provider):
        if found["uuid"] == (found.get("root_provider_uuid") or provider):
            return str(found["name"])
    raise exception.ResourceProviderRetrievalFailed(uuid=provider)
