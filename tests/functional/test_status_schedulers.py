"""The check of hpc-sched-status on nova-schedulers: which are up, and how each of them decides."""

import datetime
import gzip
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nova.conf
import pytest
from nova import context as nova_context
from nova import objects
from oslo_upgradecheck.upgradecheck import Code
from oslo_utils import timeutils

from hpc_sched.core.logged.decision_summary import LoggedScheduler
from hpc_sched.nova_glue.io import loaded_topology, scheduler_digests
from hpc_sched.status import upgrade_check
from hpc_sched.status.checks import schedulers
from hpc_sched.status.inspected_cloud import InspectedCloud
from tests.functional.cloud_kinds import STATUS
from tests.functional.shared_clouds import cloud_mark
from tests.functional.statements import collected
from tests.functional.tested_cloud import TestedCloud

CONF = nova.conf.CONF

pytestmark = cloud_mark(STATUS)


@pytest.fixture(autouse=True)
def own(cloud: TestedCloud) -> Iterator[LoggedScheduler]:
    """Return the scheduler of this process as its records have it."""
    # Nova's fixture starts the service on a host of its own.
    before = CONF.host
    CONF.set_override("host", cloud.scheduler.host)
    loaded_topology.reload()
    yield scheduler_digests.record(loaded_topology.current().digest)
    CONF.set_override("host", before)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """Return the path of the decision log, which is not there yet."""
    CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
    yield tmp_path / "decisions"
    CONF.clear_override("decision_log", "hpc_sched")


@pytest.fixture
def up(cloud: TestedCloud) -> Iterator[Callable[..., None]]:
    """Add nova-schedulers to the table of services for one test."""
    made = []

    def up_(host: str, *, seconds_ago: float = 0, binary: str = "nova-scheduler") -> None:
        context = nova_context.get_admin_context()
        service = objects.Service(context, host=host, binary=binary, topic="t", report_count=1)
        service.create()
        service.last_seen_up = timeutils.utcnow() - datetime.timedelta(seconds=seconds_ago)
        service.save()
        made.append(service)

    yield up_
    for service in made:
        service.destroy()


def line(scheduler: LoggedScheduler | None, minute: int = 0, **more: Any) -> str:
    """Return a line of a decision log, written at a minute."""
    record = {"time": f"2026-05-04T08:{minute:02}:00", "decision": "planned", **more}
    if scheduler is not None:
        record["scheduler"] = asdict(scheduler)
    return f"{json.dumps(record)}\n"


def judged() -> tuple[Code, str]:
    found = upgrade_check.judge(schedulers.check, InspectedCloud())
    return found.code, found.details or ""


def test_one_scheduler_needs_no_comparison(own):
    code, text = judged()
    assert code == Code.SUCCESS
    assert f"1 nova-scheduler is up: {own.host}. Here: {own.text()}." in text


def test_several_without_a_decision_log_cannot_be_compared(own, up):
    up("ctl2")
    code, text = judged()
    assert code == Code.WARNING
    assert f"2 nova-schedulers are up: ctl2, {own.host}, and without decision_log" in text
    assert own.text() in text
    assert "hpc-sched check schedulers" in text


def test_schedulers_that_decide_alike_pass(own, up, log):
    up("ctl2")
    log.write_text(line(own) + line(replace(own, host="ctl2")) + line(own, 1))
    code, text = judged()
    assert code == Code.SUCCESS
    assert f"2 nova-schedulers seen in {log}, none decides otherwise than this nova.conf" in text


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("version", "Version of hpc_sched differs"),
        ("options", "Options differ"),
        ("topology", "Topology differs"),
        ("interference", "Interference index differs"),
    ],
)
def test_each_part_in_which_one_differs_is_a_warning(own, up, log, part, text):
    up("ctl2")
    other = replace(own, host="ctl2", **{part: "0000beef"})
    log.write_text(line(own) + line(other))
    code, found = judged()
    assert code == Code.WARNING
    here = getattr(own, part) or "none"
    assert f"{text}: {here} (this nova.conf, {own.host}); 0000beef (ctl2)." in found
    assert "Newest records: ctl2 2026-05-04T08:00:00" in found
    assert "hpc-sched-status scheduler show" in found


def test_a_scheduler_in_another_mode_is_a_warning(own, up, log):
    up("ctl2")
    log.write_text(line(own) + line(replace(own, host="ctl2"), mode="shadow"))
    code, found = judged()
    assert code == Code.WARNING
    assert f"Mode differs: active (this nova.conf, {own.host}); shadow (ctl2)." in found


def test_a_scheduler_that_was_not_restarted_since_nova_conf_changed_is_seen(own, log):
    log.write_text(line(own))
    CONF.set_override("planning_timeout", 77.0, "hpc_sched")
    try:
        code, text = judged()
    finally:
        CONF.clear_override("planning_timeout", "hpc_sched")
    assert code == Code.WARNING
    assert f"{own.options} ({own.host})" in text


def test_the_newest_record_of_a_scheduler_counts(own, log):
    old = replace(own, options="0000beef")
    log.write_text(line(old, 1) + line(own, 2) + line(old, 0))
    assert judged()[0] == Code.SUCCESS


def test_a_scheduler_without_a_record_in_a_log_of_several_is_a_warning(own, up, log):
    up("ctl2")
    up("ctl3")
    seen = line(own) + line(replace(own, host="ctl2"))
    log.write_text(seen + line(None, 1, instance="of an older version"))
    code, text = judged()
    assert code == Code.WARNING
    assert f"not seen in {log}: ctl3: without the plugin, with a version of it before" in text


