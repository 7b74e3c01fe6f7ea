"""Reads of resource providers in Placement, within the request's deadline."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib import parse

from nova import context as nova_context
from nova.scheduler.client import report

from hpc_sched import clock, exceptions, masking
from hpc_sched.nova_glue.io import circuit_breaker, request_deadline

PLACEMENT = "Placement"
# A source of its own: a list of all hosts may take too long where look-ups do not.
ALL_HOSTS = "Placement, all hosts"
# Requests that read providers concurrently. Placement serves all requests of Nova; if it hangs,
# Nova waits for it too.
MAX_READS = 8
# Since 1.29 summaries hold whole trees of providers.
_VERSION = "1.36"
# Fraction of the timeout after which no new read starts.
PART_OF_TIME = 0.8


@dataclass(frozen=True, slots=True)
class Stock:
    """One resource class of a provider, in Placement's units."""

    capacity: int  # (total - reserved) * allocation ratio, rounded down
    used: int
    reserved: int = 0  # 0 too where it was not read


@dataclass(frozen=True, slots=True)
class Node:
    """Where a provider is in its tree, and its traits."""

    root: str
    parent: str | None
    traits: Sequence[str]


# Consumer to resource class to amount.
Consumers: TypeAlias = Mapping[str, Mapping[str, int]]


@dataclass(slots=True)
class ProviderStocks:
    """What was read before an error or a timeout."""

    # Provider to resource class.
    stocks: dict[str, Mapping[str, Stock]] = field(default_factory=dict)
    problem: str | None = None  # why something is missing
    # Of whole trees alone: by provider, and what the candidates take together of several trees.
    nodes: dict[str, Node] = field(default_factory=dict)
    shared: set[frozenset[str]] = field(default_factory=set)


def read_providers(uuids: Sequence[str], seconds: float | None = None) -> ProviderStocks:
    """Return the stocks of some providers. Two calls for each; never raises.

    A provider that does not exist any more has no stocks.

    :param seconds: after which no more are read, and that is no problem
    """
    enough = None if seconds is None else clock.current.monotonic() + seconds

    def read(client: report.SchedulerReportClient, found: ProviderStocks, until: float) -> None:
        for number, uuid in enumerate(uuids):
            if enough is not None and clock.current.monotonic() >= min(enough, until):
                break
            if clock.current.monotonic() >= until:
                found.problem = f"{PLACEMENT}: {number} of {len(uuids)} providers read in time"
                break
            found.stocks[uuid] = _stocks_of(client, uuid)

    return _read(read) if uuids else ProviderStocks()


def read_consumers(uuids: Collection[str]) -> dict[str, Consumers]:
    """Return what holds some providers. One call for each; never raises.

    A provider that was not read in time is missing.
    """
    found: dict[str, Consumers] = {}

    def read(client: report.SchedulerReportClient, _: ProviderStocks, until: float) -> None:
        for uuid in sorted(uuids):
            if clock.current.monotonic() >= until:
                break
            answer = _get(client, f"/resource_providers/{uuid}/allocations", may_be_gone=True)
            held = answer.get("allocations", {}).items()
            found[uuid] = {consumer: one["resources"] for consumer, one in held}

    _read(read)
    # A copy: an abandoned thread may go on.
    return dict(found)


def read_trees(queries: Iterable[str]) -> ProviderStocks:
    """Return the stocks of all trees of providers that answer some queries, and their nodes.

    One call for each query, whatever the number of hosts; never raises. No further query is begun
    when most of the time is over, and that is no problem.

    :param queries: for allocation candidates; what comes from several providers multiplies them
    """

    def read(client: report.SchedulerReportClient, found: ProviderStocks, until: float) -> None:
        for query in queries:
            if found.stocks and clock.current.monotonic() >= until:
                break
            answer = _get(client, f"/allocation_candidates?{query}")
            for uuid, summary in answer["provider_summaries"].items():
                found.stocks[uuid] = {
                    name: Stock(int(stock["capacity"]), int(stock["used"]))
                    for name, stock in summary["resources"].items()
                }
                found.nodes[uuid] = Node(
                    summary["root_provider_uuid"],
                    summary["parent_provider_uuid"],
                    summary["traits"],
                )
            for candidate in answer["allocation_requests"]:
                if len(uuids := candidate["allocations"].keys()) > 1:
                    roots = {found.nodes[uuid].root for uuid in uuids}
                    if len(roots) > 1:
                        found.shared.add(frozenset(uuids))

    return _read(read, ALL_HOSTS)


