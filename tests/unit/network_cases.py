"""Small fabrics and drawn messages for the tests of the network model."""

from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import strategies as st

from hpc_sched.core.arrays import Array
from hpc_sched.sim.network.flows import Flows
from hpc_sched.sim.network.links import Network, fat_tree, paths_between
from hpc_sched.topology import Topology
from tests.unit import fabrics

FABRICS = [fabrics.two_leaves, fabrics.two_pods, fabrics.lopsided, fabrics.islands]


def two_leaves_thin() -> Network:
    """Return a fabric whose uplinks have the rate of one host's link.

    ::

                  core
                1 /  \\ 1
             leaf1    leaf2
             / 1 \\    / | \\  1 each
            a1   a2  b1 b2 b3
    """
    return with_uplinks(fabrics.two_leaves(), leaf1=1.0, leaf2=1.0)


def with_uplinks(topology: Topology, **uplinks: float) -> Network:
    """Return a fabric of hosts with the rate 1, and the stated rates of uplinks."""
    network = fat_tree(topology, host_rate=1.0)
    for name, rate in uplinks.items():
        up = network.uplinks + topology.switch_index(name)
        network.capacity[[up, up + len(topology.switches)]] = rate
    return network


def hosts(topology: Topology, names: Iterable[str]) -> Array:
    """Return the indices of hosts."""
    return np.array([topology.index_of(name) for name in names], dtype=np.int64)


def paths(network: Network, pairs: Sequence[tuple[str, str]]) -> Array:
    """Return the paths between hosts, by name."""
    ends = zip(*pairs, strict=True) if pairs else ((), ())
    source, target = (hosts(network.topology, names) for names in ends)
    return paths_between(network, source, target)


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Return the links of a small fabric."""
    return fat_tree(
        draw(st.sampled_from(FABRICS))(),
        host_rate=draw(st.sampled_from([1.0, 3.0, 125e6])),
        oversubscription=draw(st.sampled_from([0.5, 1.0, 1.7, (4.0, 1.0)])),
        host_latency=draw(st.sampled_from([0.0, 1e-6])),
    )


@st.composite
def loads(draw: st.DrawFn) -> tuple[Network, Flows]:
    """Return a network and up to a dozen rows of flows on it, some bounded or of another weight."""
    network = draw(networks())
    host = st.sampled_from(network.topology.hosts)
    pairs = draw(st.lists(st.tuples(host, host), min_size=1, max_size=12))
    weight = st.sampled_from([1.0, 1.0, 2.0, 0.3])
    rate = network.capacity[0]
    bound = st.sampled_from([np.inf, np.inf, rate / 2, rate / 7])
    every = range(len(pairs))
    return network, Flows(
        paths(network, pairs),
        np.array([draw(weight) for _ in every]),
        np.array([draw(bound) for _ in every]),
    )
