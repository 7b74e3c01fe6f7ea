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

from hpc_sched.status.check_result import said
from hpc_sched.weighers.base import GroupWeigher, TopologyWeigher
from hpc_sched.weighers.mdobp import MDOBPWeigher

CONF = nova.conf.CONF


@dataclass(frozen=True, slots=True)
class Enabled:
    """One weigher that nova.conf enables."""

    path: str  # the entry of weight_classes that brings it
    weigher: Any  # an object that knows its multiplier; ours has not loaded a topology

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self.weigher).__name__

    @property
    def is_topology(self) -> bool:
        """Tell whether it is one of the weighers by topology."""
        return isinstance(self.weigher, TopologyWeigher)

    @property
    def is_mdobp(self) -> bool:
        """Tell whether it is the weigher that chooses hosts inside a leaf."""
        return isinstance(self.weigher, MDOBPWeigher)

    @property
    def option(self) -> str:
        """The option, and the aggregates' metadata, with the multiplier; ours alone."""
        return str(self.weigher.multiplier)

    def multiplier(self, aggregate: objects.Aggregate | None = None) -> float:
        """Return the multiplier, on hosts that are in an aggregate or in none."""
        aggregates = [] if aggregate is None else [aggregate]
        return float(self.weigher.weight_multiplier(SimpleNamespace(aggregates=aggregates)))

    def most(self, aggregates: Iterable[objects.Aggregate]) -> float:
        """Return how far apart the weigher puts two hosts at most, aggregates included.

        0 for a weigher that weighs all hosts alike: metrics that no option names. Infinite where
        a multiplier is no finite number.
        """
        if isinstance(self.weigher, metrics.MetricsWeigher) and not self.weigher.setting:
            return 0.0
        values = [self.multiplier(aggregate) for aggregate in [None, *aggregates]]
        if not all(map(math.isfinite, values)):
            return math.inf
        return max(0.0, *values) - min(0.0, *values)


@dataclass(frozen=True, slots=True)
class Missing:
    """An entry of weight_classes that Nova cannot load."""

    path: str
    why: str  # a sentence


def load() -> tuple[list[Enabled], list[Missing]]:
    """Return the weighers in Nova's order, and what cannot be had.

    Ours are not built as Nova does it, for that would load the topology.
    """
    found: list[Enabled] = []
    missing: list[Missing] = []
    for path in CONF.filter_scheduler.weight_classes:
        try:
            classes = weights.HostWeightHandler().get_matching_classes([path])
        except Exception as error:
            # Importing somebody's module may raise anything.
            why = f"weight_classes names {path!r}, which cannot be imported: {said(error)}."
            missing.append(Missing(path, why))
            continue
        for weigher in classes:
            try:
                found.append(Enabled(path, _made(weigher)))
            except Exception as error:
                why = f"{weigher.__name__} of {path} cannot be built: {error}."
                missing.append(Missing(path, why))
    return found, missing


def names(weighers: Sequence[Enabled]) -> str:
    """Return the names of weighers for people."""
    return ", ".join(weigher.name for weigher in weighers)


def _made(weigher: type) -> Any:
    return weigher.__new__(weigher) if issubclass(weigher, GroupWeigher) else weigher()
