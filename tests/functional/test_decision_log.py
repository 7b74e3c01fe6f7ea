"""The decision log: one line per decision of any filter or weigher, and never an error."""

import json
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import nova.conf
import pytest
from nova import context
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.io import decision_log
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.record import logged_entry
from hpc_sched.weighers.bunch import BunchWeigher
from hpc_sched.weighers.hop_byte import HopByteWeigher
from hpc_sched.weighers.rack_capacity import RackCapacityWeigher
from tests.functional.pods import (
    FABRIC,
    NAMES,
    cpu,
    hosts_below,
    least,
    states_of,
)
from tests.functional.states import (
    FILTERS,
    queue_of,
    read_decisions,
    run,
    schedule,
    spec,
    weigh,
    why_refused,
    wishing,
)

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")


def test_the_operator_reads_the_switch_in_the_log_and_in_the_decision_log(group, caplog, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    caplog.set_level("INFO")
    group(left=4)
    states = states_of("leaf1", "leaf2")[:-1]
    states[0].vcpus_used = 16
    states[1].vcpus_used = 16
    request = spec(count=4, extra_specs=wishing(require="leaf"))
    assert not NAMES.search(why_refused(states, request))
    operator = "group of 4 needs one leaf: largest gang that fits under one leaf: 3 on leaf2"
    assert any(operator in found.getMessage() for found in caplog.records)
    [record] = read_decisions(tmp_path / "decisions")
    assert record["decision"] == "refused"
    assert operator in record["reason"]
    assert record["rejection"]["fits"] == {"level": "leaf", "vms": 3, "switch": "leaf2"}
    assert record["removed"] == {"no room for one VM": 2}
    assert record["candidates"]["leaf1"] == {"hosts": 4, "room": 2}


def test_members_that_break_their_own_wish_leave_no_group_that_fits(group, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    group({"n01": 1, "n05": 1}, left=1)
    why_refused(states_of("leaf1", "leaf2"), spec(extra_specs=wishing(require="leaf")))
    [record] = read_decisions(tmp_path / "decisions")
    assert "its members stand under 2 switches of level leaf" in record["reason"]
    assert record["rejection"]["fits"] is None
    # Which of two equal leaves comes first depends on the group's uuid.
    largest = record["rejection"]["largest"][0]
    assert (largest["level"], largest["vms"]) == ("leaf", 4)


def test_where_policy_and_room_leave_one_host_the_decision_is_logged_without_a_weigher(
    group, tmp_path
):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    group(left=1)
    run(states_of("leaf1")[:1], spec(), HPCGroupFilter())
    assert [record["decision"] for record in read_decisions(tmp_path / "decisions")] == ["planned"]


def test_a_decision_is_one_line_however_many_vms_the_request_has(group, tmp_path, caplog):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    caplog.set_level("INFO", "hpc_sched")
    queue = queue_of(6)
    group({"n01": 1}, queue=queue, left=6)
    request = spec(count=6, uuid=queue[0], extra_specs=wishing(require="pod"))
    schedule(states_of(), request, queue, HopByteWeigher(), [made() for made in FILTERS])
    [record] = read_decisions(tmp_path / "decisions")
    assert record.keys() == {
        *("time", "request_id", "instance", "instances", "group", "policy", "app_class"),
        *("wishes", "left", "awaiting", "project"),
        *("members", "candidates", "removed", "decision", "plan", "seconds", "times", "scheduler"),
        "input",
    }
    assert record["decision"] == "planned"
    assert (record["instance"], record["group"]) == (queue[0], uuids.group)
    assert record["instances"] == queue
    assert record["wishes"] == {
        "require": "pod",
        "prefer": None,
        "max_leaves": None,
        "group_size": None,
        "homogeneous": "prefer",
    }
    assert (record["left"], record["awaiting"], record["members"]) == (6, 6, {"leaf1": 1})
    assert record["candidates"] == {leaf: {"hosts": 4, "room": 4} for leaf in FABRIC.leaves}
    assert record["removed"]["outside the required switch, the leaves allowed or the island"] == 16
    assert sum(record["plan"]["leaves"].values()) == sum(record["plan"]["hosts"].values()) == 6
    assert record["plan"]["hop_bytes"] == record["plan"]["least"]
    assert 0 < record["seconds"] < 60
    [line] = [found.getMessage() for found in caplog.records if "Hop-Byte" in found.getMessage()]
    assert f"group {uuids.group}, instance {queue[0]}: 6 awaiting, 1 members; planned 6" in line


@pytest.mark.parametrize("weigher_class", [BunchWeigher, RackCapacityWeigher, HopByteWeigher])
def test_a_decision_is_logged_with_any_weigher_behind_the_group_filter_alone(
    group, tmp_path, caplog, weigher_class
):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    caplog.set_level("INFO", "hpc_sched")
    queue = queue_of(6)
    group(queue=queue, left=6)
    request = spec(count=6, uuid=queue[0])
    placed, _ = schedule(states_of(), request, queue, weigher_class(), [HPCGroupFilter()])
    assert len(set(placed)) == 6
    [record] = read_decisions(tmp_path / "decisions")
    assert (record["decision"], record["left"]) == ("planned", 6)
    assert sum(record["plan"]["hosts"].values()) == 6
    assert len([found for found in caplog.records if "planned 6" in found.getMessage()]) == 1


def test_a_move_that_passes_without_a_plan_is_logged_as_one(group, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    group({"n01": 1}, queue=[uuids.instance], left=1, is_move=True)
    states, request = states_of("leaf2", vcpus_used=16), spec()
    assert run(states, request, HPCGroupFilter()) == states
    assert len(read_decisions(tmp_path / "decisions")) == 1
    weigh(HopByteWeigher(), states, request)
    [record] = read_decisions(tmp_path / "decisions")
    assert record["decision"] == "no plan"
    assert "plan" not in record


def test_a_wish_that_costs_hop_bytes_shows_against_the_least_possible(group, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    # Three hosts a leaf in pod1, and the whole group in two leaves of pod2 if it were of one type.
    group(left=8)
    states = states_of("pod1", cpu_info=cpu("Icelake", cores=16))
    states = [state for state in states if state.host not in {"n04", "n08", "n12", "n16"}]
    states += states_of("pod2", cpu_info=cpu("Broadwell"))
    request = spec(count=8, group_policy="anti-affinity")
    run(states, request, *(made() for made in FILTERS))
    [record] = read_decisions(tmp_path / "decisions")
    assert record["plan"]["least"] == least(dict.fromkeys(hosts_below("pod2"), 1), 8)
    assert record["plan"]["hop_bytes"] > record["plan"]["least"]
    assert record["removed"]["processor type other than Intel Icelake 2x16x2"] == 16


def test_the_refusal_of_wishes_without_a_group_is_a_decision_too(monkeypatch, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    monkeypatch.setattr(group_members, "is_placed", lambda _uuid: False)
    why_refused(states_of(), spec(group=None, extra_specs=wishing(max_leaves=1)))
    [record] = read_decisions(tmp_path / "decisions")
    assert record.keys() == {
        *("time", "request_id", "instance", "group", "project"),
        *("decision", "reason", "seconds", "times", "scheduler"),
    }
    assert record["decision"] == "refused"
    assert "hpc:max_leaves" in record["reason"]


def test_a_record_names_the_api_request_by_the_context_that_the_spec_came_with(group, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    group(left=1)
    request = spec()
    request._context = context.RequestContext("user", "project", request_id="req-of-the-spec")
    context.RequestContext("user", "project", request_id="req-of-the-thread")
    weigh(HopByteWeigher(), run(states_of("leaf1"), request, HPCGroupFilter()), request)
    other = spec()
    weigh(HopByteWeigher(), run(states_of("leaf1"), other, HPCGroupFilter()), other)
    requests = [found["request_id"] for found in read_decisions(tmp_path / "decisions")]
    assert requests == ["req-of-the-spec", "req-of-the-thread"]


def test_a_record_names_no_more_vms_than_a_line_can_hold(group, tmp_path):
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    queue = queue_of(logged_entry.MAX_INSTANCES + 1)
    group(queue=queue, left=1)
    request = spec(uuid=queue[0])
    weigh(HopByteWeigher(), run(states_of("leaf1"), request, HPCGroupFilter()), request)
    [record] = read_decisions(tmp_path / "decisions")
    assert record["instances"] == queue[:-1]


def test_lines_of_many_threads_never_mix_and_none_is_lost_when_the_file_is_rotated(tmp_path):
    path, rotated = tmp_path / "decisions", tmp_path / "decisions.1"
    start, halfway = threading.Barrier(8), threading.Event()

    def write(thread: int) -> None:
        start.wait()
        for number in range(100):
            # Longer than any buffer.
            decision_log.append(
                str(path), {"thread": thread, "number": number, "text": "x" * 20000}
            )
            if thread == 0 and number == 50:
                path.rename(rotated)
                halfway.set()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert halfway.is_set()
    first, second = read_decisions(rotated), read_decisions(path)
    assert first
    assert second
    found = sorted((record["thread"], record["number"]) for record in first + second)
    assert found == [(thread, number) for thread in range(8) for number in range(100)]
    for thread in range(8):
        turns = [record["number"] for record in first + second if record["thread"] == thread]
        assert turns == sorted(turns)


@pytest.mark.parametrize(("umask", "mode"), [(0, 0o640), (0o022, 0o640), (0o077, 0o600)])
def test_a_new_log_is_read_by_its_user_and_group_alone(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        decision_log.append(str(tmp_path / "decisions"), {"instance": "uuid"})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "decisions").stat().st_mode) == mode


def test_a_log_that_exists_keeps_the_mode_that_its_rotation_gave_it(tmp_path):
    path = tmp_path / "decisions"
    path.touch(mode=0o600)
    decision_log.append(str(path), {"instance": "uuid"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_whatever_a_record_says_it_is_one_line_of_ascii(tmp_path):
    said = {"reason": "a\nb\r\x0b\x1b[2J\x00\x85\u2028\u2029\u202e\ud800", "ключ\n": ["\n"]}
    decision_log.append(str(tmp_path / "decisions"), said)
    line = (tmp_path / "decisions").read_bytes()
    assert line.endswith(b"\n")
    assert line[:-1].decode("ascii").isprintable()
    assert json.loads(line) == said


def test_what_json_cannot_say_is_a_warning_and_no_error(tmp_path, caplog):
    decision_log.append(str(tmp_path / "decisions"), {"cost": float("inf")})
    decision_log.append(str(tmp_path / "others"), {"cost": object()})
    assert [found.levelname for found in caplog.records] == ["WARNING", "WARNING"]
