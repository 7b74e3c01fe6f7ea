"""What is counted of requests in filters and weighers, and the gauges of a worker's state."""

import threading
from collections.abc import Iterator
from pathlib import Path

import nova.conf
import numpy as np
import pytest
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched import exceptions
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.metrics import catalogue, counts
from hpc_sched.metrics.catalogue import Metric
from hpc_sched.nova_glue import request_metrics
from hpc_sched.nova_glue.exporter import decision_counts, state_gauges, worker
from hpc_sched.nova_glue.exporter.decision_counts import RequestCounts
from hpc_sched.nova_glue.io import circuit_breaker, fabric, loaded_topology, request_deadline
from hpc_sched.nova_glue.io.request_deadline import RequestDeadline
from hpc_sched.nova_glue.read.room import shunned_hosts
from hpc_sched.nova_glue.session import PlacementSession
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional import faults
from tests.functional.pods import add_island, states_of
from tests.functional.states import (
    as_hints,
    host_state,
    read_decisions,
    run,
    spec,
    weigh,
    why_refused,
    wishing,
)
from tests.turned_clock import SteppedClock, installed

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    counts.start()
    monkeypatch.setattr(request_metrics, "current", RequestCounts(worker.start))
    decision_counts._projects.clear()
    yield
    counts.stop()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    return tmp_path / "decisions"


def counted(metric: Metric) -> dict[tuple[str, ...], float]:
    """Return a counter's series that are not 0, by the values of their labels."""
    return {
        tuple(value for _, value in series.labels): number
        for series, number in counts.numbers().items()
        if series.metric is metric and number
    }


def observed(metric: Metric) -> float:
    """Return how many durations a histogram has."""
    return sum(
        number
        for series, number in counts.numbers().items()
        if series.metric is metric and series.part != counts.SUM
    )


def gauge(metric: Metric, label: str = "") -> float:
    """Return a gauge after an update."""
    state_gauges.update()
    found = {series: value for series, (value, _) in counts.gauges().items()}
    return next(
        value
        for series, value in found.items()
        if series.metric is metric and (not label or series.labels[0][1] == label)
    )


def place(count: int = 4, **fields: object) -> None:
    request = spec(count=count, **fields)
    weigh(HopByteWeigher(), run(states_of(), request, HPCGroupFilter()), request)


def test_each_decision_is_counted_as_the_log_has_it(group, log):
    group(left=4)
    place(uuid=uuids.first)
    place(uuid=uuids.second)
    group(left=99)
    # A weigher alone refuses nothing.
    weigh(HopByteWeigher(), states_of(), spec(count=99, uuid=uuids.third))
    why_refused(states_of(), spec(count=99, uuid=uuids.fourth, extra_specs=wishing(require="leaf")))
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    wrong = spec(uuid=uuids.fifth, hints=as_hints(require="rack"))
    why_refused(states_of(), wrong)
    made = [record["decision"].replace(" ", "_") for record in read_decisions(log)]
    assert len(made) == 5
    assert counted(catalogue.DECISIONS) == {
        (answer, "active"): made.count(answer) for answer in set(made)
    }
    assert set(made) == set(catalogue.ANSWERS)


def test_in_shadow_mode_a_wrong_metrics_project_keeps_no_decision_out_of_the_log(
    group, log, two_pods, tmp_path
):
    nova_conf = tmp_path / "nova.conf"
    nova_conf.write_text("[hpc_sched]\nmode = shadow\nmetrics_project = maybe\n")
    CONF([], default_config_files=[str(nova_conf)])
    CONF.set_override("topology_file", str(two_pods), "hpc_sched")
    CONF.set_override("decision_log", str(log), "hpc_sched")
    group(left=4)
    place()
    assert [record["decision"] for record in read_decisions(log)] == ["planned"]
    assert counted(catalogue.DECISIONS) == {("planned", "shadow"): 1}


def test_durations_are_observed_once_for_each_decision(group):
    group(left=4)
    place()
    assert observed(catalogue.PLANNING) == observed(catalogue.REQUEST) == 1
    spent = {
        series.metric: number
        for series, number in counts.numbers().items()
        if series.part == counts.SUM
    }
    assert 0 < spent[catalogue.PLANNING] <= spent[catalogue.REQUEST] < 60


