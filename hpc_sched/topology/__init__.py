"""Topology of the fabric: an immutable tree of switches with hosts below its leaves.

Imports nothing of Nova.
"""

from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.topology_driver import TopologyDriver, load

__all__ = ["Topology", "TopologyDriver", "load"]
