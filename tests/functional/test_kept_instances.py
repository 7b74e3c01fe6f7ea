"""The VMs on hosts, kept between requests, are what a read of all VMs finds after each change."""

import contextlib
import dataclasses
import datetime
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import nova.conf
import pytest
from nova import context as nova_context
from nova import exception
from nova.compute import task_states, vm_states
from nova.db.main import api as main_db
from oslo_utils import timeutils, uuidutils
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import (
    colocated_instances,
    host_instances,
    instance_applications,
)
from hpc_sched.nova_glue.read.instances.host_instances import AllInstances
from hpc_sched.nova_glue.read.instances.kept import cell_read
from tests import turned_clock
from tests.functional import faults, rows
from tests.functional.claims import request
from tests.functional.cloud_kinds import EMPTY
from tests.functional.shared_clouds import cloud_mark
from tests.functional.statements import collected
from tests.functional.states import host_state, ours, wishing
from tests.functional.tested_cloud import BUSY_MACHINE, TestedCloud

CONF = nova.conf.CONF

HOSTS = [f"n{number}" for number in range(1, 9)]
EXTREME = wishing(app_class="extreme")
STEPS = 40

pytestmark = cloud_mark(EMPTY)


class KeptCloud:
    """A cloud whose VMs are read again and again, and which time goes by."""

    def __init__(self, cloud: TestedCloud, clock: turned_clock.StandingClock) -> None:
        self.cloud, self.clock = cloud, clock
        self.now = timeutils.utcnow()
        self.kept: AllInstances | None = None
        self.wholes = 0  # reads of all VMs for the kept ones

    def wait(self, seconds: float) -> None:
        """Let time pass, for Nova's own clocks too."""
        self.clock.now += seconds
        self.now += datetime.timedelta(seconds=seconds)

    def add(self, *hosts: str | None, **said: Any) -> list[str]:
        """Write VMs with the ids of their compute nodes, as Nova does."""
        made = rows.add_vms(self.cloud, hosts, **said)
        for uuid, host in zip(made, hosts, strict=True):
            if host:
                rows.change_vm(self.cloud, uuid, compute_id=number_of(host), updated_at=None)
        return made

    def save(self, uuid: str, **values: Any) -> None:
        """Change a VM by Nova's own function, which sets the time of change."""
        self._in_cell(lambda context: main_db.instance_update(context, uuid, values))

    def place(self, uuid: str, host: str | None, **values: Any) -> None:
        """Change the host of a VM as Nova does."""
        node = number_of(host) if host else None
        self.save(uuid, host=host, node=host, compute_id=node, **values)

    def destroy(self, uuid: str, **how: bool) -> None:
        """Delete a VM as Nova does once its compute has: the time of change stays."""
        self._in_cell(lambda context: main_db.instance_destroy(context, uuid, **how))

    def archive(self) -> None:
        """Move deleted rows to the shadow tables, and delete them there: SQLite uses ids again."""
        self._in_cell(lambda context: main_db.archive_deleted_rows(context, max_rows=1000))
        self._in_cell(lambda context: main_db.purge_shadow_tables(context, None))

    def read(self) -> AllInstances:
        """Read what has changed."""
        own, context = uuids.own, nova_context.get_admin_context()
        self.kept = host_instances.read(context, [own], self.states(), self.kept)
        return self.kept

    def states(self) -> list[Any]:
        """Return the hosts as a request sees them."""
        return [host_state(host) for host in HOSTS]

    def check(self) -> None:
        """Read what has changed, and compare it with a read of all VMs."""
        kept, whole = self.read(), self.whole()
        assert shown(kept, self.states()) == shown(whole, self.states())
        for uuid, cell in kept.cells.items():
            assert dict(cell.rows) == dict(whole.cells[uuid].rows)
            assert cell.totals == whole.cells[uuid].totals
            assert cell.unsteady == whole.cells[uuid].unsteady

    def whole(self) -> AllInstances:
        """Read all VMs, as a scheduler that has just started."""
        before = self.wholes
        context = nova_context.get_admin_context()
        found = host_instances.read(context, [uuids.own], self.states())
        self.wholes = before
        return found

    def _in_cell(self, act: Callable[[nova_context.RequestContext], object]) -> None:
        mapping = self.cloud.cell_mappings["cell1"]
        with nova_context.target_cell(nova_context.get_admin_context(), mapping) as context:
            act(context)


