"""Jobs on a fat tree, message by message, as a text; it may be compressed.

::

    agg RATE LATENCY UPLINK_LATENCY PODS LEAVES HOSTS RATIO
    bg A B
    rank HOST c SECONDS s RANK TAG BYTES r RANK TAG w

The first line is the fabric: PODS pods of LEAVES leaves of HOSTS hosts, numbered leaf by leaf from
0; hosts' links have RATE bytes/s, a leaf's uplink RATE * HOSTS / RATIO, a pod's that of its leaves
together. ``bg`` is a flow between two hosts that never ends. A line ``rank`` is one rank, numbered
from 0 as they come: it computes, sends, receives, and waits for all that it has posted.
"""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hpc_sched import decimals, exceptions, files
from hpc_sched.core.arrays import Array
from hpc_sched.sim.cluster.pods import pods
from hpc_sched.sim.network.flows import Flows
from hpc_sched.sim.network.links import Network, fat_tree, paths_between
from hpc_sched.sim.network.messages.program import (
    Computation,
    Operation,
    Program,
    Receive,
    Send,
    Wait,
)
from hpc_sched.topology.readers.compression import decompressed

MAX_BYTES = 200_000_000
MOST_HOSTS = 100_000
# Of rates and of the ratio; beyond it, capacities could not be added up.
MOST_RATE = 1e100
_FABRIC = "agg RATE LATENCY UPLINK_LATENCY PODS LEAVES HOSTS RATIO"
_OPERATIONS = {"c": "c SECONDS", "s": "s RANK TAG BYTES", "r": "r RANK TAG", "w": "w"}


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A fabric, what ranks do on its hosts, and flows of others that never end."""

    network: Network
    ranks: tuple[Program, ...]
    others: Flows

    @property
    def hosts(self) -> Array:
        """Index of the host of each rank. Shape (ranks,)."""
        return np.array([rank.host for rank in self.ranks], dtype=np.int64)


def read(path: files.Path) -> Case:
    """Return the case of a file.

    :raises exceptions.SimulationError: naming file, line and what was expected
    :raises exceptions.TopologyError: for a damaged archive
    """
    error, name = exceptions.SimulationError, os.fspath(path)
    content = decompressed(files.read_bytes(path, error, MAX_BYTES), name, MAX_BYTES)
    return parse(files.decode(content, name, error), name)


def parse(text: str, name: str) -> Case:
    """Return the case that a text states.

    :param name: of the text, in errors
    :raises exceptions.SimulationError: naming the line and what was expected
    """
    network: Network | None = None
    others: list[tuple[int, int]] = []
    ranks: list[Program] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        try:
            match words[0]:
                case "agg" if network is None:
                    network = _network(words[1:])
                case "bg" if network is not None:
                    others.append(_pair(words[1:], len(network.topology.hosts)))
                case "rank" if network is not None:
                    host = _below(words[1:2], len(network.topology.hosts), "a host")
                    ranks.append(Program(host, tuple(_operations(words[2:]))))
                case _:
                    raise ValueError(_FABRIC if network is None else "bg A B, or rank HOST ...")
        except ValueError as expected:
            raise exceptions.SimulationError(
                f"{name}:{number}: expected {expected}, found {line[:80]!r}"
            ) from expected
    if network is None or not ranks:
        raise exceptions.SimulationError(
            f"{name}: expected a line {_FABRIC}, and a line rank HOST ... for each rank"
        )
    ends = np.array(others, dtype=np.int64).reshape(-1, 2)
    flows = Flows.on(paths_between(network, ends[:, 0], ends[:, 1]))
    return Case(network, tuple(ranks), flows)


def _network(words: Sequence[str]) -> Network:
    numbers = [decimals.number_in(word) for word in words]
    if len(numbers) != 7 or any(number is None or number < 0 for number in numbers):
        raise ValueError(_FABRIC)
    rate, latency, up_latency, *shape, ratio = (number or 0.0 for number in numbers)
    if not all(1 / MOST_RATE <= each <= MOST_RATE for each in (rate, ratio)) or not all(
        side >= 1 and side == int(side) for side in shape
    ):
        raise ValueError(
            f"{_FABRIC} with whole numbers of at least 1, and rates above 0, at most {MOST_RATE:g}"
        )
    if math.prod(shape) > MOST_HOSTS:
        raise ValueError(f"at most {MOST_HOSTS} hosts")
    return fat_tree(
        pods(*map(int, shape)),
        host_rate=rate,
        oversubscription=(ratio, 1.0),
        host_latency=latency,
        uplink_latency=up_latency,
    )


def _pair(words: Sequence[str], hosts: int) -> tuple[int, int]:
    if len(words) != 2:
        raise ValueError("bg A B")
    source, target = (_below([word], hosts, "a host") for word in words)
    if source == target:
        raise ValueError("two hosts: a flow within a host that never ends takes no link")
    return source, target


def _operations(words: Sequence[str]) -> Iterator[Operation]:
    rest = iter(words)
    for word in rest:
        form = _OPERATIONS.get(word)
        if form is None:
            raise ValueError(f"one of {', '.join(_OPERATIONS.values())}")
        numbers = [decimals.number_in(next(rest, "")) for _ in form.split()[1:]]
        if any(number is None or not 0 <= number < math.inf for number in numbers):
            raise ValueError(f"{form} with numbers of at least 0")
        found = [number or 0.0 for number in numbers]
        if word in "sr" and any(number != int(number) for number in found[:2]):
            raise ValueError(f"{form} with whole numbers of rank and tag")
        match word:
            case "c":
                yield Computation(found[0])
            case "s":
                yield Send(int(found[0]), int(found[1]), found[2])
            case "r":
                yield Receive(int(found[0]), int(found[1]))
            case _:
                yield Wait()


def _below(words: Sequence[str], bound: int, what: str) -> int:
    number = decimals.number_in(words[0]) if words else None
    if number is None or number != int(number) or not 0 <= number < bound:
        raise ValueError(f"{what} from 0 to {bound - 1}")
    return int(number)