def read_with_room(demand: Mapping[str, int]) -> ProviderStocks:
    """Return the providers with room for a demand, without their stocks. One call; never raises.

    :param demand: resource class to amount, all of one provider
    """

    def read(client: report.SchedulerReportClient, found: ProviderStocks, _until: float) -> None:
        answer = _get(client, f"/resource_providers?{_resources(demand)}")
        found.stocks.update((provider["uuid"], {}) for provider in answer["resource_providers"])

    return _read(read, ALL_HOSTS)


def read_hosts_with_room(queries: Sequence[str]) -> tuple[list[Counter[str]], str | None]:
    """Return the providers that answer each query, by root, and why something is missing.

    One call for each; never raises.

    :param queries: for resource providers
    :returns: root to the number of providers in its tree, in the order of the queries
    """
    every: list[Counter[str]] = []

    def read(client: report.SchedulerReportClient, _: ProviderStocks, _until: float) -> None:
        for query in queries:
            answer = _get(client, f"/resource_providers?{query}")
            providers = answer["resource_providers"]
            every.append(Counter(one["root_provider_uuid"] for one in providers))

    problem = _read(read, ALL_HOSTS).problem
    # A copy: an abandoned thread may go on.
    return list(every), problem


def _resources(demand: Mapping[str, int]) -> str:
    wanted = ",".join(f"{name}:{amount}" for name, amount in sorted(demand.items()))
    return parse.urlencode({"resources": wanted})


def _read(
    read: Callable[[report.SchedulerReportClient, ProviderStocks, float], None],
    source: str = PLACEMENT,
) -> ProviderStocks:
    found = ProviderStocks()
    until = clock.current.monotonic() + PART_OF_TIME * request_deadline.remaining()
    problem = ask(lambda: read(report.report_client_singleton(), found, until), source)
    # Copies: an abandoned thread may go on.
    return ProviderStocks(
        dict(found.stocks), problem or found.problem, dict(found.nodes), set(found.shared)
    )


def ask(read: Callable[[], None], source: str = PLACEMENT) -> str | None:
    """Read in a thread that may be abandoned; return why it has failed, or None."""
    try:
        circuit_breaker.ask_one(source, read, MAX_READS)
    except exceptions.UnansweredError as error:
        return f"{source}: {error}"
    except Exception as error:
        return f"{source}: {masking.first_line(error)}"
    return None


def _stocks_of(client: report.SchedulerReportClient, uuid: str) -> dict[str, Stock]:
    path = f"/resource_providers/{uuid}"
    inventories = _get(client, f"{path}/inventories", may_be_gone=True).get("inventories", {})
    usages = _get(client, f"{path}/usages", may_be_gone=True).get("usages", {})
    return {
        name: Stock(
            int((found["total"] - found["reserved"]) * found["allocation_ratio"]),
            int(usages.get(name, 0)),
            int(found["reserved"]),
        )
        for name, found in inventories.items()
    }


def _get(
    client: report.SchedulerReportClient, url: str, *, may_be_gone: bool = False
) -> Mapping[str, Any]:
    context = nova_context.get_admin_context()
    answer = client.get(url, version=_VERSION, global_request_id=context.global_id)
    if answer.status_code == 404 and may_be_gone:
        return {}
    if answer.status_code != 200:
        raise exceptions.UnansweredError(f"GET {url.partition('?')[0]}: HTTP {answer.status_code}")
    found: Mapping[str, Any] = answer.json()
    return found