def number_of(host: str) -> int:
    """Return the id of a compute node."""
    return HOSTS.index(host) + 1


def shown(found: AllInstances, states: list[Any]) -> tuple[Any, ...]:
    """Return what a request sees of the VMs on the hosts."""
    seen = found.seen_by(uuids.own, states)
    at = {place: Counter(map(repr, there)) for place, there in seen.at.items()}
    return dataclasses.replace(seen, at=at), [vm.uuid for vm in found.awaiting], found.looked_up


@pytest.fixture
def kept(shared_cloud: TestedCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeptCloud]:
    shared_cloud.flags(cell_timeout=BUSY_MACHINE, group="hpc_sched")
    faults.start_afresh()
    clock = turned_clock.StandingClock()
    found = KeptCloud(shared_cloud, clock)
    read_whole = cell_read._whole

    def counted(*arguments: Any) -> Any:
        found.wholes += 1
        return read_whole(*arguments)

    monkeypatch.setattr(cell_read, "_whole", counted)
    monkeypatch.setattr(timeutils, "utcnow", lambda with_timezone=False: found.now)
    with turned_clock.installed(clock):
        yield found
        rows.clear(shared_cloud)
        faults.start_afresh()


def old_vms(kept: KeptCloud, *hosts: str | None, **said: Any) -> list[str]:
    """Return VMs of long ago, which have been read."""
    made = kept.add(*hosts, **said)
    kept.check()
    kept.wait(300)
    kept.check()
    kept.wholes = 0
    return made


def test_each_change_of_a_vm_is_seen_without_reading_all(kept):
    first, second, third, *_ = old_vms(kept, "n1", "n2", "n3", "n4", extra_specs=EXTREME)
    steps: list[Callable[[], object]] = [
        lambda: kept.add("n5", extra_specs=EXTREME),
        lambda: kept.add(None),
        lambda: kept.place(first, "n6"),
        lambda: kept.save(second, task_state=task_states.REBUILDING),
        lambda: kept.save(second, task_state=None),
        lambda: kept.place(third, None, vm_state=vm_states.SHELVED_OFFLOADED),
        lambda: kept.save(third, task_state=task_states.UNSHELVING),
        lambda: kept.place(third, "n7", vm_state=vm_states.ACTIVE, task_state=None),
        lambda: kept.save(second, vm_state=vm_states.SOFT_DELETED),
        lambda: kept.save(second, vm_state=vm_states.ACTIVE),
        lambda: kept.save(first, hidden=True),
        lambda: kept.save(first, hidden=False),
    ]
    for step in steps:
        kept.wait(20)
        step()
        kept.check()
    assert kept.wholes == 0


def test_a_vm_whose_deletion_takes_long_is_gone_without_reading_all(kept):
    first, second, third = old_vms(kept, "n1", "n2", "n3")
    for uuid in (first, second):
        kept.save(uuid, task_state=task_states.DELETING)
    kept.check()
    # The guest does not shut down.
    kept.wait(200)
    kept.check()
    kept.destroy(first)
    kept.check()
    assert len(kept.kept.at) == 2
    # A compute writes the row just before.
    kept.save(third, power_state=0)
    kept.destroy(third)
    kept.check()
    assert len(kept.kept.at) == 1
    assert kept.wholes == 0


def test_a_deletion_that_takes_long_after_the_guest_is_gone_costs_no_read_of_all(kept):
    vm, other = old_vms(kept, "n1", "n2")
    # Placement and others take minutes then.
    kept.save(vm, vm_state=vm_states.DELETED, task_state=None)
    kept.check()
    kept.wait(100)
    kept.save(other, power_state=1)
    kept.check()
    kept.destroy(vm)
    kept.check()
    assert set(kept.kept.at) == {("n2", "n2")}
    assert kept.wholes == 0


def test_vms_that_are_soft_deleted_for_days_are_not_read_each_time(kept, monkeypatch):
    for vm in old_vms(kept, *["n1"] * 5, "n2"):
        kept.save(vm, vm_state=vm_states.SOFT_DELETED)
    kept.check()
    for _ in range(2):
        # The latest change is what the overlap begins at.
        kept.wait(100)
        kept.add("n3")
        kept.read()
    [cell] = kept.kept.cells.values()
    assert cell.leaving == []
    assert kept.wholes == 0


