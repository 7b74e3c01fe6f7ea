"""The thread that looks for claims of dead requests: when it looks, how much, and for how long."""

import datetime
from collections.abc import Iterator

import nova.conf
import pytest

from hpc_sched.nova_glue.claim import abandoned_claims
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread
from hpc_sched.nova_glue.read.instances import instances_without_cell
from tests.protocol import nova_rows
from tests.protocol.nova_model import uuid_of
from tests.protocol.world import World, watched

CONF = nova.conf.CONF


@pytest.fixture
def world(begin) -> Iterator[World]:
    """Return a world in which s1 was killed with a claim of two VMs."""
    with watched(World(begin())) as found:
        for command in ("hosts 2 2 2 2", "group g", "create a1,a2 s1 group=g", "claim a"):
            found.do(command)
        for command in ("step a", "kill s1"):
            found.do(command)
        assert held(found) == {"a1", "a2"}
        yield found
    for name in ("mode", "gang_claims"):
        CONF.clear_override(name, "hpc_sched")


def held(world: World) -> set[str]:
    return {vm for vm in ("a1", "a2") if uuid_of(vm) in world.placement.consumers}


def scan(world: World) -> int:
    """Let s2 look; return the number of calls."""
    before = len(world.lines)
    world.do("scan s2")
    if "s2" in world.actors:
        world.do("run s2")
    return sum(line.startswith("  s2: ") for line in world.lines[before:])


@pytest.mark.parametrize(("option", "value"), [("mode", "shadow"), ("gang_claims", False)])
def test_a_scheduler_that_claims_nothing_releases_nothing(world, option, value):
    CONF.set_override(option, value, "hpc_sched")
    assert scan(world) == 0
    CONF.clear_override(option, "hpc_sched")
    assert scan(world) == 4
    assert held(world) == set()


def test_one_look_reads_the_allocations_of_some_instances_and_the_next_one_of_others(
    world, monkeypatch
):
    monkeypatch.setattr(abandoned_claims, "MAX_READS", 1)
    assert scan(world) == 2
    assert held(world) == {"a1"}, "the newest comes first"
    assert scan(world) == 2
    assert held(world) == set()
    assert scan(world) == 0


def test_an_instance_is_looked_at_again_ever_more_rarely(world):
    """A slow scheduler may claim after its request is dead."""
    assert scan(world) == 4
    looks = []
    for second in range(0, 1200, 15):
        if scan(world):
            looks.append(second)
        world.do("time 15")
    assert looks == [15, 75, 315]


def test_an_instance_is_looked_at_for_the_last_time_when_no_scheduler_can_claim_for_it(
    world, monkeypatch
):
    old = datetime.datetime.fromisoformat(nova_rows.NOW) + datetime.timedelta(
        seconds=2 * CONF.long_rpc_timeout + 1
    )
    monkeypatch.setattr(instances_without_cell.timeutils, "utcnow", lambda: old)
    assert scan(world) == 4
    world.do("time 10000")
    assert scan(world) == 0
    examined = world.nova.schedulers["s2"].examined
    assert examined.after == 2, "both are below it, and are not read again"
    assert scan(world) == 0
    assert examined.examined == {}


def test_a_vm_that_was_deleted_while_it_was_scheduled_waits_until_no_scheduler_can_have_it(begin):
    with watched(World(begin())) as world:
        for command in ("hosts 2 2 2 2", "group g", "create a1,a2 s1 group=g", "claim a"):
            world.do(command)
        world.do("delete a1")
        world.do("step a")
        # The scheduler goes on with the other VM: a release could end its request.
        assert scan(world) == 0
        world.do("run a")
        world.do("end")
        assert held(world) == {"a2"}


def test_no_database_is_no_error(world):
    world.do("database lost")
    assert scan(world) == 0
    world.do("database ok")
    assert scan(world) == 4


def test_its_first_look_is_an_interval_after_the_first_request(monkeypatch):
    """That request is in no hurry then, nor those after it."""
    calls: list[float] = []
    waits: list[float | None] = []

    class Clock:
        def wait_for_event(self, _event, seconds):
            waits.append(seconds)
            assert not calls, "it has waited first"
            raise SystemExit

    thread = PeriodicThread(lambda: calls.append(0), lambda: 15.0, is_due_at_once=False)
    monkeypatch.setattr("hpc_sched.clock.current", Clock())
    with pytest.raises(SystemExit):
        thread._run()
    assert waits == [15.0]
