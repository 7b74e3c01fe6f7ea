"""How long the jobs of hpc-sched simulate wait for a place that they prefer."""

import argparse

from hpc_sched import decimals
from hpc_sched.cli.common.argument_types import checked
from hpc_sched.core.constraints import Constraints
from hpc_sched.sim.preference import place_preference


def _numbers(text: str) -> tuple[float, ...] | None:
    found = [decimals.number_in(part.strip()) for part in text.split(",")]
    numbers = [number + 0.0 for number in found if number is not None]  # 0 in place of -0
    return tuple(dict.fromkeys(numbers)) if len(numbers) == len(found) else None


# The type of --wait-for-place: numbers in the given order, each once.
read = checked(
    f"numbers from 0 to {place_preference.LONGEST:g}, as in 0,300,1800",
    _numbers,
    lambda limits: all(0 <= limit <= place_preference.LONGEST for limit in limits),
)


def kept(args: argparse.Namespace, stated: Constraints) -> Constraints:
    """Return the constraints that every place keeps: with a limit all but ``--max-leaves``."""
    return stated if args.wait_for_place is None else stated.changed(max_leaves=None)


def about(args: argparse.Namespace) -> list[tuple[str, str]]:
    """Return what is preferred and the limits, in words; empty without a limit."""
    if args.wait_for_place is None:
        return []
    leaves = None if args.max_leaves is None else f"under at most {args.max_leaves} leaves"
    level = None if args.prefer is None else f"under one switch of level {args.prefer}"
    limits = ", ".join(map(decimals.text_of, args.wait_for_place))
    what = " and ".join(filter(None, (level, leaves)))
    return [("Preferred place", f"{what}; jobs wait for it up to {limits} s")]
