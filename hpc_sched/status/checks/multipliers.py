"""Check: whether topology decides before Nova's other weighers, and what would make it do so.

Nova maps the numbers of a weigher to 0..1, multiplies and adds up. Our weighers hand over
ranks, so that their smallest step is multiplier / (ranks - 1); see the operator's guide.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import nova.conf
from nova import objects
from nova.scheduler.weights import compute, cross_cell

from hpc_sched import exceptions
from hpc_sched.decimals import text_of
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.status import loaded_weighers
from hpc_sched.status.check_result import Finding, failure, good, warning
from hpc_sched.status.inspected_cloud import Cloud
from hpc_sched.status.loaded_weighers import Enabled
from hpc_sched.topology import plurals
from hpc_sched.weighers import mdobp

CONF = nova.conf.CONF

# They weigh 0 for all hosts but after failed builds and on moves between cells, and are meant
# to come before everything else.
GUARDS = (compute.BuildFailureWeigher, cross_cell.CrossCellWeigher)
_METADATA = "_weight_multiplier"


@dataclass(frozen=True, slots=True)
class Size:
    """How many hosts and leaves the weighers have to choose from at most."""

    hosts: int
    leaves: int
    largest: int  # hosts of the largest leaf


def check(cloud: Cloud) -> list[Finding]:
    """Return how topology, and MDOBP inside its leaves, compare with the other weighers."""
    weighers, _ = loaded_weighers.load()  # what cannot be loaded is told by another check
    ours = [one for one in weighers if one.is_topology or one.is_mdobp]
    if not ours:
        return [good("No weigher of hpc_sched is enabled.")]
    try:
        size, unsure = size_of(cloud)
        aggregates = [one for one in cloud.aggregates() if _overrides(one)]
    except exceptions.DatabaseError as error:
        return [failure(str(error))]
    found = [warning(text) for text in unsure]
    guards = [one for one in weighers if isinstance(one.weigher, GUARDS)]
    novas = [one for one in weighers if one not in ours and one not in guards]
    others = 0.0
    endless = []
    for one in weighers:
        try:
            most = one.most(aggregates)
            if not math.isfinite(others + most):
                endless.append(one)
            elif one in novas:
                others += most
        except Exception as error:
            # A weigher of somebody else's may want to know more of a host.
            found.append(
                warning(
                    f"The multiplier of {one.name} cannot be asked for, {type(error).__name__}: "
                    f"{error}. Add it to the sum of the other multipliers yourself."
                )
            )
    if endless:
        return [*found, *(_endless(one) for one in endless)]
    packer = next((one for one in ours if one.is_mdobp), None)
    for one in ours:
        if one.is_topology:
            rivals = [two for two in ours if two.is_topology and two is not one]
            rest = others + sum(two.most(aggregates) for two in rivals)
            found += _topology(one, rest, packer, size, guards) + _beyond(one, guards)
    if packer is not None:
        found += _packer(packer, others, size)
    return found + _aggregates(ours, aggregates)


def _endless(one: Enabled) -> Finding:
    return failure(
        f"The multiplier of {one.name} is no finite number, or too large: the order of the hosts "
        "is then arbitrary. Set it, in nova.conf and in the metadata of aggregates, to a number."
    )


def size_of(cloud: Cloud) -> tuple[Size, list[str]]:
    """Return how much the weighers have to choose from, and a sentence for what is not known.

    Where the topology cannot be had every compute counts as a leaf, the hardest case.
    """
    computes = cloud.computes()
    unsure = [f"{silent}. Its computes are not counted here." for silent in computes.silent]
    hosts = len(computes.enabled)
    try:
        topology = cloud.topology()
    except exceptions.TopologyError:
        return Size(hosts, hosts, hosts), unsure
    names, _ = loaded_topology.names_in(loaded_topology.Fabric(topology), computes.enabled)
    known = [name for name in names if name in topology]
    sizes = Counter(topology.leaf_of(name) for name in known)
    leaves = len(sizes) + hosts - len(known)
    return Size(hosts, leaves, max(sizes.values(), default=1)), unsure


def _overrides(aggregate: objects.Aggregate) -> bool:
    return any(key.endswith(_METADATA) for key in aggregate.metadata)


def _without_weight(one: Enabled, harm: str) -> Finding:
    """Return what a multiplier of 0 or less does."""
    value = one.multiplier()
    if value == 0:
        return warning(f"{one.name} is switched off: [hpc_sched] {one.option} = 0.")
    return failure(
        f"[hpc_sched] {one.option} = {text_of(value)} turns the order round: {harm}. "
        "Set it above 0."
    )


def _topology(
    one: Enabled, others: float, packer: Enabled | None, size: Size, guards: list[Enabled]
) -> list[Finding]:
    value = one.multiplier()
    if value <= 0:
        return [_without_weight(one, "groups go to the worst hosts first")]
    computes = plurals.text(size.hosts, "enabled compute")
    if size.hosts < 2:
        return [good(f"{one.name} has nothing to decide with {computes}.")]
    steps, what = _steps(one, size)
    needed = steps * others
    rest = text_of(round(others, 6))
    if packer is not None and packer.multiplier() > 0:
        # Hosts of a leaf then have one rank; beside the leaves, the full hosts and those that
        # lost a claim have one each.
        ranks = size.leaves + 1
        by_leaf = ranks * (others + packer.multiplier() * _span(size))
        if by_leaf > needed:
            needed, steps = by_leaf, ranks
            what = f"of {ranks + 1} ranks of leaves"
            rest = text_of(round(by_leaf / ranks, 2))
    step = f"the smallest step {what} is {text_of(value)} / {steps} = {value / steps:.2f}"
    than = f"{rest}, the sum of the other multipliers"
    if value > needed:
        return [good(f"{one.name} decides strictly: with {computes} {step}, more than {than}.")]
    strict = above(needed)
    text = f"Set [hpc_sched] {one.option} = {text_of(strict)} for it to decide strictly."
    reached = [guard for guard in guards if 0 < abs(guard.multiplier()) <= strict]
    if reached:
        text += (
            f" That is not below {loaded_weighers.names(reached)}: lower the other multipliers, "
            "or raise these too."
        )
    if value > others:
        return [
            warning(
                f"{one.name} decides mostly: with {computes} {step}, not more than {than}, so "
                f"that hosts close to each other in its order may change places. {text}"
            )
        ]
    return [
        warning(
            f"{one.name} hardly decides: {text_of(value)}, from its best host to its worst one, "
            f"is not more than {than}. {text}"
        )
    ]


def _steps(one: Enabled, size: Size) -> tuple[int, str]:
    """Return how many of a weigher's smallest steps make its multiplier, and what they are."""
    if one.name == "BunchWeigher" and CONF.hpc_sched.bunch_weight_scale == "listing1":
        # Listing 1: first * (maxsize + 1) + second, for a group as large as the largest leaf.
        largest = max(size.largest, 1)
        return largest * (largest + 2), f"of Listing 1 for a group of {largest}"
    return size.hosts - 1, f"of {size.hosts} ranks"