def test_a_row_that_is_written_long_after_its_request_costs_no_read_of_all(kept):
    [other] = old_vms(kept, "n1")
    kept.save(other, power_state=1)
    kept.check()
    [new] = kept.add(None)
    late = timeutils.utcnow() - datetime.timedelta(seconds=90)
    rows.change_vm(kept.cloud, new, updated_at=None, created_at=late)
    kept.check()
    assert kept.wholes == 0


def test_a_migration_is_seen_that_an_api_with_a_late_clock_has_begun(kept):
    """Its destination holds room: a dedicated host is not open for as long as clocks differ."""
    vm, other = old_vms(kept, "n1", "n2", extra_specs=EXTREME)
    kept.save(other, power_state=1)
    kept.check()
    rows.add_migration(
        kept.cloud,
        vm,
        status="running",
        migration_type="live-migration",
        source_compute="n1",
        source_node="n1",
        dest_compute="n5",
        dest_node="n5",
    )
    late = timeutils.utcnow() - datetime.timedelta(seconds=70)
    kept.save(vm, task_state=task_states.MIGRATING, updated_at=late)
    kept.check()
    assert ("n5", "n5") in kept.kept.seen_by(uuids.own, kept.states()).at
    assert kept.wholes == 0


def test_an_application_that_could_not_be_read_is_read_by_the_next_request(kept, monkeypatch):
    """Also of a VM that was known with another flavor before."""
    [vm] = old_vms(kept, "n1")
    rows.set_flavors(kept.cloud, vm, cur=request(extra_specs=EXTREME).flavor)
    kept.save(vm, instance_type_id=2)
    with monkeypatch.context() as patch:
        patch.setattr(instance_applications, "_read_flavors", lambda *_: {})
        [[found]] = kept.read().at.values()
    assert found.application is None
    kept.check()
    [[found]] = kept.kept.at.values()
    assert found.application.app_class == "extreme"
    assert kept.wholes == 0


def test_applications_of_vms_that_are_gone_leave_the_cache(kept):
    old_vms(kept, "n1")
    for _ in range(8):
        [vm] = kept.add("n2", extra_specs=EXTREME)
        kept.check()
        kept.destroy(vm)
        kept.wait(100)
        kept.check()
    cache = instance_applications.cache
    alive = {uuid for cell in kept.kept.cells.values() for uuid in cell.rows}
    # Those of the last ten minutes at most.
    assert alive <= cache.applications.keys()
    assert len(cache.applications) <= 1 + 6
    assert len(cache.creations) <= 1 + 6


def test_a_vm_that_two_cells_have_for_a_moment_is_on_both_hosts(kept, monkeypatch):
    [vm] = old_vms(kept, "n1")
    [cell] = kept.kept.cells.values()
    twin = cell.rows[vm]._replace(vm=cell.rows[vm].vm._replace(host="n5", nodename="n5"))
    other = dataclasses.replace(cell, uuid="other", rows={vm: twin})
    found = dataclasses.replace(
        kept.kept, cells={"one": cell.unread(), "other": other.unread()}, others=[]
    )
    placed = host_instances._with_applications(nova_context.get_admin_context(), found, found.cells)
    assert {place: [one.host for one in there] for place, there in placed.at.items()} == {
        ("n1", "n1"): ["n1"],
        ("n5", "n5"): ["n5"],
    }


@pytest.mark.parametrize("how", ["softly", "archived", "hard", "purged"])
def test_a_vm_that_vanishes_is_gone(kept, how: str):
    first, _ = old_vms(kept, "n1", "n2")
    kept.destroy(first, hard_delete=how == "hard")
    if how == "archived":
        kept.archive()
    elif how == "purged":
        rows.purge(kept.cloud, ())
    kept.check()
    assert set(kept.kept.at) == {("n2", "n2")}
    assert kept.wholes == 1
    # And it costs no second one.
    kept.check()
    assert kept.wholes == 1


