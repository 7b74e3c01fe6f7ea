"""Moves of VMs through Nova's API, by some threads of which each takes the next VM of a list."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import requests

from tests.cloud.nova_api import NovaApi

THREADS = 3  # Masakari's ``host_failure_recovery_threads``
LOOK_EVERY, ENDS_IN = 1.0, 180.0  # seconds
HOST, STATUS, TASK = "OS-EXT-SRV-ATTR:host", "status", "OS-EXT-STS:task_state"
OFFLOADED = "SHELVED_OFFLOADED"


@dataclass(frozen=True)
class Move:
    """What became of a VM."""

    server: str
    name: str
    host: str | None  # None where it has failed
    refused: str | None
    sent: float  # time.monotonic()
    ended: float


def move_all(api: NovaApi, servers: Sequence[dict[str, Any]], action: str) -> list[Move]:
    """Move servers in their order, ``THREADS`` at a time; return what became of them.

    A thread begins a move, waits until the VM is active on another host or has failed, and takes
    the next one. What has failed is not tried again.
    """
    left, lock = iter(servers), threading.Lock()
    found: list[Move] = []

    def work() -> None:
        while True:
            with lock:
                server = next(left, None)
            if server is None:
                return
            found.append(_move(api, server, action))

    with ThreadPoolExecutor(THREADS) as pool:
        for thread in [pool.submit(work) for _ in range(THREADS)]:
            thread.result()
    return found


def shelve_all(api: NovaApi, servers: Sequence[dict[str, Any]]) -> None:
    """Shelve servers, ``THREADS`` at a time, until none has a host."""

    def shelve(server: dict[str, Any]) -> None:
        api.act(server["id"], "shelve")
        until = time.monotonic() + ENDS_IN
        while (now := api.server(server["id"]))[STATUS] != OFFLOADED or now[TASK]:
            if time.monotonic() > until:
                raise TimeoutError(f"not offloaded after {ENDS_IN:.0f} s: {now}")
            time.sleep(LOOK_EVERY)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(shelve, servers))


def _move(api: NovaApi, server: dict[str, Any], action: str) -> Move:
    sent = time.monotonic()
    try:
        api.act(server["id"], action)
        now = _ended(api, server, sent + ENDS_IN)
    except requests.HTTPError as error:
        return Move(server["id"], server["name"], None, str(error), sent, time.monotonic())
    host, refused = now[HOST], None
    if not _has_moved(now, server):
        state = f"{now[STATUS]}, task {now[TASK]}, on {host}"
        if now[STATUS] == OFFLOADED:  # Nova notes no fault then
            state = f"No valid host was found: {state}"
        host, refused = None, now.get("fault", {}).get("message", state)
    return Move(server["id"], server["name"], host, refused, sent, time.monotonic())


def _ended(api: NovaApi, before: dict[str, Any], until: float) -> dict[str, Any]:
    """Return a server when its move has ended, or how it is at a moment.

    The last thing that changes in an evacuation is the host.
    """
    while True:
        time.sleep(LOOK_EVERY)
        found = api.server(before["id"])
        has_failed = not found[TASK] and found[STATUS] in ("ERROR", OFFLOADED)
        if has_failed or _has_moved(found, before) or time.monotonic() > until:
            return found


def _has_moved(now: dict[str, Any], before: dict[str, Any]) -> bool:
    return now[STATUS] == "ACTIVE" and not now[TASK] and now[HOST] != before[HOST]
