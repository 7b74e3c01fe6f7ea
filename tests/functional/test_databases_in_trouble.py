"""Many readers at once, connections that are killed, rows that are locked; requests placed."""

import contextlib
import functools
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from nova.db.api import models as api_models
from nova.db.main import models as main_models

from hpc_sched.demo import nova_cloud  # noqa: F401 - first of all Nova: it chooses threads
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.claim import group_turns
from hpc_sched.nova_glue.read.instances import colocated_instances, group_members
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional import population, population_rows, servers, states
from tests.functional.claims import request
from tests.functional.clouds import SAMPLE_CONF
from tests.functional.command_server import CommandServer
from tests.functional.database_files import write_conf
from tests.functional.database_reads import READS, Cloud, request_of
from tests.functional.engines import CELLS
from tests.functional.population import GROUP, group_uuid
from tests.functional.statements import Statement, collected, each
from tests.functional.test_status_command import ENVIRONMENT, results
from tests.functional.trees import write_tree

pytestmark = pytest.mark.ci

WIDE = READS[f"a group of {GROUP} as the scheduler sees it"]
EVERY_VM = READS["every VM on every host"]


@pytest.fixture
def on_server(databases: Cloud) -> Cloud:
    if databases.databases.engine == "sqlite":
        pytest.skip("SQLite has no server")
    return databases


def test_sixteen_threads_read_one_group_at_the_same_time(databases: Cloud):
    start = threading.Barrier(16)
    truth = WIDE.truth(databases)

    def ask(_: int) -> bool:
        start.wait(120)
        return bool(WIDE.ask(databases) == truth)

    with futures.ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, range(16))) == [True] * 16


def kill_connections(on: Cloud) -> int:
    """Kill on the server every connection to the databases, as its restart does."""
    names = [sa.make_url(url).database for url in on.databases.urls.values()]
    server = servers.SERVERS[on.databases.engine]
    killed = 0
    with server.connect() as connection:
        if on.databases.engine == "mariadb":
            query = "SELECT id, db FROM information_schema.processlist"
            for number, name in connection.execute(sa.text(query)).all():
                if name in names:
                    killed += 1
                    with contextlib.suppress(sa.exc.OperationalError):  # has ended by itself
                        connection.execute(sa.text(f"KILL {number}"))
        else:
            query = "SELECT pid, datname FROM pg_stat_activity"
            for number, name in connection.execute(sa.text(query)).all():
                if name in names:
                    killed += connection.scalar(sa.text(f"SELECT pg_terminate_backend({number})"))
    return killed


@pytest.mark.parametrize("read", [WIDE, EVERY_VM], ids=["group", "hosts"])
def test_connections_that_are_killed_between_two_reads_are_made_anew(on_server: Cloud, read):
    truth = read.truth(on_server)
    assert read.ask(on_server) == truth
    assert kill_connections(on_server) >= 3
    assert read.ask(on_server) == truth


@contextlib.contextmanager
def killed_before(on: Cloud, words: str) -> Iterator[list[str]]:
    """Kill all connections just before a query with these words is sent."""
    hit: list[str] = []

    def note(sent: Statement) -> None:
        if words in sent.text and not hit:
            hit.append(sent.text)
            kill_connections(on)

    with each(note):
        yield hit


@pytest.mark.parametrize("table", ["instance_group_member", "instances.uuid"])
def test_a_group_whose_read_is_cut_off_is_placed_with_what_the_scheduler_itself_knows(
    on_server: Cloud, table
):
    WIDE.ask(on_server)
    with killed_before(on_server, table) as hit:
        look_up = functools.partial(group_turns.turn_of(None).look_up, anew=True)
        found = group_members.read(request_of("wide"), (), look_up)
    assert hit
    assert found.is_partial
    assert found.problems
    assert WIDE.ask(on_server) == WIDE.truth(on_server)


@pytest.mark.parametrize("table", ["build_requests.instance", "FROM instances", "FROM migrations"])
def test_neighbours_whose_read_is_cut_off_are_reported_unknown(on_server: Cloud, caplog, table):
    EVERY_VM.ask(on_server)
    spec = request(extra_specs={"hpc:app_class": "extreme"})
    hosts = states_of(on_server)
    with killed_before(on_server, table) as hit:
        found = colocated_instances.read(spec, hosts)
    assert hit
    assert found.host_instances.down_cells
    assert [text for text in states.ours(caplog) if "not all VMs on the hosts are known" in text]
    assert EVERY_VM.ask(on_server) == EVERY_VM.truth(on_server)


