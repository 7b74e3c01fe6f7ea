"""One workload of benchmarks/churn.py on one source tree: groups that come and go.

    8 pods x 16 leaves x 18 hosts, one VM a host

        core
        ├── pod0
        │   ├── leaf0-00   18 hosts
        │   ┊
        │   └── leaf0-15
        ┊
        └── pod7

Groups wait in FIFO order. A group starts as soon as the number of free hosts is enough, so the
times at which groups start and end do not depend on where they are placed.
"""

import hashlib
import heapq
import math
import time
from dataclasses import dataclass

from churn_workload import HOSTS, HOSTS_A_LEAF, LEAVES_A_POD, PODS, Task, arrivals

from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology import Topology


@dataclass(frozen=True)
class Outcome:
    """What a run has cost."""

    hop_bytes: float  # mean of a group
    normalised: float  # mean of a group's cost over its least cost on the empty fabric
    occupied: float  # mean share of hosts with a VM while counted groups started
    sequence: str  # digest of sizes and of the times of starts: equal on both sides
    plan_ms: float  # mean CPU time of a plan


def fabric() -> Topology:
    """Return the fabric of all workloads."""
    return Topology.from_tree(
        {
            "core": {
                f"pod{p}": {
                    f"leaf{p}-{n:02}": [f"n{p}-{n:02}-{h:02}" for h in range(HOSTS_A_LEAF)]
                    for n in range(LEAVES_A_POD)
                }
                for p in range(PODS)
            }
        }
    )


def run(task: Task) -> Outcome:
    """Return the outcome of a run.

    :raises RuntimeError: if the planner refuses a group that fits
    """
    topology = fabric()
    capacity = dict.fromkeys(topology.hosts, 1)
    least: dict[int, float] = {}  # size to its cost on the empty fabric
    ends: list[tuple[float, int, tuple[str, ...]]] = []
    costs: list[float] = []
    shares: list[float] = []
    occupied: list[float] = []
    sequence = hashlib.blake2b(digest_size=8)
    now, free, seconds = 0.0, HOSTS, 0.0
    for group in arrivals(task):
        now = max(now, group.arrival)
        # What has ended by now is free; the first group of the queue waits for more.
        while ends and (ends[0][0] <= now or free < group.size):
            end, _, places = heapq.heappop(ends)
            now = max(now, end)
            capacity.update(dict.fromkeys(places, 1))
            free += len(places)
        began = time.process_time()
        answer = _planned(topology, capacity, group.size, f"{task.salt}{task.seed}-{group.number}")
        seconds += time.process_time() - began
        capacity.update(dict.fromkeys(answer.places, 0))
        free -= group.size
        heapq.heappush(ends, (now + group.lifetime, group.number, answer.places))
        sequence.update(f"{group.size} {now!r}\n".encode())
        if group.number < task.uncounted:
            continue
        if group.size not in least:
            empty = dict.fromkeys(topology.hosts, 1)
            least[group.size] = _planned(topology, empty, group.size, "").hop_bytes
        costs.append(answer.hop_bytes)
        shares.append(answer.hop_bytes / least[group.size])
        occupied.append(1 - free / HOSTS)
    return Outcome(
        hop_bytes=math.fsum(costs) / task.groups,
        normalised=math.fsum(shares) / task.groups,
        occupied=math.fsum(occupied) / task.groups,
        sequence=sequence.hexdigest(),
        plan_ms=1e3 * seconds / task.total,
    )


def _planned(topology: Topology, capacity: dict[str, int], size: int, group_id: str) -> Plan:
    answer = plan(topology=topology, capacity=capacity, members={}, count=size, group_id=group_id)
    if not isinstance(answer, Plan) or answer.count != size:
        raise RuntimeError(f"a group of {size} that fits has no plan: {answer}")
    return answer
