"""Small files that stand for much are refused before it is built, in seconds and little memory.

Each is read in a process of its own, whose peak of memory is measured.
"""

import gzip
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Without a limit these take several gigabytes, or minutes of processor time.
MOST_MEMORY = 700  # MB, the imports included
MOST_SECONDS = 60
# Of the process: where a limit is missing, the test fails before the machine has no memory left.
ADDRESS_SPACE = 3 << 30

# Seconds of processor time each; what is beside them reaches the same limits in other places.
DEAR = pytest.mark.ci
DEAREST = pytest.mark.nightly("sizes", "up to ten seconds of processor time each")

_SCRIPT = f"""\
import resource, sys, time
from hpc_sched import exceptions, topology
from hpc_sched.core.sharing import interference_file
from hpc_sched.snapshot.log import logged_decisions
from hpc_sched.snapshot.source import snapshot_file

resource.setrlimit(resource.RLIMIT_AS, ({ADDRESS_SPACE}, {ADDRESS_SPACE}))
resource.setrlimit(resource.RLIMIT_CPU, ({MOST_SECONDS}, {MOST_SECONDS}))
read, path = sys.argv[1:]
try:
    eval(read, globals(), {{"path": path}})
    print("read")
except exceptions.HPCSchedError as error:
    print(getattr(error, "problems", [error])[-1])
# Not ru_maxrss: that is at least the size of the process that started this one.
[peak] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(int(peak) // 1000)
"""
SNAPSHOT = "snapshot_file.read(path)"
YAML, SLURM, IBNETDISCOVER, KUBERNETES, LLDP, IRONIC = (
    f"topology.load({driver!r}, path=path)"
    for driver in ("yaml", "slurm", "ibnetdiscover", "kubernetes", "lldp", "ironic")
)
LEAF = "switches:\n- name: a\n  hosts: "
INDEX = "interference_file.read_index(path)"


def check(read: str, path: Path, error: str) -> None:
    """Check the error, the memory and the time of an expression that reads a file."""
    command = [sys.executable, "-c", _SCRIPT, read, str(path)]
    # The processor time is limited; the clock may run on while others compute.
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * MOST_SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    text, megabytes = done.stdout.rsplit("\n", 2)[:2]
    assert re.search(error, text), text[:1000]
    assert str(path) in text
    assert int(megabytes) < MOST_MEMORY


HEAD = b'{"format":"hpc-sched snapshot","version":2,"taken":"x",'


@pytest.mark.parametrize(
    ("begin", "item", "end"),
    [
        pytest.param(b'"options":{"a":[', b"[],", b"0]}}", id="empty lists in an option"),
        pytest.param(b'"decisions":[', b"{},", b"{}]}", id="empty decisions"),
        pytest.param(b'"decisions":[', b'{"\\"[":{}},', b"{}]}", id="decisions of one key"),
        pytest.param(b'"groups":[],"notes":[', b'"",', b'""]}', id="empty texts"),
        pytest.param(b'"shared_providers":[', b'{"uuid":""},', b"{}]}", id="providers"),
    ],
)
def test_a_snapshot_of_100_million_values_is_refused_while_it_is_unpacked(
    tmp_path: Path, begin: bytes, item: bytes, end: bytes
):
    path = tmp_path / "state.json.gz"
    block = item * (1_000_000 // len(item))
    with gzip.open(path, "wb", 1) as stream:
        stream.write(HEAD + begin)
        for _ in range(300):
            stream.write(block)
        stream.write(end)
    assert path.stat().st_size < 3_000_000
    check(SNAPSHOT, path, "expected at most 20000000 JSON values, found more$")


def test_a_snapshot_that_is_not_packed_has_the_same_limit(tmp_path: Path):
    path = tmp_path / "state.json"
    path.write_bytes(HEAD + b'"options":{"a":[' + b"[]," * 20_000_000 + b"0]}}")
    check(SNAPSHOT, path, "expected at most 20000000 JSON values, found more$")


@DEAR
def test_one_character_does_not_multiply_the_memory_of_a_snapshot(tmp_path: Path):
    path = tmp_path / "state.json.gz"
    with gzip.open(path, "wb", 1) as stream:
        stream.write(HEAD + b'"notes":["\xf0\x9f\x98\x80"')
        for _ in range(300):
            stream.write(b" " * 1_000_000)
        stream.write(b"]}")
    check(SNAPSHOT, path, "missing required field `hypervisors`")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("9" * 1_000_000, id="a whole number"),
        pytest.param("0." + "9" * 1_000_000 + "e-5", id="a fraction"),
        pytest.param("1e" + "9" * 1_000_000, id="an exponent"),
    ],
)
def test_a_number_of_a_million_digits_takes_no_time(tmp_path: Path, value: str):
    path = tmp_path / "state.json"
    path.write_bytes(HEAD + b'"options":{"a":' + value.encode() + b"}}")
    check(SNAPSHOT, path, "out of range|missing required field")


