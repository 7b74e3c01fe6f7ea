"""Where gang claims are safe: a claimed host must win Nova's choice."""

import math
from collections.abc import Sequence

import nova.conf
from nova.scheduler import host_manager
from nova.scheduler import utils as scheduler_utils

from hpc_sched import conf
from hpc_sched.enabled_plugins import HOP_BYTE_WEIGHER, LARGEST_WEIGHTS, MULTIPLIERS
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.read.room import shunned_hosts

CONF = nova.conf.CONF

# Beyond it floating-point weights lose the differences between hosts.
LARGEST_SUM = 1e12


def obstacle() -> str | None:
    """Return why this service makes no gang claims whatever the request, or None."""
    if conf.is_shadow(CONF):
        return "mode is shadow"
    if not CONF.hpc_sched.gang_claims:
        return "gang_claims is false"
    options, multipliers = CONF.filter_scheduler, configured_plugins.enabled().multipliers
    follows_plans = multipliers.get(HOP_BYTE_WEIGHER, 0) > 0
    obstacles = {
        "HopByteWeigher is not enabled with a multiplier above 0": not follows_plans,
        "host_subset_size is above 1": options.host_subset_size > 1,
        "shuffle_best_same_weighed_hosts is true": options.shuffle_best_same_weighed_hosts,
    }
    return next((why for why, is_there in obstacles.items() if is_there), None)


def decisive_multiplier(states: Sequence[host_manager.HostState]) -> float | None:
    """Return a multiplier with which a host wins against all weighers together.

    None if there is none: an aggregate sets hop_byte_weight_multiplier to 0 or less, or the sum of
    all multipliers is too large. O(HostStates).
    """
    examples = shunned_hosts.examples(states)
    own = {
        name: [_multiplier(state, MULTIPLIERS[name]) for state in examples]
        for name in configured_plugins.enabled().multipliers
    }
    if min(own[HOP_BYTE_WEIGHER]) <= 0:
        return None
    total = sum(
        LARGEST_WEIGHTS.get(name, 1.0) * max(map(abs, values)) for name, values in own.items()
    )
    total += shunned_hosts.sum_of_multipliers(examples)
    # One host may get the least from every weigher, another one the most.
    return 2 * total + 1 if math.isfinite(total) and total <= LARGEST_SUM else None


def _multiplier(state: host_manager.HostState, option: str) -> float:
    default = conf.number(CONF, option)
    value = float(scheduler_utils.get_weight_multiplier(state, option, default))
    return value if math.isfinite(value) else default
