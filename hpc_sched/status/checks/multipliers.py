"""Check: topology decides before Nova's other weighers; otherwise the multiplier that is needed.

Nova maps the numbers of a weigher to 0..1, multiplies and adds up. The weighers of hpc_sched
return ranks: their smallest step is multiplier / (ranks - 1); see the operator's guide.
"""

import math
from collections import Counter
from dataclasses import dataclass

from nova import objects
from nova.scheduler.weights import compute, cross_cell
from oslo_upgradecheck.upgradecheck import Result

from hpc_sched import exceptions
from hpc_sched.decimals import text_of
from hpc_sched.enabled_plugins import MDOBP_LEAVES
from hpc_sched.status.checks.weighers import LoadedWeigher, load, names
from hpc_sched.status.finding import Findings, failure, good, warning
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud, unread_cells
from hpc_sched.topology import plurals
from hpc_sched.topology.host_names import HostNames
from hpc_sched.weighers import mdobp

# They weigh 0 for all hosts, except after failed builds and on moves between cells, where they
# must decide before everything else. Each with the harm otherwise.
GUARDS = {
    compute.BuildFailureWeigher: "VMs go to hosts on which builds fail",
    cross_cell.CrossCellWeigher: "VMs that move leave their cell",
}
_METADATA = "_weight_multiplier"


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The most hosts and leaves that the weighers choose from."""

    hosts: int
    leaves: int
    largest: int  # hosts of the largest leaf

    @property
    def mdobp_step(self) -> float:
        """The difference of MDOBP's weights between hosts next to each other in its order."""
        most = (MDOBP_LEAVES + 1) / (self.leaves + 1)
        return min(mdobp.STEP, most / max(self.largest - 1, 1))

    @property
    def mdobp_span(self) -> float:
        """The largest difference of MDOBP's weights inside a leaf."""
        return self.mdobp_step * (self.largest - 1)


def check(cloud: InspectedCloud) -> Findings:
    """Return how topology, and MDOBP inside its leaves, compare with the other weighers."""
    weighers, _ = load()  # the check of weighers reports what cannot be loaded
    ours = [one for one in weighers if one.is_topology or one.is_mdobp]
    # It weighs no host for a group.
    single = [one for one in weighers if one.is_whole_leaf and one.multiplier()]
    if not ours and not single:
        yield good("No weigher of hpc_sched is enabled.")
        return
    among = _candidates(cloud)
    yield from unread_cells(cloud.computes(), "counted here")
    aggregates = [
        aggregate
        for aggregate in cloud.from_database("host aggregates", objects.AggregateList.get_all)
        if any(key.endswith(_METADATA) for key in aggregate.metadata)
    ]
    aggregates.sort(key=lambda aggregate: (aggregate.name, aggregate.id))
    guards = [one for one in weighers if isinstance(one.weigher, tuple(GUARDS))]
    others, is_finite = 0.0, True
    for one in weighers:
        try:
            most = one.most(aggregates)
        except Exception as error:
            # A site's own weigher may need more of a host than its aggregates.
            yield warning(
                f"The multiplier of {one.name} cannot be read, {type(error).__name__}: "
                f"{error}. Add it to the sum of the other multipliers yourself."
            )
            continue
        if not math.isfinite(others + most):
            is_finite = False
            yield failure(
                f"The multiplier of {one.name} is no finite number, or too large: the order "
                "of the hosts is then arbitrary. Set it, in nova.conf and in the metadata of "
                "aggregates, to a number."
            )
        elif one not in (*ours, *guards) and not one.is_whole_leaf:
            others += most
    if is_finite:
        yield from _compared([*ours, *single], guards, others, among, aggregates)


def _compared(
    ours: list[LoadedWeigher],
    guards: list[LoadedWeigher],
    others: float,  # sum of the multipliers of the rest
    among: _Candidates,
    aggregates: list[objects.Aggregate],
) -> Findings:
    packer = next((one for one in ours if one.is_mdobp), None)
    by_topology = [one for one in ours if one.is_topology]
    for one in [*by_topology, *(one for one in ours if one.is_whole_leaf)]:
        # Groups and VMs without one have each their own weighers.
        same = by_topology if one.is_topology else []
        rivals = sum(rival.most(aggregates) for rival in same if rival is not one)
        by_leaf = packer if same and "sync" in CONF.hpc_sched.mdobp_classes else None
        yield _topology(one, others + rivals, by_leaf, among, guards)
        value = one.multiplier()
        yield from _guards_below(f"[hpc_sched] {one.option} = {text_of(value)}", value, guards)
    if packer is not None and (among.hosts > 1 or packer.multiplier() <= 0):
        yield _mdobp(packer, others, among)
        # The weights of VMs without a leaf have a step for each host.
        most = packer.multiplier() * mdobp.STEP * (among.hosts - 1)
        weight = f"The largest weight of {packer.name} without a leaf, {text_of(round(most, 2))},"
        yield from _guards_below(weight, most, guards)
    yield from (
        warning(
            f"Aggregate {aggregate.name} overrides {one.option} with "
            f"{aggregate.metadata[one.option]} for {plurals.text(len(aggregate.hosts), 'host')}: "
            "they are weighed on another scale than the rest. Remove it, unless groups are to be "
            "kept on these hosts or off them."
        )
        for one in ours
        for aggregate in aggregates
        if one.option in aggregate.metadata
    )


