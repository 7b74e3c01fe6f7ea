"""The hosts that are competed for.

::

                      core
               /               \\
             pod1             pod2
          /    |    \\      /    |    \\
        a1    a2    a3   b1    b2    b3        8 hosts of 16 VCPUs each
        new   new   old  new   old   old       their processors
"""

from __future__ import annotations

import random
from collections.abc import Iterable

HOSTS_A_LEAF, VCPUS = 8, 16
PODS = {"pod1": ("a1", "a2", "a3"), "pod2": ("b1", "b2", "b3")}
TREE = {
    "core": {
        pod: {leaf: [f"{leaf}-{n}" for n in range(HOSTS_A_LEAF)] for leaf in leaves}
        for pod, leaves in PODS.items()
    }
}
# Types of which a group takes one if that can hold it (``default_homogeneous``).
PROCESSORS = {
    leaf: "new" if leaf in ("a1", "a2", "b1") else "old" for leaf in sum(PODS.values(), ())
}
LEAVES = {
    leaf: hosts
    for pods in TREE.values()
    for below in pods.values()
    for leaf, hosts in below.items()
}
HOSTS = [host for hosts in LEAVES.values() for host in hosts]
SWITCHES = {
    "leaf": LEAVES,
    "pod": {pod: [h for leaf in leaves for h in LEAVES[leaf]] for pod, leaves in PODS.items()},
}
LEAF_OF = {host: leaf for leaf, hosts in LEAVES.items() for host in hosts}
# Cores of others come and go in these portions, a VM's least size.
PORTION = 4


def seeded_use(numbers: random.Random, share: float) -> dict[str, int]:
    """Return the VCPUs in use on each host, together that share of all.

    Half of the time leaf by leaf, so that whole leaves stay free; else spread over all hosts.
    """
    if numbers.random() < 0.5:
        leaves = numbers.sample(sorted(LEAVES), len(LEAVES))
        order = [h for leaf in leaves for h in LEAVES[leaf] for _ in range(VCPUS // PORTION)]
    else:
        order = numbers.sample(HOSTS * (VCPUS // PORTION), len(HOSTS) * (VCPUS // PORTION))
    used = dict.fromkeys(HOSTS, 0)
    for host in order[: round(share * len(order))]:
        used[host] += PORTION
    return used


def free_leaves(leaves: int) -> dict[str, int]:
    """Return the VCPUs in use on each host if some leaves are free and the others are full."""
    free = sorted(LEAVES)[:leaves]
    return {host: 0 if leaf in free else VCPUS for host, leaf in LEAF_OF.items()}


def leaves_of(hosts: Iterable[str]) -> set[str]:
    """Return the leaves of some hosts."""
    return {LEAF_OF[host] for host in hosts}
