"""The interference index in a simulation: which applications are kept apart, and which attract."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from hpc_sched.core.sharing.cache_interference import InterferenceIndex

NO_INDEX = InterferenceIndex({})


@dataclass(frozen=True, slots=True)
class InterferenceRules:
    """The rules of an index, by application; read-only."""

    apart: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # The applications that attract one, each with what the two gain.
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    tolerance: float | None = None  # change from which a pair counts; None without an index

    @classmethod
    def of(cls, index: InterferenceIndex, tolerance: float) -> Self:
        """Return the rules of an index. O(entries * applications).

        :param tolerance: ``interference_tolerance`` of the plugin
        """
        gains = {name: index.attracting(name, tolerance) for name in sorted(index.applications)}
        return cls(index.bad_company(tolerance), gains, tolerance)

    def apart_from(self, name: str | None) -> frozenset[str]:
        """Return the applications with which one must not share a host."""
        return frozenset() if name is None else self.apart.get(name, frozenset())

    def gains_of(self, name: str | None) -> Mapping[str, float]:
        """Return the applications that attract one, each with what the two gain."""
        return {} if name is None else self.gains.get(name, {})


NO_RULES = InterferenceRules()
