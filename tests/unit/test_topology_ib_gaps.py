"""A dump that was cut off says so, wherever it was cut; a port report is read as a dump is."""

import re

import pytest

from tests import sample_data
from tests.ib_dumps import Fabric, port_report_of, read, state, three_levels, two_levels
from tests.unit.fabrics import check


@pytest.mark.parametrize(
    "fabric",
    [
        pytest.param(two_levels(3, 2, 2), id="two levels"),
        pytest.param(two_levels(1, 0, 4), id="a single switch"),
        pytest.param(three_levels(2, 2, 1), id="three levels"),
    ],
)
def test_a_dump_cut_at_any_line_is_incomplete(fabric: Fabric):
    lines = fabric.text().splitlines(keepends=True)
    whole = read("".join(lines))
    assert whole.incomplete == ()
    last = max(i for i, line in enumerate(lines) if line.startswith("["))
    first = min(i for i, line in enumerate(lines) if "H-" in line)
    for end in range(first + 1, last + 1):
        found = read("".join(lines[:end]))
        assert found.incomplete, end
        assert all(text.startswith("dump: ") for text in found.incomplete)
    assert read("".join(lines[: last + 1])).incomplete == ()


def test_a_dump_cut_in_its_last_line_is_incomplete_or_has_all():
    text = two_levels(2, 1, 1).text().rstrip()
    whole = read(text)
    assert whole.incomplete == ()
    for end in range(text.rindex("\n") + 1, len(text)):
        found = read(text[:end])
        assert found.incomplete or found.hosts == whole.hosts, text[:end]
        assert bool(found.incomplete) == (end < text.rindex("]") + 1), text[:end]


def test_what_is_missing_is_named():
    text = two_levels(2, 2, 2).text()
    sections = text.split("\n\n")
    sections = [text for text in sections if not text.partition("Ca\t")[2]]
    found = read("\n\n".join(sections) + "\n")
    [sentence] = found.incomplete
    assert re.match(r"dump: 4 HCAs, such as H-\w{16}, have no section\Z", sentence)
    switch = next(i for i, section in enumerate(sections) if "spine2" in section)
    sections[switch] = sections[switch].rsplit("\n", 1)[0]
    missing = "dump: 1 cable, such as one of S-"
    assert any(text.startswith(missing) for text in read("\n\n".join(sections) + "\n").incomplete)


def test_the_real_dumps_are_complete():
    for name in ("ib/ft2-2s4l32h.out", "ib/dgx-superpod.out"):
        assert read(sample_data.path(name).read_bytes()).incomplete == ()


@pytest.mark.parametrize("fabric", [two_levels(3, 2, 2), three_levels(2, 2, 2)])
def test_a_port_report_is_the_same_fabric(fabric: Fabric):
    report = read(port_report_of(fabric))
    check(report)
    assert state(report) == state(fabric.topology())
    assert report.incomplete == ()


def test_a_port_report_that_was_cut_off_is_incomplete():
    lines = port_report_of(two_levels(2, 2, 2)).splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if " - " in line)
    first = min(i for i, line in enumerate(lines) if "mlx5" in line)
    for end in range(first + 1, last + 1):
        assert read("".join(lines[:end])).incomplete, end


def test_a_line_of_a_port_report_without_an_end_is_no_cable():
    lines = port_report_of(two_levels(2, 1, 1)).splitlines()
    cut = lines[-1].rpartition("'")[0]
    assert read("\n".join([*lines[:-1], cut]) + "\n").incomplete
