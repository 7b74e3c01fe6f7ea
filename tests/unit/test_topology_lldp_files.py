"""A folder of lldpcli's outputs: its files, what is wrong with them, and when it has changed."""

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest

from hpc_sched.exceptions import TopologyError
from hpc_sched.topology.readers.lldp import lldp_folder
from hpc_sched.topology.readers.lldp.lldp_driver import LldpDriver
from tests.lldp_outputs import racks, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of two racks with two hosts each, see ``racks``."""
    path = tmp_path / "lldp"
    write(racks(2, 2), path)
    return path


def test_a_damaged_file_is_named_and_hides_no_other(folder: Path):
    text = (folder / "node0002.json").read_text()
    (folder / "node0002.json").write_text(text[:200])
    (folder / "node0003.json").write_text(json.dumps({"unreachable": True, "msg": "no route"}))
    fabric = LldpDriver(path=folder).load()
    # The leaf switches have seen both hosts.
    assert fabric.hosts == ("node0001", "node0002", "node0003", "node0004")
    first, second = fabric.incomplete
    assert re.match(rf"{folder}: node0002:\d+:\d+: not JSON: ", first)
    assert second == (
        f"{folder}: node0003: expected the output of 'lldpcli show neighbors -f json', found an "
        "object with 'unreachable', 'msg'"
    )


def test_a_host_whose_file_is_damaged_is_left_out_if_no_switch_has_seen_it(folder: Path):
    shutil.rmtree(folder / "switches")
    (folder / "node0002.json").write_text("{")
    fabric = LldpDriver(path=folder).load()
    assert fabric.hosts == ("node0001", "node0003", "node0004")
    assert fabric.remarks == (f"{folder}: hosts without a switch, which are left out: node0002",)
    assert len(fabric.incomplete) == 1


def test_where_all_files_are_damaged_there_is_no_topology(folder: Path):
    for path in folder.rglob("*.json"):
        path.write_text("{")
    with pytest.raises(TopologyError) as error:
        LldpDriver(path=folder).load()
    assert len(error.value.problems) == 10
    assert all(problem.startswith(f"{folder}: ") for problem in error.value.problems)


def test_many_damaged_files_are_counted(folder: Path):
    for number in range(200):
        (folder / f"broken{number:03}.json").write_text("{")
    fabric = LldpDriver(path=folder).load()
    assert len(fabric.incomplete) == 101
    assert fabric.incomplete[-1] == f"{folder}: and 100 more damaged outputs"


def test_the_mark_changes_with_any_file(folder: Path):
    driver = LldpDriver(path=folder)
    before = driver.mark(driver.read())
    assert driver.mark(driver.read()) == before
    path = folder / "switches" / "leaf01a.json"
    path.write_text(path.read_text() + " ")
    assert driver.mark(driver.read()) != before


def test_hidden_files_and_other_folders_are_left_out(folder: Path):
    (folder / ".node0009.json.swp").write_text("{")
    (folder / "old").mkdir()
    (folder / "old" / "node0009.json").write_text("{")
    assert not LldpDriver(path=folder).load().incomplete


def test_two_files_of_one_host_are_refused(folder: Path):
    (folder / "node0001").write_text("{}")
    with pytest.raises(TopologyError, match="expected one file for 'node0001', found two"):
        LldpDriver(path=folder).load()


def test_a_host_filed_as_a_switch_too_is_refused(folder: Path):
    (folder / "switches" / "node0001.json").write_text("{}")
    with pytest.raises(TopologyError, match="'node0001', found two, in the folder and in 'swit"):
        LldpDriver(path=folder).load()


def test_files_and_bytes_are_limited(folder: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(TopologyError, match=r"node000\d.json: expected at most \d+ bytes"):
        lldp_folder.read(str(folder), 1500)
    monkeypatch.setattr(lldp_folder, "MAX_FILES", 3)
    with pytest.raises(TopologyError, match="lldp: expected at most 3 files, found 4"):
        lldp_folder.read(str(folder), 1 << 20)


def test_files_are_called_by_their_host(folder: Path):
    plain = LldpDriver(path=folder).load()
    for path in folder.rglob("*.json"):
        path.with_suffix(".json.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = LldpDriver(path=folder).load()
    assert packed.to_tree() == plain.to_tree()
    assert packed.incomplete == ()


def test_one_file_has_an_object_of_all_hosts(folder: Path, tmp_path: Path):
    everything = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    path = tmp_path / "all.json"
    path.write_text(json.dumps(everything))
    assert len(LldpDriver(path=path).load().hosts) == 4


def test_the_output_of_one_host_alone_is_refused(folder: Path):
    path = folder / "node0001.json"
    with pytest.raises(TopologyError) as error:
        LldpDriver(path=path).load()
    [problem] = error.value.problems
    assert problem.startswith(f"{path}: expected the output of 'lldpcli show neighbors -f json' of")
    assert problem.endswith("found an object with 'lldp'")


def test_names_of_the_name_map_are_those_of_nova(folder: Path, tmp_path: Path):
    names = tmp_path / "names"
    names.write_text("node0001 4f0c6a1e-7d0b-4a6e-9d43-2f1f6a9c3b10\n")
    fabric = LldpDriver(path=folder, name_map=names).load()
    assert fabric.hosts[0] == "4f0c6a1e-7d0b-4a6e-9d43-2f1f6a9c3b10"


@pytest.mark.parametrize("option", ["port_pattern", "switch_pattern"])
def test_a_pattern_must_be_a_regular_expression(option: str):
    with pytest.raises(TopologyError, match=f"topology_{option}: expected a regular expression"):
        LldpDriver(path="x", **{option: "("})
