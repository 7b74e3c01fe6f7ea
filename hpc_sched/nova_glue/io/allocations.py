"""Writes of allocations to Placement, and what their answers mean.

Unlike reads, they are waited for as Nova waits for its own claims, which follow in the same thread:
a transaction that was abandoned may be made at any later time. ``[placement]timeout`` limits
both.
"""

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import requests.exceptions
from keystoneauth1 import exceptions as ksa_exceptions
from nova import context as nova_context
from nova.conf import CONF
from nova.scheduler.client import report
from urllib3 import exceptions as urllib3_exceptions

from hpc_sched import exceptions, masking
from hpc_sched.core.logged.decision_summary import CLAIMS
from hpc_sched.nova_glue.io import request_deadline

# As Nova's own claims: consumers have generations (1.28), but no type (1.38).
_VERSION = "1.36"
# By which a gang claim is written, and read where Nova's claims must be recognised.
_TYPED_VERSION = "1.38"
# The type of a consumer that a gang claim holds names the generation that the claim gives it. Nova
# keeps the type and raises the generation, whatever it writes: so only hpc_sched has written a
# consumer whose type names its generation.
_TYPE = "HPC_SCHED_{}"
_CONCURRENT = "placement.concurrent_update"
# Placement has the same code for this conflict as for one of providers.
# A record of a consumer that was there was removed before it was read: nothing is written.
_REMOVED = "No such consumer"
_EXPECTED = re.compile(r"consumer generation conflict - expected (\S+)")

_BEFORE_SENDING = (
    ksa_exceptions.DiscoveryFailure,
    ksa_exceptions.EndpointNotFound,
    ksa_exceptions.MissingAuthPlugin,
    ksa_exceptions.Unauthorized,
)
_NOT_CONNECTED = (
    urllib3_exceptions.NewConnectionError,
    urllib3_exceptions.ConnectTimeoutError,
    requests.exceptions.ConnectTimeout,
)

# Provider to {"resources": {resource class: amount}}.
Allocations = Mapping[str, Mapping[str, Any]]


