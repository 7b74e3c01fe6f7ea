"""The installed policies, by name: those of this package and of others."""

from hpc_sched.sim.installed import Installed
from hpc_sched.sim.policies.base import Policy

NAMESPACE = "hpc_sched.policies"
_POLICIES = Installed(NAMESPACE, "policy", Policy)

names = _POLICIES.names
policy = _POLICIES.load
