"""Short runs of the cloud of processes; ``tox -e cloud`` makes the long one."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

from hpc_sched.demo import nova_cloud  # noqa: F401 - first of all Nova: it chooses native threads
from hpc_sched.nova_glue import nova_release
from tests.cloud import results
from tests.cloud.rounds import Round
from tests.contention.bursts import Outcome, Request
from tests.contention.deployment import ROOT
from tests.contention.fabric import LEAVES
from tests.contention.verification import Findings
from tests.functional.servers import PREFIX, SERVERS

NO_SERVER, INTERRUPTED = 77, 130
TIMEOUT = 1200  # seconds
CLOSED = "127.0.0.1:1"

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(
        not nova_release.is_threaded(), reason="the services are started with native threads"
    ),
]


def start(*options: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        (sys.executable, "-m", "tests.cloud", *options),
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def left(folder: Path) -> list[str]:
    """Return the processes that work in a folder, and the databases that no process has locked."""
    links = (path / "cwd" for path in Path("/proc").iterdir() if path.name.isdigit())
    processes = [str(link) for link in links if _target(link) == str(folder)]
    with SERVERS["mariadb"].connect() as connection:
        names = connection.scalars(sa.text(SERVERS["mariadb"].list_databases)).all()
        free = sa.text("SELECT IS_FREE_LOCK(:name)")
        return processes + [
            name
            for name in names
            if name.startswith(PREFIX)
            and connection.scalar(free, {"name": "_".join(name.split("_")[:4])})
        ]


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


@pytest.mark.parametrize("variable", ["HPC_SCHED_TEST_MYSQL", "HPC_SCHED_TEST_RABBITMQ"])
def test_without_a_database_server_or_a_broker_the_exit_code_is_77(variable):
    urls = {
        "HPC_SCHED_TEST_MYSQL": f"mysql+pymysql://root@{CLOSED}",
        "HPC_SCHED_TEST_RABBITMQ": f"rabbit://guest:guest@{CLOSED}/cloud",
    }
    process = start(**{variable: urls[variable]})
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == NO_SERVER
    assert "no server at" in errors or "no broker at" in errors


def test_a_group_is_refused_if_a_vm_fails_and_split_on_two_leaves():
    (one, other, *_) = [LEAVES[leaf] for leaf in sorted(LEAVES)]

    def outcome(group, hosts, count):
        vms = tuple(f"{group}-{number}" for number in range(count))
        return Outcome(Request(vms, 16, group, "anti-affinity"), tuple(hosts), None, 0.0, 1.0)

    outcomes = [
        outcome("whole", one, 8),
        outcome("split", [*other[:7], one[0]], 8),
        outcome("refused", one[:3], 3),
        outcome("refused", [], 5),
    ]
    calls = Counter({"POST /allocations": 2, "GET /allocations": 5, "PUT /allocations": 3})
    found = Round(outcomes, Findings(), calls, [1.0, 3.0], 4.0)
    measures = (results.refused, results.split, results.in_error, results.writes)
    assert [measure(found) for measure in measures] == [1, 1, 5, 5]
    # 28 pairs: 1 hop under a leaf, 3 under a pod.
    assert results.cost(found) == (28 + 21 + 7 * 3) / 2
    assert results.is_broken([found])
    printed = results.table({"plans": [found] * 10, "claims": [found] * 10})
    assert "claims - plans" in printed
    assert "groups refused" in printed


@pytest.mark.nightly("processes", "a cloud of 40 processes")
def test_four_groups_get_a_leaf_each_and_a_run_that_is_interrupted_leaves_nothing(tmp_path):
    folder = tmp_path / "logs"
    process = start("--bursts", "require", "--sides", "claims", "--keep", str(folder))
    read = []
    for line in process.stderr:
        read.append(line)
        if line.startswith("claims require 0"):
            process.send_signal(signal.SIGINT)
            break
    printed, errors = process.communicate(timeout=TIMEOUT)
    if process.returncode == NO_SERVER:
        pytest.skip(read[-1].strip())
    assert process.returncode == INTERRUPTED, printed + errors + "".join(read)
    names = ("groups", "VMs ACTIVE", "groups refused", "groups split")
    shown = [re.findall(rf"^{name} +(\d+)$", printed, re.M) for name in names]
    assert shown == [["4"], ["32"], ["0"], ["0"]], printed
    assert left(folder) == []


@pytest.mark.nightly("processes", "a cloud of 40 processes")
def test_groups_of_a_dead_leaf_and_shelved_ones_come_back_each_under_one_leaf():
    kinds = "evacuation,unshelve"
    process = start("--bursts", kinds, "--sides", "claims", "--rounds", "2")
    printed, errors = process.communicate(timeout=2 * TIMEOUT)
    if process.returncode == NO_SERVER:
        pytest.skip(errors.strip())
    assert process.returncode == 0, printed + errors
    shown = [
        re.findall(rf"^{name} +(\d+)$", printed, re.M) for name in ("groups refused", "rounds")
    ]
    assert shown == [["0", "0"], ["2", "2"]], printed
