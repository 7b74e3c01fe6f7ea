"""What it costs to verify the room of hosts, for requests with and without devices.

    python benchmarks/devices.py
    python benchmarks/devices.py --hosts 200 --count 16 --json devices.json

The whole of SchedulerManager.select_destinations on a real Placement in this process, on SQLite,
with the plugin as etc/nova.conf.sample enables it: seconds of the request, those in which the
plugin verified the room of hosts, those of them that it waited for Placement, its calls there
beside Nova's own, and claims that were refused. The second request finds hosts that have been
compared.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hpc_sched.demo import nova_cloud  # first of all Nova: it chooses native threads

NUMA = {"hw:cpu_policy": "dedicated"}


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=1000, help="default 1000", metavar="N")
    parser.add_argument("--count", type=int, default=64, help="VMs; default 64", metavar="N")
    parser.add_argument("--json", type=Path, help="write the rows there too", metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), arguments.hosts, arguments.count)
    columns = ("devices", "request", "seconds", "verifying", "waited", "calls", "refused claims")
    lines = [columns, *(tuple(str(row[name]) for name in columns) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def measure(folder: Path, count_hosts: int, count: int) -> list[dict[str, Any]]:
    """Return a row for each request."""
    from tests.functional.claims import STAYS_UP
    from tests.functional.clouds import SAMPLE_CONF
    from tests.functional.device_hosts import DeviceHosts, Host, cell, gpus
    from tests.functional.trees import write_tree

    names = [f"n{number:05}" for number in range(count_hosts)]
    leaves = {f"leaf{n:03}": names[n : n + 20] for n in range(0, count_hosts, 20)}
    path = write_tree(folder / "topology.yaml", {"core": {"pod": leaves}})
    options = nova_cloud.read_options(SAMPLE_CONF) | STAYS_UP
    filters = ("filter_scheduler", "enabled_filters")
    options[filters] = ["NUMATopologyFilter", "PciPassthroughFilter", *options[filters]]
    alias = {"vendor_id": "10de", "product_id": "2230", "device_type": "type-PCI", "name": "gpu"}
    options |= {
        ("hpc_sched", "topology_file"): str(path),
        ("hpc_sched", "topology_reload_interval"): 0,
        ("pci", "alias"): [json.dumps(alias)],
    }
    cloud = nova_cloud.NovaCloud("runTest")
    cloud.options = options
    cloud.setUp()
    try:
        hosts = DeviceHosts(cloud)
        devices = Host(
            vcpus=32,
            memory_mb=131072,
            inventories={"CUSTOM_GPU": 8},
            children={"pgpu1": {"VGPU": 8}, "pgpu2": {"VGPU": 8}},
            pools=[gpus(4, numa_node=0), gpus(4, numa_node=1)],
        )
        pinned = Host(vcpus=32, memory_mb=131072, cells=[cell(0), cell(1)])
        kinds: list[tuple[Host, str, dict[str, Any]]] = [
            (devices, "none, one VM a host", {"policy": "anti-affinity", "vcpus": 4}),
            (devices, "none", {"vcpus": 4}),
            (devices, "4 CUSTOM_GPU", {"extra_specs": {"resources:CUSTOM_GPU": "4"}}),
            (devices, "4 VGPU, two providers", {"extra_specs": {"resources:VGPU": "4"}}),
            (devices, "4 PCI devices", {"extra_specs": {"pci_passthrough:alias": "gpu:4"}}),
            (pinned, "10 pinned cores", {"vcpus": 10, "extra_specs": NUMA}),
        ]
        rows = []
        built: Host | None = None
        for host, name, wanted in kinds:
            if host is not built:
                print(f"building {count_hosts} hosts", file=sys.stderr)
                hosts.remove()
                hosts.build(dict.fromkeys(names, host))
                built = host
            for turn in ("first", "second"):
                rows.append({"devices": name, "request": turn, **_place(hosts, count, wanted)})
        return rows
    finally:
        cloud.doCleanups()


def _place(hosts: Any, count: int, wanted: dict[str, Any]) -> dict[str, Any]:
    """Place a group, release it, and return what that took."""
    import pytest
    from nova.scheduler.client import report

    from hpc_sched.nova_glue.io import circuit_breaker
    from hpc_sched.nova_glue.read.room.host_rooms import HostRooms
    from tests.functional.device_hosts import counted_claims, device_request
    from tests.functional.faults import is_read

    calls: list[str] = []
    waited = [0.0]
    verifying = [0.0]
    real, ask = report.SchedulerReportClient.get, circuit_breaker.ask_one

    def timed_method(name: str) -> Any:
        method = getattr(HostRooms, name)

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(self, *args, **kwargs)
            finally:
                verifying[0] += time.perf_counter() - began

        return call

    def get(self: Any, url: str, *args: Any, **kwargs: Any) -> Any:
        if is_read():
            calls.append(url)
        return real(self, url, *args, **kwargs)

    def timed(source: str, *args: Any) -> Any:
        began = time.perf_counter()
        try:
            return ask(source, *args)
        finally:
            if source.startswith("Placement"):
                waited[0] += time.perf_counter() - began

    with pytest.MonkeyPatch.context() as patch, counted_claims(patch) as claims:
        patch.setattr(report.SchedulerReportClient, "get", get)
        patch.setattr(circuit_breaker, "ask_one", timed)
        for name in ("__init__", "verified", "observe", "arrange"):
            patch.setattr(HostRooms, name, timed_method(name))
        spec = device_request(count=count, group="6b1c0a2e-5f2e-4b57-9c36-0d6a4f0b7f10", **wanted)
        began = time.perf_counter()
        hosts.place(spec, hosts.scheduler)
        seconds = time.perf_counter() - began
    hosts.release()
    return {
        "seconds": round(seconds, 2),
        "verifying": round(verifying[0], 2),
        "waited": round(waited[0], 2),
        "calls": len(calls),
        "refused claims": claims[False],
    }


if __name__ == "__main__":
    sys.exit(main())
