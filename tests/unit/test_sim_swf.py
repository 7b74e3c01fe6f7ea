"""Job traces as they occur: what is read, what cannot be used, and in how much memory."""

import gzip
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hpc_sched.exceptions import TraceError
from hpc_sched.sim.jobs import swf
from hpc_sched.sim.jobs.swf import MAX_LINE, Reason, TraceRow, TraceStatistics
from tests import sample_data

ROW = "1 10 5 100 4 -1 2048 8 600 4096 1 7 3 12 2 1 -1 -1"
RECORD = TraceRow(
    line=1,
    submit=10.0,
    runtime=100.0,
    processors=4,
    requested_time=600.0,
    memory_kb=2048,
    application=12,
    partition=1,
    number=1,
    user=7,
)


def row(number: int = 1, submit: object = 0, **fields: object) -> str:
    """Return a row in which little is known but what is stated."""
    values = dict.fromkeys(range(1, 19), "-1")
    values |= {1: str(number), 2: str(submit), 4: "60", 5: "1"}
    values |= {int(name.removeprefix("f")): str(value) for name, value in fields.items()}
    return " ".join(values.values())


def read(folder: Path, content: str | bytes, **options) -> tuple[list[TraceRow], TraceStatistics]:
    path = folder / "trace.swf"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    counts = TraceStatistics()
    return list(swf.read(path, statistics=counts, **options)), counts


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(ROW, id="a row without an end of line"),
        pytest.param(f"  \t {ROW.replace(' ', chr(9))} \r\n", id="blanks, tabs and CRLF"),
        pytest.param(f"{ROW}\r\r", id="carriage returns alone"),
        pytest.param(f"\ufeff{ROW}\n\n \n", id="a byte order mark and blank lines"),
        pytest.param(f"{ROW} 19 20 x\n", id="more than 18 columns"),
        pytest.param(ROW.replace(" 10 ", " 10.0 ").replace(" 100 ", " 1e2 "), id="decimals"),
        pytest.param(ROW.replace("-1 2048 8", "x 2048 8"), id="words where nobody looks"),
        pytest.param(f"{ROW}\n; \xff\xfe Ende".encode("latin-1"), id="a comment in Latin-1"),
        pytest.param(gzip.compress(ROW.encode()), id="compressed, whatever its name"),
        pytest.param(gzip.compress(ROW[:9].encode()) + gzip.compress(ROW[9:].encode()), id="twice"),
    ],
)
def test_a_row_is_read_however_it_is_written(tmp_path: Path, content: str | bytes):
    records, counts = read(tmp_path, content)
    assert records == [RECORD]
    assert (counts.rows, counts.usable, counts.unusable) == (1, 1, {})


def test_what_a_trace_does_not_say_is_none(tmp_path: Path):
    [record], _ = read(tmp_path, row(number=-1))
    assert record == TraceRow(1, 0.0, 60.0, 1, *[None] * 5)


@pytest.mark.parametrize(
    ("fields", "processors", "memory_kb"),
    [
        ({"f5": 4, "f8": 8, "f7": 10, "f10": 20}, 4, 10),
        ({"f5": -1, "f8": 8, "f7": -1, "f10": 20}, 8, 20),
        ({"f5": 0, "f8": 8, "f7": 0, "f10": 20}, 8, 0),
        ({"f5": 2.5, "f7": 0.5}, 3, 1),
    ],
    ids=["both are known", "what was requested alone", "zeros", "decimals are rounded up"],
)
def test_what_was_requested_stands_in_for_what_was_used(tmp_path, fields, processors, memory_kb):
    [record], _ = read(tmp_path, row(**fields))
    assert (record.processors, record.memory_kb) == (processors, memory_kb)


def test_comments_are_no_rows(tmp_path: Path):
    header = "; Version: 2.2\n;MaxProcs:\t100\r\n; Note: one\n; Note: two\n; see http://x/\n;\n"
    records, counts = read(tmp_path, header + ROW)
    assert (len(records), counts.rows, counts.unusable) == (1, 1, {})


UNUSABLE = [
    ("17 fields", ROW.rsplit(" ", 1)[0], Reason.WIDTH),
    ("a word", ROW.replace(" 100 ", " long "), Reason.NUMBER),
    ("not a number", row(f4="nan"), Reason.NUMBER),
    ("infinity", row(f2="inf"), Reason.NUMBER),
    ("a number beyond all", row(f3="1e999"), Reason.NUMBER),
    ("a number without end", row(f7="9" * 5000), Reason.NUMBER),
    ("a number larger than any time", row(f4="1e16"), Reason.NUMBER),
    ("a decimal comma", row(f4="1,5"), Reason.NUMBER),
    ("digits of another script", row(f4="\u0967"), Reason.NUMBER),
    ("an underscore", row(f4="1_0"), Reason.NUMBER),
    ("a NUL", row(f5="4\x00"), Reason.NUMBER),
    ("bytes that are no text", ROW.encode() + b" \xff\xfe", Reason.NUMBER),
    ("no submit time", row(submit=-1), Reason.SUBMIT),
    ("no runtime", row(f4=-1), Reason.RUNTIME),
    ("a negative runtime", row(f4=-17.5), Reason.RUNTIME),
    ("no processors", row(f5=-1), Reason.PROCESSORS),
    ("zero processors", row(f5=0, f8=0), Reason.PROCESSORS),
    ("a line without end", ROW + " 1" * MAX_LINE, Reason.LENGTH),
    ("blanks without end", " " * (3 * MAX_LINE) + ROW, Reason.LENGTH),
]


