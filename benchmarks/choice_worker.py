"""Measures one size of cloud in this process, and prints a line of JSON for each row."""

import gc
import json
import logging
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from choice_cloud import (
    BUNCH,
    CAPS,
    CAPS_REACHED,
    METRICS,
    PACKING,
    PLANS,
    PLUGIN,
    SHADOW,
    SHADOW_SHARING,
    SHARING,
    STOCK,
    UNCOUNTED,
    WHOLE_LEAVES,
    Cloud,
    Side,
    build,
)
from choice_report import GROUP, OTHER, Row
from sqlalchemy.engine import Engine

from hpc_sched.core.room.host_caps import RequestCaps
from hpc_sched.nova_glue.exporter import worker

SIDES = {
    side.name: side
    for side in (
        STOCK,
        PLUGIN,
        PLANS,
        METRICS,
        BUNCH,
        CAPS,
        CAPS_REACHED,
        UNCOUNTED,
        SHARING,
        PACKING,
        SHADOW,
        SHADOW_SHARING,
        WHOLE_LEAVES,
    )
}
# Those that differ for requests that are not HPC.
OF_OTHERS = (PLUGIN, METRICS, SHARING, PACKING, SHADOW, SHADOW_SHARING, WHOLE_LEAVES)
# Up to so many VMs a turn is short enough for one more, that warms up.
SMALL = 16
# Requests that are served before peak memory is read.
REQUESTS = 3


def work(
    folder: Path,
    hosts: int,
    memory_of: str = "",
    counts: Sequence[int] = (),
    sides: Sequence[str] = (),
    pairs: int = 3,
    near_pairs: int = 25,
    skip_above: float | None = None,
    seed: int = 1,
    policy: str = GROUP,
) -> None:
    """Print the rows of one size: of peak memory, or of times."""
    # The lines that a scheduler logs by default cost what they cost.
    logging.basicConfig(level=logging.INFO, stream=open(os.devnull, "w"))  # noqa: SIM115
    _say(f"{hosts:,} hosts: making them")
    cloud = build(folder, hosts, seed)
    if memory_of:
        _print(_peak(cloud, hosts, SIDES[memory_of]))
        return
    compared = [SIDES[name] for name in sides]
    a_vm = 0.0  # CPU seconds of stock Nova for one weighing
    for count in counts:
        # What is not of a group Nova weighs VM by VM: one of them tells.
        for kind in (OTHER, policy) if count == 1 else (policy,):
            if kind == OTHER:
                others = [side for side in OF_OTHERS if side in compared or side == PLUGIN]
            else:
                others = [side for side in compared if side not in (PACKING, WHOLE_LEAVES)]
            is_slow = skip_above is not None and a_vm * (count + 1) > skip_above
            taken = [side for side in others if not (is_slow and side in (BUNCH, PLANS))]
            turns = near_pairs if count == 1 else pairs
            rows = _measure(cloud, hosts, count, kind, taken, turns, with_stock=not is_slow)
            for row in rows:
                _print(row)
            if not is_slow:
                stock = sorted(rows[0].seconds)[len(rows[0].seconds) // 2]
                a_vm = stock / (count + 1 if count > 1 else 1)


def _measure(
    cloud: Cloud,
    hosts: int,
    count: int,
    kind: str,
    others: Sequence[Side],
    turns: int,
    with_stock: bool,
) -> list[Row]:
    """Return a row for each side, stock Nova first, measured in turn."""
    sides = [STOCK, *others] if with_stock else list(others)
    rows = {side.name: Row(hosts=hosts, count=count, kind=kind, side=side.name) for side in sides}
    for turn in range(turns + 1):
        for side in sides:
            # The first turn of the small ones warms up what a running scheduler has warm.
            if turn == 0 and count > SMALL:
                continue
            _say(f"{hosts:,} hosts, {count} VMs ({kind}), {side.name}: {turn} of {turns}")
            # Until the metrics are there, and may be written at any time of the request. A pause
            # costs what comes after it: all sides have one.
            pause = worker.PERIOD * random.uniform(1, 2) if METRICS in sides else 0.0
            seconds, queries, in_caps = _once(cloud, side, count, kind, pause)
            if turn:
                rows[side.name].seconds.append(seconds)
                rows[side.name].in_caps.append(in_caps)
                rows[side.name].queries = queries
    if with_stock:
        for side in others:
            rows[side.name].ratios[:] = [
                ours / stock
                for ours, stock in zip(
                    rows[side.name].seconds, rows[STOCK.name].seconds, strict=True
                )
            ]
    return list(rows.values())


def _once(
    cloud: Cloud, side: Side, count: int, kind: str, pause: float = 0.0
) -> tuple[float, int, float]:
    """Return CPU seconds and queries of one request, after a pause in seconds.

    And the seconds of them in which filters that count VMs were asked.
    """
    choose = cloud.prepare(side, count, kind)
    gc.collect()
    gc.freeze()  # what stands in memory anyway is no part of the request
    time.sleep(pause)
    with _queries() as asked, _in_caps() as in_caps:
        began = time.process_time()
        chosen = choose()
        seconds = time.process_time() - began
    gc.unfreeze()
    if len(chosen) != count:
        raise RuntimeError(f"{side.name}: {len(chosen)} of {count} VMs have been placed")
    cloud.forget()
    return seconds, len(asked), sum(in_caps)


@contextmanager
def _in_caps() -> Iterator[list[float]]:
    """Collect the CPU seconds of each question about the caps of filters."""
    taken: list[float] = []
    methods = {name: getattr(RequestCaps, name) for name in ("verify", "ask_all")}

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return method(*args, **named)
            finally:
                taken.append(time.process_time() - began)

        return call

    for name, method in methods.items():
        setattr(RequestCaps, name, timed(method))
    try:
        yield taken
    finally:
        for name, method in methods.items():
            setattr(RequestCaps, name, method)


@contextmanager
def _queries() -> Iterator[list[str]]:
    asked: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_rest: object) -> None:
        # SQLite's driver sends one for each transaction.
        if statement != "BEGIN":
            asked.append(statement)

    sa.event.listen(Engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        sa.event.remove(Engine, "before_cursor_execute", note)


def _peak(cloud: Cloud, hosts: int, side: Side) -> Row:
    """Return the peak memory of this process after some requests of one side."""
    for _ in range(REQUESTS):
        cloud.prepare(side, 1, GROUP)()
        cloud.forget()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Row(hosts=hosts, count=0, kind="memory", side=side.name, megabytes=peak)


def _print(row: Row) -> None:
    print(json.dumps(asdict(row)), flush=True)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
