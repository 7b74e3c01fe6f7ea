"""Run as ``python -m tests.cloud``; ``tox -e cloud`` is the long run."""

from __future__ import annotations

import argparse
import logging
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpc_sched.nova_glue import nova_release

# Nova wants its threads chosen before anything else of it is imported.
nova_release.choose_threads()

import pytest
from nova import objects

objects.register_all()

from tests.cloud import holds, results, rounds
from tests.cloud.deployment import deployed
from tests.cloud.kinds import KINDS
from tests.contention.deployment import SIDES
from tests.contention.timeline import CallLog

BROKEN, NO_SERVER, INTERRUPTED = 1, 77, 130  # exit codes; argparse has 2
SHOWN = 20  # broken invariants that are listed
TURN = 5  # rounds of a side before the next one has its turn
Results = dict[str, dict[str, list[rounds.Round]]]  # by burst and side


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(
        prog="python -m tests.cloud",
        description="Bursts of groups through the API of a compute cloud of real processes: "
        "MariaDB, RabbitMQ, Placement, nova-api, nova-conductor, schedulers and 32 nova-compute. "
        "What they leave is checked after each burst. Exit code 1: with gang claims an invariant "
        "was broken, a group refused, or one of a single request split; 77: no database server or "
        "no broker answers.",
    )
    add = found.add_argument
    add("--rounds", type=int, default=10, help="bursts of each kind and side (default: 10)")
    add("--first-round", type=int, default=0, help="number of the first one, to repeat it")
    add("--seed", type=int, default=23)
    add("--schedulers", type=int, default=3, help="processes (default: 3)")
    for name, known, default in (("sides", SIDES, "plans,claims"), ("bursts", KINDS, "")):
        default = default or ",".join(known)
        text = f"comma-separated, of {', '.join(known)} (default: {default})"
        add(f"--{name}", default=default, help=text)
    text = "Placement's allocation_conflict_retry_count (default: 1; Placement's own: 10)"
    add("--conflict-retries", type=int, default=1, help=text)
    add("--keep", type=Path, help="folder for logs, which must not exist yet")
    return found


def main() -> int:
    """Run all bursts on all sides; return the exit code."""
    logging.disable(logging.WARNING)
    chosen = parser().parse_args()
    for name, known in (("sides", SIDES), ("bursts", KINDS)):
        setattr(chosen, name, getattr(chosen, name).split(","))
        if unknown := set(getattr(chosen, name)) - known.keys():
            parser().error(f"--{name}: unknown {', '.join(sorted(unknown))}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    found: Results = {burst: {side: [] for side in chosen.sides} for burst in chosen.bursts}
    code = 0
    try:
        with _folder(chosen.keep) as folder:
            _run(chosen, found, folder)
    except pytest.skip.Exception as reason:
        print(reason, file=sys.stderr)
        return NO_SERVER
    except KeyboardInterrupt:
        code = INTERRUPTED
    for burst, sides in found.items():
        # Pairs only, of a run that was interrupted too.
        least = min(len(done) for done in sides.values())
        if least:
            paired = {side: done[:least] for side, done in sides.items()}
            print(f"{burst}\n{results.table(paired)}\n")
        for side, done in sides.items():
            for detail in [text for one in done for text in one.findings.details][:SHOWN]:
                print(f"{burst}, {side}: {detail}")
    return code or BROKEN * any(results.is_broken(s.get("claims", [])) for s in found.values())


def _run(chosen: argparse.Namespace, found: Results, folder: Path) -> None:
    began = time.monotonic()
    with deployed(folder, chosen.conflict_retries) as cloud:
        _say(f"the cloud runs, {time.monotonic() - began:.0f} s")
        log = CallLog(cloud.placement_log)
        last = chosen.first_round + chosen.rounds
        for first in range(chosen.first_round, last, TURN):
            for side in chosen.sides:
                with cloud.schedulers(side, chosen.schedulers) as decisions:
                    for burst in chosen.bursts:
                        for number in range(first, min(first + TURN, last)):
                            numbers = random.Random(f"{chosen.seed} {burst} {number}")
                            one = KINDS[burst](cloud, log, decisions, numbers)
                            found[burst][side].append(one)
                            _show(f"{side} {burst} {number}", one)
                    if first + TURN >= last:
                        holds.wait_for_end(cloud)


def _show(name: str, one: rounds.Round) -> None:
    """Print one line of progress."""
    broken = ", ".join(f"{count} {what}" for what, count in sorted(one.findings.broken.items()))
    placed = sum(len(outcome.hosts) for outcome in one.outcomes)
    _say(
        f"{name}: {placed} VMs ACTIVE, {results.in_error(one)} in ERROR, groups: "
        f"{results.refused(one)} refused, {results.split(one)} split; {one.duration:.1f} s"
        + (f"; {broken}" if broken else "")
    )
    for note in one.notes:
        _say(f"  {note}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _interrupt(_number: int, _frame: object) -> None:
    """End everything; what it takes is not interrupted again."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
