"""The sample files say what the code does."""

import subprocess
import sys
from pathlib import Path

from hpc_sched import topology

ROOT = Path(__file__).resolve().parents[1]


def test_the_sample_of_the_options_is_current():
    made = subprocess.run(
        [sys.executable, "-m", "oslo_config.generator", "--namespace", "hpc_sched"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert (ROOT / "etc" / "hpc_sched.conf.sample").read_text() == made, "run: tox -e genconfig"


def test_the_sample_topology_is_the_one_that_its_drawing_shows():
    fabric = topology.load("yaml", path=ROOT / "etc" / "topology.yaml.sample")
    fabric.check()
    assert fabric.levels == ("leaf", "pod", "core")
    assert {leaf: len(fabric.hosts_of(leaf)) for leaf in fabric.leaves} == {
        "leaf01": 8,
        "leaf02": 8,
        "leaf03": 8,
        "leaf04": 8,
    }
    assert fabric.hops("node001", "node032") == 5
    assert fabric.processor_of("node017") == "gold-6338"


def test_the_readme_shows_the_nova_conf_that_the_demo_and_the_tests_use():
    lines = (ROOT / "README.rst").read_text().splitlines()
    sample = (ROOT / "etc" / "nova.conf.sample").read_text().strip().splitlines()
    indented = [f"      {line}" if line else "" for line in sample]
    start = lines.index(indented[0])
    assert lines[start : start + len(indented)] == indented


def test_the_readmes_topology_is_a_topology(tmp_path: Path):
    text = (ROOT / "README.rst").read_text()
    block = text.split(".. code-block:: yaml\n\n", 1)[1]
    body = []
    for line in block.splitlines():
        if line and not line.startswith("      "):
            break
        body.append(line[6:])
    path = tmp_path / "topology.yaml"
    path.write_text("\n".join(body))
    assert len(topology.load("yaml", path=path).leaves) == 4
