"""Replay cases on SimGrid: ``/usr/bin/python3 -m tests.simgrid.replay_case < CASES``.

Reads a JSON list of the texts of cases; prints one of objects: ``seconds`` until the last rank
ends, the ``ends`` of all in order, and the ``cpu`` seconds that the case took. A process has one
SimGrid only, so each case is replayed in a fork of its own.

A rank is an actor, a message a put and a get of one mailbox: SimGrid starts it when both sides have
posted it, lets it wait for the latency of its path, and then flow. A message within a host takes no
time: it has no bytes here, and the loopback no latency. To compute is to sleep: ranks of one host
share no processor.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import simgrid
from simgrid import Actor, Comm, Engine, Host, Mailbox, this_actor

from tests.simgrid.case_text import Barrier, Case, CaseError, Compute, Receive, Send, Wait, read
from tests.simgrid.fat_tree_platform import Paths, Platform

MODELS = ("equal", "defaults")
# Max-min fair shares of full rates. The weight-S that makes flows alike depends on the fabric.
_EQUAL = {
    "network/model": "CM02",
    "network/TCP-gamma": 0,  # no limit by window and latency
    "network/crosstraffic": 0,  # no acknowledgements in the other direction
    "network/bandwidth-factor": 1.0,
    "network/latency-factor": 1.0,
    # SimGrid's default, Lazy, shares anew only what has to do with the links of an event. If one
    # host starts two flows at once, it overlooks the other links of the second flow: flows there
    # keep the rate that they had.
    "network/optim": "Full",
}
# More than any time that is simulated: ranks that have not ended by then wait for ever.
_ENDLESS_SECONDS = 1e30
_ENDLESS_BYTES = 2**63
# That of SimGrid's own model, LV08, rounded up.
_LATENCY_FACTOR = 14


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay the cases on stdin; exit code 1 if one is none, or does not end."""
    parser = argparse.ArgumentParser(description="Replay the cases on stdin on SimGrid.")
    parser.add_argument("--model", choices=MODELS, default=MODELS[0])
    model = parser.parse_args(arguments).model
    found, fork = [], multiprocessing.get_context("fork")
    for number, text in enumerate(json.load(sys.stdin)):
        # A pool that dies with its process: SimGrid aborts where a route is missing.
        with ProcessPoolExecutor(1, fork) as pool:
            one = pool.submit(_replayed, model, text).result()
        if isinstance(one, str):
            print(f"case {number}: {one}", file=sys.stderr)
            return 1
        found.append(one)
    print(json.dumps(found))
    return 0


def _replayed(model: str, text: str) -> dict[str, object] | str:
    """Return the times of a case, or why there are none."""
    try:
        ends = replay(read(text), model)
    except (CaseError, ValueError) as error:
        return str(error)
    ended = [end for end in ends if end is not None]
    if len(ended) < len(ends):
        waiting = ", ".join(str(number) for number, end in enumerate(ends) if end is None)
        return f"ranks that wait for ever: {waiting}"
    return {"seconds": max(ended), "ends": ended, "cpu": time.process_time()}


def replay(case: Case, model: str) -> list[float | None]:
    """Return the end of each rank, s; None for one that waits for ever."""
    paths = Paths(case.fabric, alike=model == "equal")
    settings: dict[str, object] = {"network/loopback-lat": 0}
    if model == "equal":
        settings |= _EQUAL | {"network/weight-S": repr(paths.weight)}
    flags = [f"--cfg={name}:{value}" for name, value in settings.items()]
    engine = Engine(["replay", "--log=root.thresh:warning", *flags])

    messages = {
        (rank.host, case.ranks[one.rank].host)
        for rank in case.ranks
        for one in rank.operations
        if isinstance(one, Send)
    }
    pairs = {*messages, *case.background}
    platform = Platform(case.fabric, paths)
    used = {*(rank.host for rank in case.ranks), *(host for pair in pairs for host in pair)}
    platform.connect(used, pairs)

    begin = 0.0
    if case.background:
        # The endless flows flow already when the ranks begin: their latency is over.
        begin = _LATENCY_FACTOR * paths.longest_latency
        flows = [tuple(platform.hosts[host] for host in pair) for pair in case.background]
        Actor.create("background", flows[0][0], _flow, flows).daemonize()
    ends: list[float | None] = [None] * len(case.ranks)
    barrier = simgrid.Barrier(len(case.ranks))
    for number, rank in enumerate(case.ranks):
        Actor.create(
            f"rank{number}", platform.hosts[rank.host], _run, case, number, begin, barrier, ends
        )
    engine.run()
    return ends


def _flow(flows: Sequence[tuple[Host, Host]]) -> None:
    """Start flows that do not end before the ranks do."""
    for source, target in flows:
        # Detached: SimGrid prints a backtrace for a flow that is dropped before its end.
        Comm.sendto_init(source, target).set_payload_size(_ENDLESS_BYTES).detach()
    this_actor.sleep_for(_ENDLESS_SECONDS)


def _run(
    case: Case, number: int, begin: float, barrier: simgrid.Barrier, ends: list[float | None]
) -> None:
    """Do what a rank does, and note when it ends."""
    this_actor.sleep_for(begin)
    here = case.ranks[number]
    posted = list[Comm]()
    # SimGrid writes what is received into these, and crashes if they are dropped before.
    received = []
    for operation in here.operations:
        match operation:
            case Compute(seconds):
                this_actor.sleep_for(seconds)
            case Send(rank, tag, size):
                mailbox = Mailbox.by_name(f"{number} {rank} {tag}")
                is_local = case.ranks[rank].host == here.host
                posted.append(mailbox.put_async(None, 0 if is_local else size))
            case Receive(rank, tag):
                message, content = Mailbox.by_name(f"{rank} {number} {tag}").get_async()
                posted.append(message)
                received.append(content)
            case Wait():
                Comm.wait_all(posted)
                posted.clear()
                received.clear()
            case Barrier():
                barrier.wait()
    ends[number] = Engine.clock - begin


if __name__ == "__main__":
    sys.exit(main())
