"""What a request costs above stock Nova where Placement has many allocation candidates.

    python benchmarks/candidates.py
    python benchmarks/candidates.py --hosts 16 --devices 8 --wanted 4 --count 32

Hosts with devices of their own resource provider, and VMs that each want some of them in as many
request groups: 4 of 8 are 1,680 candidates a host, of which 70 differ. The whole of
SchedulerManager.select_destinations, its reads and claims answered with what a real Placement has
answered once: CPU time and peak of allocated memory (tracemalloc, in a run of its own) with stock
Nova's filters and weighers, and with the plugin as etc/nova.conf.sample enables it.
"""

import argparse
import gc
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hpc_sched.demo import nova_cloud  # first of all Nova: it chooses native threads

GROUP = "6b1c0a2e-5f2e-4b57-9c36-0d6a4f0b7f10"


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for name, number, what in (
        ("hosts", 64, "hosts in leaves of 16"),
        ("devices", 8, "devices a host"),
        ("wanted", 4, "devices a VM"),
        ("count", 64, "VMs"),
        ("runs", 5, "timed runs of each side, in turn"),
    ):
        text = f"{what}; default {number}"
        parser.add_argument(f"--{name}", type=int, default=number, help=text, metavar="N")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds, peaks = measure(Path(folder), arguments)
    print("side    CPU s  peak MB")
    for side in ("stock", "plugin"):
        print(f"{side:<7} {median(seconds[side]):5.2f}  {peaks[side] / 2**20:7.0f}")
    above = median(b - a for a, b in zip(seconds["stock"], seconds["plugin"], strict=True))
    print(f"above   {above:5.2f}  {(peaks['plugin'] - peaks['stock']) / 2**20:7.0f}")
    return 0


def measure(
    folder: Path, arguments: argparse.Namespace
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Return seconds of CPU of each run, and the peak in bytes, by side."""
    from nova.conf.scheduler import filter_scheduler_opts
    from nova.scheduler import manager

    from tests.functional.claims import STAYS_UP
    from tests.functional.clouds import SAMPLE_CONF
    from tests.functional.device_hosts import DeviceHosts, Host
    from tests.functional.trees import write_tree

    names = [f"n{number:04}" for number in range(arguments.hosts)]
    leaves = {f"leaf{n:03}": names[n : n + 16] for n in range(0, len(names), 16)}
    path = write_tree(folder / "topology.yaml", {"core": leaves})
    cloud = nova_cloud.NovaCloud("runTest")
    cloud.options = nova_cloud.read_options(SAMPLE_CONF) | STAYS_UP
    cloud.options |= {("hpc_sched", "topology_file"): str(path)}
    cloud.setUp()
    try:
        hosts = DeviceHosts(cloud)
        devices = {f"gpu{n}": {"CUSTOM_GPU": 1} for n in range(arguments.devices)}
        hosts.build(dict.fromkeys(names, Host(vcpus=64, children=devices)))
        schedulers = {"plugin": hosts.scheduler}
        for option in (
            o for o in filter_scheduler_opts if o.name in ("enabled_filters", "weight_classes")
        ):
            cloud.flags(**{option.name: option.default}, group="filter_scheduler")
        schedulers["stock"] = manager.SchedulerManager()
        return _timed(hosts, schedulers, arguments)
    finally:
        cloud.doCleanups()


def _timed(hosts: Any, schedulers: Any, arguments: argparse.Namespace) -> Any:
    import pytest

    seconds: dict[str, list[float]] = {"stock": [], "plugin": []}
    peaks = {}
    with pytest.MonkeyPatch.context() as patch:
        answers = Answers(patch)
        for turn in range(-1, arguments.runs):
            for side, scheduler in schedulers.items():
                began = time.process_time()
                _place(hosts, scheduler, arguments)
                if turn >= 0:
                    seconds[side].append(time.process_time() - began)
                print(f"{side} {turn + 2}/{arguments.runs + 1}", file=sys.stderr)
        assert answers.known
        for side, scheduler in schedulers.items():
            gc.collect()
            tracemalloc.start()
            _place(hosts, scheduler, arguments)
            peaks[side] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    return seconds, peaks


def _place(hosts: Any, scheduler: Any, arguments: argparse.Namespace) -> None:
    from tests.functional.device_hosts import device_request

    groups = {f"resources{n}:CUSTOM_GPU": "1" for n in range(arguments.wanted)}
    spec = device_request(
        count=arguments.count, group=GROUP, extra_specs=groups | {"group_policy": "none"}
    )
    hosts.place(spec, scheduler)


class Answers:
    """What Placement has answered, which stays so: each claim is won and none is kept."""

    def __init__(self, patch: Any) -> None:
        from nova.scheduler.client import report

        client = report.SchedulerReportClient
        self.known: dict[str, tuple[int, bytes]] = {}
        self._get = client.get

        def get(found: Any, url: str, *args: Any, **options: Any) -> Any:
            if url.startswith("/allocations/"):
                return _answer(200, b'{"allocations": {}}')
            if url not in self.known:
                answer = self._get(found, url, *args, **options)
                self.known[url] = answer.status_code, answer.content
            return _answer(*self.known[url])

        patch.setattr(client, "get", get)
        for name in ("put", "post"):
            patch.setattr(client, name, lambda *_args, **_options: _answer(204, b""))


def _answer(status: int, content: bytes) -> Any:
    import requests

    answer = requests.Response()
    answer.status_code, answer._content = status, content
    answer.encoding = "utf-8"
    return answer


if __name__ == "__main__":
    sys.exit(main())