def test_projects_are_counted_only_if_an_option_says_so_and_bounded(group, monkeypatch):
    group(left=4)
    place(uuid=uuids.first)
    assert not any(series.metric is catalogue.PROJECT_DECISIONS for series in counts.numbers())
    CONF.set_override("metrics_project", True, "hpc_sched")
    place(uuid=uuids.second)
    assert counted(catalogue.PROJECT_DECISIONS) == {("planned", "active", "project"): 1}
    monkeypatch.setattr(decision_counts, "MAX_PROJECTS", 2)
    for number in range(9):
        decision_counts.add("planned", f"p{number}")
    shown = {labels[2]: number for labels, number in counted(catalogue.PROJECT_DECISIONS).items()}
    assert shown == {"project": 1, "p0": 1, "other": 8}
    # All of them count in the sum, whose series is there from the start.
    assert counted(catalogue.DECISIONS) == {("planned", "active"): 11}


def test_a_project_has_a_series_for_each_answer_from_its_first_decision_on():
    CONF.set_override("metrics_project", True, "hpc_sched")
    decision_counts.add("planned", "p1")
    found = {
        tuple(value for _, value in series.labels): number
        for series, number in counts.numbers().items()
        if series.metric is catalogue.PROJECT_DECISIONS
    }
    assert found == {
        ("planned", "active", "p1"): 1,
        ("no_plan", "active", "p1"): 0,
        ("refused", "active", "p1"): 0,
    }


def test_more_projects_than_are_shown_leave_room_for_all_other_series():
    CONF.set_override("metrics_project", True, "hpc_sched")
    for mode in catalogue.MODES:
        CONF.set_override("mode", mode, "hpc_sched")
        for number in range(2 * decision_counts.MAX_PROJECTS):
            decision_counts.add("refused", f"p{number}")
    assert len(counts.numbers()) < counts.MAX_SERIES


def test_plans_that_are_not_proven_best_are_counted(group):
    group(left=6)
    with installed(SteppedClock(100.0)):
        place(6, extra_specs=wishing(require="pod"))
    assert counted(catalogue.UNPROVEN) == {(): 1}


def test_exceptions_that_filters_and_weighers_catch_are_counted_by_their_class(group, monkeypatch):
    group(left=4)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(HPCGroupFilter, "keep", fail)
    monkeypatch.setattr(HopByteWeigher, "group_weights", fail)
    place()
    assert counted(catalogue.ERRORS) == {("HPCGroupFilter",): 1, ("HopByteWeigher",): 1}


def test_exceptions_in_shadow_mode_are_counted_by_the_class_that_met_them(group, monkeypatch):
    group(left=4)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    CONF.set_override("mode", "shadow", "hpc_sched")
    with monkeypatch.context() as patch:
        patch.setattr(HPCGroupFilter, "keep", fail)
        place(uuid=uuids.first)
    assert counted(catalogue.ERRORS) == {("HPCGroupFilter",): 1}
    monkeypatch.setattr(PlacementSession, "_read", fail)
    weigh(HopByteWeigher(), states_of(), spec(count=4, uuid=uuids.second))
    assert counted(catalogue.ERRORS) == {("HPCGroupFilter",): 1, ("HopByteWeigher",): 1}


def test_lines_that_the_decision_log_loses_are_counted(group, tmp_path):
    CONF.set_override("decision_log", str(tmp_path), "hpc_sched")
    group(left=4)
    place(uuid=uuids.first)
    place(uuid=uuids.second)
    assert counted(catalogue.LOST_LINES) == {(): 2}


def test_a_request_is_degraded_once_for_each_kind_of_source():
    problems = [
        "cell 3: no answer within 5 s",
        "cell 4: no answer within 5 s",
        "API database: gone",
        "API database, requests of VMs: gone",
        "Placement: HTTP 503",
        "more than in_flight_lookups=64 VMs in flight",
    ]
    for _ in range(2):
        with request_deadline.active(RequestDeadline()):
            assert request_deadline.not_yet_logged(problems[:2]) == problems[:2]
            assert request_deadline.not_yet_logged(problems[1:]) == problems[2:]
    expected = ("cell", "api_database", "placement", "other")
    assert counted(catalogue.DEGRADED) == {(kind,): 2 for kind in expected}


