"""The provider of the holds: made by the first scheduler that holds something.

Its inventories and their resource classes are made as they are needed, and stay. Schedulers may do
so at the same moment: what is there already is right.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from nova import context as nova_context
from nova.scheduler.client import report
from oslo_log import log as logging

from hpc_sched import exceptions, masking
from hpc_sched.core.logged.decision_summary import CLAIMS
from hpc_sched.nova_glue.claim.holds.hold_numbers import LARGEST, PREFIX
from hpc_sched.nova_glue.claim.transaction import repair
from hpc_sched.nova_glue.io import request_deadline
from hpc_sched.nova_glue.io.allocations import Owner

LOG = logging.getLogger(__name__)

# The same for all schedulers of a cloud.
UUID = "68706373-6368-8564-8000-000000000001"
NAME = "hpc_sched holds"
_INVENTORIES = f"/resource_providers/{UUID}/inventories"
# Of the consumer that is in every transaction: consumers are looked at in the order of their uuids,
# with those first that are removed. So Placement makes no record of a hold for a transaction that
# it refuses at once because the turn has changed.
TURN = "00000000-6368-8564-8000-000000000002"
# Neither is one of Keystone's: no tenant's quota counts what is held.
OWNER = Owner("hpc_sched", "hpc_sched")
TURN_CLASS = f"{PREFIX}TURN"
TURN_ALLOCATIONS = {UUID: {"resources": {TURN_CLASS: 1}}}

# Classes and trees of providers (1.14), consumers with generations (1.28).
VERSION = "1.36"
# Placement's largest amount, times a ratio: no sum of amounts reaches it.
_INVENTORY = {"total": LARGEST, "max_unit": LARGEST, "allocation_ratio": 1000.0}
# Others change the provider's generation whenever they write a hold.
_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the provider has, or why that is not as it should be."""

    problem: str | None = None
    inventories: Mapping[str, Any] = field(default_factory=dict)  # by resource class
    generation: int = 0  # of the provider
    has_added_turn: bool = False  # whether the inventory of the turn's class was added here


def prepare(classes: Collection[str]) -> Prepared:
    """Make the provider with an inventory of each resource class; never raises.

    One call if all is there; else two, one more for each class, and two for the provider.
    """
    try:
        with request_deadline.charged(CLAIMS):
            return _prepare(classes)
    except Exception as error:
        return Prepared(masking.first_line(error))


def _prepare(classes: Collection[str]) -> Prepared:
    made: set[str] = set()
    for attempt in range(_ATTEMPTS):
        if attempt:
            repair.pause(attempt)
        status, found = call("GET", _INVENTORIES)
        if status == 404:
            # 409: another scheduler has made it meanwhile, or another provider has the name.
            call("POST", "/resource_providers", {"uuid": UUID, "name": NAME}, (200, 201, 409))
            continue
        there, generation = found["inventories"], found["resource_provider_generation"]
        missing = sorted(set(classes) - there.keys())
        if not missing:
            return Prepared(None, there, generation)
        for name in missing:
            if name not in made:
                call("PUT", f"/resource_classes/{name}", None, (201, 204))
                made.add(name)
        wanted = {**there, **dict.fromkeys(missing, _INVENTORY)}
        if _replace(wanted, generation):
            return Prepared(None, wanted, generation + 1, has_added_turn=TURN_CLASS in missing)
    return Prepared(f"provider {NAME!r} cannot be prepared: others change it all the time")


def touch(prepared: Prepared) -> bool:
    """Raise the provider's generation; False if others have changed it, or it is not known."""
    try:
        with request_deadline.charged(CLAIMS):
            return _replace(prepared.inventories, prepared.generation)
    except Exception as error:
        LOG.debug("Provider %r is not changed: %s", NAME, masking.first_line(error))
        return False


def _replace(inventories: Mapping[str, Any], generation: int) -> bool:
    """Replace the inventories; False if the provider has another generation."""
    body = {"inventories": inventories, "resource_provider_generation": generation}
    return call("PUT", _INVENTORIES, body, (200, 409))[0] == 200


def call(
    method: str, path: str, body: Any = None, expected: Collection[int] = (200, 404)
) -> tuple[int, Mapping[str, Any]]:
    """Return status and body of the answer to a request.

    :raises exceptions.UnansweredError: for a status that is not expected, or any error of the
        client's
    """
    client = report.report_client_singleton()
    send = {"GET": client.get, "POST": client.post, "PUT": client.put}[method]
    options = {"version": VERSION, "global_request_id": nova_context.get_admin_context().global_id}
    answer = send(path, **options) if method == "GET" else send(path, body, **options)
    if answer.status_code not in expected:
        raise exceptions.UnansweredError(f"{method} {path}: HTTP {answer.status_code}")
    return answer.status_code, answer.json() if answer.text else {}
