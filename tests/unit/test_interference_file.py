"""The interference index as a file: what it may say, and what is said of its mistakes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import table_file
from hpc_sched.core.sharing.cache_interference import InterferenceIndex
from hpc_sched.core.sharing.interference_file import read_index, write_index
from hpc_sched.exceptions import InterferenceError

PERFORMANCE = {("WRF", "LU"): 0.87, ("LU", "WRF"): 0.98, ("EP", "EP"): 1.01}


def read(folder: Path, content: str | bytes, name: str = "index.csv") -> dict:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return dict(read_index(path).performance)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("WRF,LU,0.87,0.98\nEP,EP,1.01,1.01\n", id="rows alone"),
        pytest.param("WRF,LU,.87,9.8e-1\nEP,EP,+1.01,1.010", id="numbers written otherwise"),
        pytest.param(
            "# measured\n\n  # twice\nWRF , LU,  0.87, 0.98  # on a Monday\n\t\nEP,EP,1.01,1.01",
            id="comments, blanks and blank lines",
        ),
        pytest.param(
            "\ufeffApplication,application,performance,performance\r\n"
            "WRF,LU,0.87,0.98\r\nEP,EP,1.01,1.01\r\n",
            id="a header, a byte order mark and CRLF, as a spreadsheet writes it",
        ),
        pytest.param('"WRF","LU","0.87","0.98"\n"EP","EP",1.01,1.01\n', id="quoted cells"),
        pytest.param(
            "WRF,LU,0.87,0.98\nLU,WRF,0.98,0.870\nEP,EP,1.01,1.01\nEP,EP,1.01,1.01\n",
            id="the same pairs again, also the other way round",
        ),
    ],
)
def test_a_csv_file_is_read(tmp_path: Path, content: str):
    assert read(tmp_path, content) == PERFORMANCE
    assert read(tmp_path, content, "index.of-may") == PERFORMANCE


@pytest.mark.parametrize("name", ["index.yaml", "index.YML"])
def test_a_yaml_file_is_a_list_of_rows(tmp_path: Path, name: str):
    content = "# measured\n- [WRF, LU, 0.87, '0.98']\n-\n  - EP\n  - EP\n  - 1.01\n  - 1.01\n"
    assert read(tmp_path, content, name) == PERFORMANCE


@pytest.mark.parametrize("name", ["NO", "0123", "1e3", "-", "12.30", "app", "gromacs-2024.1+cuda"])
def test_an_application_is_called_what_is_written(tmp_path: Path, name: str):
    expected = {(name, "LU"): 0.5, ("LU", name): 1.0}
    assert read(tmp_path, f"{name},LU,0.5,1\n") == expected
    assert read(tmp_path, f'- ["{name}", LU, 0.5, 1]\n', "index.yaml") == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "# nothing yet\n\n"),
        ("a.csv", "application,application,performance,performance\n"),
        ("a.yaml", "# nothing yet\n"),
        ("a.yaml", "[]\n"),
    ],
    ids=["comments alone", "a header alone", "comments in YAML", "an empty YAML list"],
)
def test_a_file_without_rows_is_an_empty_index(tmp_path: Path, name: str, content: str):
    assert read(tmp_path, content, name) == {}


BROKEN = [
    ("nothing, as while it is copied", "", r": expected rows of 4 columns.*found an empty file$"),
    ("too few columns", "# x\nWRF,LU,0.9\n", r":2: expected 4 columns \(.*\), found 3$"),
    ("too many columns", "WRF,LU,0.9,0.9,\n", r":1: expected 4 columns .*found 5$"),
    ("decimal commas", "WRF,LU,0,9,0,8\n", r":1: expected 4 columns .*found 6$"),
    ("semicolons", "WRF;LU;0.9;0.8\n", r":1: expected 4 columns .*found 1$"),
    ("a word for a number", "A,B,1,1\nWRF,LU,fast,0.9\n", r":2: column 3: .*found 'fast'$"),
    ("words in the first row", "WRF,LU,fast,slow\n", r":1: column 3: expected a performance above"),
    ("half a header", "application,LU,fast,0.8\n", r":1: column 3: expected .*found 'fast'$"),
    ("a second header", "a,b,1,1\napp,app,x,y\n", r":2: column 3: expected .*found 'x'$"),
    ("an empty number", "WRF,LU,,0.9\n", r":1: column 3: .*above 0 and at most 10.*found nothing$"),
    ("nan", "app1,app2,nan,nan\n", r":1: column 3: .*found 'nan'$"),
    ("infinity", "WRF,LU,0.9,inf\n", r":1: column 4: .*found 'inf'$"),
    ("a number beyond all", "WRF,LU,0.9,1e999\n", r":1: column 4: .*found '1e999'$"),
    ("a negative number", "WRF,LU,-0.9,0.9\n", r":1: column 3: .*found '-0.9'$"),
    ("zero", "WRF,LU,0.9,0.0\n", r":1: column 4: .*found '0.0'$"),
    ("percents", "WRF,LU,90,98\n", r":1: column 3: .*at most 10 \(1 = alone\), found '90'$"),
    ("digits of another script", "A,B,1,1\nWRF,LU,\u0967,1\n", r":2: column 3: .*found"),
    ("an empty name", ",LU,0.9,0.9\n", r":1: column 1: expected an application's name .*nothing$"),
    ("a name of blanks", "WRF,'  ',1,1\n", r":1: column 2: "),
    ("a name that is too long", f"{'x' * 256},LU,1,1\n", r":1: column 1: .*1 to 255 letters"),
    ("a blank in a name", "WRF 4,LU,1,1\n", r":1: column 1: .*found 'WRF 4'$"),
    ("a name beyond ASCII", "schrödinger,LU,1,1\n", r":1: column 1: .*found 'schrödinger'$"),
    (
        "a pair twice with different numbers",
        "# x\nWRF,LU,0.9,0.8\n\nWRF,LU,0.9,0.7\n",
        r":4: expected one performance of LU beside WRF, found 0.7 and, on line 2, 0.8$",
    ),
    (
        "a pair the other way round with different numbers",
        "WRF,LU,0.9,0.8\nLU,WRF,0.9,0.8\n",
        r":2: expected one performance of LU beside WRF, found 0.9 and, on line 1, 0.8$",
    ),
    (
        "an application beside itself with two numbers",
        "WRF,WRF,0.9,0.8\n",
        r":1: expected one performance of WRF beside WRF, found 0.8 and, in the same row, 0.9$",
    ),
    ("a quote that is never closed", 'A,B,1,1\n"WRF,LU,1,1\nC,D,1,1\n', r":2: not CSV: "),
    ("a name in Latin-1", "A,B,1,1\nschränk,B,1,1\n".encode("latin-1"), r":2: expected UTF-8"),
    ("a binary", b"\x7fELF\x02\x01\x00\x89\xff", r":1: expected UTF-8, found byte 0x89"),
    ("zeros", bytes(100), r":1: expected 4 columns"),
]
BROKEN_YAML = [
    ("keys", "WRF: [LU, 1, 1]\n", r":1: expected a list of lists, found keys and values$"),
    ("a word", "# x\nWRF\n", r":2: expected a list of lists, found 'WRF'$"),
    ("a flat list", "- WRF\n- LU\n", r":1: expected a list of lists, found 'WRF'$"),
    ("too few cells", "- [A, B, 1, 1]\n- [WRF, LU, 1]\n", r":2: expected 4 columns .*found 3$"),
    (
        "a list for a name",
        "- [[WRF], LU, 1, 1]\n",
        r":1: expected a name or a number, found a list",
    ),
    ("a name that says nothing", "- [~, LU, 1, 1]\n", r":1: column 1: .*found nothing$"),
    ("nan", "- [WRF, LU, .nan, 1]\n", r":1: column 3: .*found '.nan'$"),
    ("a contradiction", "- [A, B, 1, 1]\n- [A, B, 1, 2]\n", r":2: .*on line 1, 1$"),
    ("no YAML", "- [WRF, LU\n- {\n", r":\d+: not YAML: "),
    ("more brackets than a stack holds", "[" * 200_000, r":1: lists and keys are nested deeper"),
    (
        "a list that holds itself",
        "&a [*a, *a]\n",
        r":1: expected a name or a number, found a list$",
    ),
]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        pytest.param(name, content, error, id=f"{sentence} in {name}")
        for name, table in (("index.csv", BROKEN), ("index.yaml", BROKEN_YAML))
        for sentence, content, error in table
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path, name, content, error):
    with pytest.raises(InterferenceError, match=error) as caught:
        read(tmp_path, content, name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert len(str(caught.value)) < len(str(tmp_path)) + 300


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(InterferenceError, match=r"no\.csv: cannot be read: No such file"):
        read_index(tmp_path / "no.csv")
    with pytest.raises(InterferenceError, match=r"cannot be read: Is a directory"):
        read_index(tmp_path)


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed(tmp_path: Path):
    with pytest.raises(InterferenceError, match=r"expected at most 10000000 bytes, found more$"):
        read(tmp_path, b"#" * (table_file.MAX_BYTES + 1))


NAMES = st.sampled_from(["WRF", "LU", "NO", "1e3", "-", "a+b_c.d"])
SPEEDS = st.floats(0, 10, exclude_min=True)


@given(
    st.dictionaries(st.tuples(NAMES, NAMES), SPEEDS),
    st.sampled_from(["index.csv", "index.yaml"]),
)
def test_what_is_written_is_read_back(tmp_path_factory, some, name):
    performance = dict(some)
    for one, other in some:
        performance.setdefault((other, one), 1.0)
    path = tmp_path_factory.getbasetemp() / name
    write_index(path, InterferenceIndex(performance))
    assert read_index(path).performance == performance


def test_an_index_is_written_by_the_names_of_its_pairs_without_exponents(tmp_path: Path):
    path = tmp_path / "index.csv"
    write_index(path, InterferenceIndex({**PERFORMANCE, ("A", "A"): 0.00001}))
    assert path.read_text().splitlines()[1:] == [
        "A,A,0.00001,0.00001",
        "EP,EP,1.01,1.01",
        "LU,WRF,0.98,0.87",
    ]


@pytest.mark.parametrize(
    ("performance", "error"),
    [
        ({("A", "B"): 1.0}, r"B beside A: expected a performance .*found nothing"),
        ({("A", "A"): 11.0}, r"A beside A: expected .*at most 10 .*found 11.0"),
        ({("A", "A"): float("nan")}, r"A beside A: expected .*found nan"),
        ({("A B", "A B"): 1.0}, r"expected an application's name .*found 'A B'"),
    ],
    ids=["half a pair", "a number too large", "no number", "no name"],
)
def test_an_index_that_could_not_be_read_back_is_not_written(tmp_path, performance, error):
    path = tmp_path / "index.csv"
    with pytest.raises(InterferenceError, match=error):
        write_index(path, InterferenceIndex(performance))
    assert not path.exists()