@pytest.mark.parametrize("mode", catalogue.MODES)
def test_an_outage_that_two_filters_meet_degrades_a_request_once(group, monkeypatch, caplog, mode):
    def fail(*_: object) -> None:
        raise exceptions.UnansweredError("no answer within 5 s")

    CONF.set_override("mode", mode, "hpc_sched")
    group(left=4)
    filters = HPCHomogeneityFilter(), HPCGroupFilter()
    for plugin in filters:
        monkeypatch.setattr(type(plugin), "keep", fail)
    states = states_of()
    assert run(states, spec(), *filters) == states
    assert counted(catalogue.DEGRADED) == {("api_database",): 1}
    [warning] = faults.said(caplog)
    assert warning.endswith("API database: no answer within 5 s")


def test_hosts_that_are_shunned_at_the_last_decision_are_shown(group, monkeypatch):
    def shun(*numbers: int) -> None:
        mask = np.isin(np.arange(32), numbers)
        found = {"failed builds (BuildFailureWeigher)": mask} if numbers else {}
        monkeypatch.setattr(shunned_hosts, "find", lambda *_: found)

    group(left=4)
    shun()
    place(uuid=uuids.zeroth)
    # Said by each worker: another one may have had some before.
    assert gauge(catalogue.SHUNNED, "failed builds (BuildFailureWeigher)") == 0
    shun(3, 4, 5)
    place(uuid=uuids.first)
    assert gauge(catalogue.SHUNNED, "failed builds (BuildFailureWeigher)") == 3
    shun()
    place(uuid=uuids.second)
    assert gauge(catalogue.SHUNNED, "failed builds (BuildFailureWeigher)") == 0


def test_hosts_that_were_shunned_are_shown_for_an_hour(turned_clock):
    why = "failed builds (BuildFailureWeigher)"
    counts.set_all(catalogue.SHUNNED, {why: 3})
    set_at = {series: at for series, (_, at) in counts.gauges().items()}
    turned_clock.turn(fabric.RECENT - 60)
    assert gauge(catalogue.SHUNNED, why) == 3
    turned_clock.turn(61)
    assert gauge(catalogue.SHUNNED, why) == 0
    # What another worker has found since counts: it was set later.
    after = {series: at for series, (_, at) in counts.gauges().items()}
    assert {series: after[series] for series in set_at} == set_at


def test_open_circuit_breakers_are_shown_by_the_kind_of_their_source(turned_clock):
    faults.forget()
    ended = threading.Event()
    try:
        for source in ("Placement", "Placement, all hosts", "API database", str(uuids.cell1)):
            with faults.timeout(1), pytest.raises(exceptions.UnansweredError):
                circuit_breaker.ask_one(source, lambda: turned_clock.wait_for_event(ended))
        found = {kind: gauge(catalogue.OPEN_BREAKERS, kind) for kind in catalogue.SOURCES}
        assert found == {"placement": 2, "api_database": 1, "cell": 1, "other": 0}
    finally:
        ended.set()
    turned_clock.turn(circuit_breaker.PAUSE)
    assert circuit_breaker.ask_one("API database", lambda: 1) == 1
    assert gauge(catalogue.OPEN_BREAKERS, "api_database") == 0
    faults.forget()


@pytest.mark.parametrize(
    ("max_stuck", "pause"),
    [(16, circuit_breaker.PAUSE), (1, circuit_breaker.LONG_PAUSE)],
    ids=["short pause", "long pause"],
)
def test_a_circuit_breaker_that_no_request_probes_is_shown_for_one_pause_more(
    monkeypatch, turned_clock, max_stuck, pause
):
    monkeypatch.setattr(circuit_breaker, "MAX_STUCK", max_stuck)
    faults.forget()
    ended = threading.Event()

    def shown_after(seconds: float) -> float:
        turned_clock.turn(seconds)
        return gauge(catalogue.OPEN_BREAKERS, "placement")

    def time_out() -> None:
        with faults.timeout(1), pytest.raises(exceptions.UnansweredError):
            circuit_breaker.ask_one("Placement", lambda: turned_clock.wait_for_event(ended))

    try:
        time_out()
        assert [shown_after(seconds) for seconds in (0, pause, pause - 0.5)] == [1, 1, 1]
        assert [shown_after(seconds) for seconds in (0.5, 6 * 3600)] == [0, 0]
        # A probe that hangs, on a cloud with few requests, is a timeout like the first.
        time_out()
        assert shown_after(0) == 1
    finally:
        ended.set()
        faults.forget()


