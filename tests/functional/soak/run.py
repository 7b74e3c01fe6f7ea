"""A run of the soak: rounds of events, checks between them, samples of memory, a table."""

import datetime
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from unittest import mock

from hpc_sched.nova_glue.claim import hold_followup
from hpc_sched.nova_glue.claim.holds import hold_ends
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.read.instances import member_records
from tests.functional.soak import checks, events, fabrics, growth
from tests.functional.soak.life import Life

THREADS = 4
SAMPLES = 12
SECONDS = 60  # for a change of the topology to come into use; it takes one


@dataclass
class Soak:
    """What a run has found."""

    life: Life
    listener: checks.Listener
    wrong: list[str] = field(default_factory=list)
    samples: list[growth.Sample] = field(default_factory=list)
    torn: int = 0  # groups that a change of the fabric has torn apart
    most_vms: int = 0
    seconds: float = 0.0
    cpu: float = 0.0


def run(
    life: Life,
    listener: checks.Listener,
    seed: int,
    number: int,
    progress: Callable[[str], None] = lambda _text: None,
) -> Soak:
    """Live through a number of events; stop at the first that leaves something wrong."""
    soak, began, cpu, done = Soak(life, listener), time.monotonic(), _cpu(), 0
    excused: set[str] = set()
    # Here hosts die and come back within a second: what a VM has left behind is no goal of it.
    at_once = mock.patch.object(member_records, "RECENT", datetime.timedelta())
    with ThreadPoolExecutor(THREADS) as pool, growth.from_here(), at_once:
        # The pool has all its threads from the first sample on.
        list(pool.map(time.sleep, [0.05] * THREADS))
        # So have moves and holds, whenever the first one comes.
        for thread in (hold_followup._thread, hold_ends._thread):
            thread.start()
        loaded_topology.current()
        for count, together in enumerate(events.rounds(seed, number)):
            soak.wrong += _round(soak, pool, together, excused)
            done += len(together)
            soak.most_vms = max(soak.most_vms, len(life.fleet.vms))
            if done * SAMPLES // number > len(soak.samples):
                soak.wrong += _look_around(soak)
                progress(f"{done}/{number} events, {len(life.fleet.vms)} VMs, {told(soak)}")
            if soak.wrong:
                soak.wrong.append(f"in round {count}, seed {seed}: {together}")
                break
    soak.seconds, soak.cpu = time.monotonic() - began, _cpu() - cpu
    return soak


def _round(
    soak: Soak, pool: ThreadPoolExecutor, together: list[events.Event], excused: set[str]
) -> list[str]:
    life = soak.life
    life.asking.clear()
    life.before = life.leaves
    attempts = [attempt for attempt in map(life.begin, together) if attempt is not None]
    list(pool.map(life.send, attempts))
    wrong = [f"{a.event}: {a.error!r}" for a in attempts if a.error is not None]
    for attempt in attempts:
        life.end(attempt)
    wrong += checks.after_round(life, attempts, excused)
    wrong += checks.placement(life)
    if life.before is not life.leaves:
        wrong += _in_use(life)
        life.before = life.leaves
        torn = set(checks.groups(life))
        soak.torn += len(torn - excused)
        excused |= torn
    excused &= set(checks.groups(life))
    for attempt in attempts:
        attempt.spec = None
    life.land(together[0].dice)
    return wrong + soak.listener.unusual


def _in_use(life: Life) -> list[str]:
    """Wait until the background has read a change of the topology."""
    if life.is_spoilt:
        # Two events of a round: the mistake came last.
        fabrics.write(life.path, life.leaves)
        life.is_spoilt = False
    wanted = {leaf: set(hosts) for leaf, hosts in life.leaves.items()}
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        topology = loaded_topology.current().topology
        if {leaf: set(topology.hosts_of(leaf)) for leaf in topology.leaves} == wanted:
            return []
        time.sleep(0.05)
    return [f"the topology was not read again within {SECONDS} s"]


def _look_around(soak: Soak) -> list[str]:
    """Return what is wrong when nobody is being served, and take a sample of the memory."""
    life = soak.life
    life.fleet.clean()
    wrong = checks.beliefs(life)
    sample = growth.look(life.requests, len(life.fleet.vms))
    soak.samples.append(sample)
    # Nova's pools get their threads one by one, as they are wanted.
    first = soak.samples[SAMPLES // 3] if len(soak.samples) > SAMPLES // 3 else sample
    wrong += [f"still alive: {sample.live[name]} {name}" for name in growth.left_over(sample)]
    if sample.entries:
        wrong.append(f"{sample.entries} entries in the registry of requests")
    if sample.threads != first.threads:
        wrong.append(f"{sample.threads} threads, first {first.threads}")
    if more := sample.files - first.files:
        wrong.append(f"open files that were not open at first: {dict(more)}")
    bounds = {
        "applications": len(life.fleet.vms),
        "creations": len(life.fleet.vms),
        "processors": 256,
    }
    wrong += [
        f"{sample.caches[name]} entries in the cache of {name}"
        for name, most in bounds.items()
        # VMs that have been deleted since the last request are still known.
        if sample.caches[name] > most + 50
    ]
    return wrong


def told(soak: Soak) -> str:
    """Return the memory of the last sample, for progress."""
    last = soak.samples[-1]
    return f"{last.rss / 2**20:.1f} MiB, {last.blocks} blocks, {growth.ours(last)} objects"


def table(soak: Soak) -> Iterator[str]:
    """Yield the lines of what the run was like."""
    counts = soak.life.counts
    whats = ("placed", "refused", "raced", "done", "nothing to do")
    yield "  ".join(["event        ", *(f"{what:>7}" for what in whats)])
    for kind in events.KINDS:
        numbers = (f"{counts[kind, what] or '-':>{max(7, len(what))}}" for what in whats)
        yield "  ".join([f"{kind:13}", *numbers])
    yield (
        f"{soak.life.requests} requests, {soak.most_vms} VMs at most, "
        f"{soak.torn} groups torn by a change of the fabric"
    )
    yield f"{soak.seconds:.0f} s, {soak.cpu:.0f} s of CPU"
    if len(soak.samples) < SAMPLES:
        return
    third, last = soak.samples[SAMPLES // 3], soak.samples[-1]
    for name, value in MEASURES.items():
        yield (
            f"{name}: {value(third):.0f} at a third, {value(last):.0f} at the end, "
            f"{slope(soak, name):+.3f} a request"
        )


def slope(soak: Soak, name: str) -> float:
    """Return by how much a measure grows with a request."""
    return growth.per_request(soak.samples, [MEASURES[name](one) for one in soak.samples])


MEASURES: dict[str, Callable[[growth.Sample], float]] = {
    "RSS, KiB": lambda sample: sample.rss / 1024,
    "blocks of memory": lambda sample: sample.blocks,
    "live objects": growth.ours,
}


def leaks(soak: Soak, bounds: dict[str, float]) -> list[str]:
    """Return the measures that grow with the requests by more than a bound."""
    found = {name: slope(soak, name) for name in bounds}
    return [
        f"{name}: {found[name]:+.3f} a request, at most {most}"
        for name, most in bounds.items()
        if found[name] > most
    ]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
