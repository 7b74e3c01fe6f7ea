"""The Hop-Byte metric: bytes sent, each counted once per switch on its way."""

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpc_sched.topology.model import Topology

Traffic: TypeAlias = Mapping[tuple[Any, Any], float] | ArrayLike


def hop_bytes(
    *, topology: Topology, placement: Mapping[Hashable, str], traffic: Traffic | None = None
) -> float:
    """Return the Hop-Byte cost of a placement (Bhatele2010; Dudina2013).

    The sum over unordered pairs of VMs of bytes(p, q) * hops(host(p), host(q)): an int if all
    bytes are whole, infinity if VMs on different islands exchange bytes.

    :param placement: VM to its host
    :param traffic: bytes per unordered pair, as ``{(p, q): bytes}`` or as an n*n array in the
        order of ``placement``; a pair may be given once or, with the same number, in both
        orders. Without it every pair exchanges 1 byte, and the closed form is used.
    :raises ValueError: for negative bytes, a pair given twice with different numbers, or an
        array of another shape
    :raises LookupError: for a VM in ``traffic`` that is not in ``placement``
    """
    if traffic is None:
        return hop_bytes_of_counts(topology=topology, counts=Counter(placement.values()))
    if not isinstance(traffic, Mapping):
        traffic = _by_pair(list(placement), np.asarray(traffic))
    fabric = topology.including(placement.values())
    total: float = 0
    counted: set[tuple[Any, Any]] = set()
    for (p, q), sent in traffic.items():
        for vm in (p, q):
            if vm not in placement:
                raise LookupError(f"traffic names VM {vm!r}, which has no place")
        if sent < 0:
            raise ValueError(f"negative bytes between {p!r} and {q!r}: {sent}")
        before = traffic[q, p] if (q, p) in counted else None
        if before is None and sent and p != q:
            total += sent * fabric.hops(placement[p], placement[q])
        if before not in (None, sent):
            raise ValueError(f"bytes between {p!r} and {q!r} are given twice: {sent}, {before}")
        counted.add((p, q))
    return total


def hop_bytes_of_counts(*, topology: Topology, counts: Mapping[str, int]) -> float:
    """Return the Hop-Byte cost with one byte between every two VMs (closed form, Dudina2013).

    With n VMs below a root of level D, n_s of them below switch s and n_h on host h:
    (2D - 1) C(n, 2) - sum over s below the root of 2 (level(parent) - level(s)) C(n_s, 2)
    - sum over h of C(n_h, 2). Infinity if they are on several islands.
    O(hosts in ``counts`` * depth).

    :param counts: host to the number of VMs there
    """
    placed = {host: count for host, count in counts.items() if count}
    fabric = topology.including(placed)
    by_leaf: Counter[int] = Counter()
    for host, count in placed.items():
        by_leaf[fabric.leaf_index.item(fabric.index_of(host))] += count
    pairs = sum(math.comb(count, 2) for count in placed.values())
    return hop_bytes_of_leaves(topology=fabric, counts=by_leaf, pairs=pairs)


def hop_bytes_of_leaves(*, topology: Topology, counts: Mapping[int, int], pairs: int) -> float:
    """Return the Hop-Byte cost as :func:`hop_bytes_of_counts` does. O(leaves * depth).

    :param counts: leaf, as an index in ``topology.switches``, to the number of VMs there
    :param pairs: of VMs on one host
    """
    switches = topology.switches
    below: dict[int, int] = {}
    for leaf, count in counts.items():
        for switch in topology.upwards(leaf):
            below[switch] = below.get(switch, 0) + count
    cost, roots = -pairs, 0
    for switch, count in below.items():
        level, above = switches[switch].level, switches[switch].parent
        roots += above < 0
        hops = 2 * level - 1 if above < 0 else 2 * (level - switches[above].level)
        cost += hops * (count * (count - 1) // 2)
    return math.inf if roots > 1 else cost


def _by_pair(vms: list[Hashable], traffic: NDArray[Any]) -> dict[tuple[Any, Any], float]:
    if traffic.shape != (len(vms), len(vms)):
        raise ValueError(f"traffic has the shape {traffic.shape}, expected {(len(vms), len(vms))}")
    # From the end: an error then names a pair in the order of ``vms``.
    return {(vms[i], vms[j]): traffic[i, j].item() for i, j in np.argwhere(traffic)[::-1]}