def _span(size: Size) -> float:
    """Return how far apart MDOBP puts the hosts of a leaf at most, its multiplier being 1."""
    return _packing_step(size) * (size.largest - 1)


def _packing_step(size: Size) -> float:
    most = (mdobp.LEAVES + 1) / (size.leaves + 1)
    return min(mdobp.STEP, most / max(size.largest - 1, 1))


def above(number: float) -> float:
    """Return the least number of two significant digits that is above a positive one."""
    if number <= 0:
        return 1.0
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    least = math.floor(number / unit) * unit
    while least <= number:
        least += unit
    return float(f"{least:.2g}")


def _beyond(one: Enabled, guards: list[Enabled]) -> list[Finding]:
    """Return the weighers that are meant to come before topology and do not."""
    value = one.multiplier()
    return [
        warning(
            f"[hpc_sched] {one.option} = {text_of(value)} is not below the multiplier of "
            f"{guard.name}, {text_of(abs(guard.multiplier()))}, which is to come before "
            f"topology: {_harm(guard)}. Lower it, or raise that one in [filter_scheduler]."
        )
        for guard in guards
        if 0 < abs(guard.multiplier()) <= value
    ]


def _harm(guard: Enabled) -> str:
    if isinstance(guard.weigher, compute.BuildFailureWeigher):
        return "VMs go to hosts on which builds fail"
    return "VMs that move leave their cell"


def _packer(one: Enabled, others: float, size: Size) -> list[Finding]:
    value = one.multiplier()
    if value <= 0:
        return [_without_weight(one, "VMs go to the hosts that suit them least")]
    if size.hosts < 2:
        return []
    step = _packing_step(size)
    told = f"the step between two hosts of a leaf is {value * step:.2f}"
    rest = f"{text_of(round(others, 6))}, the sum of Nova's multipliers"
    if value * step > others:
        return [good(f"{one.name} decides strictly: {told}, more than {rest}.")]
    text = f"Set [hpc_sched] {one.option} = {text_of(above(others / step))}"
    how = "mostly" if value * max(_span(size), step) > others else "hardly"
    return [
        warning(
            f"{one.name} decides {how} inside a leaf: {told}, not more than {rest}. {text} for it "
            "to decide strictly, and see that topology still does."
        )
    ]


def _aggregates(ours: list[Enabled], aggregates: list[objects.Aggregate]) -> list[Finding]:
    """Return the aggregates that override a multiplier of ours."""
    return [
        warning(
            f"Aggregate {aggregate.name} overrides {one.option} with "
            f"{aggregate.metadata[one.option]} for {plurals.text(len(aggregate.hosts), 'host')}: "
            "they are weighed on another scale than the rest. Remove it, unless groups are to be "
            "kept on these hosts or off them."
        )
        for one in ours
        for aggregate in aggregates
        if one.option in aggregate.metadata
    ]
