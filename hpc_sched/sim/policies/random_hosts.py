"""Random placement: what a rule must beat to be worth anything."""

import numpy as np

from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies.base import Places, Policy, Request, refused


def _place(request: Request) -> Places | Rejection:
    """Return a host for each VM, all hosts with room being equally likely each time. O(hosts).

    The draws are over hosts in the order of names, so the order of the description does not
    matter.
    """
    problem = request.problem
    if int(problem.capacity.sum()) < problem.awaiting:
        return refused(problem)
    by_name = np.argsort(problem.topology.name_rank)
    hosts = by_name[problem.capacity[by_name] > 0].tolist()
    room = {host: int(problem.capacity[host]) for host in hosts}
    places = []
    for _ in range(problem.awaiting):
        drawn = request.draw.randrange(len(hosts))
        host = hosts[drawn]
        places.append(host)
        room[host] -= 1
        if not room[host]:
            # The last one takes its place: nothing has to move up.
            hosts[drawn] = hosts[-1]
            hosts.pop()
    return tuple(places)


POLICY = Policy("random", "each VM on any host that has room, all equally likely", _place)