def test_a_log_of_one_controller_passes_and_says_how_to_compare_the_others(own, up, log):
    up("ctl2")
    log.write_text(line(own))
    code, text = judged()
    assert code == Code.SUCCESS
    assert f"1 nova-scheduler seen in {log}, none decides otherwise than this nova.conf" in text
    assert f"not seen in {log}: ctl2, as where each controller has a log of its own" in text
    assert "with hpc-sched check schedulers" in text


def test_a_log_of_one_controller_that_decides_otherwise_is_a_warning(own, up, log):
    up("ctl2")
    log.write_text(line(replace(own, options="0000beef")))
    code, text = judged()
    assert code == Code.WARNING
    assert f"0000beef ({own.host})" in text


def test_a_log_that_is_not_there_yet_has_seen_none(own, up, log):
    assert judged()[0] == Code.SUCCESS
    up("ctl2")
    code, text = judged()
    assert code == Code.SUCCESS
    assert f"not seen in {log}: ctl2, {own.host}" in text


def test_records_in_a_compressed_file_are_not_seen_and_the_text_says_so(own, up, log):
    up("ctl2")
    packed = line(replace(own, host="ctl2", options="0000beef")).encode()
    log.with_name("decisions.1.gz").write_bytes(gzip.compress(packed))
    log.write_text(line(own))
    code, text = judged()
    assert code == Code.SUCCESS
    assert f"not seen in {log}: ctl2, " in text
    assert "in a compressed file, which is not read" in text


def test_texts_of_the_log_are_on_one_line_without_control_codes(own, up, log):
    up("ctl2")
    evil = replace(own, host="ctl2", options="\x1b[2Jevil\nAll fine. | x")
    log.write_text(line(own) + line(evil, time="\x1b[2Jnow\nAll fine."))
    code, text = judged()
    assert code == Code.WARNING
    assert "\\x1b[2Jevil\\nAll fine. | x (ctl2)." in text
    assert "\x1b" not in text
    assert not [each for each in text.splitlines() if each.startswith("All fine")]


def test_a_scheduler_that_is_down_and_other_services_are_no_matter(own, up, log):
    up("ctl2", seconds_ago=CONF.service_down_time + 60)
    up("ctl3", binary="nova-conductor")
    log.write_text(line(own) + line(replace(own, host="ctl2", options="0000beef")))
    code, text = judged()
    assert code == Code.SUCCESS
    assert "ctl" not in text.replace(str(log), "")


def test_the_log_before_a_rotation_is_read_too(own, up, log):
    up("ctl2")
    log.with_name("decisions.1").write_text(line(replace(own, host="ctl2", options="0000beef")))
    log.write_text(line(own, 1))
    assert "0000beef (ctl2)" in judged()[1]


def test_no_more_than_the_end_of_the_log_is_read(own, up, log, monkeypatch):
    up("ctl2")
    log.write_text(line(replace(own, host="ctl2", options="0000beef")) + line(own) * 20)
    monkeypatch.setattr(schedulers, "MAX_BYTES", 10 * len(line(own)))
    assert "not seen in" in judged()[1]


def test_a_pipe_is_not_waited_for_and_a_folder_is_no_log(log):
    os.mkfifo(log)
    code, text = judged()
    assert code == Code.WARNING
    expected = f"{log}: cannot be read: expected a regular file. Schedulers are not compared."
    assert expected in text


def test_a_topology_that_cannot_be_read_leaves_the_comparison_of_the_others(own, up, log, tmp_path):
    up("ctl2")
    log.write_text(line(own) + line(replace(own, host="ctl2", options="0000beef")))
    before = CONF.hpc_sched.topology_file
    CONF.set_override("topology_file", str(tmp_path / "none.yaml"), "hpc_sched")
    try:
        code, text = judged()
    finally:
        CONF.set_override("topology_file", before, "hpc_sched")
    assert code == Code.WARNING
    assert "No scheduler is compared with this nova.conf: " in text
    assert f"0000beef (ctl2); {own.options} ({own.host})" in text


def test_the_services_are_one_query(log):
    with collected() as statements:
        judged()
    assert len(statements) == 1
    assert "FROM services" in statements[0].text


def test_the_texts_of_a_scheduler_are_those_of_its_digests(own, capsys):
    assert schedulers.show() == 0
    output = capsys.readouterr()
    first, *lines = output.out.splitlines()
    assert first == own.text().replace(f" on {own.host}", "")
    assert output.err == f"nova-scheduler on {own.host}\n"
    assert "[hpc_sched] planning_timeout = 10.0" in lines
    assert 'host "n4" below "leaf2"' in lines


def test_two_controllers_that_decide_alike_have_equal_outputs(own, capsys):
    outputs = []
    for host in ("ctl1", "ctl2"):
        CONF.set_override("host", host)
        assert schedulers.show() == 0
        outputs.append(capsys.readouterr())
    CONF.set_override("host", own.host)
    assert outputs[0].out == outputs[1].out
    assert "ctl2" in outputs[1].err


def test_texts_that_cannot_be_had_are_an_error(capsys):
    before = CONF.hpc_sched.topology_file
    CONF.set_override("topology_file", "/nowhere/t.yaml", "hpc_sched")
    try:
        assert schedulers.show() == 255
    finally:
        CONF.set_override("topology_file", before, "hpc_sched")
    assert "/nowhere/t.yaml" in capsys.readouterr().err
