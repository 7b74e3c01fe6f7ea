"""What has been measured of the choice of hosts: table, targets and growth."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

OTHER, GROUP, PACKED = "none", "anti-affinity", "soft-affinity"
KINDS = {OTHER: "not HPC", GROUP: "group", PACKED: "packed"}

# The most that a side may cost as a part of what stock Nova does, on TARGET_HOSTS hosts.
TARGET_HOSTS = 10_000
GROUP_TARGETS = {1: 0.90, 16: 0.10, 64: 0.05, 256: 0.04}
OTHER_TARGET, SHARING_TARGET, BUNCH_TARGET = 1.05, 1.08, 1.15
# On half as many hosts a group, whose VMs are weighed on as few hosts, gains less.
HALF_HOSTS, HALF_MORE = 5_000, 1.5
MEGABYTES = 60


def median_interval(numbers: Sequence[float]) -> tuple[float, float] | None:
    """Return where the true median is with 95 % certainty, by ranks (binomial).

    None where so few numbers cannot tell.
    """
    count, tail, outside = len(numbers), 1, 0
    while tail <= 0.025 * 2**count:
        outside += 1
        tail += math.comb(count, outside)
    if not outside:
        return None
    ordered = sorted(numbers)
    return ordered[outside - 1], ordered[count - outside]


@dataclass
class Row:
    """One kind of request on one side."""

    hosts: int
    count: int  # VMs of the request; 0 in rows of memory
    kind: str
    side: str
    seconds: list[float] = field(default_factory=list)  # CPU time of each run
    ratios: list[float] = field(default_factory=list)  # to stock Nova in the same turn
    in_caps: list[float] = field(default_factory=list)  # of them in the caps of filters
    queries: int = 0
    megabytes: float | None = None

    @property
    def ratio(self) -> float | None:
        """The median of the ratios, None where stock Nova was left out."""
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the true median of the ratios is with 95 % certainty; None for too few."""
        return median_interval(self.ratios)

    @property
    def target(self) -> float | None:
        """The greatest ratio that is good enough, None where nobody has set one."""
        if self.hosts not in (HALF_HOSTS, TARGET_HOSTS):
            return None
        if self.side == "bunch" and self.kind == GROUP:
            return BUNCH_TARGET
        if self.side == "sharing" and self.kind == OTHER and self.hosts == TARGET_HOSTS:
            return SHARING_TARGET
        if self.side != "plugin":
            return None
        if self.kind == OTHER:
            return OTHER_TARGET
        target = GROUP_TARGETS.get(self.count)
        if target is None or self.hosts == TARGET_HOSTS:
            return target
        return min(target * HALF_MORE, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Return what is written as JSON."""
        return asdict(self) | {
            "ratio": self.ratio,
            "interval": self.interval,
            "target": self.target,
        }


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text: sides of one request beneath each other, then memory."""
    form = "{:>7} {:>5} {:<9} {:<8} {:>10} {:>8} {:>11} {:>7} {:>8} {:>6} {:>8}"
    head = ("hosts", "VMs", "kind", "side", "CPU s", "ratio", "95 %", "target", "queries", "turns")
    head += ("caps s",)
    lines = [form.format(*head)]
    for row in rows:
        if row.megabytes is not None:
            continue
        lines.append(
            form.format(
                f"{row.hosts:,}",
                row.count,
                KINDS[row.kind],
                row.side,
                f"{statistics.median(row.seconds):.3f}",
                "" if row.ratio is None else f"{row.ratio:.3f}",
                "" if row.interval is None else "{:.3f}-{:.3f}".format(*row.interval),
                "" if row.target is None else f"{row.target:.2f}",
                row.queries,
                len(row.seconds),
                f"{statistics.median(row.in_caps):.3f}" if any(row.in_caps) else "",
            ).rstrip()
        )
    lines += ["", "peak memory of a process, MB (more than stock Nova)"]
    for hosts, side, peak, more in _memory(rows):
        lines.append(f"{hosts:>7,} {side:<8} {peak:>8.0f} {more:>+8.0f}")
    return "\n".join(lines)


def _memory(rows: Sequence[Row]) -> Iterable[tuple[int, str, float, float]]:
    stock = {row.hosts: row.megabytes for row in rows if row.side == "stock" and row.megabytes}
    for row in rows:
        if row.megabytes is not None:
            yield row.hosts, row.side, row.megabytes, row.megabytes - stock[row.hosts]


def missed(rows: Sequence[Row]) -> list[str]:
    """Return the targets that are not met, a line each."""
    late = [
        f"{row.side}, {row.hosts:,} hosts, {row.count} VMs ({KINDS[row.kind]}): "
        f"{row.ratio:.3f} is more than {row.target:.2f}"
        for row in rows
        if row.ratio is not None and row.target is not None and not row.ratio <= row.target
    ]
    late += [
        f"{side}, {hosts:,} hosts: {more:.0f} MB more than stock Nova, at most {MEGABYTES} wanted"
        for hosts, side, _, more in _memory(rows)
        if hosts <= TARGET_HOSTS and not more <= MEGABYTES
    ]
    return late


def unmeasured(rows: Sequence[Row]) -> list[str]:
    """Return the targets on TARGET_HOSTS hosts that no row can meet or miss, a line each."""
    wanted = [(count, GROUP, side) for side in ("plugin", "bunch") for count in GROUP_TARGETS]
    measured = {
        (row.count, row.kind, row.side)
        for row in rows
        if row.hosts == TARGET_HOSTS and row.ratio is not None
    }
    lines = [
        f"{side}, {TARGET_HOSTS:,} hosts, {count} VMs ({KINDS[kind]})"
        for count, kind, side in [(1, OTHER, "plugin"), (1, OTHER, "sharing"), *wanted]
        if (count, kind, side) not in measured
    ]
    if not any((hosts, side) == (TARGET_HOSTS, "plugin") for hosts, side, *_ in _memory(rows)):
        lines.append(f"plugin, {TARGET_HOSTS:,} hosts, memory")
    return lines


def fit(rows: Sequence[Row]) -> list[str]:
    """Return how CPU time grows, seconds ~ H^a * N^b by least squares, a line for each side."""
    lines = []
    for side in dict.fromkeys(row.side for row in rows):
        points = [
            (row.hosts, row.count, statistics.median(row.seconds))
            for row in rows
            if row.side == side and row.kind == GROUP and row.seconds
        ]
        if len({h for h, _, _ in points}) < 2 or len({n for _, n, _ in points}) < 2:
            continue
        logs = np.log([[math.e, h, n] for h, n, _ in points])
        (_, by_hosts, by_count), *_ = np.linalg.lstsq(
            logs, np.log([s for _, _, s in points]), rcond=None
        )
        lines.append(f"{side}: CPU time grows with H^{by_hosts:.2f} and N^{by_count:.2f}")
    return lines
