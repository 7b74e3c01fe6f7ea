"""The metrics of this process, in memory: requests add to them, another thread writes them.

Off until :func:`start`. No file is touched here, nor a lock that a thread holds for longer than it
takes to copy a dictionary, so no request waits for a disk or a scrape. On eventlet the writer
shares the thread of the requests, and a disk that hangs holds them up.
"""

import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hpc_sched import clock
from hpc_sched.metrics.catalogue import BUCKETS, GAUGE, HISTOGRAM, METRICS, Metric

SUM = "sum"
BOUNDS = (*map(str, BUCKETS), "+Inf")
# Series of all counters and histograms, whatever the values of their labels.
MAX_SERIES = 2000


class Series(NamedTuple):
    """What has one value: a metric's labels, of a histogram also a bucket or the sum."""

    metric: Metric
    labels: tuple[tuple[str, str], ...] = ()
    part: str = ""


@dataclass(slots=True)
class _Values:
    """The values of a process; a gauge's with the time at which it was set."""

    is_on: bool = False
    numbers: dict[Series, float] = field(default_factory=dict)
    gauges: dict[Series, tuple[float, float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_values = _Values()


def start() -> None:
    """Count from now on, from zero; what was counted before is forgotten, but not its series."""
    global _values
    known = [
        Series(metric, tuple(labels.items()), part)
        for metric in METRICS
        if metric.kind != GAUGE
        for labels in metric.known_series()
        for part in ((*BOUNDS, SUM) if metric.kind == HISTOGRAM else ("",))
    ]
    _values = _Values(True, dict.fromkeys([*numbers(), *known], 0.0))


def stop() -> None:
    """Count no more."""
    global _values
    _values = _Values()


def is_on() -> bool:
    """True while metrics are counted."""
    return _values.is_on


def count(metric: Metric, **labels: str) -> None:
    """Add one to a counter."""
    add(metric, 1.0, **labels)


def add(metric: Metric, amount: float, **labels: str) -> None:
    """Add an amount to a counter."""
    _add(Series(metric, tuple(labels.items())), amount)


def expose(metric: Metric, **labels: str) -> None:
    """Show a counter at 0: from a series that begins at 1 Prometheus sees no increase."""
    add(metric, 0.0, **labels)


def observe(metric: Metric, seconds: float) -> None:
    """Add a duration to a histogram."""
    _add(Series(metric, (), BOUNDS[bisect_left(BUCKETS, seconds)]), 1.0)
    _add(Series(metric, (), SUM), seconds)


def set_to(metric: Metric, value: float, **labels: str) -> None:
    """Set a gauge."""
    values = _values
    with values.lock:
        if values.is_on:
            values.gauges[Series(metric, tuple(labels.items()))] = value, clock.current.unix_time()


def set_all(metric: Metric, by_value: Mapping[str, float]) -> None:
    """Set all series of a gauge with one label; those that are not given become 0.

    Those of known values too: another worker may have set them, and the last one counts.
    """
    [(label, always)] = metric.labels.items()
    known = [series.labels[0][1] for series in gauges() if series.metric is metric]
    for name in dict.fromkeys([*always, *known, *by_value]):
        set_to(metric, by_value.get(name, 0.0), **{label: name})


def expire(metric: Metric, seconds: float) -> None:
    """Set the series of a gauge to 0 that were set more than some seconds ago.

    They keep the time at which they were set: of several workers the last one counts.
    """
    values = _values
    until = clock.current.unix_time() - seconds
    with values.lock:
        values.gauges |= {
            series: (0.0, set_at)
            for series, (_, set_at) in values.gauges.items()
            if series.metric is metric and set_at < until
        }


def numbers() -> dict[Series, float]:
    """Return the counters and histograms."""
    values = _values
    with values.lock:
        return dict(values.numbers)


def gauges() -> dict[Series, tuple[float, float]]:
    """Return the gauges, each with the Unix time at which it was set."""
    values = _values
    with values.lock:
        return dict(values.gauges)


def _add(series: Series, amount: float) -> None:
    values = _values
    with values.lock:
        if values.is_on and (series in values.numbers or len(values.numbers) < MAX_SERIES):
            values.numbers[series] = values.numbers.get(series, 0.0) + amount