@pytest.mark.parametrize(
    ("content", "reason"), [pytest.param(*case, id=sentence) for sentence, *case in UNUSABLE]
)
def test_a_row_that_cannot_be_used_is_counted_with_its_reason(tmp_path, content, reason):
    bad = content if isinstance(content, bytes) else content.encode()
    text = b"\n".join([b"; header", row().encode(), bad, row().encode(), bad])
    records, counts = read(tmp_path, text)
    assert [record.line for record in records] == [2, 4]
    assert (counts.unusable, counts.first) == ({reason: 2}, {reason: 3})
    assert (counts.rows, counts.usable) == (4, 2)
    assert counts.sentences() == [f"2 rows ({reason.value}), first on line 3"]


def test_a_runtime_of_zero_is_one(tmp_path: Path):
    [record], _ = read(tmp_path, row(f4=0))
    assert record.runtime == 0.0


def test_rows_are_put_in_the_order_of_their_submit_times_then_of_the_file(tmp_path: Path):
    submits = [30, 10, 20, 10, 0, 30]
    records, _ = read(tmp_path, "\n".join(row(i, s) for i, s in enumerate(submits)))
    assert [(record.submit, record.line) for record in records] == [
        (0, 5),
        (10, 2),
        (10, 4),
        (20, 3),
        (30, 1),
        (30, 6),
    ]