class Answer(enum.Enum):
    """What Placement did with a transaction."""

    DONE = "done"
    NO_ROOM = "no room"  # a provider lacks room, or does not exist any more
    CONFLICT = "conflict"  # others changed a provider or a consumer at the same moment
    CONSUMER_CHANGED = "consumer changed"  # a consumer does not have the expected generation
    # Another transaction has made the record of a consumer and not written its allocations yet.
    CONSUMER_PENDING = "consumer pending"
    FAILED = "failed"  # nothing was written
    UNKNOWN = "unknown"  # no answer: it may have been written


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of one transaction."""

    answer: Answer
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Consumer:
    """The allocations that one consumer shall have, or has."""

    uuid: str
    allocations: Allocations
    generation: int | None  # None if Placement does not know the consumer
    # Whether it is written ahead of Nova's claim, by a type that says so.
    is_claim: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Owner:
    """The project and the user of some consumers."""

    project_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class UnusedClaim:
    """What a gang claim holds for an instance that Nova has not claimed."""

    consumer: Consumer
    owner: Owner


def write(owner: Owner, consumers: Sequence[Consumer]) -> Written:
    """Replace the allocations of some consumers in one transaction; never raises.

    One call. Without allocations a consumer is removed. All consumers are claimed, or none is.
    """
    is_claim = any(consumer.is_claim for consumer in consumers)
    # One order of providers in all transactions avoids most deadlocks in Placement's database.
    ordered = sorted(consumers, key=lambda found: (min(found.allocations, default=""), found.uuid))
    body = {
        consumer.uuid: {
            "allocations": {
                provider: {"resources": dict(consumer.allocations[provider]["resources"])}
                for provider in sorted(consumer.allocations)
            },
            "project_id": owner.project_id,
            "user_id": owner.user_id,
            "consumer_generation": consumer.generation,
            **({"consumer_type": _type_after(consumer.generation)} if is_claim else {}),
        }
        for consumer in ordered
    }
    version = _TYPED_VERSION if is_claim else _VERSION

    context = nova_context.get_admin_context()
    try:
        with request_deadline.charged(CLAIMS):
            response = report.report_client_singleton().post(
                "/allocations", body, version=version, global_request_id=context.global_id
            )
    except Exception as error:
        is_unsent = isinstance(error, _BEFORE_SENDING) or _was_not_sent(error)
        return Written(Answer.FAILED if is_unsent else Answer.UNKNOWN, masking.first_line(error))
    if response.status_code == 406:
        return Written(Answer.FAILED, f"Placement has no microversion {version}")
    return _outcome(response)


def read(uuid: str) -> Consumer:
    """Return what a consumer has. One call.

    :raises exceptions.UnansweredError: or any other error, if Placement does not answer
    """
    found = _get(uuid, _VERSION)
    return Consumer(uuid, found["allocations"], found.get("consumer_generation"))


def read_unused_claim(uuid: str) -> UnusedClaim | None:
    """Return what a gang claim holds for an instance, or None if Nova has written it. One call.

    :raises exceptions.UnansweredError: or any other error, if Placement does not answer
    """
    found = _get(uuid, _TYPED_VERSION)
    generation = found.get("consumer_generation")
    if generation is None or found.get("consumer_type") != _TYPE.format(generation):
        return None
    consumer = Consumer(uuid, found["allocations"], generation)
    return UnusedClaim(consumer, Owner(found["project_id"], found["user_id"]))


def release(claim: UnusedClaim) -> Answer:
    """Remove what a gang claim holds, if Nova has not written it meanwhile. One call."""
    return write(claim.owner, [replace(claim.consumer, allocations={})]).answer


def _type_after(generation: int | None) -> str:
    """Return the type of a consumer that has a generation, None for none, once it is claimed."""
    return _TYPE.format((generation or 0) + 1)


def _get(uuid: str, version: str) -> Mapping[str, Any]:
    """Return what Placement says of a consumer."""
    context = nova_context.get_admin_context()
    with request_deadline.charged(CLAIMS):
        answer = report.report_client_singleton().get(
            f"/allocations/{uuid}", version=version, global_request_id=context.global_id
        )
    if answer.status_code == 406:
        raise exceptions.UnansweredError(f"Placement has no microversion {version}")
    if answer.status_code != 200:
        raise exceptions.UnansweredError(f"GET /allocations: HTTP {answer.status_code}")
    found: Mapping[str, Any] = answer.json()
    return found


def _was_not_sent(error: BaseException) -> bool:
    """True if a request was not sent because there was no connection.

    keystoneauth has one exception for that and for a connection that broke later; what it hides
    is in its context. An earlier attempt of its own may have been sent.
    """
    if CONF.placement.connect_retries:
        return False
    # What else was being handled when the call was made is in the context too.
    while type(error).__module__.startswith(("keystoneauth1", "requests", "urllib3")):
        pool = getattr(error.args[0], "reason", None) if error.args else None
        if isinstance(error, _NOT_CONNECTED) or isinstance(pool, _NOT_CONNECTED):
            return True
        hidden = error.__cause__ or error.__context__
        if hidden is None:
            return False
        error = hidden
    return False


def _outcome(response: Any) -> Written:
    """Return what a response says."""
    status = response.status_code
    if status == 204:
        return Written(Answer.DONE)
    try:
        error = response.json()["errors"][0]
        code, detail = str(error.get("code", "")), str(error.get("detail", ""))
    except (ValueError, LookupError, TypeError, AttributeError):
        code, detail = "", ""
    # Placement begins with a general sentence on a line of its own.
    detail = " ".join(f"HTTP {status}: {detail or response.text}".split())[:500]
    if status == 400 or (status == 409 and code != _CONCURRENT):
        return Written(Answer.NO_ROOM, detail)
    if status == 409:
        if (expected := _EXPECTED.search(detail)) is None:
            return Written(Answer.CONFLICT, detail)
        is_pending = expected[1] == "0"
        return Written(Answer.CONSUMER_PENDING if is_pending else Answer.CONSUMER_CHANGED, detail)
    if status == 404 and _REMOVED in detail:
        return Written(Answer.CONFLICT, detail)
    # A proxy answers so while Placement goes on.
    return Written(Answer.UNKNOWN if status >= 500 else Answer.FAILED, detail)
