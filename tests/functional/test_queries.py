"""How many queries one request costs: the same for small and large groups and clouds."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pytest
from nova.scheduler.client import report

from hpc_sched.nova_glue.read.instances import group_members
from tests.functional.cloud_kinds import FOUR_BY_EIGHT, MDOBP
from tests.functional.shared_clouds import cloud_mark
from tests.functional.statements import collected
from tests.functional.tested_cloud import TestedCloud

pytestmark = cloud_mark(FOUR_BY_EIGHT)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[list[str], list[str]]]]:
    """Collect, for each group that is read, the SQL statements and the calls to Placement."""
    reads: list[tuple[list[str], list[str]]] = []
    real, real_get = group_members.read, report.SchedulerReportClient.get_allocs_for_consumer
    calls: list[str] = []
    # Other services run in this process too: only what the reading of a group asks counts, in
    # whatever thread; those that read for it inherit its context.
    ours = ContextVar("ours", default=False)

    def read(*args, **said):
        calls.clear()
        ours.set(True)
        try:
            with collected() as sent:
                return real(*args, **said)
        finally:
            ours.set(False)
            reads.append(([" ".join(one.text.split()) for one in sent], list(calls)))

    def get(self, context, consumer):
        if ours.get():
            calls.append(consumer)
        return real_get(self, context, consumer)

    with monkeypatch.context() as patch:
        patch.setattr(group_members, "read", read)
        patch.setattr(report.SchedulerReportClient, "get_allocs_for_consumer", get)
        yield reads


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flavor("small")
    return shared_cloud


def cost(cloud, monkeypatch, *, members: int, count: int) -> tuple[int, int]:
    """Return queries and calls to Placement for a request of a group that has members."""
    group = cloud.server_group("counted", "soft-anti-affinity")
    servers = cloud.boot("small", count=members, group=group) if members else []
    cloud.wait(servers)
    with counted(monkeypatch) as reads:
        more = cloud.boot("small", count=count, group=group)
        cloud.wait(more)
    [(sql, calls)] = reads
    cloud.remove(servers + more)
    return len(sql), len(calls)


@pytest.mark.parametrize(
    "hosts",
    [pytest.param(32, marks=cloud_mark(FOUR_BY_EIGHT)), pytest.param(6, marks=cloud_mark(MDOBP))],
)
def test_the_number_of_queries_depends_on_neither_members_nor_hosts_nor_vms_asked_for(
    cloud, monkeypatch, hosts
):
    assert len(cloud.thin) == hosts
    # The API database for the group and for the cells, and the one cell that holds members.
    few = cost(cloud, monkeypatch, members=1, count=2)
    assert few == (3, 0)
    assert cost(cloud, monkeypatch, members=6, count=2) == few
    assert cost(cloud, monkeypatch, members=1, count=6) == few


def test_a_group_without_members_asks_no_cell(cloud, monkeypatch):
    assert cost(cloud, monkeypatch, members=0, count=4) == (1, 0)


@pytest.mark.default
def test_a_vm_without_a_group_costs_no_query(cloud, monkeypatch):
    with counted(monkeypatch) as reads:
        servers = cloud.boot("small")
        cloud.wait(servers)
    cloud.remove(servers)
    assert reads == []
