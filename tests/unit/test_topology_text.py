"""Descriptions from commands, and name maps."""

import os
import sys
import time
from pathlib import Path

import pytest

from hpc_sched import exceptions
from hpc_sched.topology import load
from hpc_sched.topology.readers import command_output, name_map
from hpc_sched.topology.readers.yaml_file import YamlFileDriver
from tests.unit.fabrics import check

GOOD = "switches: [{name: sw1, hosts: [h1, h2]}]"


def test_what_a_command_prints_is_the_description():
    fabric = load("yaml", command=["echo", GOOD])
    assert fabric.hosts == ("h1", "h2")


def test_a_command_may_be_one_text_that_no_shell_reads():
    assert load("yaml", command=f"echo '{GOOD}'").leaves == ("sw1",)
    with pytest.raises(exceptions.TopologyError):
        load("yaml", command=f"echo '{GOOD}' > /dev/null")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import sys; sys.stderr.write('a\\nno port\\n'); sys.exit(3)", "exit code 3: no port"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "exit code -11"),
        ("print('switches: 7')", r"print\(.*:1: switches: expected a list"),
        ("import time; time.sleep(3600)", "no end within 0.3 s"),
        ("import os, time; os.close(1); os.close(2); time.sleep(3600)", "no end within 0.3 s"),
        ("pass", "the file is empty"),
    ],
    ids=[
        "it fails",
        "it crashes",
        "it prints what is wrong",
        "it hangs",
        "it closes its output and hangs",
        "it prints nothing",
    ],
)
def test_a_command_that_gives_no_topology_is_named_with_the_reason(code, error):
    # A command that hangs does so for an hour, which is not waited for.
    timeout = 0.3 if "sleep" in code else 600
    with pytest.raises(exceptions.TopologyError, match=error):
        load("yaml", command=[sys.executable, "-c", code], timeout=timeout)


def test_a_command_that_is_not_there_is_an_error():
    with pytest.raises(exceptions.TopologyError, match="no-such-program: cannot be run: No such"):
        load("yaml", command=["no-such-program"])


def test_a_command_that_never_stops_printing_is_stopped():
    with pytest.raises(exceptions.TopologyError, match="prints more than 100000 bytes"):
        command_output.output_of(["yes"], 600, 100_000)


def test_the_children_of_a_command_that_hangs_are_ended_too(tmp_path: Path):
    pid = tmp_path / "pid"
    with pytest.raises(exceptions.TopologyError, match="no end within"):
        command_output.output_of(["sh", "-c", f"sleep 3600 & echo $! > {pid}; wait"], 0.5, 1000)
    child = int(pid.read_text())
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and _is_running(child):
        time.sleep(0.05)
    assert not _is_running(child)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_a_description_is_equal_as_long_as_nothing_has_changed(tmp_path: Path):
    path = tmp_path / "t.yaml"
    path.write_text(GOOD)
    driver = YamlFileDriver(path=path)
    first = driver.read()
    os.utime(path, (1, 1))
    assert driver.read() == first
    path.write_text(GOOD.replace("h2", "h3"))
    assert driver.read() != first
    assert driver.parse(first).hosts == ("h1", "h2")


def test_of_a_large_description_little_is_kept(tmp_path: Path):
    path = tmp_path / "t.yaml"
    path.write_text(GOOD + "\n# " + "x" * 1_000_000)
    driver = YamlFileDriver(path=path)
    mark = driver.mark(driver.read())
    assert sum(map(len, mark)) < 1000
    assert driver.mark(driver.read()) == mark
    path.write_text(path.read_text() + "y")
    assert driver.mark(driver.read()) != mark


def test_hosts_get_the_names_of_the_map(tmp_path: Path):
    names = tmp_path / "names"
    names.write_text('# bare metal\nh1 1f0c-uuid\n\n0x0002c90300a1b2c3 "leaf 1"  # a switch\n')
    fabric = load("yaml", command=["echo", GOOD], name_map=names)
    check(fabric)
    assert fabric.hosts == ("1f0c-uuid", "h2")
    assert fabric.hops("1f0c-uuid", "h2") == 1


def test_a_change_of_the_map_is_a_change_of_the_description(tmp_path: Path):
    names = tmp_path / "names"
    names.write_text("h1 a\n")
    driver = YamlFileDriver(command=["echo", GOOD], name_map=names)
    first = driver.read()
    names.write_text("h1 b\n")
    assert driver.read() != first


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("h1\n", r"names:1: expected a name or GUID and the name of a host, found 'h1'"),
        ("\nh1 a b\n", r"names:2: expected .*'h1 a b'"),
        ("h1 a\nh1 b\n", r"names:2: 'h1' is 'b' here and 'a' on line 1"),
        ("0x01 a\n0x1 b\n", r"names:2: '0x1' is 'b' here and 'a' on line 1"),
        ("h1 h2\n", r"names: hosts 'h1' and 'h2' would both be called 'h2'"),
        ("h1 a\nh2 a\n", r"names: hosts 'h1' and 'h2' would both be called 'a'"),
        ('h1 ""\n', r"names:1: expected"),
        ("h1 \xff\n".encode("latin-1"), r"names:1: expected UTF-8, found byte 0xff"),
    ],
    ids=[
        "one word",
        "three words",
        "two names for one host",
        "two names for one GUID",
        "a name that another host has",
        "one name for two hosts",
        "an empty name",
        "no UTF-8",
    ],
)
def test_a_wrong_name_map_is_reported_with_its_line(tmp_path: Path, text, error):
    names = tmp_path / "names"
    names.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(exceptions.TopologyError, match=error):
        load("yaml", command=["echo", GOOD], name_map=names)


def test_every_wrong_line_of_a_name_map_is_reported(tmp_path: Path):
    with pytest.raises(exceptions.TopologyError) as caught:
        name_map.NameMap(b"a\nb\nc d\n", "names")
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [
        "names:1",
        "names:2",
    ]


def test_guids_are_compared_in_one_form():
    names = name_map.NameMap(
        b"0x2c90300A1B2C3 n1\n00112233-4455-6677-8899-aabbccddeeff n2\n", "names"
    )
    assert names["0002c90300a1b2c3"] == "n1"
    assert name_map.guid("0x2c90300A1B2C3") == "0002c90300a1b2c3"
    assert name_map.guid("00112233-4455-6677-8899-aabbccddeeff") is None
    assert name_map.guid("0x00112233445566778") is None


def test_every_problem_of_a_yaml_file_is_reported():
    text = """
switches:
- name: sw1
  hosts: ["n[1-2]", "n[3-", n1]
- name: sw2
- name: sw1
  hosts: [n9]
- name: sw3
  hosts: [n2, n4]
"""
    with pytest.raises(exceptions.TopologyError) as caught:
        YamlFileDriver(path="t.yaml").parse_text(text.encode(), "t.yaml", {})
    assert [problem.partition(": ")[2] for problem in caught.value.problems] == [
        "leaf 'sw1': bad range in 'n[3-': a bracket without its partner",
        "host 'n1' stands twice under leaf 'sw1'",
        "switch 'sw2' has neither 'hosts' nor 'switches'",
        "switch 'sw1' stands twice, first on line 3: a switch has one parent",
        "host 'n2' is under leaf 'sw1' and leaf 'sw3'",
    ]
    assert str(caught.value).endswith("(and 4 more problems)")
