"""Requests whose planning takes too long: they end in time, keep their guarantees and say so."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import nova.conf
import pytest
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.core.plan.exact import nodes
from hpc_sched.core.plan.exact.bound import leaf_bound
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.snapshot.log import record_text
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.pods import FABRIC, states_of, two_types
from tests.functional.states import (
    FILTERS,
    host_state,
    ours,
    queue_of,
    read_decisions,
    schedule,
    spec,
    why_refused,
    wishing,
)
from tests.turned_clock import SteppedClock, TurnedClock, installed

CONF = nova.conf.CONF


@pytest.fixture
def log(two_pods: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Path:
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    caplog.set_level("INFO", "hpc_sched")
    return tmp_path / "decisions"


@pytest.fixture
def late() -> Iterator[None]:
    """Let every look at the clock take longer than the default of the option."""
    with installed(SteppedClock(100.0)):
        yield


def place(group: Callable[..., None], count: int, losing=(), states=None, **constraints) -> list:
    """Place a group by all filters and HopByteWeigher; return its hosts."""
    queue = queue_of(count)
    group(queue=queue, left=count)
    request = spec(count=count, uuid=queue[0], extra_specs=wishing(**constraints))
    chain = [made() for made in FILTERS]
    placed, _ = schedule(states or states_of(), request, queue, HopByteWeigher(), chain, losing)
    return placed


@pytest.mark.usefixtures("late")
def test_a_plan_that_is_not_proven_best_is_used_logged_and_explained(group, log, caplog):
    placed = place(group, 6, require="pod")
    assert len(set(placed)) == 6
    assert len({FABRIC.ancestors(host)[1] for host in placed}) == 1
    [record] = read_decisions(log)
    assert (record["decision"], record["proven"]) == ("planned", False)
    assert record["plan"]["least"] is None
    assert "; not proven best" in record_text.text_of(record)
    [line] = [said for said in ours(caplog) if said.startswith("group ")]
    assert ", not proven best, least possible unknown; " in line
    [warning] = [said.getMessage() for said in caplog.records if said.levelname == "WARNING"]
    assert f"The plan for instance {uuids.vm000} is not proven best: planning took " in warning
    assert "planning_timeout is 10 s; up to 6 VMs beside 0 members on 32 hosts" in warning
    assert warning.endswith(", require=pod")


@pytest.mark.usefixtures("late")
def test_the_most_leaves_and_one_processor_type_are_kept_without_time(group, log):
    states = two_types(["leaf1", "leaf2"], ["leaf3", "leaf4", "pod2"])
    placed = place(group, 8, states=states, max_leaves=2, homogeneous="true")
    assert {FABRIC.leaf_of(host) for host in placed} == {"leaf1", "leaf2"}
    assert read_decisions(log)[0]["proven"] is False


def refusal_of(group: Callable[..., None], **constraints: object) -> str:
    group(left=5)
    return why_refused(states_of(), spec(count=5, extra_specs=wishing(**constraints)))


def test_a_refusal_is_the_same_with_and_without_time(group, log, request):
    asked = [{"require": "leaf"}, {"max_leaves": 1}]
    before = [refusal_of(group, **constraints) for constraints in asked]
    request.getfixturevalue("late")
    assert [refusal_of(group, **constraints) for constraints in asked] == before
    assert all("proven" not in record for record in read_decisions(log))


@pytest.mark.usefixtures("late")
def test_zero_is_no_limit(group, log, caplog):
    CONF.set_override("planning_timeout", 0, "hpc_sched")
    place(group, 6, require="pod")
    [record] = read_decisions(log)
    assert "proven" not in record
    assert record["plan"]["hop_bytes"] == record["plan"]["least"]
    assert not any("not proven" in said for said in ours(caplog))


def test_a_plan_that_is_not_proven_in_its_steps_is_logged_without_a_warning(
    group, log, caplog, monkeypatch
):
    """No price of a leaf leads to three leaves of 3, 1 | 2, 1, 1 and 1 hosts."""
    monkeypatch.setattr(leaf_bound, "_SUMS", 0)
    monkeypatch.setattr(leaf_bound, "_SUMS_TO_LIST", 0)
    hosts = ["n01", "n02", "n03", "n05", "n17", "n18", "n21", "n25", "n29"]
    placed = place(group, 5, states=[host_state(host) for host in hosts], max_leaves=3)
    assert 2 <= len({FABRIC.leaf_of(host) for host in placed}) <= 3
    assert read_decisions(log)[0]["proven"] is False
    assert not [said for said in caplog.records if said.levelname == "WARNING"]


# How long the planner joins two tables in the tests of a slow one, in s.
JOIN = 0.7
# VMs that the hosts of a pod take. No leaf is like another: each has a table of its own.
FREE = [[2, 1, 1, 1], [2, 2, 1, 1], [3, 1, 1, 1], [3, 2, 1, 1]]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, turned_clock: TurnedClock) -> list[float]:
    """Let the planner take a long time to join two tables; return when it began to."""
    began: list[float] = []
    exact = nodes.maxplus

    def maxplus(*arguments):
        began.append(turned_clock.monotonic())
        turned_clock.turn(JOIN)
        return exact(*arguments)

    monkeypatch.setattr(nodes, "maxplus", maxplus)
    return began


@pytest.mark.usefixtures("log")
def test_a_request_with_a_slow_planner_ends_soon_after_its_limit(group, slow, caplog, turned_clock):
    """Each lost claim lets the rest of the group be planned again, all within one limit."""
    free = dict(zip(FABRIC.hosts, itertools.chain(*FREE, *FREE), strict=True))
    alone = plan(topology=FABRIC, capacity=free, members={}, count=12, require="pod")
    assert isinstance(alone, Plan)
    whole = len(slow) * JOIN
    slow.clear()
    CONF.set_override("planning_timeout", 0.6, "hpc_sched")
    states = [host_state(host, vcpus_used=16 - 4 * vms) for host, vms in free.items()]
    queue = queue_of(12)
    group(queue=queue, left=12)
    request = spec(
        count=12,
        uuid=queue[0],
        vcpus=4,
        group_policy="soft-affinity",
        extra_specs=wishing(require="pod"),
    )
    chain = [made() for made in FILTERS]
    began = turned_clock.monotonic()
    placed, _ = schedule(states, request, queue, HopByteWeigher(), chain, losing=(0, 1, 2, 3))
    lasted = turned_clock.monotonic() - began
    assert len(placed) == 12
    assert len({FABRIC.ancestors(host)[1] for host in placed}) == 1
    # The join under way ends after the limit, and no other begins.
    assert 1 <= len(slow) <= 2
    assert lasted < 0.6 + JOIN < whole
    assert len([said for said in ours(caplog) if "is not proven best" in said]) == 1


@pytest.mark.usefixtures("log")
def test_a_fast_planner_is_proven_best_within_the_default(group, caplog):
    place(group, 6, losing=(0, 1), require="pod")
    assert not any("not proven" in said for said in ours(caplog))


@pytest.mark.usefixtures("log", "late")
def test_a_group_without_a_plan_is_ordered_without_time(group):
    """A move is placed without a plan: the order is that of the most that fits."""
    group({"n01": 1}, queue=[uuids.instance], left=1, is_move=True)
    request, states = spec(), states_of("leaf1", "leaf2", vcpus_used=16)
    chain = [HPCGroupFilter()]
    queue = [uuids.instance]
    placed, _ = schedule(states, request, queue, HopByteWeigher(), chain)
    assert len(placed) == 1
