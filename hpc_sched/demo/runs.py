"""The runs of the demo: each a busy cloud, a group, the group grown, in a process of its own.

A child process keeps Nova's logs, warnings and threads off the screen. It reports one JSON object
a line on the descriptor that was standard output at its start.
"""

import contextlib
import functools
import itertools
import json
import math
import os
import signal
import subprocess  # nosec B404
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from hpc_sched import exceptions, topology
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.plan.planner import plan
from hpc_sched.core.plan.result import Plan
from hpc_sched.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one run."""

    topology_file: str
    group_size: int
    growth: int
    nova_conf: str = ""  # path of the options that enable the plugin; empty for stock Nova
    listing1: bool = False  # the published weigher alone, without plan and filters


def run_all(
    runs: Mapping[str, Settings],
    progress: Callable[[str, str], None],
    *,
    timeout: float,
    verbose: bool,
) -> dict[str, dict[str, Any]]:
    """Run all runs at the same time; return their results by name.

    ``progress`` gets a run's name and stage; Nova's log is on standard error if ``verbose``.
    HPCSchedError, with the path of the log, where a run fails or takes ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    results: dict[str, dict[str, Any]] = {}
    with contextlib.ExitStack() as stack:
        # Entered first, to end last: its threads read until the children are stopped.
        pool = stack.enter_context(ThreadPoolExecutor(len(runs)))
        logs, readers = {}, {}
        for name, settings in runs.items():
            # The log of a failed run is kept.
            log = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed by the stack
                prefix=f"hpc-sched-demo-{name.split()[0].lower()}-", suffix=".log", delete=False
            )
            stack.callback(log.close)
            child = _start(settings, None if verbose else log.fileno())
            stack.callback(_stop, child)
            logs[name] = log.name
            readers[name] = pool.submit(_result, child, functools.partial(progress, name))
        for name, reader in readers.items():
            where = "" if verbose else f"; its log: {logs[name]}"
            try:
                results[name] = reader.result(max(deadline - time.monotonic(), 0))
            except TimeoutError:
                raise exceptions.HPCSchedError(
                    f"{name}: no result within {timeout:.0f} s{where}"
                ) from None
            except exceptions.HPCSchedError as error:
                raise exceptions.HPCSchedError(f"{name}: {error}{where}") from None
        for log_name in logs.values():
            os.unlink(log_name)
    return results


def _start(settings: Settings, stderr: int | None) -> "subprocess.Popen[str]":
    # No shell, this Python; the settings are one argument, JSON written here.
    return subprocess.Popen(  # nosec B603
        [sys.executable, "-m", "hpc_sched.demo.runs", json.dumps(asdict(settings))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
        # Nova sorts hosts of equal weight in the order of a Python set: fixed, for reproducible
        # results.
        env=os.environ | {"PYTHONHASHSEED": "0"},
    )


def _stop(child: "subprocess.Popen[str]") -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _result(child: "subprocess.Popen[str]", progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the result that a child reports; raise its error, or its exit code."""
    assert child.stdout is not None
    for line in child.stdout:
        message: dict[str, Any] = json.loads(line)
        if "progress" in message:
            progress(message["progress"])
        elif "error" in message:
            raise exceptions.HPCSchedError(message["error"])
        else:
            return dict(message["result"])
    raise exceptions.HPCSchedError(f"ended with exit code {child.wait()} before it had a result")


def busy_hosts(fabric: Topology, spare: int) -> list[str]:
    """Return the hosts of other tenants, ``spare`` ones excepted: a different share of each leaf.

    Of four leaves the first two lose one host of nine, the third none and the last six: the leaf
    with most free hosts then has a full neighbour, visible only from the levels above.
    """
    busy: list[str] = []
    for leaf, ninths in zip(fabric.leaves, itertools.cycle((1, 1, 0, 6)), strict=False):
        hosts = fabric.hosts_of(leaf)
        busy += hosts[len(hosts) - math.ceil(ninths * len(hosts) / 9) :]
    return busy[: max(len(fabric.hosts) - spare, 0)]


def run(settings: Settings, report: TextIO) -> None:
    """Run the scenario; write progress and then the result to ``report``."""

    def send(**message: Any) -> None:
        print(json.dumps(message), file=report, flush=True)

    send(progress="loading Nova")
    from hpc_sched.demo import nova_cloud  # chooses native threads: before anything else of Nova

    fabric = topology.load("yaml", path=settings.topology_file)
    cloud = nova_cloud.NovaCloud("runTest")
    if settings.nova_conf:
        options = nova_cloud.read_options(Path(settings.nova_conf))
        options["hpc_sched", "topology_file"] = settings.topology_file
        if settings.listing1:
            del options["filter_scheduler", "enabled_filters"]
            options["filter_scheduler", "weight_classes"] = [
                "nova.scheduler.weights.all_weighers",
                "hpc_sched.weighers.bunch.BunchWeigher",
            ]
        cloud.options = options
    send(progress="starting API, conductor, scheduler, Placement")
    cloud.setUp()
    cloud.start_computes(fabric.hosts, lambda text: send(progress=text))

    whole = cloud.flavor("hpc.whole-host", vcpus=cloud.vcpus, memory_mb=cloud.memory_mb // 2)
    half = cloud.flavor("other.half-host", vcpus=cloud.vcpus // 2, memory_mb=cloud.memory_mb // 2)
    busy = busy_hosts(fabric, settings.group_size + settings.growth)
    others = [uuid for host in busy for uuid in cloud.boot(half, host=host, name="other")]
    cloud.wait(others, progress=lambda text: send(progress=f"other tenants' {text}"))

    free = {host: 1 for host in fabric.hosts if host not in busy}
    group = cloud.server_group("job", "soft-anti-affinity")
    members: list[str] = []
    steps = []
    for count in filter(None, (settings.group_size, settings.growth)):
        began = time.monotonic()
        members += cloud.boot(whole, count=count, group=group, name="rank")
        placed = Counter(
            cloud.hosts_of(members, lambda text: send(progress=f"the group's {text}")).values()
        )
        seconds = time.monotonic() - began
        best = plan(topology=fabric, capacity=free, members={}, count=placed.total())
        hop_bytes = hop_bytes_of_counts(topology=fabric, counts=placed)
        steps.append(
            {
                "count": placed.total(),
                "hosts": placed,
                # JSON cannot express the cost of a group on several islands.
                "hop_bytes": hop_bytes if math.isfinite(hop_bytes) else None,
                # On the free hosts without the group.
                "least": best.hop_bytes if isinstance(best, Plan) else None,
                "failed": len(members) - placed.total(),
                "seconds": round(seconds, 1),
            }
        )
    send(result={"busy": busy, "steps": steps})


def main() -> None:
    """Run the scenario that the first argument describes, a JSON object."""
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = Settings(**json.loads(sys.argv[1]))
    try:
        run(settings, report)
    except BaseException as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=report, flush=True)
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    # Nova's pollers would keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main()
