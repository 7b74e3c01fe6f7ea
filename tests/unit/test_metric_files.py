"""What workers write in their files is what prometheus_client's collector reads of them."""

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from hpc_sched import exceptions
from hpc_sched.metrics import catalogue, counts, value_files
from hpc_sched.metrics.value_files import Slot
from tests.scraped import samples_in


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    counts.start()
    yield
    counts.stop()


def scraped(folder: Path) -> dict[tuple[str, str], float]:
    """Return the samples by name and label's value."""
    registry = CollectorRegistry()
    registry.register(value_files.collector(folder))
    found = samples_in(generate_latest(registry).decode())
    return {
        (name, ",".join(value for _, value in sorted(labels))): value
        for (name, labels), value in found.items()
    }


def worker(folder: Path, **answers: int) -> Slot:
    """Return the slot of a worker that has decided so often; counted from zero."""
    counts.start()
    slot = Slot.claim(folder)
    for answer, number in answers.items():
        for _ in range(number):
            counts.count(catalogue.DECISIONS, answer=answer, mode="active")
    slot.write()
    return slot


DECIDED = "hpc_sched_decisions_total"


def test_counts_of_workers_are_added_up(tmp_path: Path):
    first, second = worker(tmp_path, planned=2), worker(tmp_path, planned=3, refused=1)
    found = scraped(tmp_path)
    assert found[DECIDED, "planned,active"] == 5
    assert found[DECIDED, "refused,active"] == 1
    assert found[DECIDED, "no_plan,active"] == 0
    first.close()
    second.close()


def test_durations_fall_into_buckets_up_to_and_including_their_bounds(tmp_path: Path):
    for seconds in (0.0005, 0.001, 0.0011, 4.0, 99.0):
        counts.observe(catalogue.PLANNING, seconds)
    slot = Slot.claim(tmp_path)
    slot.write()
    found = scraped(tmp_path)
    name = "hpc_sched_planning_seconds"
    assert [found[f"{name}_bucket", le] for le in ("0.001", "0.0025", "2.5", "5.0", "30.0")] == [
        *(2, 3, 3, 4, 4)
    ]
    assert found[f"{name}_bucket", "+Inf"] == found[f"{name}_count", ""] == 5
    assert found[f"{name}_sum", ""] == pytest.approx(103.0026)
    slot.close()


def test_a_worker_goes_on_from_the_counts_of_the_dead_one_whose_slot_it_takes(tmp_path: Path):
    worker(tmp_path, planned=2).close()
    assert scraped(tmp_path)[DECIDED, "planned,active"] == 2
    again = worker(tmp_path, planned=1)
    assert scraped(tmp_path)[DECIDED, "planned,active"] == 3
    again.close()
    assert {path.name for path in tmp_path.glob("slot-*")} == {"slot-0.lock"}


def test_gauges_of_a_dead_worker_vanish_and_its_counts_stay(tmp_path: Path):
    counts.set_to(catalogue.WORKERS, 1)
    first = Slot.claim(tmp_path)
    first.write()
    second = Slot.claim(tmp_path)
    second.write()
    assert scraped(tmp_path)["hpc_sched_workers", ""] == 2
    first.close()
    found = scraped(tmp_path)
    assert found["hpc_sched_workers", ""] == 1
    assert found[DECIDED, "planned,active"] == 0
    second.close()


def test_the_gauge_of_a_decision_is_that_of_the_last_one_of_any_worker(tmp_path: Path):
    slots = []
    for failed in ({"failed builds": 3}, {"failed builds": 1, "cells": 2}):
        counts.start()
        counts.set_all(catalogue.SHUNNED, failed)
        slots.append(Slot.claim(tmp_path))
        slots[-1].write()
    assert scraped(tmp_path)["hpc_sched_shunned_hosts", "failed builds"] == 1
    counts.set_all(catalogue.SHUNNED, {})
    slots[1].write()
    found = scraped(tmp_path)
    assert found["hpc_sched_shunned_hosts", "failed builds"] == 0
    assert found["hpc_sched_shunned_hosts", "cells"] == 0
    for slot in slots:
        slot.close()


def test_a_worker_that_is_killed_gives_its_slot_back(tmp_path: Path):
    code = (
        "import os, pathlib, sys\n"
        "from hpc_sched.metrics import catalogue, counts\n"
        "from hpc_sched.metrics.value_files import Slot\n"
        "counts.start()\n"
        "counts.count(catalogue.LOST_LINES)\n"
        "Slot.claim(pathlib.Path(sys.argv[1])).write()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    slot = worker(tmp_path)
    assert scraped(tmp_path)["hpc_sched_lost_decision_lines_total", ""] == 1
    assert slot._number == 0
    slot.close()


def test_the_start_removes_what_an_earlier_one_left_but_not_what_a_worker_has(tmp_path: Path):
    folder = tmp_path / "a" / "b"
    value_files.prepare(folder)
    dead, living = worker(folder, planned=1), worker(folder, planned=2)
    dead.close()
    value_files.prepare(folder)
    assert scraped(folder)[DECIDED, "planned,active"] == 2
    living.close()
    value_files.prepare(folder)
    assert list(folder.glob("*.db*")) == []


@pytest.mark.parametrize("writable", ["metrics", "metrics/here"])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, writable: str):
    folder = tmp_path / "metrics" / "here"
    folder.mkdir(parents=True)
    (tmp_path / writable).chmod(0o777)
    with pytest.raises(exceptions.MetricsError, match=f"{writable}: .*others cannot write"):
        value_files.prepare(folder)


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path):
    target = tmp_path / "target"
    target.write_text("untouched")
    folder = tmp_path / "metrics"
    folder.mkdir()
    (folder / "slot-0.lock").symlink_to(target)
    with pytest.raises(OSError, match="slot-0"):
        Slot.claim(folder)
    (folder / "slot-0.lock").unlink()
    (folder / "counter_0.db.new").symlink_to(target)
    slot = Slot.claim(folder)
    with pytest.raises(OSError, match="counter_0"):
        slot.write()
    assert target.read_text() == "untouched"
    slot.close()


