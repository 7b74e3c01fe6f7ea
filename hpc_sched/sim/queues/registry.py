"""The installed queue disciplines, by name: those of this package and of others."""

from hpc_sched.sim.installed import Installed
from hpc_sched.sim.queues.base import Queue

NAMESPACE = "hpc_sched.queues"
_QUEUES = Installed(NAMESPACE, "queue discipline", Queue)

names = _QUEUES.names
queue = _QUEUES.load
