"""Run as ``python -m tests.contention``; ``tox -e contention`` is the long run."""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hpc_sched.nova_glue import nova_release

# Nova wants its threads chosen before anything else of it is imported.
nova_release.choose_threads()

import pytest
from nova import config, objects

objects.register_all()

from tests.contention import bursts, deployment, results, rounds, timeline
from tests.contention.cloud import Cloud
from tests.contention.verification import Broken

NO_SERVER = 77  # exit code; argparse has 2
SHOWN = 20  # broken invariants that are listed


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(
        prog="python -m tests.contention",
        description="Several schedulers place seeded bursts of requests on one Placement; what "
        "they leave is checked after each burst. Exit code 1: gang claims broke an invariant (with "
        "--conflict-retries above 1 hosts may be overbooked); 77: no database server answers.",
    )
    add = found.add_argument
    add("--scenario", choices=sorted(bursts.SCENARIOS), default="mixed")
    add("--rounds", type=int, default=10, help="bursts of each side (default: 10)")
    add("--first-round", type=int, default=0, help="number of the first one, to repeat it")
    add("--seed", type=int, default=23)
    add("--schedulers", type=int, default=3, help="processes (default: 3)")
    add(
        "--sides",
        default="claims",
        help=f"comma-separated, of {', '.join(deployment.SIDES)} (default: claims)",
    )
    add("--database", choices=("mariadb", "postgresql"), default="mariadb")
    add(
        "--conflict-retries",
        type=int,
        default=1,
        help="Placement's allocation_conflict_retry_count (default: 1; Placement's own: 10)",
    )
    add(
        "--cell-timeout",
        type=int,
        default=20,
        help="of hpc_sched, in seconds; a request's deadline is twice as long, and all processes "
        "share the cores of one machine (default: 20)",
    )
    add(
        "--placement-delay",
        type=float,
        help="seconds before each call to Placement (default: 0; with sighup 0.1)",
    )
    add(
        "--api-delay",
        type=float,
        default=0.0,
        help="seconds by which each statement of the schedulers to the API database is late, after "
        "a burst that is not counted (default: 0)",
    )
    add("--keep", type=Path, help="folder for logs, which must not exist yet")
    return found


def main() -> int:
    """Run all sides; return the exit code."""
    # Nova says of its pools of threads that they are busy, Placement's client that hosts are full.
    logging.disable(logging.WARNING)
    chosen = parser().parse_args()
    sides = chosen.sides.split(",")
    if unknown := set(sides) - deployment.SIDES.keys():
        parser().error(f"--sides: unknown {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        if chosen.keep is not None:
            path = chosen.keep
            path.mkdir(parents=True)
        try:
            found = _run(chosen, sides, path)
        except pytest.skip.Exception as reason:
            print(reason, file=sys.stderr)
            return NO_SERVER
    print(results.table(found))
    for side in sides[1:]:
        print(results.paired(found, sides[0], side))
    for side, result in found.items():
        for detail in result.findings.details[:SHOWN]:
            print(f"{side}: {detail}")
    allowed = {Broken.OVERBOOKED} if chosen.conflict_retries > 1 else set()
    return int("claims" in found and bool(found["claims"].findings.broken.keys() - allowed))


def _run(chosen: argparse.Namespace, sides: list[str], folder: Path) -> dict[str, results.Result]:
    """Return the results of each side."""
    found: dict[str, results.Result] = {}
    is_reload = chosen.scenario == "sighup"
    delay = chosen.placement_delay
    if delay is None:
        delay = 0.1 if is_reload else 0.0
    options = (chosen.database, folder, chosen.conflict_retries, chosen.cell_timeout, delay)
    with deployment.deployed(*options) as deployed:
        config.parse_args(["contention", "--config-file", str(deployed.conf)])
        cloud = Cloud(deployed)
        cloud.add_hosts()
        log = timeline.CallLog(deployed.placement_log)
        for side in sides:
            result = found[side] = results.Result()
            with (
                deployed.schedulers(side, chosen.schedulers, reload=is_reload) as schedulers,
                _delayed(chosen, cloud, log, schedulers),
            ):
                for number in range(chosen.first_round, chosen.first_round + chosen.rounds):
                    began = time.monotonic()
                    one = _round(chosen, cloud, log, schedulers, number)
                    result.add(one)
                    _show(side, number, one, time.monotonic() - began)
    return found


def _round(
    chosen: argparse.Namespace,
    cloud: Cloud,
    log: timeline.CallLog,
    schedulers: Sequence[deployment.Scheduler],
    number: int,
) -> rounds.Round:
    seed = f"{chosen.seed} {chosen.scenario} {number}"
    burst = bursts.SCENARIOS[chosen.scenario](random.Random(seed))
    return rounds.run(cloud, log, schedulers, burst, seed)


@contextmanager
def _delayed(
    chosen: argparse.Namespace,
    cloud: Cloud,
    log: timeline.CallLog,
    schedulers: Sequence[deployment.Scheduler],
) -> Iterator[None]:
    """Have the API database answer the schedulers late, if that is chosen."""
    if not chosen.api_delay:
        yield
        return
    # At its first request Nova's host manager reads the cell of each host, one after the other.
    _round(chosen, cloud, log, schedulers, -1)
    cloud.deployment.api_delay.write_text(str(chosen.api_delay))
    try:
        yield
    finally:
        cloud.deployment.api_delay.unlink()


def _show(side: str, number: int, found: rounds.Round, seconds: float) -> None:
    """Print one line of progress."""
    placed = sum(bool(outcome.hosts) for outcome in found.outcomes)
    broken = ", ".join(f"{count} {what}" for what, count in sorted(found.findings.broken.items()))
    print(
        f"{side} {number}: {placed} of {len(found.outcomes)} placed, {seconds:.1f} s"
        + (f"; {broken}" if broken else ""),
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
