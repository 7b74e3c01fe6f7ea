"""The reservation of EASY backfilling: when the first job has room, and what is spare then."""

import math

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.capacity import capacities
from hpc_sched.sim.cluster.cluster import MEMORY_MB, VCPUS
from hpc_sched.sim.cluster.kept_rooms import Size, host_room
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.simulation import Simulation

_FEW = 12  # jobs whose releases are counted one by one


class Reservation:
    """When the first job will have room, and what is free at that time.

    Room is counted below each switch of the required level, or on each island without one. A
    job that runs beyond its estimate is expected to end at any moment: now. A job that is held for
    a better place has room already.
    """

    def __init__(self, head: Job, simulation: Simulation) -> None:
        """Reserve. O(jobs that end before, and their hosts)."""
        state = simulation.state
        room = state.room(*head.size)
        self._head = head
        self._seen = simulation.chances, state.losses
        self._now = simulation.now
        self._accepting = state.accepts(*head.size)
        self._domain = simulation.domains.of_host
        # At the time of the reservation.
        self._free = state.free.copy()
        self._per_host = room.per_host.copy()
        self._rooms = simulation.domains.sums(room)
        self._total = room.total
        self.time = math.inf
        self._next_end = math.inf  # of a job that counts as running then
        if simulation.is_held(head) and int(self._rooms.max()) >= head.count:
            # It may start at any moment: as in Slurm's backfill, its room is kept from now on.
            self.time = self._now
        else:
            self._wait_for_ends(simulation)

    def _wait_for_ends(self, simulation: Simulation) -> None:
        """Release what running jobs hold, in the order of their ends, until there is room."""
        ends, jobs, count = simulation.running_jobs.ends, simulation.state.jobs, self._head.count
        position, ended = 0, list[PlacedJob]()
        gains: dict[Size, int] = {}  # by size of the VMs that have ended
        # Below no switch there is more room, whichever hosts the jobs that have ended were on.
        most = int(self._rooms.max())
        while position < len(ends) and self.time == math.inf:
            time = max(ends[position][0], self._now)
            # What is spare for others is known only with all jobs that end at this time.
            while position < len(ends) and ends[position][0] <= time:
                placed = jobs[ends[position][1]]
                size = placed.job.size
                if size not in gains:
                    gains[size] = self._most_of_vm(size)
                most += placed.job.count * gains[size]
                ended.append(placed)
                position += 1
            if most < count:
                continue
            self._release(ended)
            ended.clear()
            most = int(self._rooms.max())
            if most >= count:
                self.time = time
        if position < len(ends):
            self._next_end = ends[position][0]

    def is_valid(self, head: Job, simulation: Simulation) -> bool:
        """True if it is for this job and no room was released, lost or expected since."""
        state, now = simulation.state, simulation.now
        if self._head is not head or now >= self._next_end:
            return False
        # Past its time, jobs that run beyond their estimates are expected to end now.
        self.time = max(self.time, now)
        self._now = now
        return self._seen == (simulation.chances, state.losses)

    def can_allow(self, job: Job) -> bool:
        """True if there may be hosts on which a job is allowed. Spares most placements."""
        head = self._head
        return (
            # Each of its VMs takes the room of at least one VM of the first job.
            self._total - job.count >= head.count
            or self._now + job.estimate <= self.time
            or job.vcpus < head.vcpus
            or job.memory_mb < head.memory_mb
        )

    def allows(self, placed: PlacedJob) -> bool:
        """True if a job may start on these hosts; it then counts as started."""
        end = self._now + placed.job.estimate
        if end <= self.time:
            return True
        self._change(placed, -1)
        if int(self._rooms.max()) >= self._head.count:
            self._next_end = min(self._next_end, end)
            return True
        self._change(placed)
        return False

    def _most_of_vm(self, size: Size) -> int:
        """Return the most VMs of the first job that take the place of one VM of a size."""
        pairs = zip(size, self._head.size, strict=True)
        return max((-(-freed // needed) for freed, needed in pairs if needed > 0), default=0)

    def _release(self, ended: list[PlacedJob]) -> None:
        if len(ended) <= _FEW:
            for placed in ended:
                self._change(placed)
            return
        hosts = np.concatenate([placed.hosts for placed in ended])
        hosts, row = np.unique(hosts, return_inverse=True)
        takes = np.zeros((len(hosts), 2), dtype=np.int64)
        np.add.at(takes, row, np.concatenate([placed.takes for placed in ended]))
        self._change_hosts(hosts, takes)

    def _change(self, placed: PlacedJob, sign: int = 1) -> None:  # 1: released, -1: taken
        host = placed.only_host
        if host is None:
            self._change_hosts(placed.hosts, sign * placed.takes)
            return
        vms = sign * placed.job.count
        self._free[host, VCPUS] += vms * placed.job.vcpus
        self._free[host, MEMORY_MB] += vms * placed.job.memory_mb
        if self._accepting.item(host):
            room = host_room(self._free, host, self._head.size)
            change = room - self._per_host.item(host)
            self._per_host[host] = room
            self._rooms[self._domain.item(host)] += change
            self._total += change

    def _change_hosts(self, hosts: Array, released: Array) -> None:
        """Count what is released on hosts, each named once; less than 0: taken."""
        self._free[hosts] += released
        room = capacities(self._free[hosts], self._head.size)
        room[~self._accepting[hosts]] = 0
        change = room - self._per_host[hosts]
        self._per_host[hosts] = room
        np.add.at(self._rooms, self._domain[hosts], change)
        self._total += int(change.sum())
