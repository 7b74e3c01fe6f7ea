"""The servers of a round: their flavors, their states, and their end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import requests
import sqlalchemy as sa

from tests.cloud.deployment import Deployment
from tests.contention import placement_rows
from tests.contention.bursts import Request
from tests.contention.verification import Broken, Findings

SETTLED_IN = 600  # seconds, at most
SETTLED = ("active", "error", "shelved_offloaded")
AT_ONCE = 4  # deletions

_STATES = sa.text("SELECT display_name, vm_state FROM instances WHERE deleted = 0")
_IDLE = sa.text("SELECT SUM(vcpus_used) FROM compute_nodes WHERE deleted = 0")


def flavor_of(cloud: Deployment, request: Request) -> str:
    """Return the flavor of a request, which is created at its first use."""
    wishes = request.wishes or {}
    name = "-".join([str(request.vcpus), *(f"{key}-{value}" for key, value in wishes.items())])
    add_flavor(cloud, name, request.vcpus, wishes)
    return name


def add_flavor(cloud: Deployment, name: str, vcpus: int, wishes: Mapping[str, str | int]) -> None:
    """Create a flavor if there is none of that name."""
    if name not in cloud.flavors:
        cloud.api.add_flavor(name, vcpus, wishes)
        cloud.flavors.add(name)


def settled(cloud: Deployment, count: int) -> dict[str, tuple[str, float]]:
    """Wait until all servers are active or have failed; return how and when, by name.

    :param count: of all servers
    """
    found: dict[str, tuple[str, float]] = {}

    def look() -> bool:
        now = time.monotonic()
        for part in ("cell0", "cell1"):
            for name, state in states(cloud, part).items():
                if state in SETTLED:
                    found.setdefault(name, (state, now))
        return len(found) == count

    cloud.processes.wait_for(f"{count} servers active or in error", SETTLED_IN, look)
    return found


def states(cloud: Deployment, part: str) -> dict[str, str]:
    """Return the states of the servers in a cell's database, by name."""
    with cloud.databases[part].connect() as connection:
        return dict(connection.execute(_STATES).all())


def delete_all(cloud: Deployment, findings: Findings) -> None:
    """Delete all servers; what Placement holds when their hosts are idle is left."""

    def are_gone() -> bool:
        rows = sum(len(states(cloud, part)) for part in ("cell0", "cell1"))
        return rows == 0 and cloud.scalar("cell1", _IDLE) == 0

    with ThreadPoolExecutor(AT_ONCE) as pool:
        ids = [server["id"] for server in cloud.api.servers()]
        list(pool.map(lambda vm: cloud.api.call("DELETE", f"/servers/{vm}"), ids))
    cloud.processes.wait_for("the end of all servers", SETTLED_IN, are_gone)
    for consumer, places in placement_rows.allocations(cloud.databases["placement"]).items():
        findings.add(Broken.LEFT, f"{consumer} holds {places} after all servers were deleted")
        requests.delete(
            f"{cloud.placement}allocations/{consumer}", timeout=60, headers={"X-Auth-Token": "a"}
        )
