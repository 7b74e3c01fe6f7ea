"""The simulator with the exact plan against AccaSim 1.1.3 with first fit, on one trace.

    python benchmarks/against_accasim.py KTH-SP2-1996-2.1-cln.swf.gz
    python benchmarks/against_accasim.py jobs.swf.gz --hosts 100 --pairs 5

Both run the whole trace on hosts of one core, first come first served and with EASY backfilling, in
turn, each in a process of its own. Jobs per second of the process's CPU time; ``ratio`` is the
median of those of the pairs, above 1 where hpc_sched is faster.

AccaSim is installed from the package registry into a temporary folder. On Python 3.11 it imports
only with the names put back that ``collections`` had for those of ``collections.abc`` until 3.9;
that is done in its process alone.
"""

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

from choice_report import median_interval

TREE = Path(__file__).resolve().parent.parent
PACKAGES = ("accasim==1.1.3", "setuptools<81")
QUEUES = {"fcfs": "FirstInFirstOut", "easy": "EASYBackfilling"}
FORM = "{:<6} {:>6} {:>22} {:>22} {:>7} {:>13}"


def main() -> int:
    """Install, measure and print; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=Path, help="in the Standard Workload Format, gzipped or not")
    parser.add_argument("--hosts", type=int, default=100, help="of one core (default 100)")
    parser.add_argument("--pairs", type=int, default=3, help="of each queue (default 3)")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        _work(**json.loads(arguments.worker))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = _installed(folder)
        trace = folder / "jobs.swf"
        opened = gzip.open if arguments.trace.suffix == ".gz" else open
        with opened(arguments.trace, "rb") as source, trace.open("wb") as target:
            shutil.copyfileobj(source, target)
        print(
            FORM.format("queue", "jobs", "exact plan, jobs/s", "AccaSim, jobs/s", "ratio", "95 %")
        )
        for queue in QUEUES:
            task = {"trace": str(trace), "folder": name, "hosts": arguments.hosts, "queue": queue}
            print(_row(queue, task, python, arguments.pairs), flush=True)
    return 0


def _row(queue: str, task: dict[str, Any], python: Path, pairs: int) -> str:
    ours, theirs = list[float](), list[float]()
    for _ in range(pairs):
        jobs, took = _measured(Path(sys.executable), "hpc_sched", task)
        ours.append(jobs / took)
        theirs.append(jobs / _measured(python, "accasim", task)[1])
        print(
            f"{time.strftime('%H:%M:%S')} {queue}: {ours[-1]:.0f}, {theirs[-1]:.0f}",
            file=sys.stderr,
        )
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    interval = median_interval(ratios)
    return FORM.format(
        *(queue, jobs, f"{statistics.median(ours):,.0f}", f"{statistics.median(theirs):,.0f}"),
        f"{statistics.median(ratios):.2f}",
        "" if interval is None else "{:.2f}-{:.2f}".format(*interval),
    ).rstrip()


def _installed(folder: Path) -> Path:
    """Return the interpreter of a new environment with AccaSim."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", *PACKAGES]
    subprocess.run(command, check=True, stdout=sys.stderr, stderr=subprocess.DEVNULL)
    return python


def _measured(python: Path, side: str, task: dict[str, Any]) -> tuple[int, float]:
    """Return the jobs and the CPU seconds of one run."""
    done = subprocess.run(
        [str(python), __file__, "", "--worker", json.dumps({"side": side, **task})],
        env={**os.environ, "PYTHONPATH": str(TREE), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{side} failed:\n{done.stderr}")
    jobs, took = json.loads(done.stdout.splitlines()[-1])
    return jobs, took


def _work(side: str, trace: str, folder: str, hosts: int, queue: str) -> None:
    """Print the jobs and the CPU seconds of a run as JSON."""
    if side == "hpc_sched":
        import record_worker

        found = record_worker.simulation(
            trace=trace,
            queue=queue,
            policy="exact-plan",
            hosts=hosts,
            vcpus=1,
            load=1.0,
            jobs=None,
        )
        print(json.dumps([found["number"], found["took"]]))
        return
    print(json.dumps([0, _accasim(trace, Path(folder), hosts, queue)]))


def _accasim(trace: str, folder: Path, hosts: int, queue: str) -> float:
    """Return the CPU seconds of AccaSim."""
    import collections
    import collections.abc

    for name in collections.abc.__all__:
        setattr(collections, name, getattr(collections.abc, name))
    os.chdir(folder)
    from accasim.base import scheduler_class
    from accasim.base.allocator_class import FirstFit
    from accasim.base.simulator_class import Simulator

    system = folder / "system.json"
    groups = {"groups": {"hosts": {"core": 1}}, "resources": {"hosts": hosts}}
    system.write_text(json.dumps(groups))
    began = time.process_time()
    dispatcher = getattr(scheduler_class, QUEUES[queue])(FirstFit())
    simulator = Simulator(
        *(trace, str(system), dispatcher),
        scheduling_output=False,
        pprint_output=False,
        benchmark_output=False,
        statistics_output=False,
        save_parameters=None,
    )
    simulator.start_simulation()
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
