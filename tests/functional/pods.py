"""The fabric of the tests of filters and weighers, three levels and 32 hosts.

::

                            spine
                  /                       \\
               pod1                       pod2
         /     |     |     \\         /     |     |     \\
      leaf1  leaf2  leaf3  leaf4  leaf5  leaf6  leaf7  leaf8
      n01-4  n05-8  n09-12 n13-16 n17-20 n21-24 n25-28 n29-32"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from nova.scheduler import host_manager

from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.topology import Topology
from tests.functional.states import States, host_state
from tests.functional.trees import write_tree

TREE = {
    "spine": {
        f"pod{pod + 1}": {
            f"leaf{leaf + 1}": [f"n{4 * leaf + number:02}" for number in range(1, 5)]
            for leaf in range(4 * pod, 4 * pod + 4)
        }
        for pod in range(2)
    }
}


FABRIC = Topology.from_tree(TREE)


# What a tenant must never read: the names of switches and hosts.
NAMES = re.compile(r"spine|pod\d|leaf\d|\bn\d\d")


def write_fabric(path: Path, types: Mapping[str, str] | None = None) -> Path:
    """Write the fabric as a topology file; some switches may state a processor type."""
    return write_tree(path, TREE, types)


def add_island(path: Path) -> None:
    """Add an island to the fabric in use: m1 and m2 below a switch of their own."""
    tree = yaml.safe_load(path.read_text())
    tree["switches"].append({"name": "island", "hosts": ["m1", "m2"]})
    path.write_text(yaml.safe_dump(tree))
    loaded_topology.load()


def hosts_below(*switches: str) -> set[str]:
    return {host for switch in switches for host in FABRIC.hosts_of(switch)}


def states_of(*switches: str, **fields: object) -> States:
    """Return the hosts below some switches, all of the fabric by default."""
    below = hosts_below(*switches) if switches else set(FABRIC.hosts)
    return [host_state(host, **fields) for host in FABRIC.hosts if host in below]


def names(states: Sequence[host_manager.HostState]) -> set[str]:
    return {state.host for state in states}


def cpu(model: str = "Icelake", cores: int = 8, features: Sequence[str] = ("sse4",)) -> str:
    """Return a hypervisor's cpu_info."""
    return json.dumps(
        {
            "vendor": "Intel",
            "model": model,
            "topology": {"sockets": 2, "cores": cores, "threads": 2, "cells": 1},
            "features": list(features),
        }
    )


def two_types(first: Sequence[str], second: Sequence[str] = ()) -> States:
    """Return Icelake below some switches and Broadwell, with fewer cores, below others."""
    newer = states_of(*first, cpu_info=cpu("Icelake", cores=16))
    return newer + (states_of(*second, cpu_info=cpu("Broadwell", cores=12)) if second else [])


def least(free: Mapping[str, int], count: int, require: str | None = None) -> float:
    """Return the least Hop-Byte of a group without members."""
    answer = plan(topology=FABRIC, capacity=free, members={}, count=count, require=require)
    assert isinstance(answer, Plan)
    return answer.hop_bytes


def hop_bytes(placed: Sequence[str]) -> float:
    return hop_bytes_of_counts(topology=FABRIC, counts=Counter(placed))
