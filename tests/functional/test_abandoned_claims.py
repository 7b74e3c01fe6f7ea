"""Which dead requests are looked at, and when; what Nova's databases say of them is set here."""

from collections import Counter
from collections.abc import Callable

import pytest

from hpc_sched import clock
from hpc_sched.nova_glue.claim import abandoned_claims, claim_conditions
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.read.instances import instances_without_cell
from hpc_sched.nova_glue.read.instances.instances_without_cell import InstanceWithoutCell


@pytest.fixture
def looks(monkeypatch) -> Callable[[int, int], Counter[str]]:
    """Return what looks for some time at instances in cell0; by instance the number of reads."""
    found, now = Counter[str](), [0.0]
    monkeypatch.setattr(abandoned_claims, "_memory", abandoned_claims._Memory({}))
    monkeypatch.setattr(claim_conditions, "obstacle", lambda: None)
    monkeypatch.setattr(clock.current, "monotonic", lambda: now[0])
    monkeypatch.setattr(allocations, "read_unused_claim", lambda uuid: found.update([uuid]))

    def looks_(number: int, seconds: int) -> Counter[str]:
        there = [
            InstanceWithoutCell(n, f"vm{n}", None, True, False, is_over=False)
            for n in range(number, 0, -1)
        ]
        monkeypatch.setattr(instances_without_cell, "read", lambda *_: there)
        for _ in range(int(seconds / abandoned_claims.INTERVAL)):
            abandoned_claims.look()
            now[0] += abandoned_claims.INTERVAL
        return found

    return looks_


def test_many_that_are_looked_at_again_keep_none_from_being_looked_at(looks):
    """As many as 3,000 servers that were refused within an hour."""
    found = looks(3000, 3000 / abandoned_claims.MAX_READS * abandoned_claims.INTERVAL + 15)
    assert len(found) == 3000


def test_one_that_placement_cannot_read_keeps_none_from_being_looked_at(looks, monkeypatch):
    found = Counter[str]()

    def read(uuid: str) -> None:
        if uuid == "vm3":
            raise OSError("HTTP 500")
        found.update([uuid])

    monkeypatch.setattr(allocations, "read_unused_claim", read)
    looks(3, 30)
    assert found.keys() == {"vm1", "vm2"}
