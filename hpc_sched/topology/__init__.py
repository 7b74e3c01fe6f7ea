"""The fabric: an immutable tree of switches with hosts below its leaves.

Imports nothing of Nova.
"""

from hpc_sched.topology.base import TopologyDriver, load
from hpc_sched.topology.model import Topology

__all__ = ["Topology", "TopologyDriver", "load"]
