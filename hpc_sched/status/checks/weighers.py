"""Checks: one weigher by topology, MDOBP where hosts are shared, no misspelt weigher; no host is
kept from groups because builds on it have failed.
"""

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from nova import objects
from nova.scheduler import weights
from nova.scheduler.weights import compute, metrics

from hpc_sched.enabled_plugins import ALL_WEIGHERS, DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.status.finding import (
    NO_COMMENTS,
    Findings,
    Verdict,
    failure,
    first_listed,
    has_comment,
    loaded,
    warning,
)
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud, unread_cells
from hpc_sched.topology import plurals
from hpc_sched.weighers.group_weigher import GroupWeigher, TopologyWeigher
from hpc_sched.weighers.hop_byte import HopByteWeigher
from hpc_sched.weighers.mdobp import MDOBPWeigher
from hpc_sched.weighers.whole_leaf import WholeLeafWeigher

NOVAS = "nova.scheduler.weights.all_weighers"
HOP_BYTE = "hpc_sched.weighers.hop_byte.HopByteWeigher"
MDOBP = "hpc_sched.weighers.mdobp.MDOBPWeigher"
WHOLE_LEAF = "hpc_sched.weighers.whole_leaf.WholeLeafWeigher"
OURS = (
    "hpc_sched.weighers.bunch.BunchWeigher",
    HOP_BYTE,
    MDOBP,
    "hpc_sched.weighers.rack_capacity.RackCapacityWeigher",
    WHOLE_LEAF,
)


@dataclass(frozen=True, slots=True)
class LoadedWeigher:
    """One weigher that nova.conf enables."""

    path: str  # its entry in weight_classes
    weigher: Any  # the weigher itself; those of hpc_sched without a topology

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self.weigher).__name__

    @property
    def is_topology(self) -> bool:
        """True if it is one of the weighers by topology."""
        return isinstance(self.weigher, TopologyWeigher)

    @property
    def is_mdobp(self) -> bool:
        """True if it is the weigher that chooses hosts inside a leaf."""
        return isinstance(self.weigher, MDOBPWeigher)

    @property
    def is_whole_leaf(self) -> bool:
        """True if it is the weigher of VMs without a group."""
        return isinstance(self.weigher, WholeLeafWeigher)

    @property
    def option(self) -> str:
        """Name of the multiplier in [hpc_sched] and in aggregates' metadata; hpc_sched's only."""
        return str(self.weigher.multiplier)

    def multiplier(self, aggregate: objects.Aggregate | None = None) -> float:
        """Return the multiplier on hosts of an aggregate, or of none."""
        host = SimpleNamespace(aggregates=[] if aggregate is None else [aggregate])
        return float(self.weigher.weight_multiplier(host))

    def most(self, aggregates: Iterable[objects.Aggregate]) -> float:
        """Return the largest difference of two hosts' weights, aggregates included.

        0 for metrics without ``weight_setting``, which weigh all hosts alike. Infinite where a
        multiplier is not a finite number.
        """
        if isinstance(self.weigher, metrics.MetricsWeigher) and not self.weigher.setting:
            return 0.0
        values = [self.multiplier(aggregate) for aggregate in [None, *aggregates]]
        if not all(map(math.isfinite, values)):
            return math.inf
        return max(0.0, *values) - min(0.0, *values)


def load() -> tuple[list[LoadedWeigher], list[tuple[str, str]]]:
    """Return the weighers as Nova loads them, and entries of weight_classes with their faults.

    The constructors of hpc_sched's weighers are not called: they would load the topology.
    """
    found: list[LoadedWeigher] = []
    missing: list[tuple[str, str]] = []
    for path in CONF.filter_scheduler.weight_classes:
        classes, problem = loaded(weights.HostWeightHandler(), path)
        if problem is not None:
            missing.append(
                (path, f"weight_classes names {path!r}, which cannot be imported: {problem}.")
            )
        for cls in classes:
            try:
                weigher = cls.__new__(cls) if issubclass(cls, GroupWeigher) else cls()
                found.append(LoadedWeigher(path, weigher))
            except Exception as error:
                missing.append((path, f"{cls.__name__} of {path} cannot be built: {error}."))
    return found, missing


def names(weighers: Sequence[LoadedWeigher]) -> str:
    """Return the names of weighers, separated by commas."""
    return ", ".join(weigher.name for weigher in weighers)


