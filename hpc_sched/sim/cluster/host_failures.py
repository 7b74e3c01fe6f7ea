"""Failures of hosts: stated ones, or drawn."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpc_sched import exceptions

# Mean times, s: what is shorter or longer is a slip.
_SHORTEST, _LONGEST = 1.0, 1e15


@dataclass(frozen=True, slots=True)
class Failure:
    """One host that goes down."""

    time: float  # s
    host: int  # index in topology.hosts
    repair: float | None = None  # s until it is back; None: never


def drawn(hosts: Sequence[int], mtbf: float, repair: float, seed: int) -> Iterator[Failure]:
    """Return failures without an end: exponential times between them, every host alike.

    :param hosts: their indices, in an order that does not hang on the description of the fabric
    :param mtbf: mean time between two failures of one host, s
    :param repair: mean time to its repair, exponential as well, s
    :raises exceptions.ConfigError: for a time that no host has
    """
    for what, mean in (("failures of a host", mtbf), ("repair", repair)):
        if not _SHORTEST <= mean <= _LONGEST:
            raise exceptions.ConfigError(
                f"{what}: expected a mean time of {_SHORTEST:g} to {_LONGEST:g} s, found {mean:g}"
            )
    return _drawn(hosts, mtbf, repair, seed)


def _drawn(hosts: Sequence[int], mtbf: float, repair: float, seed: int) -> Iterator[Failure]:
    draw = random.Random(f"failures {seed}")
    time = 0.0
    while True:
        time += draw.expovariate(len(hosts) / mtbf)
        yield Failure(time, hosts[draw.randrange(len(hosts))], draw.expovariate(1 / repair))