def test_a_row_that_comes_too_late_cannot_be_used(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(swf, "HELD", 2)
    submits = [10, 20, 30, 15, 5, 10, 40]
    #      held: 10, 20 | 10 is handed on, then 15: 5 and 10 are before it
    records, counts = read(tmp_path, "\n".join(row(submit=submit) for submit in submits))
    assert [record.submit for record in records] == [10, 15, 20, 30, 40]
    assert (counts.unusable, counts.first) == ({Reason.ORDER: 2}, {Reason.ORDER: 5})


def test_no_more_is_read_than_was_asked_for(tmp_path: Path):
    lines = [row(1, 5), "broken", row(2, 3), row(3, 0)]
    records, counts = read(tmp_path, "\n".join(lines), limit=2)
    assert [record.line for record in records] == [3, 1]
    assert (counts.rows, counts.usable, counts.unusable.total()) == (3, 2, 1)


def test_partitions_that_are_not_wanted_are_counted_apart(tmp_path: Path):
    lines = [row(i, i, f16=partition) for i, partition in enumerate((1, 2, -1, 3, 2))]
    records, counts = read(tmp_path, "\n".join([*lines, "x"]), partitions={2, 3})
    assert [record.line for record in records] == [2, 4, 5]
    assert (counts.rows, counts.usable, counts.elsewhere, counts.unusable.total()) == (6, 3, 2, 1)


NOTHING = [
    ("nothing", "", {}, "expected rows of 18 numbers, found none"),
    ("comments", "; a\n\n;b\n", {}, "expected rows of 18 numbers, found none"),
    ("junk", b"\x7fELF\x00\xff\n\x00\n", {}, r"found 2 rows \(fewer than 18 fields\), first on li"),
    ("UTF-16", ROW.encode("utf-16"), {}, r"found 1 row \(.*\), first on line 1"),
    (
        "two reasons",
        f"x\n{row(f4=-1)}\ny\n",
        {},
        r"found 2 rows \(fewer.*\), first on line 1; 1 row \(no runtime\), first on line 2",
    ),
    (
        "other partitions",
        ROW,
        {"partitions": [9, 4]},
        "expected jobs of partition 4, 9, found 1 of other partitions",
    ),
]


@pytest.mark.parametrize(
    ("content", "options", "error"), [pytest.param(*case, id=name) for name, *case in NOTHING]
)
def test_a_trace_without_a_usable_row_is_an_error(tmp_path, content, options, error):
    with pytest.raises(TraceError, match=error) as caught:
        read(tmp_path, content, **options)
    assert str(caught.value).startswith(f"{tmp_path / 'trace.swf'}: ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(TraceError, match=r"no\.swf: cannot be read: No such file"):
        next(swf.read(tmp_path / "no.swf"))
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        next(swf.read(tmp_path))
    with pytest.raises(TraceError, match="cannot be read: embedded null byte"):
        next(swf.read("a\0b"))


def _truncated(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def _flipped(whole: bytes) -> bytes:
    return whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]


def _overwritten(whole: bytes) -> bytes:
    at = len(whole) // 2
    return whole[:at] + bytes(100) + whole[at + 100 :]


@pytest.mark.parametrize(
    "damage",
    [_truncated, _flipped, _overwritten, lambda whole: whole + b"more"],
    ids=["truncated", "its checksum flipped", "overwritten", "something behind it"],
)
def test_a_damaged_compressed_file_is_an_error_with_the_line_reached(
    tmp_path: Path, damage: Callable[[bytes], bytes]
):
    lines = [row(i, i * 7919 % 1000, f7=i * 104729 % 99991) for i in range(5000)]
    whole = gzip.compress("\n".join(lines).encode())
    with pytest.raises(TraceError) as caught:
        read(tmp_path, damage(whole))
    place = re.match(r".*/trace\.swf:(\d+): cannot be read after this line: ", str(caught.value))
    assert place is not None
    assert 1000 < int(place[1]) <= 5000


def test_a_compressed_file_that_ends_in_its_header_is_an_error(tmp_path: Path):
    with pytest.raises(TraceError, match=r"trace\.swf: cannot be read: Compressed file ended"):
        read(tmp_path, gzip.compress(b"")[:10])


ANY_BYTES = st.one_of(
    st.binary(max_size=200),
    st.lists(
        st.sampled_from(
            [b"1 ", b"-1 ", b"1e9 ", b"nan ", b"\n", b"\r\n", b";", b"\xff", b"0 " * 17]
        )
    ).map(b"".join),
    st.lists(st.lists(st.integers(-2, 99), min_size=17, max_size=19), max_size=9).map(
        lambda rows: "\n".join(" ".join(map(str, each)) for each in rows).encode()
    ),
)


@given(content=ANY_BYTES, compressed=st.booleans(), held=st.integers(1, 4))
@example(b"\x1f\x8b", False, 1)
@example(b"\x1f\x8b\x08\x00garbage", False, 1)
def test_any_bytes_are_read_or_refused_and_every_row_is_counted(
    tmp_path_factory, content: bytes, compressed: bool, held: int
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swf, "HELD", held)
        path = tmp_path_factory.getbasetemp() / "any.swf"
        path.write_bytes(gzip.compress(content, 1) if compressed else content)
        counts = TraceStatistics()
        records = []
        try:
            records.extend(swf.read(path, statistics=counts, partitions={1, 2}))
        except TraceError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
            assert not records
        assert counts.usable == len(records)
        assert counts.rows == counts.usable + counts.elsewhere + counts.unusable.total()
        order = [(record.submit, record.line) for record in records]
        assert order == sorted(order)


def test_memory_does_not_grow_with_the_trace(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(swf, "HELD", 500)
    path = tmp_path / "large.swf"
    most = []
    for rows in (2_000, 20_000):
        path.write_text("".join(f"{row(i, i)}\n" for i in range(rows)))
        tracemalloc.start()
        try:
            assert sum(1 for _ in swf.read(path)) == rows
            most.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert most[1] < 1.2 * most[0]
    assert most[1] < 1_000_000


def test_a_line_without_end_is_not_held(tmp_path: Path):
    path = tmp_path / "line.swf.gz"
    path.write_bytes(gzip.compress(bytes(20_000_000) + b"\n" + ROW.encode()))
    tracemalloc.start()
    try:
        [record] = swf.read(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert record.line == 2


def test_every_job_of_metacentrum_is_read_and_33_need_more_than_8_gb_a_core():
    counts = TraceStatistics()
    trace = sample_data.path("swf/METACENTRUM-2009-2.swf.gz")
    large, no_memory, at_once = 0, 0, 0
    for record in swf.read(trace, statistics=counts):
        no_memory += record.memory_kb is None
        large += (record.memory_kb or 0) / record.processors > 8 * 2**20
        at_once += record.runtime == 0
    assert (counts.rows, counts.usable) == (103_656, 103_656)
    assert (large, no_memory, at_once) == (33, 1_118, 3_712)


def test_every_job_of_kth_is_read_but_one_without_processors():
    counts = TraceStatistics()
    trace = sample_data.path("swf/KTH-SP2-1996-2.1-cln.swf.gz")
    records = list(swf.read(trace, statistics=counts))
    assert (counts.rows, counts.usable, len(records)) == (28_476, 28_475, 28_475)
    assert (counts.unusable, counts.first) == (
        {Reason.PROCESSORS: 1},
        {Reason.PROCESSORS: 27_323},
    )
    assert records[0].line == 25
    assert (records[-1].submit - records[0].submit) / 86_400 == pytest.approx(333, abs=10)
