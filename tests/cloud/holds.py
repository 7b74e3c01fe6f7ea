"""Places that hpc_sched holds in Placement for VMs that follow others of their group."""

from __future__ import annotations

import time

import sqlalchemy as sa

from tests.cloud.deployment import Deployment
from tests.contention.verification import Broken, Findings

REMOVED_IN = 90  # seconds after their end; a thread of the schedulers looks once a minute
_ENDS = sa.text(
    "SELECT consumer_id, used FROM allocations JOIN resource_classes "
    "ON resource_classes.id = resource_class_id WHERE name = 'CUSTOM_HPC_SCHED_UNTIL'"
)


def ends(cloud: Deployment) -> dict[str, int]:
    """Return when each hold ends, in seconds since 1970, by consumer."""
    with cloud.databases["placement"].connect() as connection:
        return dict(connection.execute(_ENDS).all())


def check(cloud: Deployment, findings: Findings) -> None:
    """Check that none is left whose time is over."""
    now = time.time()
    for consumer, end in ends(cloud).items():
        if now > end + REMOVED_IN:
            findings.add(Broken.LEFT, f"{consumer} is held {now - end:.0f} s after its end")


def wait_for_end(cloud: Deployment) -> None:
    """Wait until the schedulers have removed all."""
    if found := ends(cloud):
        seconds = max(found.values()) - time.time() + REMOVED_IN
        what = f"the end of {len(found)} holds"
        cloud.processes.wait_for(what, seconds, lambda: not ends(cloud))
