"""Fabrics, flavors and looks at a running cloud that several functional tests share."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hpc_sched.demo.nova_cloud import read_options
from tests.functional.tested_cloud import BUSY_MACHINE
from tests.functional.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_CONF = ROOT / "etc" / "nova.conf.sample"


def sharing_options(folder: Path, **ours: Any) -> dict[tuple[str, str], Any]:
    """Return the options of the sample's other choice, hosts that applications share, and ours."""
    chosen = folder / "nova.conf"
    chosen.write_text(re.sub(r"(?m)^#(?=\w+ = )", "", SAMPLE_CONF.read_text()))
    found = {
        key: value for key, value in read_options(chosen).items() if key[0] == "filter_scheduler"
    }
    ours = {"cell_timeout": BUSY_MACHINE, **ours}
    return found | {("hpc_sched", name): value for name, value in ours.items()}


def sample_options(
    folder: Path, leaves: Mapping[str, list[str]], **ours: Any
) -> dict[tuple[str, str], Any]:
    """Return the options of the sample, with a topology of leaves that is read once, and ours."""
    usual = {
        "topology_file": str(write_topology(folder, leaves)),
        "topology_reload_interval": 0,
        "cell_timeout": BUSY_MACHINE,
    }
    return read_options(SAMPLE_CONF) | {
        ("hpc_sched", name): value for name, value in (usual | ours).items()
    }


def four_by_eight() -> dict[str, list[str]]:
    """Return 32 hosts under 4 leaves.

    ::

                      core
           /       |        |       \\
        leaf1    leaf2    leaf3    leaf4
        n01-n08  n09-n16  n17-n24  n25-n32
    """
    return {
        f"leaf{leaf + 1}": [f"n{8 * leaf + number:02d}" for number in range(1, 9)]
        for leaf in range(4)
    }


def write_topology(folder: Path, leaves: Mapping[str, list[str]]) -> Path:
    """Write leaves below one core switch as a topology file and return its path."""
    return write_tree(folder / "topology.yaml", {"core": leaves})


def leaves_used(leaves: Mapping[str, list[str]], hosts: Iterable[str]) -> dict[str, int]:
    """Return how many of some hosts are under each leaf, leaves without any left out."""
    leaf_of = {host: leaf for leaf, below in leaves.items() for host in below}
    return dict(Counter(leaf_of[host] for host in hosts))
