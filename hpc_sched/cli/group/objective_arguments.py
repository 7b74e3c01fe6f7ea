"""Arguments of hpc-sched fits on objectives and links."""

import argparse
import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from hpc_sched.cli.common.argument_types import (
    Argument,
    argument,
    at_least_zero,
    checked,
    number,
    titled,
)
from hpc_sched.core.extra_spec_names import OBJECTIVES, TRAFFIC
from hpc_sched.core.extra_specs import OBJECTIVE
from hpc_sched.sim import named_values
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.topology.capacities import with_ratios
from hpc_sched.topology.readers.yaml_links import MOST_RATIO

_FORM = "LEVEL=RATIO,..."

_pattern = checked(
    TRAFFIC.expected,
    lambda text: text,
    lambda text: re.fullmatch(TRAFFIC.pattern, text) is not None,
)

ARGUMENTS: tuple[Argument, ...] = (
    titled(
        "objective and links",
        argument(
            "--objective",
            "what the plan is best by (hpc:objective; default: the flavor's)",
            choices=OBJECTIVES,
        ),
        argument(
            "--pattern",
            "what the VMs send each other (hpc:pattern; default: the flavor's, else uniform)",
            type=_pattern,
            metavar="PATTERN",
        ),
        number(
            "--bottleneck-tradeoff",
            "how much more harm a plan by bottleneck may do to others than that of least Hop-Byte, "
            "as a part of what that one does (default: bottleneck_tradeoff of nova.conf)",
            at_least_zero,
            "X",
        ),
        argument(
            "--oversubscription",
            "rate of the links below the switches of a level over that of their uplinks, as in "
            "leaf=4,pod=1, in place of what the topology states of that level (default: that, "
            "else uplink_oversubscription of nova.conf, else 1)",
            metavar="LEVEL=X,...",
        ),
        argument(
            "--frontier",
            "with --count: a row for each plan between the least Hop-Byte and the least bottleneck",
            action="store_true",
        ),
        argument(
            "--picture",
            "with --frontier: also draw the plans, an SVG file (needs the extra sim)",
            metavar="FILE",
        ),
    ),
)


def extra_specs(args: argparse.Namespace) -> dict[str, str | None]:
    """Return the extra specs that are assumed for a group; None for those that are not."""
    return {OBJECTIVE: args.objective, TRAFFIC.name: args.pattern}


def assumed(args: argparse.Namespace, cloud: Cloud) -> Cloud:
    """Return the cloud with the links and the trade-off that the arguments state.

    :raises exceptions.ConfigError: for an unknown level, or a ratio out of bounds
    """
    if args.bottleneck_tradeoff is not None:
        options: Mapping[str, Any] = {
            **cloud.snapshot.options,
            "bottleneck_tradeoff": args.bottleneck_tradeoff,
        }
        cloud = dataclasses.replace(
            cloud, snapshot=structs.replace(cloud.snapshot, options=options)
        )
    if args.oversubscription is None:
        return cloud
    ratios = named_values.numbers(
        *(args.oversubscription, "--oversubscription", cloud.topology.levels, _FORM),
        *(1 / MOST_RATIO, MOST_RATIO),
    )
    return dataclasses.replace(cloud, topology=with_ratios(cloud.topology, ratios))
