"""What the plan of a request is best by, if its flavor states an objective."""

from dataclasses import replace
from functools import partial

import nova.conf

from hpc_sched import conf
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.objectives.stated_objective import objective_options, stated_objective
from hpc_sched.core.plan.objective import Isolation, LeastBottleneck, Objective
from hpc_sched.core.traffic.stated_pattern import stated_traffic
from hpc_sched.nova_glue import failures
from hpc_sched.nova_glue.io.fabric import Fabric
from hpc_sched.nova_glue.read.isolated_instances import IsolatedInstances
from hpc_sched.nova_glue.read.request_spec import RequestedGroup
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF


def of(
    request: RequestedGroup,
    topology: Topology,
    fabric: Fabric,
    isolated: IsolatedInstances | None,
) -> Objective | None:
    """Return the objective of a request; None: the least Hop-Byte.

    :param topology: with all hosts of the group
    :param isolated: instances of other isolated groups; None for another objective
    """
    options = objective_options(partial(conf.usable, CONF))
    others = isolated or IsolatedInstances((), in_flight=False, unverified=None)
    found = stated_objective(
        request.hpc_specs, topology, options, lambda whole: others.used_uplinks(whole, fabric)
    )
    return replace(found, unverified=others.unverified) if isinstance(found, Isolation) else found


def ignored(group: GroupRequest) -> tuple[str, ...]:
    """Return what of the objective and the pattern of a group does not count, for operators."""
    objective, policy = group.objective, group.hard_policy
    if not isinstance(objective, LeastBottleneck):
        return ()
    if policy is not None and policy.counts_nodes:
        return (f"hpc:objective=bottleneck: with policy {policy.policy} on nodes of one service",)
    everyone = group.whole + int(group.members.sum())
    try:
        found = stated_traffic(objective.pattern, everyone, objective.pattern_directory).remark
    except Exception:
        failures.log("hpc:pattern failed", "hpc:pattern")
        return ()
    return (found,) if found is not None else ()
