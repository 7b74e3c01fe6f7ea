"""The plugin's reads on SQLite, MariaDB and PostgreSQL, with Nova's own schema."""

import time
from collections import Counter

import pytest
import sqlalchemy as sa
from nova import context as nova_context

from hpc_sched.demo import nova_cloud  # noqa: F401 - first of all Nova: it chooses threads
from hpc_sched.nova_glue.io import databases as io_databases
from hpc_sched.nova_glue.read.instances import host_instances
from tests.functional.database_reads import BIG_TABLES, READS, Cloud, Read, occupants
from tests.functional.engines import CELLS
from tests.functional.statements import Statement, collected, steps

pytestmark = pytest.mark.ci

reads = pytest.mark.parametrize("read", READS.values(), ids=READS.keys())

MEMBERS = "instance_group_member"
# Nova's schema has no index of the members of a group. MySQL and MariaDB make one for the
# foreign key; elsewhere the table, narrow as it is, is read from end to end, by Nova too.
UNINDEXED = {"sqlite": {MEMBERS}, "mariadb": set(), "postgresql": {MEMBERS}}


@reads
def test_a_read_tells_the_truth_on_every_engine(databases: Cloud, read: Read):
    assert read.ask(databases) == read.truth(databases)


@reads
def test_a_read_makes_as_many_queries_as_it_says_on_every_engine(databases: Cloud, read: Read):
    with collected() as sent:
        read.ask(databases)
    asked = Counter(databases.databases.part_of(statement.url) for statement in sent)
    assert asked == read.queries


def scanned(on: Cloud, sent: list[Statement], by_index: bool) -> dict[str, list[str]]:
    """Return the big tables that are read from end to end, with the plans that do so."""
    found: dict[str, list[str]] = {}
    for statement in sent:
        engine = on.databases.engines[on.databases.part_of(statement.url)]
        with engine.connect() as connection:
            for step in steps(connection, statement, by_index):
                if step.is_whole and step.table in BIG_TABLES:
                    found.setdefault(step.table, []).append(step.text)
    return found


@reads
def test_a_read_scans_only_the_tables_of_which_it_wants_every_row(databases: Cloud, read: Read):
    with collected() as sent:
        read.ask(databases)
    assert sent
    engine = databases.databases.engine
    allowed = read.whole | UNINDEXED[engine]
    # PostgreSQL reads tables of this size from end to end for 2,000 rows of them, and is right:
    # it takes 10 ms. That it need not is what counts in a larger cloud. For a few rows it does
    # not do so here either.
    for by_index in (True, False) if read.is_small or engine != "postgresql" else (True,):
        found = scanned(databases, sent, by_index)
        assert not found.keys() - allowed, found


def test_what_has_changed_of_every_vm_is_read_by_indexes(databases: Cloud):
    """Of 20,000 rows a few; the number and the sums of all come from an index alone."""
    context = nova_context.get_admin_context()
    before = host_instances.read(context, [databases.alone.uuid], ())
    with collected() as sent:
        found = host_instances.read(context, [databases.alone.uuid], (), before)
    assert occupants(databases, found) == READS["every VM on every host"].truth(databases)
    asked = Counter(databases.databases.part_of(statement.url) for statement in sent)
    # Build requests, cells, the flavors that resizes lead to; changes and moves.
    assert asked == {"api": 3, **dict.fromkeys(CELLS, 2)}
    allowed = {"build_requests"} | UNINDEXED[databases.databases.engine]
    found_whole = scanned(databases, sent, by_index=True)
    assert not found_whole.keys() - allowed, found_whole


def test_an_index_that_nova_lacks_is_still_lacking(populated: Cloud):
    indexes = sa.inspect(populated.databases.engines["api"]).get_indexes(MEMBERS)
    has_index = any(index["column_names"][0] == "group_id" for index in indexes)
    assert has_index == (MEMBERS not in UNINDEXED[populated.databases.engine])


@pytest.mark.parametrize("name", ["every VM on every host", "what 1,000 VMs run"])
def test_what_is_too_much_to_be_listed_is_read_without_a_list(databases: Cloud, monkeypatch, name):
    monkeypatch.setattr(io_databases, "MAX_UUIDS", 10)
    read = READS[name]
    with collected() as sent:
        assert read.ask(databases) == read.truth(databases)
    assert len(sent) == sum(read.queries.values())
    longest = max(len(statement.parameters) for statement in sent)
    assert longest < 40


@pytest.mark.nightly("databases", "it measures")
def test_times_of_all_reads(databases: Cloud, record_property):
    engine = databases.databases.engine
    for name, read in READS.items():
        read.ask(databases)
        began = time.perf_counter()
        read.ask(databases)
        took = 1000 * (time.perf_counter() - began)
        record_property(f"{engine}: {name}", f"{took:.0f} ms")
        print(f"{engine:10}  {name:50} {took:6.0f} ms")
        assert took < 60_000
