"""The time that hpc_sched takes for a request: its parts, and where they are shown.

Time passes here while a request waits for Placement or for another request, and at no other time.
"""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import nova.conf
import pytest

from hpc_sched import clock, exceptions
from hpc_sched.core.logged.decision_summary import (
    CLAIMS,
    OTHER,
    PARTS,
    PLANNING,
    READS,
    TURNS,
    times_text,
    total_seconds,
)
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.metrics import catalogue, counts
from hpc_sched.metrics.counts import Series
from hpc_sched.nova_glue import request_metrics
from hpc_sched.nova_glue.exporter.decision_counts import RequestCounts
from hpc_sched.nova_glue.io import loaded_topology, request_deadline
from hpc_sched.nova_glue.io.request_deadline import RequestClock
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.snapshot.log import record_text
from hpc_sched.snapshot.log.logged_decisions import entry_of
from tests.protocol.nova_model import NovaModel
from tests.protocol.world import World, watched
from tests.turned_clock import TurnedClock

CONF = nova.conf.CONF


@pytest.fixture
def decision_log(begin: Callable[[], NovaModel], tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "decisions"
    CONF.set_override("decision_log", str(path), "hpc_sched")
    yield path
    CONF.clear_override("decision_log", "hpc_sched")


@pytest.fixture
def history(
    begin: Callable[[], NovaModel], decision_log: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    counts.start()
    monkeypatch.setattr(request_metrics, "current", RequestCounts(lambda: None))
    with watched(World(begin())) as world:
        world.do("hosts 1 1 1 1")
        world.do("group g")
        yield world
    counts.stop()


def records(path: Path) -> list[dict[str, object]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [record for record in found if record["decision"] != "landed"]


def expect(record: dict[str, object], **expected: float) -> None:
    """Check the parts of a record, and that they are the whole."""
    assert record["times"] == dict.fromkeys(PARTS, 0.0) | expected
    assert record["seconds"] == sum(expected.values())


def test_a_slow_claim_is_in_log_record_text_and_metrics(history, decision_log, caplog):
    logging.disable(logging.NOTSET)
    caplog.set_level(logging.INFO, "hpc_sched")
    try:
        history.do("create a1,a2 s1 group=g")
        history.do("claim a")
        history.do("time 6")
        history.do("run a")
    finally:
        logging.disable(logging.INFO)
    [record] = records(decision_log)
    expect(record, claims=6.0)
    assert "; 6000.0 ms (claims 6000.0)" in caplog.text
    assert ("took", "6000.0 ms (claims 6000.0)") in list(record_text._lines(entry_of(record), None))
    numbers = counts._values.numbers
    assert numbers[Series(catalogue.REQUEST, (), "sum")] == 6.0
    assert numbers[Series(catalogue.PART_SECONDS, (("part", CLAIMS),))] == 6.0
    assert numbers[Series(catalogue.PLANNING, (), "sum")] == 0.0


def test_reads_while_the_group_is_planned_are_no_planning(history, decision_log):
    history.do("create a1,a2 s1 group=g")
    history.do("step a")
    history.do("time 1")
    history.do("step a")
    history.do("time 2")
    history.do("run a")
    [record] = records(decision_log)
    expect(record, reads=3.0)


def test_a_request_that_waits_for_another_one_of_its_group_says_so(history, decision_log):
    for name in "ab":
        history.do(f"create {name}1 s1 group=g")
        history.do(f"claim {name}")
    history.do("time 2")
    history.do("run a")
    history.do("run b")
    first, second = records(decision_log)
    expect(first, claims=2.0)
    expect(second, turns=2.0)


def test_the_time_of_a_refusal_is_what_it_took_too(history, decision_log):
    for name in ("y1 h1", "z1 h3"):
        history.do(f"other {name}")
    history.do("create a1,a2 s1 group=g require=leaf")
    history.do("step a")
    history.do("time 4")
    history.do("run a")
    [record] = records(decision_log)
    assert record["decision"] == "refused"
    expect(record, reads=4.0)


def test_what_a_refusal_releases_is_part_of_its_time(history, decision_log):
    refusal = exceptions.RefusedError("a reason")
    with mock.patch.object(HPCRackCapacityFilter, "keep", side_effect=refusal):
        history.do("create a1,a2 s1 group=g require=leaf")
        history.do("claim a")
        history.do("step a")
        history.do("claim a")
        history.do("time 5")
        history.do("run a")
    [record] = records(decision_log)
    assert record["decision"] == "refused"
    assert record["claim"] == {"vms": 2, "transactions": 1}
    expect(record, claims=5.0)


@pytest.mark.parametrize("mode", ["active", "shadow"])
def test_a_refusal_of_a_request_without_a_group_has_its_time(history, decision_log, mode):
    def slow(_uuid):
        clock.current.sleep(3)
        return False

    CONF.set_override("mode", mode, "hpc_sched")
    try:
        with mock.patch.object(group_members, "is_placed", slow):
            history.do("create a1 s1 require=bogus")
            history.do("run a")
    finally:
        CONF.clear_override("mode", "hpc_sched")
    [record] = records(decision_log)
    assert record["decision"] == "refused"
    expect(record, other=3.0)


def test_the_time_begins_before_the_request_is_known(history, decision_log):
    """The first call of all loads the topology."""

    def slow():
        clock.current.sleep(2)
        return loaded()

    loaded = loaded_topology.current
    with mock.patch.object(loaded_topology, "current", slow):
        history.do("create a1,a2 s1 group=g")
        history.do("run a")
    [record] = records(decision_log)
    expect(record, other=2.0)


def test_a_part_within_another_one_takes_its_time_from_that(turned_clock: TurnedClock):
    clock = RequestClock()
    with clock.part(OTHER):
        turned_clock.sleep(1)
        with clock.part(PLANNING):
            turned_clock.sleep(2)
            with clock.part(READS):
                turned_clock.sleep(4)
            turned_clock.sleep(8)
            now = clock.seconds()
    # Between two calls of Nova no time counts.
    turned_clock.sleep(16)
    with clock.part(OTHER), pytest.raises(OSError, match="broken"), clock.part(CLAIMS):  # noqa: PT012
        turned_clock.sleep(32)
        raise OSError("broken")
    assert now == {READS: 4, TURNS: 0, PLANNING: 10, CLAIMS: 0, OTHER: 1}
    assert clock.seconds() == now | {CLAIMS: 32}


def test_the_deadline_is_charged_what_waits_and_its_clock_counts_all(turned_clock: TurnedClock):
    deadline = request_deadline.RequestDeadline()
    with request_deadline.active(deadline):
        turned_clock.sleep(1)
        with request_deadline.charged(TURNS):
            turned_clock.sleep(2)
    assert deadline.waited == 2
    assert total_seconds(deadline.clock.seconds()) == 3


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, "0.0 ms"),
        ({READS: 0.00004, OTHER: 0.00002}, "0.1 ms"),
        (
            {READS: 0.0021, PLANNING: 0.003, CLAIMS: 6.0},
            "6005.1 ms (reads 2.1, planning 3.0, claims 6000.0)",
        ),
        ({TURNS: 0.5}, "500.0 ms (waiting for others 500.0)"),
    ],
)
def test_the_parts_in_words(parts, expected):
    assert times_text(parts) == expected