@DEAR
def test_records_of_a_packed_decision_log_are_limited_in_all(tmp_path: Path):
    record = json.dumps({"instance": "uuid", "plan": [[]] * 250_000}).encode() + b"\n"
    with gzip.open(tmp_path / "log.1.gz", "wb", 1) as stream:
        for _ in range(150):
            stream.write(record)
    path = tmp_path / "log"
    newest = "newest(path, 1000)"
    found = "found_in(path, ['uuid'], [lambda entry: True])"
    for read in (newest, found):
        note = f"print(*logged_decisions.{read}.notes(path))"
        check(note, path, "left out: with them there are more than 5000000 JSON values\nread$")


@pytest.mark.parametrize(
    ("read", "head", "line", "error"),
    [
        pytest.param(
            YAML,
            "switches:\n",
            "- {{name: s{0}, hosts: 'x{0}n[1-600000]'}}\n",
            r":3: leaf 's1': 'x1n\[1-600000\]' expands to 600000 host names, together with those "
            "before 1200000; at most 1000000$",
            id="other hosts in each leaf",
        ),
        pytest.param(
            YAML,
            "switches:\n- name: a\n  hosts:\n",
            "  - n[1-600000]\n",
            ":5: .* together with those before 1200000",
            id="the same hosts again and again",
        ),
        pytest.param(
            SLURM,
            "",
            "SwitchName=s{0} Nodes=x{0}n[1-600000]\n",
            ":2: switch 's1': .* together with those before 1200000; at most 1000000",
            id="nodes in topology.conf",
        ),
        pytest.param(
            SLURM,
            "SwitchName=leaf Nodes=n1\n",
            "SwitchName=s{0} Switches=x{0}n[1-600000]\n",
            ":18: switch 's16': .* 600000 switch names, together with those before 10200000",
            id="switches in topology.conf",
            marks=DEAREST,
        ),
        pytest.param(
            SLURM,
            "- topology: t\n  tree:\n    switches:\n",
            "    - {{switch: s{0}, nodes: 'x{0}n[1-600000]'}}\n",
            ":5: switch 's1': .* together with those before 1200000",
            id="nodes in topology.yaml",
        ),
    ],
)
def test_the_lists_of_a_topology_have_one_limit_together(
    tmp_path: Path, read: str, head: str, line: str, error: str
):
    path = tmp_path / "topology"
    path.write_text(head + "".join(line.format(number) for number in range(20)))
    check(read, path, error)


