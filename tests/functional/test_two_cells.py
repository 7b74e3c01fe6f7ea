"""Groups with members in two cells, and cells that fail or hang."""

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from hpc_sched.demo.cloud import NovaCloud
from hpc_sched.nova_glue import db
from tests.functional.clouds import delete
from tests.functional.truth import believed, nodes, true_members

# leaf1: a1 a2 (cell1), b1 b2 (cell2)      leaf2: a3 (cell1), b3 (cell2)
LEAVES = {"leaf1": ["a1", "a2", "b1", "b2"], "leaf2": ["a3", "b3"]}


@pytest.fixture(scope="module")
def cloud(start_cloud: Callable[..., NovaCloud]) -> NovaCloud:
    cloud = start_cloud(LEAVES, options={("hpc_sched", "cell_timeout"): 1}, NUMBER_OF_CELLS=2)
    cloud.start_computes(["a1", "a2", "a3"])
    cloud.start_computes(["b1", "b2", "b3"], cell="cell2")
    cloud.flavor("rank", vcpus=16)
    return cloud


@pytest.fixture
def spread_group(cloud: NovaCloud):
    """Return a group with two members in each cell, and its servers."""
    group = cloud.server_group("two cells", "anti-affinity")
    servers = cloud.boot("rank", count=4, group=group)
    hosts = set(cloud.hosts_of(servers).values())
    assert hosts == set(LEAVES["leaf1"])
    yield group, servers
    delete(cloud, servers)


def test_members_in_another_cell_count(cloud, spread_group, monkeypatch):
    group, _servers = spread_group
    truth = true_members(cloud, group)
    with believed(monkeypatch) as seen:
        more = cloud.boot("rank", count=2, group=group)
        assert set(cloud.hosts_of(more).values()) == set(LEAVES["leaf2"])
    delete(cloud, more)
    [read] = seen
    assert nodes(read) == truth == Counter(LEAVES["leaf1"])
    assert read.awaiting == 2
    assert read.problems == ()


def break_cell(monkeypatch, cloud: NovaCloud, cell: str, how: Callable[[], None]) -> None:
    """Make every read of a cell's instances by the plugin do something else first."""
    broken = cloud.cell_mappings[cell].uuid
    real = db._instances

    def instances(context, wanted):
        if context.cell_uuid == broken:
            how()
        return real(context, wanted)

    monkeypatch.setattr(db, "_instances", instances)


def test_a_cell_that_fails_is_reported_once_and_the_others_count(cloud, spread_group, monkeypatch):
    group, _servers = spread_group

    def fail() -> None:
        raise ConnectionError("cell is gone")

    break_cell(monkeypatch, cloud, "cell2", fail)
    before = cloud.stdlog.logger.output.count("placed with what the scheduler itself knows")
    with believed(monkeypatch) as seen:
        more = cloud.boot("rank", count=1, group=group)
        assert cloud.wait(more)[more[0]]["status"] == "ACTIVE"
    delete(cloud, more)
    [read] = seen
    assert nodes(read) >= Counter(["a1", "a2"])
    assert [problem for problem in read.problems if "cell is gone" in problem]
    after = cloud.stdlog.logger.output.count("placed with what the scheduler itself knows")
    assert after == before + 1


def test_a_cell_that_hangs_is_given_up_after_the_timeout_and_left_alone_for_a_while(
    cloud, spread_group, monkeypatch
):
    group, _servers = spread_group
    go_on = threading.Event()
    asked = []

    def hang() -> None:
        asked.append(True)
        go_on.wait(30)

    break_cell(monkeypatch, cloud, "cell2", hang)
    try:
        with believed(monkeypatch) as seen:
            for _ in range(2):
                more = cloud.boot("rank", count=1, group=group)
                assert cloud.wait(more)[more[0]]["status"] == "ACTIVE"
                delete(cloud, more)
    finally:
        go_on.set()
        db._paused_until.clear()
    assert len(asked) == 1
    assert [read.problems for read in seen] == [
        (f"cell {cloud.cell_mappings['cell2'].id}: no answer within 1 s",),
        (f"cell {cloud.cell_mappings['cell2'].id}: left alone after a timeout",),
    ]


def test_an_api_database_that_fails_leaves_what_the_scheduler_itself_knows(
    cloud, spread_group, monkeypatch
):
    group, _servers = spread_group

    def fail(*_args: object) -> None:
        raise ConnectionError("API database is gone")

    with monkeypatch.context() as patch, believed(monkeypatch) as seen:
        patch.setattr(db, "api_rows", fail)
        more = cloud.boot("rank", count=2, group=group)
        assert {s["status"] for s in cloud.wait(more).values()} == {"ACTIVE"}
    delete(cloud, more)
    [read] = seen
    assert read.awaiting == 2
    assert "API database is gone" in read.problems[0]
