"""Cases for a network model: a fat tree, endless flows, and what each rank does; and their text.

One line each::

    agg RATE LAT UPLAT PODS LEAVES HOSTS RATIO [PODRATIO]
    bg FROM TO
    rank HOST OPS

Operations are ``c SECONDS`` (compute), ``s RANK TAG BYTES`` (post a send), ``r RANK TAG`` (post a
receive), ``w`` (wait for all that is posted) and ``b`` (wait until all ranks are at theirs, which
takes no time; the product's cases have none, and no PODRATIO). Hosts are numbered from 0, leaf by
leaf; ranks in the order of their lines. Debian's Python imports this module too: the standard
library only.
"""

from collections.abc import Iterator
from dataclasses import dataclass


class CaseError(Exception):
    """A text is not a case: the line, and what was expected."""


@dataclass(frozen=True, slots=True)
class FatTree:
    """Pods of leaves of hosts, and one core; each link has both directions for themselves."""

    rate: float  # of a host's link, bytes per second
    latency: float  # of a host's link, s
    uplink_latency: float  # of a leaf's and a pod's uplink, s
    pods: int
    leaves: int  # of a pod
    hosts: int  # of a leaf
    ratio: float  # by which the uplinks of leaves are oversubscribed
    pod_ratio: float = 1.0  # the same of pods

    @property
    def leaf_rate(self) -> float:
        """Return the rate of a leaf's uplink, bytes per second."""
        return self.rate * self.hosts / self.ratio

    @property
    def pod_rate(self) -> float:
        """Return the rate of a pod's uplink, bytes per second."""
        return self.leaf_rate * self.leaves / self.pod_ratio


@dataclass(frozen=True, slots=True)
class Compute:
    """Compute for some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Send:
    """Post a message to another rank."""

    rank: int
    tag: int
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class Receive:
    """Post the receipt of a message; those of one sender and tag arrive in order."""

    rank: int
    tag: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for all that was posted since the last wait."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait until all ranks are at one of theirs."""


Operation = Compute | Send | Receive | Wait | Barrier


@dataclass(frozen=True, slots=True)
class Rank:
    """A process on a host, and what it does in order."""

    host: int
    operations: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A fabric, endless flows between two hosts each, and ranks of one or more jobs."""

    fabric: FatTree
    ranks: tuple[Rank, ...]
    background: tuple[tuple[int, int], ...] = ()

    def text(self) -> str:
        """Return the case as text, of which :func:`read` makes the same case."""
        f = self.fabric
        ratios = [f.ratio] if f.pod_ratio == 1 else [f.ratio, f.pod_ratio]
        whole = (repr(int(each) if float(each).is_integer() else each) for each in ratios)
        sizes = f"{f.pods} {f.leaves} {f.hosts} {' '.join(whole)}"
        lines = [f"agg {f.rate!r} {f.latency!r} {f.uplink_latency!r} {sizes}"]
        lines += [f"bg {source} {target}" for source, target in self.background]
        lines += [" ".join(["rank", str(rank.host), *_words(rank)]) for rank in self.ranks]
        return "\n".join(lines) + "\n"


def read(text: str) -> Case:
    """Return the case of a text; CaseError names the line that is wrong."""
    fabric, background, ranks = None, list[tuple[int, int]](), list[Rank]()
    for number, line in enumerate(text.splitlines(), 1):
        kind, *words = line.split() or [""]
        try:
            if kind == "agg":
                rate, latency, uplink_latency = map(float, words[:3])
                pods, leaves, hosts = map(int, words[3:6])
                ratio, pod_ratio = (*map(float, words[6:]), 1.0)[: max(len(words) - 6, 2)]
                fabric = FatTree(
                    rate, latency, uplink_latency, pods, leaves, hosts, ratio, pod_ratio
                )
            elif kind == "bg":
                source, target = map(int, words)
                background.append((source, target))
            elif kind == "rank":
                ranks.append(Rank(int(words[0]), tuple(_operations(iter(words[1:])))))
            else:
                raise ValueError(f"{kind!r}, expected agg, bg or rank")
        except (ValueError, IndexError, StopIteration) as error:
            raise CaseError(f"line {number}: {line[:60]!r}: {error}") from error
    if fabric is None or not ranks:
        raise CaseError("expected a line agg and one or more lines rank")
    _check_numbers(fabric, background, ranks)
    return Case(fabric, tuple(ranks), tuple(background))


def _words(rank: Rank) -> Iterator[str]:
    for operation in rank.operations:
        match operation:
            case Compute(seconds):
                yield f"c {seconds!r}"
            case Send(to, tag, size):
                yield f"s {to} {tag} {size}"
            case Receive(source, tag):
                yield f"r {source} {tag}"
            case Wait():
                yield "w"
            case Barrier():
                yield "b"


def _operations(words: Iterator[str]) -> list[Operation]:
    found = list[Operation]()
    for word in words:
        if word == "c":
            found.append(Compute(float(next(words))))
        elif word == "s":
            found.append(Send(int(next(words)), int(next(words)), int(next(words))))
        elif word == "r":
            found.append(Receive(int(next(words)), int(next(words))))
        elif word == "w":
            found.append(Wait())
        elif word == "b":
            found.append(Barrier())
        else:
            raise ValueError(f"{word!r}, expected c, s, r, w or b")
    return found


def _check_numbers(fabric: FatTree, background: list[tuple[int, int]], ranks: list[Rank]) -> None:
    """Raise CaseError for a host or a rank that does not exist."""
    hosts = range(fabric.pods * fabric.leaves * fabric.hosts)
    for host in [*(host for flow in background for host in flow), *(rank.host for rank in ranks)]:
        if host not in hosts:
            raise CaseError(f"host {host}, expected one below {len(hosts)}")
    for number, rank in enumerate(ranks):
        for operation in rank.operations:
            if isinstance(operation, Send | Receive) and operation.rank not in range(len(ranks)):
                raise CaseError(f"rank {number}: {operation}, expected a rank below {len(ranks)}")
