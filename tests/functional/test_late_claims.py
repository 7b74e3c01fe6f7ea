"""A gang claim whose answer is lost, on the real Placement: it comes late, or is inside there.

Whenever it ends, all VMs of the request are placed, each has its allocation alone, and nothing is
in use without an allocation that Placement lists.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import sqlalchemy as sa
from keystoneauth1 import exceptions as ksa_exceptions
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report
from oslo_utils import uuidutils
from placement import db_api
from placement.db.sqlalchemy import models
from placement.handlers import allocation as handler
from placement.handlers import util as handler_util
from placement.objects import consumer

from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.claim import claim_followup
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer
from hpc_sched.nova_glue.session import PlacementSession
from tests.functional import nova_objects, outcomes, provider_rows
from tests.functional.claims import ClaimsOnly, hosts_of
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import four_by_eight
from tests.functional.faults import wait_until
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

pytestmark = cloud_mark(EMPTY)

VMS = 3
# Moments of Nova's first claim.
BEFORE_GET, BEFORE_PUT, AFTER_PUT = "before Nova's GET", "between GET and PUT", "after Nova's PUT"
# Placement's steps: a look for each consumer and the making of its record, then the write.
STEPS = range(2 * VMS + 1)


class LateClaim:
    """The first claim of a request: its answer is lost, and it ends when :meth:`finish` says so."""

    def __init__(self, stop_at: int | None, *, is_next_lost: bool) -> None:
        """Stop before a step of Placement, or before it begins.

        :param is_next_lost: whether the answer to the next claim is lost as well
        """
        self._stop_at, self._step = stop_at, 0
        self._lost = 2 if is_next_lost else 1
        self._may_end, self._has_stopped = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.answer: Any = None

    def finish(self) -> None:
        """Let it go on to its end."""
        self._may_end.set()
        if self._thread is not None:
            self._thread.join(60)
            assert not self._thread.is_alive()

    def post(self, real: Callable[[], Any]) -> Any:
        """Send a claim, in place of the client."""
        if self._thread is not None:
            answer = real()
            self._lost -= 1
            if self._lost > 0:
                raise ksa_exceptions.ConnectFailure("the connection is broken")
            return answer

        def send() -> None:
            if self._stop_at is None:
                self._wait()
            self.answer = real()
            self._has_stopped.set()

        self._thread = threading.Thread(target=send, name="late claim", daemon=True)
        self._thread.start()
        assert self._has_stopped.wait(60)
        raise ksa_exceptions.ConnectFailure("the connection is broken")

    def at_step(self) -> None:
        """Stop at the step, in the thread of the late claim alone."""
        if threading.current_thread() is self._thread:
            if self._step == self._stop_at:
                self._wait()
            self._step += 1

    def _wait(self) -> None:
        self._has_stopped.set()
        assert self._may_end.wait(60)


def installed(late: LateClaim, moment: str) -> ExitStack:
    """Let the next claim be late, and end at a moment, or while the one after it waits for that."""
    stack = ExitStack()
    client, real_claim = report.SchedulerReportClient, scheduler_utils.claim_resources
    real_post, real_put, real_write = client.post, client._put_allocations, allocations.write

    def post(self: Any, url: str, data: Any, **kwargs: Any) -> Any:
        def send() -> Any:
            return real_post(self, url, data, **kwargs)

        return late.post(send) if url == "/allocations" else send()

    def write(*args: Any) -> allocations.Written:
        written = real_write(*args)
        if written.answer is Answer.CONSUMER_PENDING:
            late.finish()
        return written

    def put(*args: Any, **kwargs: Any) -> Any:
        if moment == BEFORE_PUT:
            late.finish()
        return real_put(*args, **kwargs)

    def claim(*args: Any, **kwargs: Any) -> Any:
        if moment == BEFORE_GET:
            late.finish()
        is_claimed = real_claim(*args, **kwargs)
        late.finish()
        return is_claimed

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            late.at_step()
            return function(*args, **kwargs)

        return call

    def after(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            found = function(*args, **kwargs)
            late.at_step()
            return found

        return call

    for owner, name, replacement in (
        (client, "post", post),
        (client, "_put_allocations", put),
        (allocations, "write", write),
        (scheduler_utils, "claim_resources", claim),
        (handler_util, "ensure_consumer", before(handler_util.ensure_consumer)),
        (consumer.Consumer, "create", before(consumer.Consumer.create)),
        (handler, "create_allocation_list", after(handler.create_allocation_list)),
        (claim_followup, "LATE", 0.5),
    ):
        stack.enter_context(mock.patch.object(owner, name, replacement))
    return stack


@pytest.fixture
def claims(cloud: TestedCloud, tmp_path: Path) -> Iterator[ClaimsOnly]:
    with outcomes.claims_for(cloud, tmp_path, four_by_eight()) as claims:
        yield claims


def check_one_request(
    claims: ClaimsOnly, stop_at: int | None, moment: str, *, is_next_lost: bool
) -> None:
    """Schedule a group whose claim is late, and check what Placement holds afterwards."""
    group = claims.cloud.server_group("late", "anti-affinity")
    spec = nova_objects.request_spec(
        nova_objects.flavor(vcpus=16, memory_mb=64),
        nova_objects.server_group(group, "anti-affinity"),
        count=VMS,
        uuid=uuidutils.generate_uuid(),
    )
    late = LateClaim(stop_at, is_next_lost=is_next_lost)
    with installed(late, moment):
        hosts = hosts_of(claims.place(spec))
        late.finish()
        # This thread is the scheduler's, whose next request would end this one.
        served_requests._end_before(PlacementSession())
        wait_until(lambda: not claim_followup._followed)
    assert late.answer.status_code in (204, 409)
    name_of = {uuid: host for host, uuid in claims.provider_of.items()}
    found = provider_rows.held(claims.consumers)
    # A row for each of three resource classes; a project: the consumer has a record.
    assert sorted({(one.consumer, name_of[one.provider]) for one in found}) == sorted(
        zip(claims.consumers, hosts, strict=True)
    )
    assert all(one.project for one in found)
    assert unlisted() == []
    claims.release()


def unlisted() -> list[str]:
    """Return the consumers of usage that Placement does not know."""
    allocation, record = models.Allocation, models.Consumer
    query = sa.select(allocation.consumer_id).where(
        allocation.consumer_id.not_in(sa.select(record.uuid))
    )
    with db_api.get_placement_engine().connect() as connection:
        return sorted(connection.execute(query).scalars())


CASES = [
    *(pytest.param(None, moment, id=moment) for moment in (BEFORE_GET, BEFORE_PUT, AFTER_PUT)),
    *(pytest.param(step, BEFORE_PUT, id=f"inside, before step {step}") for step in STEPS),
]


@pytest.mark.parametrize("is_next_lost", [False, True], ids=["", "the next answer is lost too"])
@pytest.mark.parametrize(("stop_at", "moment"), CASES)
def test_a_late_claim_leaves_all_vms_placed_and_nothing_else(claims, stop_at, moment, is_next_lost):
    check_one_request(claims, stop_at, moment, is_next_lost=is_next_lost)


@pytest.mark.nightly("protocol", "20 rounds of each case take minutes on the real Placement")
@pytest.mark.parametrize("is_next_lost", [False, True], ids=["", "the next answer is lost too"])
@pytest.mark.parametrize(("stop_at", "moment"), CASES)
def test_a_late_claim_20_times(claims, stop_at, moment, is_next_lost):
    for _ in range(20):
        check_one_request(claims, stop_at, moment, is_next_lost=is_next_lost)