def test_a_vm_whose_change_is_committed_late_or_by_another_clock_is_seen(kept, monkeypatch):
    first, second, third = old_vms(kept, "n1", "n2", "n3")
    now = timeutils.utcnow()
    for uuid, seconds in ((first, -59), (second, 600)):
        kept.save(uuid, instance_type_id=7, updated_at=now + datetime.timedelta(seconds=seconds))
        kept.check()
    assert kept.wholes == 0
    # A clock ahead of all others does not hide what the others write.
    kept.wait(61)
    kept.check()
    kept.save(third, instance_type_id=7)
    kept.check()
    assert kept.wholes == 0
    # More than the overlap: a host is known all the same.
    kept.place(first, "n8", updated_at=timeutils.utcnow() - datetime.timedelta(seconds=500))
    kept.check()
    assert kept.wholes == 1


def test_this_clock_ahead_of_those_that_write_hides_nothing(kept):
    """The latest change says how late it is for those."""
    [vm] = old_vms(kept, "n1")
    behind = datetime.timedelta(seconds=400)
    kept.save(vm, instance_type_id=2, updated_at=timeutils.utcnow() - behind)
    kept.kept = None
    kept.check()
    kept.wholes = 0
    for number in range(3, 6):
        kept.wait(20)
        kept.save(vm, instance_type_id=number, updated_at=timeutils.utcnow() - behind)
        kept.check()
    assert kept.wholes == 0


def test_what_is_written_past_nova_is_known_within_the_bound(kept, caplog):
    [vm, *_] = old_vms(kept, "n1", "n2")
    old = timeutils.utcnow() - datetime.timedelta(seconds=500)
    kept.save(vm, instance_type_id=9, updated_at=old)
    [cell] = kept.read().cells.values()
    assert cell.rows[vm].vm.type_id == 1
    kept.wait(cell_read.WHOLE_EVERY)
    kept.check()
    assert kept.wholes == 1
    [warned] = [text for text in ours(caplog) if "without a new updated_at" in text]
    assert "1 of 2 VMs" in warned


def test_after_a_gap_and_after_an_error_all_is_read(kept):
    old_vms(kept, "n1")
    kept.wait(cell_read.WHOLE_EVERY - 301)
    kept.read()
    assert kept.wholes == 0
    kept.wait(1)
    kept.read()
    assert kept.wholes == 1
    with faults.cell_at(kept.cloud, "cell1", faults.closed_port()):
        found = kept.read()
        assert found.down_cells
        assert set(found.at) == {("n1", "n1")}
    faults.circuit_breaker.breakers.clear()
    kept.wholes = 0
    kept.check()
    assert kept.wholes == 1
    # A clock that goes back, as after a fork.
    kept.clock.now -= 10
    kept.check()
    assert kept.wholes == 2


def test_options_that_change_applications_change_those_of_kept_vms(kept):
    hints = {"hpc:app_class": ["async"]}
    old_vms(kept, "n1", hints=hints)
    kept.cloud.flags(allow_user_hints=True, group="hpc_sched")
    kept.check()
    [[vm]] = kept.kept.at.values()
    assert vm.application.app_class == "async"
    assert kept.wholes == 0


def test_a_change_costs_the_queries_of_the_vms_that_it_changes(kept):
    first, *_ = old_vms(kept, *HOSTS, extra_specs=EXTREME)

    def cost(change: Callable[[], object]) -> int:
        change()
        with collected() as sent:
            kept.read()
        return len(sent)

    # Build requests, cells, what has changed.
    assert cost(lambda: None) == 3
    assert cost(lambda: kept.place(first, "n8")) == 3
    # And its request, cells and flavors.
    assert cost(lambda: kept.add("n3")) == 6
    # And migrations.
    assert cost(lambda: kept.save(first, task_state=task_states.MIGRATING)) == 4
    assert kept.wholes == 0
    # And all VMs, which are in the cache but for the new one.
    assert cost(lambda: kept.destroy(first, hard_delete=True)) == 4
    assert cost(lambda: None) == 3


def test_requests_at_the_same_time_share_what_is_kept(kept):
    old_vms(kept, *HOSTS, extra_specs=EXTREME)
    states = kept.states()
    for number in range(3):
        kept.add("n3")
        kept.destroy(kept.add("n4")[0])
        with futures.ThreadPoolExecutor(8) as pool:
            asked = [
                pool.submit(colocated_instances.read_hosts, f"vm-{one}", states)
                for one in range(16)
            ]
            found = [one.result() for one in asked]
        assert all(len(one.at["n3", "n3"]) == 2 + number for one in found)
        assert all(len(one.at["n4", "n4"]) == 1 for one in found)