def test_the_state_of_the_topology_is_shown(turned_clock, two_pods, group):
    two_pods.write_text(two_pods.read_text() + "\n")
    loaded_topology.reload()
    unix_time = turned_clock.unix_time()
    turned_clock.turn(60)
    assert gauge(catalogue.TOPOLOGY_GOOD) == 1
    assert gauge(catalogue.TOPOLOGY_HOSTS) == 32
    assert gauge(catalogue.TOPOLOGY_LEAVES) == 8
    read_at = gauge(catalogue.TOPOLOGY_READ)
    assert read_at == unix_time
    assert gauge(catalogue.TOPOLOGY_READ) == read_at
    good = two_pods.read_text()
    two_pods.write_text("switches: 7\n")
    loaded_topology.reload()
    assert gauge(catalogue.TOPOLOGY_GOOD) == 0
    assert gauge(catalogue.TOPOLOGY_HOSTS) == 32
    assert gauge(catalogue.TOPOLOGY_READ) == read_at
    two_pods.write_text(good)
    loaded_topology.reload()
    assert gauge(catalogue.TOPOLOGY_GOOD) == 1
    assert gauge(catalogue.TOPOLOGY_READ) == turned_clock.unix_time()
    add_island(two_pods)
    assert gauge(catalogue.TOPOLOGY_HOSTS) == 34


@pytest.mark.parametrize("seconds", [0, 60, 86400])
def test_the_interval_at_which_the_topology_is_read_is_shown(seconds):
    CONF.set_override("topology_reload_interval", seconds, "hpc_sched")
    assert gauge(catalogue.TOPOLOGY_INTERVAL) == seconds


def test_a_topology_that_is_missing_in_shadow_mode_is_not_good(monkeypatch):
    monkeypatch.setattr(loaded_topology, "_loaded", None)
    assert gauge(catalogue.TOPOLOGY_GOOD) == 0


def test_hosts_that_the_topology_does_not_name_are_counted(group):
    group(left=2)
    assert gauge(catalogue.TOPOLOGY_UNKNOWN) == 0
    request = spec(count=2)
    run([*states_of("pod1"), host_state("x1"), host_state("x2")], request, HPCGroupFilter())
    weigh(HopByteWeigher(), [*states_of("pod1"), host_state("x1"), host_state("x2")], request)
    assert gauge(catalogue.TOPOLOGY_UNKNOWN) == 2


def test_a_host_that_nova_no_longer_has_is_no_unknown_host_after_an_hour(
    group, turned_clock, caplog
):
    began = turned_clock.monotonic()

    def place_at(seconds: float, *hosts: str) -> float:
        turned_clock.turn(began + seconds - turned_clock.monotonic())
        request = spec(count=2, uuid=getattr(uuids, f"at{seconds}"))
        run([*states_of("pod1"), *map(host_state, hosts)], request, HPCGroupFilter())
        return gauge(catalogue.TOPOLOGY_UNKNOWN)

    group(left=2)
    assert place_at(0, "x1", "x2") == 2
    assert place_at(1800, "x1") == 2
    assert place_at(4000, "x1") == 1
    assert place_at(9000) == 0
    assert place_at(9001, "x2") == 1
    said = [record.getMessage() for record in caplog.records if "not in the" in record.getMessage()]
    assert len(said) == 1


def test_nothing_is_counted_and_no_thread_started_without_an_address(group):
    counts.stop()
    worker.reset()
    threads = set(threading.enumerate())
    group(left=4)
    place()
    assert counts.numbers() == {}
    new = {thread.name for thread in set(threading.enumerate()) - threads}
    assert "hpc_sched metrics" not in new


def test_the_reasons_that_are_always_shown_are_those_of_novas_weighers():
    reasons = {f"{why} ({name})" for name, why in shunned_hosts._REASONS.items()}
    assert set(catalogue.SHUNNED_BY_NOVA) == reasons
