"""What the constraints of a recorded decision cost, and why its plan does not use a switch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hpc_sched import exceptions
from hpc_sched.core.counterfactual.by_bottleneck import ByBottleneck, KnownLinks, by_bottleneck
from hpc_sched.core.counterfactual.costs import (
    EVERYTHING,
    NO_TIME,
    Counterfactual,
    counterfactuals,
    logged_plan,
)
from hpc_sched.core.counterfactual.open_hosts import PlannedAgain
from hpc_sched.core.counterfactual.rebuilt_request import RecordError, rebuilt
from hpc_sched.core.counterfactual.why_not import Use, WhyNot, counted, why_not
from hpc_sched.core.logged.decision_entry import DecisionEntry
from hpc_sched.core.logged.decision_summary import LANDED
from hpc_sched.core.plan.time_limit import TimeLimit
from hpc_sched.topology import plurals, switch_names
from hpc_sched.topology.model import Topology

# The fabric at hand, or None: the one of the record may have been another.
Fabric = Callable[[], Topology | None]
# Written where they are known.
_OPTIONAL = ("bottleneck", "harm", "by_bottleneck", "broken", "kept")
_FAULTS = (
    ArithmeticError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
    exceptions.HPCSchedError,
)


@dataclass(frozen=True, slots=True)
class DecisionCosts:
    """What the planner says of a decision that was recorded."""

    without: tuple[Counterfactual, ...] = ()
    why_not: tuple[WhyNot, ...] = ()
    note: str | None = None  # why there are no numbers
    by_leaf: bool = False  # whether VMs on one host count as VMs of one leaf
    is_refused: bool = False
    vms: int = 0  # of the plan
    by_bottleneck: ByBottleneck | None = None  # of a plan by hops, if its links are known

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        found: dict[str, Any] = _with_known_links(asdict(self))
        return found


def _with_known_links(value: Any) -> Any:
    """Return values without the optional ones that a plan does not have: of links, and slots."""
    if isinstance(value, list | tuple):
        return [_with_known_links(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _with_known_links(one)
        for key, one in value.items()
        if one is not None or key not in _OPTIONAL
    }


def costs_of(
    entry: DecisionEntry,
    names: Sequence[str],
    fabric: Fabric,
    limit: TimeLimit,
    links: KnownLinks | None = None,
) -> DecisionCosts | None:
    """Return the costs of a decision; None if nothing can be said, and nothing was to be.

    Never raises because of a record. What is not planned before the limit is not known.

    :param names: of switches and hosts that the plan does not use
    :param links: by which a plan by hops is compared with one by bottleneck
    """
    if entry.decision == LANDED or (entry.input is None and not names):
        return None
    # What is asked of a name may be in the record.
    if limit.has_passed() and not names:
        return DecisionCosts(note=NO_TIME)
    without, note, other = tuple[Counterfactual, ...](), None, None
    try:
        again = PlannedAgain(rebuilt(entry), entry, limit)
    except _FAULTS as failure:
        return DecisionCosts(note=_sentence(failure))
    try:
        without = tuple(counterfactuals(again.rebuilt, entry, again.plan, limit))
        if links is not None:
            other = by_bottleneck(again.rebuilt, entry, again.plan, links, limit)
    except _FAULTS as failure:
        note = _sentence(failure)
    logged = logged_plan(entry)
    return DecisionCosts(
        without=without,
        why_not=tuple(_answer(again, name, fabric) for name in names),
        note=note,
        by_leaf=again.rebuilt.by_leaf,
        is_refused=logged is None,
        vms=0 if logged is None else sum(logged.hosts.values()),
        by_bottleneck=other,
    )


def _sentence(failure: Exception) -> str:
    what = "" if isinstance(failure, RecordError) else "the record is damaged: "
    return f"{what}{failure}"


def _answer(again: PlannedAgain, name: str, fabric: Fabric) -> WhyNot:
    """Return why a plan does not use a switch or host, or why that is not known."""
    try:
        return _why_not(again, name, fabric)
    except _FAULTS as failure:
        return WhyNot(name, _sentence(failure))


def _why_not(again: PlannedAgain, name: str, fabric: Fabric) -> WhyNot:
    """Return why a plan does not use a switch or host, by whatever name it is known."""
    logged = logged_plan(again.entry)
    planned = logged.hosts.get(name, 0) if logged is not None else 0
    if planned:
        return WhyNot(name, f"it is used: {plurals.text(planned, 'planned VM')}", planned)
    if name in {switch.name for switch in again.rebuilt.request.topology.switches}:
        return why_not(again, name)
    for why, shunned in (again.entry.shunned or {}).items():
        if name in shunned.hosts:
            return WhyNot(name, f"it is shunned: {why}")
    now = fabric()
    if now is None:
        return WhyNot(
            name,
            "the record does not name it: none of its hosts was a candidate, or it is a host, or "
            "not in the fabric (name a topology with --topology)",
        )
    if name in now:
        found = _of_leaf(again, name, now.leaf_of(name))
        return replace(found, reason=found.reason.replace("it is used:", "the leaf is used:", 1))
    for switch in switch_names.known_as(now, name):
        return _of_leaf(again, name, switch)
    return WhyNot(name, "it is not in the fabric")


def _of_leaf(again: PlannedAgain, name: str, switch: str) -> WhyNot:
    """Return the answer for the switch of a name that the record does not have."""
    title = name if name == switch else f"{name}, under {switch}"
    try:
        found = why_not(again, switch)
    except exceptions.UnknownHostError:
        return WhyNot(
            title, "no candidate is under it: filters before those of hpc_sched left none"
        )
    return replace(found, name=title, vms=0)


def lines(found: DecisionCosts) -> Iterator[tuple[str, str]]:
    """Yield title and text of each line; a line without a title continues the one above."""
    if found.note is not None:
        yield "without", f"costs are not known: {found.note}"
    for i, line in enumerate(_without(found)):
        yield "" if i else "without", line
    if found.by_bottleneck is not None:
        yield "bottleneck", _by_bottleneck(found.by_bottleneck)
    for i, one in enumerate(found.why_not):
        yield "" if i else "why not", f"{one.name}: {one.reason}"
        if one.others:
            yield "", f"of its hosts: {counted(one.others)}"
        if one.one is not None and one.without is not None:
            yield "", f"a VM there without {one.without}: {_use(one.one)}"
        elif one.one is not None and one.one == one.all_:
            yield "", f"a VM there, or all of them: {_use(one.one)}"
            continue
        elif one.one is not None and (one.one.more or one.one.bottleneck is not None):
            yield "", f"a VM there: {_use(one.one)}"
        if one.all_ is not None:
            yield "", f"all VMs there: {_use(one.all_)}"
    has_numbers = found.without or any(one.one or one.all_ for one in found.why_not)
    if found.by_leaf and has_numbers:
        yield "", "VMs on one host count as VMs of one leaf: MDOBP chooses among its hosts"


def _by_bottleneck(one: ByBottleneck) -> str:
    if one.bottleneck in (None, 1) and not one.more:
        return "hpc:objective=bottleneck would have chosen a plan that is as good"
    text = _change(one, one.more) + links_text(one.bottleneck, one.harm)
    return f"hpc:objective=bottleneck would have chosen: {text}"


def _use(one: Use) -> str:
    return _change(one, one.more) + links_text(one.bottleneck, one.harm)


def _without(found: DecisionCosts) -> Iterator[str]:
    single = [one for one in found.without if one.without != EVERYTHING]
    nothing = [one.without for one in single if _is_nothing(one)]
    either = [one.without for one in single if one.unknown is None and one.hop_bytes is None]
    shown = {(one.hop_bytes, one.vms) for one in single}
    for one in found.without:
        if one.unknown is not None:
            yield f"{one.without}: not known: {one.unknown}"
        elif one.hop_bytes is None or _is_nothing(one):
            continue
        elif one.without != EVERYTHING or (one.hop_bytes, one.vms) not in shown:
            yield f"{one.without}: {_cost(one, found)}"
    if either:
        yield f"no plan either: {', '.join(either)}"
    if nothing:
        yield f"cost nothing: {', '.join(nothing)}"


def _is_nothing(one: Counterfactual) -> bool:
    """True if a plan without a constraint costs the same, and does the same to links."""
    return one.less == 0 and one.bottleneck in (None, 1) and one.harm in (None, 1)


def _cost(one: Counterfactual, found: DecisionCosts) -> str:
    vms = plurals.text(one.vms, "VM")
    if one.less is None:
        return f"{vms} in {plurals.text(one.leaves, 'leaf')}, {_hop_bytes(one)}"
    # Without the final size the plan is for those that exist.
    text = _change(one, -one.less, "" if one.vms == found.vms else f" for the first {vms}")
    return text + links_text(one.bottleneck, one.harm) + _slots(one)


def _slots(one: Counterfactual) -> str:
    """Return what a plan without the fragmentation price leaves free where it has VMs."""
    if one.broken is None or one.kept is None:
        return ""
    return (
        f"; leaves free {one.broken.leaves} slots of its leaves and {one.broken.pods} of their "
        f"pods, this plan {one.kept.leaves} and {one.kept.pods}"
    )


def links_text(bottleneck: float | None, harm: float | None) -> str:
    """Return the end of a sentence on what a plan does to links, relative to the decision's."""
    parts = (("bottleneck", bottleneck), ("harm", harm))
    return "".join(f", {name} {value:.2f} times" for name, value in parts if value is not None)


def _change(one: Counterfactual | Use | ByBottleneck, more: float, number: str = "") -> str:
    than = f"{more:.0f} more" if more >= 0 else f"{-more:.0f} less"
    return f"{_hop_bytes(one)} ({than}){number}, {plurals.text(one.leaves, 'leaf')}"


def _hop_bytes(one: Counterfactual | Use | ByBottleneck) -> str:
    return f"Hop-Byte {'' if one.is_proven else 'at most '}{one.hop_bytes:.0f}"
