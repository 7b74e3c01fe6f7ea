"""The weighers that nova.conf enables, as Nova's HostManager loads them, and their multipliers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import nova.conf
from nova import objects
from nova.scheduler import weights
from nova.scheduler.weights import metrics

from hpc_sched.status.finding import import_error_text
from hpc_sched.weighers.base import GroupWeigher, TopologyWeigher
from hpc_sched.weighers.mdobp import MDOBPWeigher

CONF = nova.conf.CONF


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
        aggregates = [] if aggregate is None else [aggregate]
        return float(self.weigher.weight_multiplier(SimpleNamespace(aggregates=aggregates)))

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


@dataclass(frozen=True, slots=True)
class MissingWeigher:
    """An entry of weight_classes that Nova cannot load."""

    path: str
    why: str  # a sentence


def load() -> tuple[list[LoadedWeigher], list[MissingWeigher]]:
    """Return the weighers in Nova's order, and the entries that cannot be loaded.

    The constructors of hpc_sched's weighers are not called: they would load the topology.
    """
    found: list[LoadedWeigher] = []
    missing: list[MissingWeigher] = []
    for path in CONF.filter_scheduler.weight_classes:
        try:
            classes = weights.HostWeightHandler().get_matching_classes([path])
        except Exception as error:
            # A site's own module may raise anything at import.
            text = import_error_text(error)
            why = f"weight_classes names {path!r}, which cannot be imported: {text}."
            missing.append(MissingWeigher(path, why))
            continue
        for cls in classes:
            try:
                weigher = cls.__new__(cls) if issubclass(cls, GroupWeigher) else cls()
            except Exception as error:
                why = f"{cls.__name__} of {path} cannot be built: {error}."
                missing.append(MissingWeigher(path, why))
            else:
                found.append(LoadedWeigher(path, weigher))
    return found, missing


def names(weighers: Sequence[LoadedWeigher]) -> str:
    """Return the names of weighers, separated by commas."""
    return ", ".join(weigher.name for weigher in weighers)
