"""Measures one scene of benchmarks/plan.py in processes of its own, which may be given up."""

import gc
import hashlib
import os
import resource
import signal
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from plan_shapes import PARTS, Scene, fabric_of

from hpc_sched.core.plan.result import Plan, Rejection

GAVE_UP, NO_MEMORY, PLANNED, REFUSED = "gave up", "out of memory", "planned", "refused"
# The exit codes of processes that are given up.
_ENDINGS = {3: NO_MEMORY, 4: GAVE_UP}
# tracemalloc slows Python down: the run that it watches may last longer than the others.
_WATCHED = 10


@dataclass(frozen=True)
class Limits:
    """What one run may use; both of its process."""

    seconds: float  # of CPU, of one run
    gigabytes: float  # of address space


@dataclass
class Measured:
    """The answer for one scene, and what it cost."""

    answer: str = ""  # PLANNED, REFUSED, or why there is no answer
    new_leaves: int | None = None  # leaves with new VMs and without members
    leaves: int | None = None  # leaves of the whole group
    hop_bytes: float | None = None
    is_proven: bool | None = None  # whether the plan is known to be the best one
    digest: str | None = None  # of hosts and numbers of VMs: equal plans have equal ones
    # CPU time of the first solve, which is not counted: it copies the pages of the forked process
    # that it touches, and fills the caches of a topology that a scheduler keeps.
    first_ms: float | None = None
    solve_ms: list[float] = field(default_factory=list)  # CPU time of each run
    plan_ms: list[float] = field(default_factory=list)
    peak_mb: float | None = None  # allocated during solve


Send = Callable[[dict[str, Any]], None]


def import_all() -> None:
    """Plan some VMs, so that no measured run imports what NumPy and the planner import late."""
    topology = fabric_of(60)
    in_parts = [{"parts": wish} for wish in PARTS]
    bounded = [{"require": "pod"}, {"max_leaves": 2}, {"max_leaves": 1}]
    for constraints in ({}, *bounded, *in_parts):
        Scene(topology, dict.fromkeys(topology.hosts, 1), {}, 30, constraints).plan()


def measured(scene: Scene, runs: int, limits: Limits, with_memory: bool = True) -> Measured:
    """Return the times of some runs after a first one, and the peak memory of another one."""
    scene.problem  # noqa: B018 - built once, before the processes that inherit it
    row = Measured()

    def note(found: dict[str, Any]) -> None:
        for name, value in found.items():
            known = getattr(row, name)
            if isinstance(known, list):
                known.append(value)
            else:
                setattr(row, name, value)

    ending = _in_child(lambda send: _times(scene, runs, limits, send), limits, note)
    row.answer = row.answer or ending
    if with_memory and row.answer in (PLANNED, REFUSED):
        _in_child(lambda send: _memory(scene, limits, send), limits, note)
    return row


def _times(scene: Scene, runs: int, limits: Limits, send: Send) -> None:
    answer, seconds = _once(scene.solve, limits.seconds)
    send({**_described(scene, answer), "first_ms": round(seconds * 1e3, 3)})
    for name, call in (("solve_ms", scene.solve), ("plan_ms", scene.plan)):
        for _ in range(runs):
            _, seconds = _once(call, limits.seconds)
            send({name: round(seconds * 1e3, 3)})


def _memory(scene: Scene, limits: Limits, send: Send) -> None:
    tracemalloc.start()
    _once(scene.solve, limits.seconds * _WATCHED)
    send({"peak_mb": round(tracemalloc.get_traced_memory()[1] / 1e6, 2)})


def _once(call: Callable[[], Plan | Rejection], most: float) -> tuple[Plan | Rejection, float]:
    """Return an answer and its CPU seconds; exit the process after more than ``most``."""
    gc.collect()
    # CPU time of all threads, NumPy's too.
    began = time.process_time()

    def check(*_: object) -> None:
        left = most - (time.process_time() - began)
        if left <= 0:
            os._exit(_code(GAVE_UP))
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))

    # By the wall clock: a timer of CPU time makes process_time as coarse as the kernel's ticks.
    signal.signal(signal.SIGALRM, check)
    signal.setitimer(signal.ITIMER_REAL, most)
    began = time.process_time()
    answer = call()
    seconds = time.process_time() - began
    signal.setitimer(signal.ITIMER_REAL, 0)
    return answer, seconds


def _described(scene: Scene, answer: Plan | Rejection) -> dict[str, Any]:
    if not isinstance(answer, Plan):
        return {"answer": REFUSED}
    used, with_members = set(answer.leaves), scene.member_leaves
    places = repr(sorted(answer.hosts.items())).encode()
    return {
        "answer": PLANNED,
        "new_leaves": len(used - with_members),
        "leaves": len(used | with_members),
        "hop_bytes": answer.hop_bytes,
        "is_proven": answer.is_proven,
        "digest": hashlib.blake2b(places, digest_size=8).hexdigest(),
    }


def _in_child(job: Callable[[Send], None], limits: Limits, note: Send) -> str:
    """Pass on what a job sends from a process of its own; return why it has not ended, or "".

    The process is forked: a fabric of 100,000 hosts is not built again for each scene.
    """
    fork = get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_child, args=(job, limits, sender))
    process.start()
    sender.close()
    while True:
        try:
            note(receiver.recv())
        except EOFError:
            break
    process.join()
    code = process.exitcode
    return _ENDINGS.get(code, f"exit code {code}") if code else ""


def _code(ending: str) -> int:
    return next(code for code, known in _ENDINGS.items() if known == ending)


def _child(job: Callable[[Send], None], limits: Limits, sender: Connection) -> None:
    # What is in memory anyway is no part of a run.
    gc.collect()
    gc.freeze()
    size = int(limits.gigabytes * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        job(sender.send)
    except MemoryError:
        os._exit(_code(NO_MEMORY))
