"""All gang claims that Nova has not taken over, for commands.

Placement has no list of consumers by type: each provider says what holds it. Consumers that are
instances in a cell hold what Nova has claimed; each other one is read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from nova import context as nova_context
from nova.scheduler.client import report

from hpc_sched import exceptions, masking
from hpc_sched.nova_glue.claim.holds import hold_provider, store
from hpc_sched.nova_glue.io import allocations, databases
from hpc_sched.nova_glue.io.allocations import Answer, UnusedClaim
from hpc_sched.nova_glue.read.hold import Hold
from hpc_sched.nova_glue.read.instances import instances_without_cell
from hpc_sched.nova_glue.read.instances.instances_without_cell import InstanceWithoutCell

Answered = TypeVar("Answered")

_VERSION = "1.36"


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A claim, what the databases say of its instance, and its hosts."""

    instance: InstanceWithoutCell
    claim: UnusedClaim
    hosts: tuple[str, ...]  # nodenames, sorted

    def release(self) -> str | None:
        """Release the claim; return why it is not released, or None. One call."""
        answer = allocations.release(self.claim)
        return None if answer is Answer.DONE else answer.value


def read() -> list[ListedClaim]:
    """Return all claims that Nova has not taken over, by hosts and instance.

    One call of Placement for the providers, one for each of them, and one for each consumer that is
    no instance in a cell; two queries in the API database for 1,000 consumers. What holds a
    provider is read first: an instance has had its rows before its claim.

    :raises exceptions.UnansweredError: if Placement does not answer
    :raises exceptions.DatabaseError: if the API database does not
    """
    roots, consumers = _held()
    found = []
    for instance in _without_cell(consumers):
        claim = _answered(partial(allocations.read_unused_claim, instance.uuid))
        if claim is not None:
            hosts = {roots[uuid] for uuid in claim.consumer.allocations if uuid in roots}
            found.append(ListedClaim(instance, claim, tuple(sorted(hosts))))
    return sorted(found, key=lambda one: (one.hosts, one.instance.uuid))


def holds() -> list[Hold]:
    """Return the places that are held for VMs that follow others, by instance. One call.

    :raises exceptions.UnansweredError: if Placement does not answer
    """
    held = store.read().held
    return [held[uuid] for uuid in sorted(held)]


def _held() -> tuple[dict[str, str], list[str]]:
    """Return the name of each provider's root, and the consumers that hold any."""
    listed = _answered(partial(_get, "/resource_providers"))["resource_providers"]
    names = {one["uuid"]: one["name"] for one in listed}
    consumers: dict[str, None] = {}
    for uuid in names.keys() - {hold_provider.UUID}:
        held = _answered(partial(_get, f"/resource_providers/{uuid}/allocations"))
        consumers |= dict.fromkeys(held["allocations"])
    roots = {one["uuid"]: names.get(one["root_provider_uuid"], one["name"]) for one in listed}
    return roots, list(consumers)


def _without_cell(consumers: Sequence[str]) -> list[InstanceWithoutCell]:
    context = nova_context.get_admin_context()
    some = range(0, len(consumers), databases.MAX_UUIDS)
    try:
        return [
            one
            for i in some
            for one in instances_without_cell.of(context, consumers[i : i + databases.MAX_UUIDS])
        ]
    except databases.OUTAGES as error:
        raise exceptions.DatabaseError(databases.api_problem(error)) from error


def _answered(read: Callable[[], Answered]) -> Answered:
    """Return what a function reads of Placement; UnansweredError if it fails."""
    try:
        return read()
    except exceptions.UnansweredError as error:
        raise exceptions.UnansweredError(f"Placement: {error}") from error
    except Exception as error:
        # Of keystoneauth, of requests, or of urllib3.
        raise exceptions.UnansweredError(f"Placement: {masking.first_line(error)}") from error


def _get(path: str) -> Mapping[str, Any]:
    context = nova_context.get_admin_context()
    answer = report.report_client_singleton().get(
        path, version=_VERSION, global_request_id=context.global_id
    )
    if answer.status_code == 404:  # a provider that was removed meanwhile
        return {"allocations": {}}
    if answer.status_code != 200:
        raise exceptions.UnansweredError(f"GET {path}: HTTP {answer.status_code}")
    found: Mapping[str, Any] = answer.json()
    return found
