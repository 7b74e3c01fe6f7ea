"""The options of nova.conf on objectives of plans."""

from oslo_config import cfg

from hpc_sched import conf
from hpc_sched.core.objectives.stated_objective import ObjectiveOptions, tradeoff_of
from hpc_sched.topology.capacities import LinkDefaults


def objective_options(options: cfg.ConfigOpts) -> ObjectiveOptions:
    """Return the options on objectives; an invalid one in a reloaded nova.conf has its default."""
    return ObjectiveOptions(
        LinkDefaults(conf.uplink_oversubscription(options), conf.number(options, "host_link_rate")),
        tradeoff_of(conf.number(options, "bottleneck_tradeoff")),
        conf.text(options, "pattern_directory"),
    )
