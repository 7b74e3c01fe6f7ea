"""The workloads of benchmarks/churn.py: sizes of groups, their arrivals and lifetimes."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PODS, LEAVES_A_POD, HOSTS_A_LEAF = 8, 16, 18
HOSTS = PODS * LEAVES_A_POD * HOSTS_A_LEAF

# Offered load; without one the queue is never empty.
LOADS: dict[str, float | None] = {"0.75": 0.75, "0.9": 0.9, "saturated": None}


def _heavy_tailed(draw: random.Random) -> int:
    """Return a size from a Pareto distribution of shape 1, cut off at 2 and 256."""
    return int(2 / (1 - draw.random() * (1 - 2 / 257)))


# VMs of a group. None has a single VM: its cost would be 0 wherever it is placed.
SIZES: dict[str, Callable[[random.Random], int]] = {
    "uniform": lambda draw: draw.randint(2, 64),
    "power of two": lambda draw: 1 << draw.randint(1, 7),
    "heavy-tailed": _heavy_tailed,
}
# Mean sizes, to turn a load into a rate.
MEAN_SIZES = {
    "uniform": sum(range(2, 65)) / 63,
    "power of two": sum(2**n for n in range(1, 8)) / 7,
    # Sum of the probabilities that a size is at least n.
    "heavy-tailed": 2 + sum((2 / n - 2 / 257) / (1 - 2 / 257) for n in range(3, 257)),
}


@dataclass(frozen=True)
class Task:
    """A run: a workload on one side."""

    sizes: str
    load: str
    seed: int
    salt: str  # of the group ids, which choose among equals
    warm_up: float  # lifetimes of groups that are not counted; the fabric fills
    groups: int  # groups that are counted after these

    @property
    def uncounted(self) -> int:
        """The number of groups that are not counted: those of a full fabric in each lifetime."""
        return math.ceil(self.warm_up * HOSTS / MEAN_SIZES[self.sizes])

    @property
    def total(self) -> int:
        """The number of groups."""
        return self.uncounted + self.groups


@dataclass(frozen=True)
class Group:
    """A group that has not started."""

    number: int
    arrival: float
    size: int
    lifetime: float  # the mean is 1


def arrivals(task: Task) -> Iterator[Group]:
    """Yield the groups in the order of their arrival: the same for both sides."""
    draw = random.Random(f"{task.seed} {task.sizes} {task.load}")
    load, now = LOADS[task.load], 0.0
    for number in range(task.total):
        if load is not None:
            now += draw.expovariate(load * HOSTS / MEAN_SIZES[task.sizes])
        yield Group(number, now, SIZES[task.sizes](draw), draw.expovariate(1.0))