def operations(kept: KeptCloud, dice: random.Random) -> Callable[[], object]:
    """Draw what happens next."""
    [cell] = kept.kept.cells.values()
    there = sorted(uuid for uuid, row in cell.rows.items() if row.vm is not None)
    host = dice.choice(HOSTS)
    new = {"extra_specs": dice.choice([EXTREME, {}])}
    if len(there) < 4:
        return lambda: kept.add(host, dice.choice([None, host]), **new)
    uuid = dice.choice(there)
    late = timeutils.utcnow() - datetime.timedelta(seconds=dice.randrange(60))
    flavors = {name: request(extra_specs=EXTREME).flavor for name in ("old", "cur", "new")}
    status = dice.choice(["running", "finished", "confirmed", "reverted", "error"])
    sides = {
        **{f"{side}_{what}": dice.choice(HOSTS) for side in ("source", "dest")
           for what in ("compute",)},
    }  # fmt: skip
    sides |= {"source_node": sides["source_compute"], "dest_node": sides["dest_compute"]}
    kind = dice.choice(["live-migration", "resize", "evacuation"])
    states = [
        {"task_state": dice.choice([None, task_states.DELETING, task_states.REBUILDING])},
        {"task_state": dice.choice([task_states.MIGRATING, task_states.RESIZE_MIGRATED, None])},
        {"vm_state": dice.choice([vm_states.RESIZED, vm_states.ACTIVE, vm_states.SOFT_DELETED])},
        {"vm_state": vm_states.BUILDING, "task_state": task_states.SPAWNING},
        {"instance_type_id": dice.randrange(1, 4)},
        {"hidden": dice.random() < 0.3},
    ]
    return dice.choice(
        [
            lambda: kept.add(host, **new),
            lambda: kept.add(None, **new),
            lambda: kept.place(uuid, host, vm_state=vm_states.ACTIVE, task_state=None),
            lambda: kept.place(uuid, host, updated_at=late),
            lambda: kept.place(uuid, None, vm_state=vm_states.SHELVED_OFFLOADED),
            lambda: kept.save(uuid, **dice.choice(states)),
            lambda: kept.save(uuid, **dice.choice(states)),
            lambda: kept.save(uuid, **dice.choice(states), updated_at=late),
            lambda: rows.add_migration(
                kept.cloud, uuid, status=status, migration_type=kind, **sides
            ),
            lambda: rows.change_migrations(kept.cloud, uuid, status=status),
            lambda: rows.set_flavors(kept.cloud, uuid, **flavors),
            lambda: kept.destroy(uuid),
            lambda: kept.destroy(uuid, hard_delete=True),
            kept.archive,
            lambda: rows.purge(kept.cloud, ()),
        ]
    )


@pytest.mark.parametrize("seed", range(6))
def test_drawn_changes_are_all_seen(kept, seed: int):
    dice = random.Random(seed)
    kept.cloud.flags(in_flight_lookups=0, group="hpc_sched")
    kept.add(*HOSTS)
    kept.read()
    for _ in range(STEPS):
        for _ in range(dice.choice([0, 1, 1, 2, 5])):
            # It may be deleted since the last read.
            with contextlib.suppress(exception.InstanceNotFound):
                operations(kept, dice)()
        kept.check()
        kept.wait(dice.choice([0, 1, 30, 59, 61, 130]))


def test_uuids_of_more_deletions_than_fit_in_a_query_are_no_fault(kept, monkeypatch):
    monkeypatch.setattr(databases, "MAX_UUIDS", 2)
    made = old_vms(kept, *HOSTS)
    for uuid in made[:5]:
        kept.save(uuid, task_state=task_states.DELETING)
    kept.check()
    kept.wait(100)
    kept.check()
    for uuid in made[:5]:
        kept.destroy(uuid)
    kept.check()
    assert len(kept.kept.at) == 3


def test_a_uuid_that_is_no_vm_is_no_move(kept):
    old_vms(kept, "n1")
    assert not kept.kept.seen_by(uuidutils.generate_uuid(), ()).is_move