@pytest.mark.parametrize(
    ("read", "parts", "error"),
    [
        pytest.param(
            YAML,
            [("switches: [", 1), ("[],", 5_000_000), ("]", 1)],
            ":1: expected at most 1000000 lists, keys and texts, found more$",
            id="empty lists in YAML",
            marks=DEAR,
        ),
        pytest.param(
            YAML,
            [(LEAF, 1), ("a", 100_000), ("[1-1000000]\n", 1)],
            ":3: leaf 'a': expected names of at most 255 characters, found 100007 in 'aaa",
            id="long names of a range",
        ),
        pytest.param(
            YAML,
            [(LEAF + "n", 1), ("[1-9]", 1_000_000)],
            ":3: leaf 'a': expected names of at most 255 characters, found 1000001 in 'n",
            id="millions of ranges in a name",
            marks=DEAR,
        ),
        pytest.param(
            SLURM,
            [
                ("- topology: t\n  tree:\n    switches:\n    - &s {switch: a, nodes: '  h", 1),
                (",", 10_000_000),
                ("'}\n", 1),
                ("    - *s\n", 100_000),
            ],
            ":5: alias 's' repeats a text of more than 255 characters",
            id="an alias of a long text",
        ),
        pytest.param(
            SLURM,
            [(f"SwitchName=s{n} Switches=a{n}[1-999999],x[\n", 1) for n in range(100)],
            r":11: switch 's10': 'a10\[1-999999\],x\[' expands to 999999 switch names, together "
            "with those before 10999989; at most 10000000$",
            id="lists of switches, each with an error",
            marks=DEAREST,
        ),
        pytest.param(
            SLURM,
            [("SwitchName=a\n", 11_000_000)],
            "expected at most 10000000 lines, found 11000000",
            id="lines in topology.conf",
            marks=DEAR,
        ),
        pytest.param(
            IBNETDISCOVER,
            [('Ca 1 "H-{0:x}"\n', 1_100_000)],
            ":1000002: expected at most 1000000 nodes and cables, found more$",
            id="HCAs in a dump",
            marks=DEAREST,
        ),
        pytest.param(
            KUBERNETES,
            [('{"kind":"List","items":[', 1), ("{},", 6_000_000), ("{}]}", 1)],
            ": expected at most 10000000 JSON values, found more$",
            id="empty nodes",
            marks=DEAR,
        ),
        pytest.param(
            KUBERNETES,
            [
                ('{"kind":"List","items":[', 1),
                ('{{"metadata":{{"name":"n{0}"}}}},', 1_100_000),
                ('{"metadata":{"name":"n"}}]}', 1),
            ],
            ": expected at most 1000000 nodes, found 1100001$",
            id="nodes",
            marks=DEAR,
        ),
        pytest.param(
            KUBERNETES,
            [
                ('{"kind":"Node","metadata":{"name":"n","labels":{', 1),
                ('"cloud.google.com/{0}":"",', 4_000_000),
                ('"a":""}}}', 1),
            ],
            ": node 'n': labels: expected at most 1048576 bytes, found",
            id="labels of a node",
            marks=DEAR,
        ),
        pytest.param(
            LLDP,
            [("{", 1), ('"n{0}":{{}},', 6_000_000), ('"n":{}}', 1)],
            ": expected at most 10000000 JSON values, found more$",
            id="empty outputs",
            marks=DEAR,
        ),
        pytest.param(
            LLDP,
            [('{"n":{"lldp":[', 1), ("[],", 3_000_000), ("[]]}}", 1)],
            r": n: expected at most 8388608 bytes, found 9000013$",
            id="an output of one host",
            marks=DEAR,
        ),
        pytest.param(
            IRONIC,
            [("[", 1), ("{},", 11_000_000), ("{}]", 1)],
            ": expected at most 10000000 JSON values, found more$",
            id="empty nodes of Ironic",
            marks=DEAR,
        ),
        pytest.param(
            IRONIC,
            [("[", 1), ('{{"uuid":"{0}"}},', 1_100_000), ('{"uuid":"x"}]', 1)],
            ": expected at most 1000000 nodes, found more$",
            id="nodes of Ironic",
            marks=DEAREST,
        ),
        pytest.param(
            INDEX,
            [("- &r [", 1), ("a,", 300_000), ("a]\n", 1), ("- *r\n", 300_000)],
            r":1: expected 4 columns .* found 300001",
            id="aliases of a long row",
            marks=DEAR,
        ),
    ],
)
def test_what_a_file_builds_is_limited(
    tmp_path: Path, read: str, parts: list[tuple[str, int]], error: str
):
    path = tmp_path / ("index.yaml" if read == INDEX else "topology")
    with path.open("w") as stream:
        for text, times in parts:
            many = (text.format(number) for number in range(times))
            stream.writelines(many if "{0" in text else itertools.repeat(text, times))
    check(read, path, error)


@pytest.mark.parametrize(
    ("line", "times", "error"),
    [
        pytest.param(
            "{0:x} a\n",
            1_100_000,
            ":1000001: expected at most 1000000 names, found more$",
            id="names",
            marks=DEAR,
        ),
        pytest.param(
            "#xy\n", 11_000_000, ": expected at most 10000000 lines", id="lines", marks=DEAR
        ),
        # The last entry is wrong, so that there is an error.
        pytest.param(
            "#xy\r", 20_000_000, ":2: expected a name or GUID", id="old ends of lines", marks=DEAR
        ),
    ],
)
def test_entries_and_lines_of_a_name_map_are_limited(
    tmp_path: Path, line: str, times: int, error: str
):
    fabric, path = tmp_path / "topology.yaml", tmp_path / "names"
    fabric.write_text("switches: [{name: a, hosts: h1}]\n")
    with path.open("w", newline="") as stream:
        stream.writelines(line.format(number) for number in range(times))
        stream.write("\na")
    read = f"topology.load('yaml', path={str(fabric)!r}, name_map=path)"
    check(read, path, error)