def check(_cloud: InspectedCloud) -> Verdict:
    """Return what is wrong in weight_classes."""
    weighers, missing = load()
    paths = CONF.filter_scheduler.weight_classes
    for path, why in missing:
        yield failure(f"{why} nova-scheduler does not start. {_meant(path)}")
    deciding = [one for one in weighers if one.is_topology and one.multiplier() != 0]
    by_topology = {one.path for one in weighers if one.is_topology}
    if len(deciding) > 1:
        others = [path for path in paths if path not in by_topology]
        packer = [MDOBP] if ALL_WEIGHERS in by_topology else []
        yield failure(
            f"{len(deciding)} weighers by topology are enabled, {names(deciding)}: their ranks "
            "add up and groups follow none of their orders. Enable one. Set "
            + _line(*others, HOP_BYTE, *packer)
        )
    elif not by_topology and not missing:
        yield warning(
            "No weigher by topology is enabled: hosts are chosen by Nova's weighers alone. Set "
            + _line(*paths, HOP_BYTE)
        )
    for name, count in Counter(one.name for one in weighers).items():
        if count > 1:
            yield warning(f"{name} is enabled {count} times and counts as often. Name it once.")
    follows = any(isinstance(one.weigher, HopByteWeigher) for one in deciding)
    if CONF.hpc_sched.gather_groups and not follows:
        yield warning(
            "gather_groups brings no group together: HopByteWeigher alone follows it. Set "
            + _line(*(path for path in paths if path not in by_topology), HOP_BYTE)
        )
    yield from _mdobp(any(one.is_mdobp for one in weighers))
    yield from _whole_leaf(next((one for one in weighers if one.is_whole_leaf), None))
    if not any(type(one.weigher).__module__.startswith("nova.") for one in weighers):
        yield warning(
            "None of Nova's own weighers is enabled: hosts whose builds fail are not avoided, "
            "and requests without a group go anywhere. Set " + _line(NOVAS, *paths)
        )
    return f"{names(deciding) or 'no weigher'} places by topology."


def _mdobp(is_enabled: bool) -> Findings:
    """Yield where MDOBPWeigher is missing, and what is wrong in ``mdobp_classes``."""
    line = _line(*CONF.filter_scheduler.weight_classes, MDOBP)
    classes = CONF.hpc_sched.mdobp_classes
    plugins = configured_plugins.enabled()
    sharing = list(filter(plugins.has_filter, (DEDICATED_FILTER, INTERFERENCE_FILTER)))
    for is_wrong, text in (
        (
            sharing and not is_enabled,
            f"{', '.join(sharing)} without MDOBPWeigher: class async is not consolidated, and "
            f"class sync fills the fewest hosts of a leaf. Set {line}",
        ),
        (
            is_enabled and not classes,
            "MDOBPWeigher is enabled and places no VMs: mdobp_classes is empty. Name classes, or "
            "remove the weigher from weight_classes.",
        ),
        (
            not is_enabled and "none" in classes,
            f"mdobp_classes = {','.join(classes)}: nothing packs requests that are not HPC, for "
            f"MDOBPWeigher is not enabled. Set {line}",
        ),
    ):
        if is_wrong:
            yield warning(text)


def _whole_leaf(found: LoadedWeigher | None) -> Findings:
    """Yield where WholeLeafWeigher does nothing, or another weigher places the same VMs."""
    value, option = CONF.hpc_sched.whole_leaf_weight_multiplier, WholeLeafWeigher.multiplier
    packs = configured_plugins.enabled().has_mdobp and "none" in CONF.hpc_sched.mdobp_classes
    if found is None and value:
        line = _line(*CONF.filter_scheduler.weight_classes, WHOLE_LEAF)
        yield warning(f"{option} is set, and WholeLeafWeigher is not enabled. Set {line}")
    if found is not None and not value and found.path != ALL_WEIGHERS:
        yield warning(f"WholeLeafWeigher is off: [hpc_sched] {option} = 0. Set it to 100000.")
    if found is not None and value and packs:
        yield warning(
            "WholeLeafWeigher and MDOBPWeigher place the same VMs, and their weights add up: take "
            f"none out of mdobp_classes, or set {option} = 0."
        )


def _line(*paths: str) -> str:
    return f"weight_classes = {', '.join(dict.fromkeys(paths))}"


def _meant(path: str) -> str:
    if has_comment(path):
        return NO_COMMENTS
    close = difflib.get_close_matches(path, [NOVAS, *OURS], 1)
    if close and close[0] != path:
        return f"Did you mean {close[0]}?"
    return "Remove it, or repair its package."


def check_failed_builds(cloud: InspectedCloud) -> Verdict:
    """Return the hosts on which builds have failed, where BuildFailureWeigher outvotes topology."""
    weighers, _ = load()  # the check of weighers reports what cannot be loaded
    ours = [abs(one.multiplier()) for one in weighers if one.is_topology or one.is_mdobp]
    guards = [one for one in weighers if isinstance(one.weigher, compute.BuildFailureWeigher)]
    if not any(abs(guard.multiplier()) > max(ours, default=0.0) for guard in guards):
        return "BuildFailureWeigher does not outvote the weighers of hpc_sched."
    computes = cloud.computes()
    yield from unread_cells(computes, "looked at")
    failed = sorted(
        (node.nodename, node.failed_builds)
        for node in computes.rows
        if node.enabled and node.failed_builds
    )
    if failed:
        hosts = ", ".join(first_listed([f"{name} ({count})" for name, count in failed]))
        yield warning(
            f"Builds have failed on {plurals.text(len(failed), 'host')}: {hosts}. "
            "BuildFailureWeigher keeps VMs off them, and groups are planned without them as "
            "long as they fit, which may split them. The count stays until a build there "
            "succeeds or nova-compute restarts: repair the host, then restart its "
            "nova-compute, or create a server on it (openstack server create --host)."
        )
    return "No build has failed on any enabled compute."
