"""What the plan of a request is best by, if its flavor states an objective."""

from dataclasses import replace

import nova.conf

from hpc_sched import conf
from hpc_sched.core.objectives.stated_objective import ObjectiveOptions, stated_objective
from hpc_sched.core.plan.objective import Isolation, Objective, tradeoff_of
from hpc_sched.nova_glue.io.fabric import Fabric
from hpc_sched.nova_glue.read.isolated_instances import IsolatedInstances
from hpc_sched.nova_glue.read.request_spec import RequestedGroup
from hpc_sched.topology.capacities import LinkDefaults
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
    options = ObjectiveOptions(
        LinkDefaults(conf.uplink_oversubscription(CONF), conf.number(CONF, "host_link_rate")),
        tradeoff_of(conf.number(CONF, "bottleneck_tradeoff")),
        conf.text(CONF, "pattern_directory"),
    )
    others = isolated or IsolatedInstances((), in_flight=False, unverified=None)
    found = stated_objective(
        request.hpc_specs, topology, options, lambda whole: others.used_uplinks(whole, fabric)
    )
    return replace(found, unverified=others.unverified) if isinstance(found, Isolation) else found
