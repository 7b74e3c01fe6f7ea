"""Where the VMs of a request landed: logged by a thread of the worker once the request is over."""

import gc
import threading
import weakref
from unittest import mock

import nova.conf
import pytest

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.io import periodic_thread
from hpc_sched.nova_glue.record import landed_record
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.pods import FABRIC, hosts_below, states_of
from tests.functional.states import (
    FILTERS,
    States,
    ours,
    queue_of,
    read_decisions,
    read_landings,
    run,
    schedule,
    spec,
    weigh,
    why_refused,
)

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.fixture(autouse=True)
def followed(monkeypatch):
    """Return the requests that are followed, for a thread that never looks at them by itself."""
    # A thread that an earlier test has started goes on.
    monkeypatch.setattr(landed_record._thread, "_function", int)
    sleeping = periodic_thread.PeriodicThread(int, lambda: 0)
    monkeypatch.setattr(landed_record, "_thread", sleeping)
    monkeypatch.setattr(landed_record, "_followed", type(landed_record._followed)())
    return landed_record._followed


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "decisions"
    CONF.set_override("decision_log", str(path), "hpc_sched")
    return path


def look(**times: float) -> None:
    """Look at the requests, as if none had called for a while."""
    with mock.patch.multiple(landed_record, QUIET=0.0, **times):
        landed_record.write_all()


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return level and text of what was logged of landings."""
    look()
    return [
        (found.levelname, found.getMessage())
        for found in caplog.records
        if found.name == landed_record.__name__
    ]


def placed(
    group, requested: int, number: int | None = None, losing: tuple[int, ...] = ()
) -> tuple[States, list[str]]:
    """Place VMs of a request, all by default; return HostStates and hosts."""
    queue, states = queue_of(requested), states_of()
    group({"n01": 1}, queue=queue, left=requested)
    request = spec(count=requested, uuid=queue[0])
    chain = [made() for made in FILTERS]
    vms = queue[: requested if number is None else number]
    return states, schedule(states, request, vms, HopByteWeigher(), chain, losing)[0]


def test_vms_that_land_as_planned_are_a_line_of_the_decision_log(group, log, caplog):
    caplog.set_level("DEBUG", "hpc_sched")
    _, hosts = placed(group, 3)
    [decision], [landing] = read_decisions(log), read_landings(log)
    for key in ("request_id", "instance", "instances", "group", "left"):
        assert landing[key] == decision[key]
    assert landing["landed"] == {
        "leaves": {"leaf1": 3},
        "hosts": dict.fromkeys(hosts, 1),
        "hop_bytes": decision["plan"]["hop_bytes"],
        "planned": {"leaf1": 3},
        "as_planned": True,
        "released": False,
    }
    [(level, text)] = said(caplog)
    assert level == "DEBUG"
    assert text.endswith("landed 3 in leaf1 (3), as planned")


def test_vms_that_land_elsewhere_are_in_the_schedulers_log_without_a_decision_log(group, caplog):
    caplog.set_level("DEBUG", "hpc_sched")
    _, hosts = placed(group, 3, losing=(1,))
    [other] = [FABRIC.leaf_of(host) for host in hosts if host not in hosts_below("leaf1")]
    [(level, text)] = said(caplog)
    assert level == "INFO"
    assert text.endswith(f"landed 3 in leaf1 (2), {other} (1); planned 3 in leaf1 (3)")


def test_a_part_of_a_larger_plan_is_as_planned(group, log):
    queue = queue_of(6)
    group(queue=queue, left=2)
    chain = [made() for made in FILTERS]
    schedule(states_of(), spec(count=2, uuid=queue[0]), queue[:2], HopByteWeigher(), chain)
    [landing] = read_landings(log)
    assert landing["landed"]["as_planned"]
    assert sum(landing["landed"]["hosts"].values()) == 2
    assert sum(landing["landed"]["planned"].values()) == 6


def test_a_request_that_still_places_vms_is_not_over(group, followed, log):
    placed(group, 4, number=3)
    look()
    landed_record.write_all()
    assert len(followed) == 1
    assert len(log.read_text().splitlines()) == 1


def test_a_request_that_stops_without_a_release_landed_in_part(group, followed, log):
    """Placement has not answered any more: Nova releases nothing."""
    placed(group, 4, number=3)
    look(IDLE=0.0)
    [landing] = read_landings(log)
    assert (landing["left"], sum(landing["landed"]["hosts"].values())) == (4, 3)
    assert landing["landed"]["as_planned"] is False
    assert not followed


def test_a_request_whose_claims_are_released_landed_nowhere(group, log, caplog):
    caplog.set_level("INFO", "hpc_sched")
    states, _ = placed(group, 4, number=3)
    for state in states:
        # As Nova does after NoValidHost.
        state.updated = None
    [landing] = read_landings(log)
    assert landing["landed"]["released"]
    assert landing["landed"]["as_planned"] is None
    [(_, text)] = said(caplog)
    assert text.endswith("the request has failed, and Nova has released its claims: 3")


def test_vms_placed_without_a_plan_are_compared_with_none(group, log, caplog):
    caplog.set_level("INFO", "hpc_sched")
    queue = queue_of(40)
    group(queue=queue, left=40)
    schedule(states_of(), spec(count=40, uuid=queue[0]), queue[:32], HopByteWeigher())
    look(IDLE=0.0)
    [landing] = read_landings(log)
    assert landing["landed"]["as_planned"] is None
    assert said(caplog) == []


def test_a_refused_request_is_not_followed_and_has_no_line(group, followed, log, caplog):
    caplog.set_level("DEBUG", "hpc_sched")
    group(left=9)
    why_refused(states_of("leaf1"), spec(count=9))
    assert len(followed) == 1
    assert said(caplog) == []
    assert not followed
    assert {record["decision"] for record in read_decisions(log)} == {"refused"}


def test_a_request_without_a_claim_is_followed_for_a_while(group, followed):
    group(left=2)
    states, request = states_of(), spec(count=2)
    run(states, request, HPCGroupFilter())
    # What has no record is not followed.
    assert not followed
    weigh(HopByteWeigher(), states, request)
    look()
    assert len(followed) == 1
    look(IDLE=0.0)
    assert not followed


def test_no_host_state_outlives_a_request_without_a_claim(group, followed):
    states, request = states_of(), spec(count=2)
    group(left=2)
    run(states, request, HPCGroupFilter())
    weigh(HopByteWeigher(), states, request)
    look()
    seen = [weakref.ref(state) for state in states]
    del states, request
    gc.collect()
    assert len(followed) == 1
    assert not [state for state in seen if state() is not None]
    look()
    assert not followed


def test_no_host_state_outlives_its_request(group, log):
    states, _ = placed(group, 2)
    seen = [weakref.ref(state) for state in states]
    del states
    assert read_landings(log)
    gc.collect()
    assert not [state for state in seen if state() is not None]


def test_a_record_that_cannot_be_made_does_not_stop_the_next_one(group, followed, log, caplog):
    placed(group, 1)
    placed(group, 2)
    followed[0].kept.claims = None
    [landing] = read_landings(log)
    assert landing["left"] == 2
    assert not followed
    assert [text for text in ours(caplog) if "cannot be logged" in text]


def test_the_first_request_of_a_worker_starts_the_thread_and_no_filter_or_weigher(
    group, log, monkeypatch
):
    name = "hpc_sched landed test"
    made = periodic_thread.PeriodicThread(landed_record.write_all, lambda: 0.01, name)
    monkeypatch.setattr(landed_record, "_thread", made)
    HopByteWeigher()
    HPCGroupFilter()
    assert name not in [thread.name for thread in threading.enumerate()]
    placed(group, 1)
    assert [thread.name for thread in threading.enumerate()].count(name) == 1
    made.interval = lambda: 0
    assert read_landings(log)
