"""The GroupRequest of a job on the cluster at one moment."""

import random

import numpy as np

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.problem import tie_order
from hpc_sched.core.sharing.mdobp import MDOBPInput
from hpc_sched.sim.cluster.cluster_state import Array, ClusterState
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies.base import PlacementRequest
from hpc_sched.sim.simulation_input import SimulationInput


class Requests:
    """Builds the requests of one simulation. Has no state of any request."""

    def __init__(self, setting: SimulationInput) -> None:
        self._setting = setting
        self._no_members = np.zeros(len(setting.cluster.total), dtype=np.int64)
        self._usable = setting.cluster.total.astype(np.float64)
        for shared in (self._no_members, self._usable):
            shared.setflags(write=False)

    def capacity(self, job: Job, occupancy: ClusterState) -> Array:
        """Return the VMs of a job that each host takes next to its VMs. Shape (hosts,)."""
        room = occupancy.capacity(job.vcpus, job.memory_mb)
        # Too few resources: the limits on neighbours need not be checked.
        if not self._setting.policy.bounded_by_neighbours or int(room.sum()) < job.count:
            return room
        return occupancy.rooms_beside(job.application, self._setting.limits, room)

    def request(self, job: Job, capacity: Array, occupancy: ClusterState) -> PlacementRequest:
        """Return the request of a job, the input of a policy."""
        setting = self._setting
        group = GroupRequest(
            topology=setting.cluster.topology,
            tie=tie_order(setting.cluster.topology, str(job.number)),
            host_index=None,
            room=capacity,
            members=self._no_members,
            left=job.count,
            awaiting=job.count,
            constraints=setting.constraints,
            packing=MDOBPInput(
                demand=np.array([job.vcpus, job.memory_mb], dtype=np.float64),
                free=occupancy.free.astype(np.float64),
                usable=self._usable,
            ),
            homogeneous="true" if setting.one_type else "prefer",
            processors=None if setting.types is None else setting.types.with_room(capacity),
        )
        draw = random.Random(f"{setting.seed} {job.number}")
        return PlacementRequest(group, job.application, draw)