def _candidates(cloud: InspectedCloud) -> _Candidates:
    """Return the candidates of the cells that answered; without a topology, a leaf per host."""
    places = [(node.host, node.nodename) for node in cloud.computes().rows if node.enabled]
    hosts = len(places)
    try:
        topology = cloud.topology()
    except exceptions.TopologyError:
        return _Candidates(hosts, hosts, hosts)
    hosts_there, _ = HostNames(topology).find_all(places)
    sizes = Counter(topology.leaf_of(name) for name in hosts_there if name in topology)
    leaves = len(sizes) + hosts - sizes.total()
    return _Candidates(hosts, leaves, max(sizes.values(), default=1))


def _topology(
    one: LoadedWeigher,
    others: float,  # sum of the other multipliers, without MDOBPWeigher's
    packer: LoadedWeigher | None,  # MDOBPWeigher, where it chooses hosts inside a leaf
    among: _Candidates,
    guards: list[LoadedWeigher],
) -> Result:
    value = one.multiplier()
    if value <= 0:
        what = "VMs break whole leaves" if one.is_whole_leaf else "groups go to the worst hosts"
        return _without_weight(one, f"{what} first")
    computes = plurals.text(among.hosts, "enabled compute")
    if among.hosts < 2:
        return good(f"{one.name} has nothing to decide with {computes}.")
    steps, what = _steps(one, among)
    needed = steps * others
    rest = text_of(round(others, 6))
    if packer is not None and packer.multiplier() > 0:
        # The hosts of a leaf then have one rank. Full hosts and those that lost a claim have
        # two further ranks.
        ranks = among.leaves + 1
        by_leaf = ranks * (others + packer.multiplier() * among.mdobp_span)
        if by_leaf > needed:
            needed, steps = by_leaf, ranks
            what = f"of {ranks + 1} ranks of leaves"
            rest = text_of(round(by_leaf / ranks, 2))
    step = f"the smallest step {what} is {text_of(value)} / {steps} = {value / steps:.2f}"
    than = f"{rest}, the sum of the other multipliers"
    if value > needed:
        return good(f"{one.name} decides strictly: with {computes} {step}, more than {than}.")
    strict = above(needed)
    text = f"Set [hpc_sched] {one.option} = {text_of(strict)} for it to decide strictly."
    reached = [guard for guard in guards if 0 < abs(guard.multiplier()) <= strict]
    if reached:
        text += (
            f" That is not below {names(reached)}: lower the other multipliers, or raise these too."
        )
    if value > others:
        return warning(
            f"{one.name} decides mostly: with {computes} {step}, not more than {than}, so "
            f"that hosts close to each other in its order may change places. {text}"
        )
    return warning(
        f"{one.name} hardly decides: {text_of(value)}, from its best host to its worst one, "
        f"is not more than {than}. {text}"
    )


def _steps(one: LoadedWeigher, among: _Candidates) -> tuple[int, str]:
    """Return the number of a weigher's smallest steps in its multiplier, and their name."""
    if one.name == "BunchWeigher" and CONF.hpc_sched.bunch_weight_scale == "listing1":
        # Listing 1: first * (maxsize + 1) + second, for a group as large as the largest leaf.
        largest = max(among.largest, 1)
        return largest * (largest + 2), f"of Listing 1 for a group of {largest}"
    return among.hosts - 1, f"of {among.hosts} ranks"


def _mdobp(one: LoadedWeigher, others: float, among: _Candidates) -> Result:
    value = one.multiplier()
    if value <= 0:
        return _without_weight(one, "VMs go to the hosts that suit them least")
    step = among.mdobp_step
    step_text = f"the step between two hosts of a leaf is {value * step:.2f}"
    rest = f"{text_of(round(others, 6))}, the sum of Nova's multipliers"
    if value * step > others:
        return good(f"{one.name} decides strictly: {step_text}, more than {rest}.")
    how = "mostly" if value * max(among.mdobp_span, step) > others else "hardly"
    return warning(
        f"{one.name} decides {how} inside a leaf: {step_text}, not more than {rest}. Set "
        f"[hpc_sched] {one.option} = {text_of(above(others / step))} for it to decide "
        "strictly, and see that topology still does."
    )


def _without_weight(one: LoadedWeigher, harm: str) -> Result:
    value = one.multiplier()
    if value == 0:
        return warning(f"{one.name} is switched off: [hpc_sched] {one.option} = 0.")
    return failure(
        f"[hpc_sched] {one.option} = {text_of(value)} turns the order round: {harm}. "
        "Set it above 0."
    )


def _guards_below(what: str, value: float, guards: list[LoadedWeigher]) -> Findings:
    for guard in guards:
        if 0 < abs(guard.multiplier()) <= value:
            harm = next(text for cls, text in GUARDS.items() if isinstance(guard.weigher, cls))
            yield warning(
                f"{what} is not below the multiplier of {guard.name}, "
                f"{text_of(abs(guard.multiplier()))}, which is to come first: {harm}. Lower it, or "
                "raise that one in [filter_scheduler]."
            )


def above(number: float) -> float:
    """Return the least number of two significant digits that is greater; 1 for 0."""
    if number <= 0:
        return 1.0
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    least = math.floor(number / unit) * unit
    while least <= number:
        least += unit
    return float(f"{least:.2g}")
