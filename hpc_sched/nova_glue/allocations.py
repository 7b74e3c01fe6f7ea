"""Where VMs in flight have their place: the allocations that Placement holds for them."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import nova.conf
import os_resource_classes as orc
from nova import context as nova_context
from nova import exception
from nova.scheduler.client import report

CONF = nova.conf.CONF

# What the provider of a hypervisor or node itself gives, as opposed to one of its devices or
# to a shared disk.
_OF_THE_HOST = (orc.VCPU, orc.PCPU, orc.MEMORY_MB)
_VERSION = "1.14"  # the first with root_provider_uuid


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Where consumers have their places, as far as Placement was asked."""

    nodes: dict[str, str]  # consumer to nodename, of those that hold an allocation
    trouble: str | None = None  # why not all were asked for
    missed: frozenset[str] = frozenset()  # consumers that were not


def nodes_of(
    context: nova_context.RequestContext,
    consumers: Iterable[str],
    node_of_provider: Mapping[str, str],
    moving_from: Mapping[str, str] | None = None,
) -> LookedUp:
    """Return the nodename of each consumer that holds an allocation, and what went wrong.

    One call to Placement a consumer, at most ``in_flight_lookups``, none of them begun after
    ``cell_timeout`` seconds; one or two more for each provider outside ``node_of_provider``.
    Never raises: what was found before an error counts.

    :param consumers: instance uuids, the most important first
    :param node_of_provider: provider uuid to nodename of the hosts already known
    :param moving_from: instance uuid to the node that it leaves, which does not count
    """
    if not CONF.hpc_sched.in_flight_lookups:
        return LookedUp({})
    known = dict(node_of_provider)
    nodes: dict[str, str] = {}
    deadline = time.monotonic() + CONF.hpc_sched.cell_timeout
    asked = list(consumers)
    looked_up, trouble = 0, None
    for consumer in asked:
        if looked_up >= CONF.hpc_sched.in_flight_lookups:
            trouble = f"more than in_flight_lookups={looked_up} VMs in flight"
            break
        if time.monotonic() > deadline:
            trouble = f"Placement took more than {CONF.hpc_sched.cell_timeout} s"
            break
        try:
            client = report.report_client_singleton()
            found = client.get_allocs_for_consumer(context, consumer)["allocations"]
            source = (moving_from or {}).get(consumer)
            for provider in _host_providers(found):
                if provider not in known:
                    known[provider] = _root_name(client, context, provider)
                if known[provider] != source:
                    nodes[consumer] = known[provider]
                    break
        except Exception as error:
            trouble = f"Placement: {type(error).__name__}: {error}"
            break
        looked_up += 1
    return LookedUp(nodes, trouble, frozenset(asked[looked_up:]))


def _host_providers(allocations: Mapping[str, Any]) -> list[str]:
    """Return the providers of an allocation, those first that are, or are nearest to, a host."""

    def key(provider: str) -> tuple[bool, str]:
        resources = allocations[provider].get("resources", {})
        return not any(name in resources for name in _OF_THE_HOST), provider

    return sorted(allocations, key=key)


def _root_name(
    client: report.SchedulerReportClient, context: nova_context.RequestContext, provider: str
) -> str:
    """Return the name of the provider's root, which is the nodename."""
    found = _provider(client, context, provider)
    root = found.get("root_provider_uuid") or provider
    if root != provider:
        found = _provider(client, context, root)
    return str(found["name"])


def _provider(
    client: report.SchedulerReportClient, context: nova_context.RequestContext, uuid: str
) -> dict[str, Any]:
    response = client.get(
        f"/resource_providers/{uuid}", version=_VERSION, global_request_id=context.global_id
    )
    if not response:
        raise exception.ResourceProviderRetrievalFailed(uuid=uuid)
    provider: dict[str, Any] = response.json()
    return provider
