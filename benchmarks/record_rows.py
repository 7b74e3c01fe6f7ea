"""The rows of benchmarks/record.py: what each measures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

METACENTRUM, KTH = "METACENTRUM-2009-2.swf.gz", "KTH-SP2-1996-2.1-cln.swf.gz"

# Hosts, the most VMs that one of them takes, VMs of the group.
PLANS = [
    *((10_000, 4, count) for count in (1, 16, 64, 512)),
    *((100_000, 4, count) for count in (1, 16, 64)),
    (100_000, 64, 4_096),
]
# A small cluster on which nearly all jobs wait.
WAITING = {"hosts": 256, "vcpus": 1, "load": 1e6, "jobs": 2_000}
GROUPS = ("plans", "trace", "queues", "kth", "shared")


@dataclass(frozen=True)
class Row:
    """One measured thing."""

    name: str
    task: dict[str, Any]  # of record_worker
    unit: str = "s"
    trace: Path | None = field(default=None)


def rows_of(groups: Sequence[str], traces: Path, jobs: int) -> Iterator[Row]:
    """Yield the rows of some groups.

    :param jobs: of the trace's row
    """
    if "plans" in groups:
        for hosts, most, count in PLANS:
            task = {"kind": "plan", "hosts": hosts, "most": most, "count": count}
            yield Row(f"plan of {count:,} on {hosts:,} hosts, 0-{most}", task, "ms")
    metacentrum = (traces / METACENTRUM).resolve()
    if "trace" in groups:
        task = {"hosts": 10_000, "vcpus": 4, "load": 100.0, "jobs": jobs}
        yield _simulated(f"METACENTRUM, {jobs:,} jobs, fcfs", metacentrum, "fcfs", task)
    if "queues" in groups:
        for queue in ("easy", "fair-share", "conservative"):
            yield _simulated(f"1,860 waiting, {queue}", metacentrum, queue, WAITING)
    if "kth" in groups:
        kth = (traces / KTH).resolve()
        task = {"hosts": 100, "vcpus": 1, "load": 1.0, "jobs": None}
        for queue in ("fcfs", "easy"):
            for policy in ("exact-plan", "first-fit"):
                yield _simulated(f"KTH, {policy}, {queue}", kth, queue, task, policy)
    if "shared" in groups:
        yield Row("a VM not HPC, shared hosts, of stock", {"kind": "shared"}, "")


def _simulated(
    name: str, trace: Path, queue: str, task: dict[str, Any], policy: str = "exact-plan"
) -> Row:
    more = {"kind": "simulation", "trace": str(trace), "queue": queue, "policy": policy}
    return Row(name, {**more, **task}, "s", trace)
