"""A command reads NUMA cells and PCI devices from Nova's databases, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.functional.database_files import write_conf, write_databases

pytestmark = pytest.mark.ci

TOPOLOGY = '{"nova_object.name": "NUMATopology"}'
CODE = """
import argparse, sys
from hpc_sched.cli.common import nova_conf
from hpc_sched.snapshot.snapshot_model import Hypervisor, Snapshot
nodes = tuple(Hypervisor(n, n, True, True, {}, {}) for n in ("n1", "n2"))
found = Snapshot("now", nodes, (), (), ())
args = argparse.Namespace(config_file=[sys.argv[1]], config_dir=None)
found = nova_conf.with_devices(found, nova_conf.read(args, "x"))
for node in found.hypervisors:
    print(node.host, node.devices and node.devices.numa_topology)
"""


@pytest.fixture
def databases(tmp_path: Path) -> dict[str, dict[str, str]]:
    options = write_databases(tmp_path, ["n1"])
    engine = sa.create_engine(options["database"]["connection"])
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE compute_nodes SET numa_topology = :t"), {"t": TOPOLOGY})
    engine.dispose()
    return options


def run(conf: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CODE, str(conf)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_devices_of_each_compute_node_are_read(tmp_path, databases):
    done = run(write_conf(tmp_path / "nova.conf", databases))
    assert (done.stdout, done.returncode) == (f"n1 {TOPOLOGY}\nn2 None\n", 0), done.stderr
    assert done.stderr == ""


def test_without_databases_in_nova_conf_nothing_is_read(tmp_path):
    done = run(write_conf(tmp_path / "nova.conf", {"hpc_sched": {"cell_timeout": "5"}}))
    assert (done.stdout, done.stderr) == ("n1 None\nn2 None\n", "")


def test_databases_that_do_not_answer_are_a_note(tmp_path):
    broken = {"api_database": {"connection": f"sqlite:///{tmp_path}/missing/api.sqlite"}}
    done = run(write_conf(tmp_path / "nova.conf", broken))
    assert (done.stdout, done.returncode) == ("n1 None\nn2 None\n", 0), done.stderr
    assert done.stderr.startswith("note: NUMA cells and PCI devices cannot be read: ")
    assert "Traceback" not in done.stderr


def test_no_part_of_a_password_with_a_dollar_is_in_the_error(tmp_path):
    broken = {"api_database": {"connection": "mysql+pymysql://nova:ab$s3cret@h/x"}}
    path = write_conf(tmp_path / "nova.conf", broken)
    done = run(path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"{path}: [api_database] connection is not valid: NoSuchOptError" in last
    assert "s3cret" not in last
