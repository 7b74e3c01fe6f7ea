"""Shadow mode when something is wrong: the scheduler starts, and Nova places VMs as without us.

::

                      core
           /       |        |       \\
        leaf1    leaf2    leaf3    leaf4
        n1-n3    n4-n6    n7-n9    n10-n12
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nova.conf
import pytest
from oslo_utils import uuidutils

from hpc_sched import exceptions
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io import decision_log, loaded_topology
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.record import logged_entry
from hpc_sched.nova_glue.session import PlacementSession
from tests.functional import faults
from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import write_topology
from tests.functional.paired_schedulers import Asked, PairedSchedulers
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import read_decisions, read_landings, wishing
from tests.functional.tested_cloud import TestedCloud

CONF = nova.conf.CONF

LEAVES = {f"leaf{n + 1}": [f"n{3 * n + m}" for m in (1, 2, 3)] for n in range(4)}
HOSTS = [host for below in LEAVES.values() for host in below]


pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def pair(cloud: TestedCloud) -> Iterator[PairedSchedulers]:
    pair = PairedSchedulers(cloud, HOSTS)
    yield pair
    pair.end()


@pytest.fixture
def start(
    pair: PairedSchedulers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Path]]:
    """Start our scheduler as after a boot, with some options; return its decision log."""
    monkeypatch.setattr(loaded_topology, "_loaded", None)
    monkeypatch.setattr(loaded_topology, "_missing", loaded_topology._Missing())
    monkeypatch.setattr(loaded_topology, "_logged_options", set())
    faults.forget()

    def start_(**more: Any) -> Path:
        given = {
            "mode": "shadow",
            "topology_file": str(write_topology(tmp_path, LEAVES)),
            "topology_reload_interval": 0,
            "decision_log": str(tmp_path / "decisions"),
            **more,
        }
        pair.start_own(tmp_path, **given)
        return tmp_path / "decisions"

    yield start_
    faults.forget()


def asked(count: int, policy: str | None = None, **specs: object) -> Asked:
    vms = tuple(uuidutils.generate_uuid() for _ in range(count))
    group = uuidutils.generate_uuid() if policy else None
    return Asked(vms, 4, 2048, wishing(**specs), group, policy or "")


def check_same(pair: PairedSchedulers) -> None:
    """Check that requests of all kinds get the same from both; hpc_sched would refuse the last."""
    requests = [
        asked(2, "soft-anti-affinity"),
        asked(2, "anti-affinity", require="leaf", homogeneous="true"),
        asked(2, app_class="extreme"),
        asked(1, "anti-affinity", require="leaf", group_size=4),
    ]
    for number, one in enumerate(requests):
        stock, ours = pair.both(one, stock_first=number % 2 == 0)
        assert ours == stock, one
        assert stock.hosts


def test_without_a_fault_they_are_the_same_too_and_plans_are_made(pair, start):
    log = start()
    check_same(pair)
    assert [one["decision"] for one in read_decisions(log)] == [
        *("planned", "planned", "planned", "refused")
    ]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param("switches: [", "topology.yaml:", id="invalid"),
    ],
)
def test_a_topology_that_is_wrong_at_the_start_is_used_once_it_is_right(
    pair, start, tmp_path, caplog, content, error
):
    path = tmp_path / "other" / "topology.yaml"
    path.parent.mkdir()
    if content is not None:
        path.write_text(content)
    log = start(topology_file=str(path))
    [said] = [one for one in caplog.records if one.levelname == "ERROR"]
    assert error in said.getMessage()
    check_same(pair)
    decisions = read_decisions(log)
    assert {one["decision"] for one in decisions} == {"no plan"}
    assert all(one["reason"].startswith("no topology: ") for one in decisions)
    assert decisions[0]["scheduler"]["topology"] == loaded_topology.NO_TOPOLOGY
    [landing, *_] = read_landings(log)
    assert sum(landing["landed"]["hosts"].values()) == landing["left"] == 2
    write_topology(path.parent, LEAVES)
    assert loaded_topology.reload()
    stock, ours = pair.both(asked(2, "soft-affinity"))
    assert ours == stock
    assert read_decisions(log)[-1]["decision"] == "planned"


def test_a_command_that_fails_is_run_once_at_the_start(pair, start, tmp_path):
    counted = tmp_path / "runs"
    start(topology_file=None, topology_command=["sh", "-c", f"echo >> {counted}; exit 3"])
    assert counted.read_text() == "\n"
    check_same(pair)
    assert counted.read_text() == "\n"


def test_an_index_that_cannot_be_read_is_logged(pair, start, tmp_path, caplog):
    start(interference_file=str(tmp_path / "none.csv"))
    assert any("none.csv" in one.getMessage() for one in caplog.records if one.levelno >= 40)
    check_same(pair)


def test_a_scheduler_without_index_and_topology_starts(start, tmp_path):
    path = tmp_path / "wrong.conf"
    path.write_text("[hpc_sched]\ninterference_file = $undefined/index.csv\n")
    CONF(["--config-file", str(path)])
    try:
        start(topology_file=str(tmp_path / "none.yaml"))
        with pytest.raises(exceptions.TopologyError, match=r"none\.yaml"):
            loaded_topology.current()
    finally:
        CONF([], default_config_files=[])


def test_a_log_that_cannot_be_written_is_logged(pair, start, tmp_path, caplog):
    start(decision_log=str(tmp_path))
    check_same(pair)
    assert any("cannot be written" in text for text in faults.said(caplog))


@pytest.mark.parametrize(
    "lines",
    [
        "planning_timeout = long",
        "mdobp_classes = sync,all",
        "hop_byte_weight_multiplier = much",
        "topology_driver = nope",
        "topology_reload_interval = often",
        "topology_reload_interval = $undefined",
        "decision_log = $undefined/log",
        "interference_file = $undefined/index.csv",
        "processor_speeds = $undefined",
        "hop_byte_weight_multiplier = $undefined",
    ],
)
def test_options_with_invalid_values_are_logged(pair, start, tmp_path, caplog, lines):
    path = tmp_path / "wrong.conf"
    path.write_text(f"[hpc_sched]\n{lines}\n")
    CONF(["--config-file", str(path)])
    name = lines.partition(" ")[0]
    try:
        start()
        # The value of the file counts, not the one that the fixture has set.
        pair.claims.cloud.reset_flags(name, group="hpc_sched")
        loaded_topology.start()
        assert any(name in one.getMessage() or "nope" in one.getMessage() for one in caplog.records)
        check_same(pair)
    finally:
        CONF([], default_config_files=[])


def test_an_invalid_mode_stops_the_start(pair, start, tmp_path):
    path = tmp_path / "wrong.conf"
    path.write_text("[hpc_sched]\nmode = shade\n")
    CONF(["--config-file", str(path)])
    pair.claims.cloud.reset_flags("mode", group="hpc_sched")
    try:
        with pytest.raises(ValueError, match="mode"):
            loaded_topology.start()
    finally:
        CONF([], default_config_files=[])


def test_a_dead_api_database_is_no_fault_of_nova(pair, start):
    log = start()
    with faults.api_database_gone_for_us():
        check_same(pair)
    decisions = read_decisions(log)
    assert decisions
    assert any("API database" in (one.get("degraded") or ()) for one in decisions)


def test_a_database_that_hangs_takes_bounded_time(pair, start):
    start()
    with faults.api_database_hangs_for_us():
        check_same(pair)


def test_a_dead_placement_for_our_own_calls_is_no_fault_of_novas(pair, start, monkeypatch):
    start()
    with faults.look_ups_at(monkeypatch, faults.closed_port()):
        check_same(pair)


def broken(*_args: object, **_more: object) -> Any:
    raise RuntimeError("a bug")


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (GroupRequest, "decide"),
        (GroupRequest, "unconstrained"),
        (GroupPlacement, "__init__"),
        (GroupPlacement, "request"),
        (group_members, "read"),
        (PlacementSession, "_read"),
        (PlacementSession, "colocated"),
        (logged_entry, "of_decision"),
        (decision_log, "append"),
    ],
    ids=lambda part: part if isinstance(part, str) else part.__name__.rpartition(".")[2],
)
def test_a_bug_is_logged_and_nova_does_not_notice(pair, start, monkeypatch, where, name):
    log = start()
    with monkeypatch.context() as patch:
        patch.setattr(where, name, broken)
        check_same(pair)
    if name in ("decide", "__init__", "request", "read", "_read"):
        reasons = {json.dumps(one.get("reason")) for one in read_decisions(log)}
        assert any("RuntimeError: a bug" in reason for reason in reasons), reasons
    if name != "append":
        # Each landing has its decision.
        decided = {one["instance"] for one in read_decisions(log)}
        assert {one["instance"] for one in read_landings(log)} <= decided