@contextlib.contextmanager
def locked(on: Cloud) -> Iterator[None]:
    """Hold a transaction open that has changed rows of every VM."""
    in_cell = (
        sa.update(main_models.Instance).values(host="elsewhere"),
        sa.update(main_models.Migration).values(status="done"),
    )
    in_api = (
        sa.update(api_models.InstanceMapping).values(cell_id=None),
        sa.update(api_models.BuildRequest).values(instance="{}"),
        sa.update(api_models.InstanceGroupMember).values(group_id=1),
    )
    changes = {"api": in_api, **dict.fromkeys(CELLS, in_cell)}
    with contextlib.ExitStack() as stack:
        for part, statements in changes.items():
            connection = stack.enter_context(on.databases.engines[part].connect())
            stack.callback(connection.rollback)
            for statement in statements:
                # Of what follows the ids go up to hundreds of thousands: VMs that are gone.
                is_first = statement.table.c.id < population_rows.COPY
                assert connection.execute(statement.where(is_first)).rowcount > 100
        yield


@pytest.mark.parametrize("read", [WIDE, EVERY_VM], ids=["group", "hosts"])
def test_rows_that_others_have_locked_are_read_as_they_were_without_waiting(on_server: Cloud, read):
    truth = read.truth(on_server)
    with locked(on_server):
        began = time.monotonic()
        assert read.ask(on_server) == truth
        # A transaction that waits for a lock waits 50 s on MariaDB and for ever on PostgreSQL.
        assert time.monotonic() - began < 20


def states_of(on: Cloud) -> states.States:
    """Return the hosts of both cells, all room free."""
    uuids = on.databases.cell_uuids
    made = []
    for cell in CELLS:
        for host in population.hosts_of(cell):
            state = states.host_state(host)
            state.cell_uuid = uuids[cell]
            made.append(state)
    return made


def placed_in(folder: Path, hosts: states.States) -> list[str]:
    """Return where the VMs of one more request for the largest group are placed, in turn."""
    uuids = states.queue_of(4)
    spec = request(
        group=group_uuid("wide"), policy="soft-anti-affinity", count=4, vcpus=1, uuid=uuids[0]
    )
    tree = {"core": population.leaves()}
    with states.configured(write_tree(folder / "topology.yaml", tree)):
        placed, _ = states.schedule(hosts, spec, uuids, HopByteWeigher(), [HPCGroupFilter()])
    return placed


def test_a_request_for_a_group_of_thousands_is_placed_as_the_truth_has_it(
    databases: Cloud, monkeypatch, tmp_path: Path
):
    with collected() as sent:
        found = placed_in(tmp_path, states_of(databases))
    # The group, the launches of those that wait, the cells and both of them, once for all VMs.
    assert len(sent) == 5
    vms = databases.population.by_group["wide"]
    waiting = [vm for vm in vms if vm.build_request]
    young = [vm.uuid for vm in waiting if vm.build_request == databases.population.now]
    old = [vm.uuid for vm in waiting if vm.build_request != databases.population.now]
    assert young
    assert old
    states.databases_say(
        monkeypatch,
        members=databases.population.members("wide"),
        queue=[*young, states.queue_of(1)[0], *old],
        left=4,
        orphans=len(old),
    )
    assert found == placed_in(tmp_path, states_of(databases))
    # Its policy is soft: one VM a host, and none where the group has members.
    there = {host for host, _ in databases.population.members("wide")}
    assert len(set(found) - there) == 4


def test_the_status_command_reads_a_large_cloud(populated: Cloud, tmp_path: Path):
    urls = populated.databases.urls
    options = {
        "api_database": {"connection": urls["api"]},
        "database": {"connection": urls["cell1"]},
        "hpc_sched": {"topology_driver": "aggregates"},
    }
    sample = SAMPLE_CONF.read_text().partition("[hpc_sched]")[0]
    config = write_conf(tmp_path / "nova.conf", options, text=sample)
    with closing(CommandServer(ENVIRONMENT)) as server:
        arguments = ("--config-file", config, "upgrade", "check", "--json")
        code, found = results(server.run("hpc_sched.cli.status_command", *arguments))
    assert code == 2
    computes = [host for cell in CELLS for host in population.hosts_of(cell)]
    enabled = [host for host in computes if not population.is_disabled(host)]
    leaves = population.leaves()
    assert f"{len(computes)} hosts, {len(leaves)} leaves" in found["Topology"]["details"]
    assert f"All {len(enabled)} enabled computes are in it." in found["Topology"]["details"]
    groups = READS["status: all server groups"].truth(populated)
    undecided = [
        name for name, _, members_, classed in groups if classed < members_ or not members_
    ]
    assert f"{len(undecided)} server groups" in found["Server groups"]["details"]
