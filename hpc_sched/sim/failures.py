"""Failures of hosts: stated ones, or drawn."""

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """One host that goes down."""

    time: float  # s
    host: int  # index in topology.hosts
    repair: float | None = None  # s until it is back; None: never


def drawn(hosts: int, mtbf: float, repair: float, seed: int) -> Iterator[Failure]:
    """Yield failures without an end: exponential times between them, every host alike.

    :param mtbf: mean time between two failures of one host, s
    :param repair: mean time to its repair, exponential as well, s
    """
    draw = random.Random(f"failures {seed}")
    time = 0.0
    while True:
        time += draw.expovariate(hosts / mtbf)
        yield Failure(time, draw.randrange(hosts), draw.expovariate(1 / repair))
