"""What the plan of a group is best by, as its flavor and the options state it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hpc_sched.core.arrays import Mask
from hpc_sched.core.extra_spec_names import HOPS, ISOLATED
from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.core.plan.objective import TRADEOFF, Isolation, LeastBottleneck, Objective
from hpc_sched.topology.capacities import LinkDefaults, capacities
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class ObjectiveOptions:
    """The options of [hpc_sched] on objectives."""

    links: LinkDefaults = field(default_factory=LinkDefaults)
    tradeoff: Fraction = TRADEOFF
    pattern_directory: str | None = None


def objective_options(value_of: Callable[[str], Any]) -> ObjectiveOptions:
    """Return the options on objectives.

    :param value_of: returns the value of an option of [hpc_sched] by its name
    """
    return ObjectiveOptions(
        LinkDefaults(value_of("uplink_oversubscription"), value_of("host_link_rate")),
        tradeoff_of(value_of("bottleneck_tradeoff")),
        value_of("pattern_directory"),
    )


def stated_objective(
    specs: HPCSpecs,
    topology: Topology,
    options: ObjectiveOptions,
    used_uplinks: Callable[[Topology], Mask],
) -> Objective | None:
    """Return the objective of a group; None: the least Hop-Byte.

    That also where the fabric does not matter to its class.

    :param used_uplinks: returns the switches whose uplinks other isolated groups use, shape
        (switches,); called for an isolated group alone
    """
    if specs.objective == HOPS or specs.is_flat:
        return None
    if specs.objective == ISOLATED:
        return Isolation(used_uplinks(topology))
    return LeastBottleneck(
        capacities(topology, options.links),
        options.tradeoff,
        specs.pattern,
        options.pattern_directory,
    )


def tradeoff_of(number: float) -> Fraction:
    """Return the bound that an option states, as it is written, to nine digits of its fraction."""
    return Fraction(str(number)).limit_denominator(10**9)
