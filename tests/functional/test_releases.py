"""What holds on every release of Nova that is supported."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from hpc_sched.nova_glue import nova_release
from hpc_sched.nova_glue.io import periodic_thread
from hpc_sched.topology.readers import command_output

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = sorted((ROOT / "constraints").glob("nova-*.txt"))

# What a process runs on once it has been prepared: is the standard library green?
ASK = """
import json, sys
eventlet = sys.modules.get("eventlet")
print(json.dumps(eventlet is not None and eventlet.patcher.is_monkey_patched("thread")))
"""

# A process on eventlet, where another green thread counts how often it got its turn.
GREEN = """
import eventlet
eventlet.monkey_patch()
import json, sys, threading
turns = 0
def count():
    global turns
    while True:
        turns += 1
        eventlet.sleep(0.02)
eventlet.spawn(count)
"""


def printed_by(code: str, **environment: str) -> object:
    """Return what a Python process prints as JSON in its last line."""
    env = {k: v for k, v in os.environ.items() if k != "OS_NOVA_DISABLE_EVENTLET_PATCHING"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env=env | environment,
    )
    return json.loads(done.stdout.splitlines()[-1])


def supported() -> Requirement:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [nova] = map(Requirement, project["optional-dependencies"]["nova"])
    return nova


def test_every_supported_release_has_its_constraints_and_its_tox_environment():
    specifier = supported().specifier
    majors = [major for major in range(1, 100) if specifier.contains(Version(f"{major}.0.0"))]
    assert [f"nova-{major}.0.0.txt" for major in majors] == [path.name for path in CONSTRAINTS]
    tox = (ROOT / "tox.ini").read_text()
    listed = re.search(r"env_list = .*nova\{([\d,]+)\}", tox)
    assert listed is not None
    assert listed[1].split(",") == [str(major) for major in majors]
    for path in CONSTRAINTS:
        assert f"/constraints/{path.name}" in tox


@pytest.mark.parametrize("path", CONSTRAINTS, ids=lambda path: path.stem)
def test_constraints_pin_one_version_each_and_name_no_place_to_get_it(path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    pins = dict(line.split("==") for line in lines)
    assert len(pins) == len(lines)
    pin = re.compile(r"[A-Za-z0-9._-]+==([0-9]+!)?[0-9][0-9A-Za-z.+]*")
    assert all(map(pin.fullmatch, lines))
    assert f"nova-{pins['nova']}" == path.stem
    assert {"hypothesis", "openstack-placement", "pytest", "pytest-xdist"} <= pins.keys()


@pytest.mark.parametrize("disabled", [None, "true", "false"])
def test_our_commands_run_on_what_nova_scheduler_runs_on(disabled):
    environment = {} if disabled is None else {"OS_NOVA_DISABLE_EVENTLET_PATCHING": disabled}
    ours = f"from {nova_release.__name__} import choose_threads\nchoose_threads()"
    assert printed_by(ours + ASK, **environment) == printed_by(
        "import nova.cmd.scheduler" + ASK, **environment
    )


def test_a_command_that_prints_the_fabric_keeps_no_green_thread_waiting():
    code = GREEN + (
        f"from {command_output.__name__} import output_of\n"
        "said = output_of(['sh', '-c', 'sleep 1; echo hi'], 20, 100).decode()\n"
        "print(json.dumps([said, turns]))\n"
    )
    said, turns = printed_by(code)
    assert said == "hi\n"
    assert turns > 5  # 50 on an idle machine


def test_the_look_for_changes_is_a_green_thread_where_nova_runs_on_those():
    code = GREEN + (
        f"from {periodic_thread.__name__} import PeriodicThread\n"
        "looks = []\n"
        "def look():\n"
        "    looks.append(threading.current_thread().name)\n"
        "watch = PeriodicThread(look, lambda: 0.05)\n"
        "watch.start()\n"
        "while len(looks) < 3:\n"
        "    eventlet.sleep(0.01)\n"
        "before = turns\n"
        "watch.wake()\n"
        "eventlet.sleep(0.1)\n"
        "print(json.dumps([looks[0], turns > before]))\n"
    )
    assert printed_by(code) == ["hpc_sched reload", True]
