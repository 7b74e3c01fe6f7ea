"""What the plan of a request is best by, if its flavor states an objective."""

import nova.conf

from hpc_sched import conf, exceptions
from hpc_sched.core.arrays import Mask
from hpc_sched.core.objectives.stated_objective import ObjectiveOptions, stated_objective
from hpc_sched.core.plan.objective import Objective, tradeoff_of
from hpc_sched.nova_glue.read.request_spec import RequestedGroup
from hpc_sched.topology.capacities import LinkDefaults
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF


def of(request: RequestedGroup, topology: Topology) -> Objective | None:
    """Return the objective of a request; None: the least Hop-Byte.

    :param topology: with all hosts of the group
    """
    options = ObjectiveOptions(
        LinkDefaults(conf.uplink_oversubscription(CONF), conf.number(CONF, "host_link_rate")),
        tradeoff_of(conf.number(CONF, "bottleneck_tradeoff")),
        conf.text(CONF, "pattern_directory"),
    )
    return stated_objective(request.hpc_specs, topology, options, _used_uplinks)


def _used_uplinks(topology: Topology) -> Mask:
    raise exceptions.RequestError("hpc:objective=isolated cannot be checked")
