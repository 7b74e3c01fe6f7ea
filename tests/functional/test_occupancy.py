"""Who is on which host and what they run, read from the real databases of a Nova."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import nova.conf
import pytest
import sqlalchemy as sa
from oslo_utils.fixture import uuidsentinel as uuids
from sqlalchemy.engine import Engine

from hpc_sched.core.interference import Application
from hpc_sched.demo.cloud import NovaCloud
from hpc_sched.nova_glue import neighbours
from tests.functional import rows
from tests.functional.claims import request
from tests.functional.states import host_state, wishing

CONF = nova.conf.CONF

HOSTS = [f"n{number}" for number in range(1, 9)]
SYNC = wishing(app_class="sync", app_name="LU", cache_score=16)


@pytest.fixture(scope="module")
def started(start_cloud: Callable[..., NovaCloud]) -> NovaCloud:
    return start_cloud({"leaf1": HOSTS})


@pytest.fixture
def cloud(started: NovaCloud) -> Iterator[NovaCloud]:
    rows.clear(started)
    yield started
    rows.clear(started)


def states_of(cloud: NovaCloud, hosts=HOSTS):
    states = [host_state(host) for host in hosts]
    for state in states:
        state.cell_uuid = cloud.cell_mappings["cell1"].uuid
    return states


def seen(cloud: NovaCloud, asked=None) -> dict[str, list[Application]]:
    """Return what a request finds on each host, hosts without VMs left out."""
    states = states_of(cloud)
    found = neighbours.read(asked or request(), states)
    assert found.occupancy.problems == ()
    return {state.host: found.on(state) for state in states if found.on(state)}


@contextmanager
def counted() -> Iterator[list[str]]:
    statements: list[str] = []

    def note(_conn, _cursor, statement, *_rest) -> None:
        # The services of this process report themselves now and then.
        if statement.lstrip().upper().startswith("SELECT") and "FROM services" not in statement:
            statements.append(statement)

    sa.event.listen(Engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sa.event.remove(Engine, "before_cursor_execute", note)


def test_the_class_name_and_score_of_a_running_vm_come_from_its_flavor(cloud):
    rows.add_vms(cloud, ["n1", "n2"], extra_specs=SYNC)
    there = Application("sync", "LU", 16.0, "r-rows")
    assert seen(cloud) == {"n1": [there], "n2": [there]}


def test_hints_count_where_they_are_allowed_and_the_cache_follows_the_option(cloud):
    hints = {"hpc:app_class": ["async"], "hpc:cache_score": ["7.5"]}
    rows.add_vms(cloud, ["n1"], hints=hints)
    assert seen(cloud)["n1"] == [Application("none", None, 0.0, "r-rows")]
    cloud.flags(allow_user_hints=True, group="hpc_sched")
    assert seen(cloud)["n1"] == [Application("async", None, 7.5, "r-rows")]


def test_vms_that_say_nothing_have_the_default_class_where_they_belong_with_others(cloud):
    rows.add_vms(cloud, ["n1"])
    rows.add_vms(cloud, ["n2"], group=uuids.group)
    rows.add_vms(cloud, ["n3"], siblings=2)
    found = seen(cloud)
    assert [found[host][0].app_class for host in ("n1", "n2", "n3")] == ["none", "sync", "sync"]
    assert found["n2"][0].group == uuids.group
    cloud.flags(implicit_groups=False, group="hpc_sched")
    assert seen(cloud)["n3"][0].app_class == "none"


def test_only_vms_that_hold_room_count_and_never_the_one_that_is_scheduled(cloud):
    gone, shelved, error, own, hidden = rows.add_vms(cloud, ["n1", "n2", "n3", "n4", "n5"])
    rows.change_vm(cloud, gone, deleted=1)
    rows.change_vm(cloud, shelved, host=None, node=None, vm_state="shelved_offloaded")
    rows.change_vm(cloud, error, vm_state="error")
    rows.change_vm(cloud, hidden, hidden=True)
    assert list(seen(cloud, request(uuid=own))) == ["n3"]


def test_a_vm_that_moves_is_on_both_hosts_until_that_has_ended(cloud):
    [vm] = rows.add_vms(cloud, ["n1"])
    sides = {"source_compute": "n2", "source_node": "n2", "dest_compute": "n1", "dest_node": "n1"}
    rows.add_migration(cloud, vm, status="finished", migration_type="resize", **sides)
    assert set(seen(cloud)) == {"n1", "n2"}
    other = request(extra_specs={"hpc:app_class": "extreme"}).flavor
    plain = request().flavor
    rows.set_flavors(cloud, vm, cur=plain, old=other, new=plain)
    assert {host: there[0].app_class for host, there in seen(cloud).items()} == {
        "n1": "none",
        "n2": "extreme",
    }
    rows.clear(cloud)
    [vm] = rows.add_vms(cloud, ["n1"])
    rows.add_migration(cloud, vm, status="confirmed", migration_type="resize", **sides)
    assert set(seen(cloud)) == {"n1"}


def test_a_resized_vm_is_read_again(cloud):
    [vm] = rows.add_vms(cloud, ["n1"], extra_specs=SYNC)
    assert seen(cloud)["n1"][0].app_class == "sync"
    rows.set_flavors(cloud, vm, cur=request(extra_specs=wishing(app_class="extreme")).flavor)
    rows.change_vm(cloud, vm, instance_type_id=2)
    assert seen(cloud)["n1"][0].app_class == "extreme"


def test_queries_do_not_depend_on_hosts_or_vms_once_vms_are_known(cloud):
    costs = []
    for more in (2, 2, 0, 1500, 0):
        if more:
            rows.add_vms(cloud, [HOSTS[i % 8] for i in range(more)], extra_specs=SYNC)
        with counted() as statements:
            seen(cloud)
        costs.append(len(statements))
    # Build requests, cells, VMs and moves; for unknown VMs requests, cells and flavors.
    assert costs == [7, 7, 4, 7, 4]


def test_ten_thousand_running_vms_are_read_within_seconds(cloud):
    rows.add_vms(cloud, [HOSTS[i % 8] for i in range(10_000)], extra_specs=SYNC)
    began = time.perf_counter()
    assert sum(map(len, seen(cloud).values())) == 10_000
    first = time.perf_counter() - began
    began = time.perf_counter()
    seen(cloud)
    later = time.perf_counter() - began
    print(f"first request {first:.2f} s, later ones {later:.2f} s")
    assert first < 10
    assert later < 2
