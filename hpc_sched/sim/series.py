"""The samples of a run."""

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of the cluster over time, one list per measure."""

    time: list[float]  # s
    vcpus: list[float]  # share in use
    memory: list[float]  # share in use
    running: list[int]  # jobs
    waiting: list[int]  # jobs
    done: list[int]  # jobs so far
    crossing: list[float]  # jobs with VMs under a leaf and under others, mean over leaves
    gangs: dict[str, list[int]]  # level to the largest group that fits under one of its switches
    leaves: list[list[float]]  # share of each leaf's vcpus in use. Shape (samples, leaves)

    @property
    def lists(self) -> list[list[Any]]:
        """All of them."""
        named = (getattr(self, field.name) for field in fields(self) if field.name != "gangs")
        return [*named, *self.gangs.values()]