KNOWN = json.dumps([catalogue.ERRORS.name, "n", {"plugin": "A"}, ""]).encode()
# A file with an entry, and a length after which reading goes back to that length.
ENDLESS = value_files._file([value_files._entry(KNOWN, 1.0, 0.0), struct.pack("i", -28)])
DAMAGED = {
    "endless": ENDLESS,
    "too many": value_files._file(
        value_files._entry(KNOWN.replace(b'"A"', b'"%d"' % n), 1.0, 0.0)
        for n in range(counts.MAX_SERIES + 1)
    ),
    **{
        key: value_files._file([value_files._entry(key.encode(), 1.0, 0.0)])
        for key in (
            "text",
            "[]",
            '["hpc_sched_project_decisions", "n", {"answer": "planned"}, ""]',
            '["hpc_sched_plugin_errors", "n", {"plugin": 1}, ""]',
            '["hpc_sched_plugin_errors", "n", ["plugin"], ""]',
            '[["hpc_sched_plugin_errors"], "n", {"plugin": "a"}, ""]',
        )
    },
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_counts_that_no_worker_has_written_are_not_gone_on_from(tmp_path: Path, content: bytes):
    damaged, new = tmp_path / "damaged", tmp_path / "new"
    for folder in (damaged, new):
        folder.mkdir()
    (damaged / "counter_0.db").write_bytes(content)
    slots = [worker(folder, planned=1) for folder in (damaged, new)]
    assert slots[0].values_before(catalogue.PROJECT_DECISIONS, "project") == set()
    assert scraped(damaged) == scraped(new)
    for slot in slots:
        slot.close()


@pytest.mark.parametrize("content", [b"", b"\x00", bytes(range(64)), b"\xff" * 4096], ids=len)
def test_a_damaged_file_is_replaced_by_the_next_worker(tmp_path: Path, content: bytes):
    (tmp_path / "counter_0.db").write_bytes(content)
    slot = worker(tmp_path, planned=1)
    assert scraped(tmp_path)[DECIDED, "planned,active"] == 1
    slot.close()


def test_series_are_bounded_whatever_labels_are_counted(tmp_path: Path):
    for _ in range(2):
        for number in range(3 * counts.MAX_SERIES):
            counts.count(catalogue.ERRORS, plugin=f"Filter{number}")
    assert len(counts.numbers()) == counts.MAX_SERIES
    # Those that are there are counted on.
    assert counts.numbers()[counts.Series(catalogue.ERRORS, (("plugin", "Filter0"),))] == 2


def test_series_of_one_worker_after_the_other_are_bounded_together(tmp_path: Path):
    """The counts that all have in common go on, whatever else each of them counts."""
    for first in range(0, 4 * counts.MAX_SERIES, counts.MAX_SERIES // 2):
        counts.stop()  # Another process, which knows no series of the one before.
        counts.start()
        slot = Slot.claim(tmp_path)
        counts.count(catalogue.LOST_LINES)
        for number in range(first, first + counts.MAX_SERIES // 2):
            counts.count(catalogue.ERRORS, plugin=f"Filter{number}")
        slot.write()
        slot.close()
    found = scraped(tmp_path)
    assert found["hpc_sched_lost_decision_lines_total", ""] == 8
    assert found["hpc_sched_plugin_errors_total", "Filter0"] == 1
    assert 0.9 * counts.MAX_SERIES < len(found) < 1.1 * counts.MAX_SERIES


def test_a_gauge_of_a_dead_worker_is_not_that_of_the_one_with_its_slot(tmp_path: Path):
    counts.set_to(catalogue.SHUNNED, 3.0, reason="another cell (CrossCellWeigher)")
    slot = Slot.claim(tmp_path)
    slot.write()
    assert scraped(tmp_path)["hpc_sched_shunned_hosts", "another cell (CrossCellWeigher)"] == 3
    slot.close()
    counts.stop()
    after = worker(tmp_path, planned=1)
    assert ("hpc_sched_shunned_hosts", "another cell (CrossCellWeigher)") not in scraped(tmp_path)
    after.close()


def test_nothing_is_counted_while_metrics_are_off():
    counts.stop()
    counts.count(catalogue.LOST_LINES)
    counts.observe(catalogue.PLANNING, 1.0)
    counts.set_to(catalogue.WORKERS, 1)
    counts.set_all(catalogue.SHUNNED, {"a": 1})
    assert counts.numbers() == counts.gauges() == {}
    counts.start()
    assert set(counts.numbers().values()) == {0.0}


def test_a_worker_whose_files_are_removed_writes_all_of_them_again_and_keeps_its_slot(
    tmp_path: Path,
):
    first = worker(tmp_path, planned=2)
    before = scraped(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    assert first.keep()
    first.write()
    assert scraped(tmp_path) == before
    second = worker(tmp_path, planned=3)
    assert scraped(tmp_path)[DECIDED, "planned,active"] == 5
    first.close()
    second.close()


def test_a_worker_finds_that_another_one_has_taken_its_slot(tmp_path: Path):
    first = worker(tmp_path, planned=2)
    for path in tmp_path.iterdir():
        path.unlink()
    second = worker(tmp_path, planned=3)
    assert not first.keep()
    first.close()
    assert second.keep()
    assert scraped(tmp_path)[DECIDED, "planned,active"] == 3
    second.close()
