"""Check: one weigher by topology, MDOBP where hosts are shared, and no misspelt weigher."""

import difflib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import nova.conf
from nova import objects
from nova.scheduler import weights
from nova.scheduler.weights import metrics
from oslo_upgradecheck.upgradecheck import Result

from hpc_sched.enabled_plugins import ALL_WEIGHERS, DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.status.finding import NO_COMMENTS, failure, good, has_comment, loaded, warning
from hpc_sched.status.inspected_cloud import InspectedCloud
from hpc_sched.weighers.group_weigher import GroupWeigher, TopologyWeigher
from hpc_sched.weighers.mdobp import MDOBPWeigher

CONF = nova.conf.CONF

NOVAS = "nova.scheduler.weights.all_weighers"
HOP_BYTE = "hpc_sched.weighers.hop_byte.HopByteWeigher"
MDOBP = "hpc_sched.weighers.mdobp.MDOBPWeigher"
OURS = (
    "hpc_sched.weighers.bunch.BunchWeigher",
    HOP_BYTE,
    MDOBP,
    "hpc_sched.weighers.rack_capacity.RackCapacityWeigher",
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
            why = f"weight_classes names {path!r}, which cannot be imported: {problem}."
            missing.append((path, why))
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


def check(_cloud: InspectedCloud) -> list[Result]:
    """Return what is wrong in weight_classes."""
    weighers, missing = load()
    paths = CONF.filter_scheduler.weight_classes
    found = [
        failure(f"{why} nova-scheduler does not start. {_meant(path)}") for path, why in missing
    ]
    deciding = [one for one in weighers if one.is_topology and one.multiplier() != 0]
    by_topology = {one.path for one in weighers if one.is_topology}
    if len(deciding) > 1:
        others = [path for path in paths if path not in by_topology]
        packer = [MDOBP] if ALL_WEIGHERS in by_topology else []
        text = (
            f"{len(deciding)} weighers by topology are enabled, {names(deciding)}: their ranks "
            "add up and groups follow none of their orders. Enable one. Set "
        )
        found.append(failure(text + _line(*others, HOP_BYTE, *packer)))
    elif not by_topology and not missing:
        text = "No weigher by topology is enabled: hosts are chosen by Nova's weighers alone. Set "
        found.append(warning(text + _line(*paths, HOP_BYTE)))
    for name, count in Counter(one.name for one in weighers).items():
        if count > 1:
            text = f"{name} is enabled {count} times and counts as often. Name it once."
            found.append(warning(text))
    plugins = configured_plugins.enabled()
    sharing = list(filter(plugins.has_filter, (DEDICATED_FILTER, INTERFERENCE_FILTER)))
    if sharing and not any(one.is_mdobp for one in weighers):
        text = (
            f"{', '.join(sharing)} without MDOBPWeigher: class async is not consolidated, and "
            "class sync fills the fewest hosts of a leaf. Set "
        )
        found.append(warning(text + _line(*paths, MDOBP)))
    found += _mdobp_classes(any(one.is_mdobp for one in weighers))
    if not any(type(one.weigher).__module__.startswith("nova.") for one in weighers):
        text = (
            "None of Nova's own weighers is enabled: hosts whose builds fail are not avoided, "
            "and requests without a group go anywhere. Set "
        )
        found.append(warning(text + _line(NOVAS, *paths)))
    return found or [good(f"{names(deciding) or 'no weigher'} places by topology.")]


def _mdobp_classes(is_enabled: bool) -> Iterator[Result]:
    """Yield what is wrong in ``mdobp_classes``."""
    classes = CONF.hpc_sched.mdobp_classes
    if is_enabled and not classes:
        yield warning(
            "MDOBPWeigher is enabled and places no VMs: mdobp_classes is empty. Name classes, or "
            "remove the weigher from weight_classes."
        )
    elif not is_enabled and "none" in classes:
        yield warning(
            f"mdobp_classes = {','.join(classes)}: nothing packs requests that are not HPC, for "
            "MDOBPWeigher is not enabled. Set "
            + _line(*CONF.filter_scheduler.weight_classes, MDOBP)
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
