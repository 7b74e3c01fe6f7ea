"""What a process holds: its memory, and the objects that belong to requests."""

import contextlib
import gc
import heapq
import importlib
import os
import pkgutil
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
from nova import objects
from nova.scheduler import host_manager

from hpc_sched.core import group_request, processor_choice
from hpc_sched.core.constraints import server_group_policy
from hpc_sched.core.plan import problem, result
from hpc_sched.core.processors import group_processors
from hpc_sched.core.sharing import mdobp
from hpc_sched.nova_glue import (
    active_session,
    claim,
    decide,
    nova_release,
    phases,
    record,
    served_requests,
    shadow_session,
)
from hpc_sched.nova_glue.claim import claim_followup, hold_followup
from hpc_sched.nova_glue.claim.transaction import gang_claim
from hpc_sched.nova_glue.io import circuit_breaker, loaded_topology, request_deadline
from hpc_sched.nova_glue.read import inputs, nova_claims
from hpc_sched.nova_glue.read.instances import (
    colocated_instances,
    group_members,
    host_instances,
    instance_applications,
)
from hpc_sched.nova_glue.read.room import (
    allocation_candidates,
    compared_hosts,
    host_processors,
    host_rooms,
    nova_fitting,
    placement_amounts,
)
from hpc_sched.nova_glue.record import landed_record


def _classes_of(package: ModuleType) -> Iterator[type]:
    """Yield the classes that the modules of a package define, also those for one module alone."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for kind in vars(importlib.import_module(found.name)).values():
            if isinstance(kind, type) and kind.__module__ == found.name:
                yield kind


# What lives as long as one request does. Nova's own two are held by ours. The registry, which is
# in the package too, was there before :func:`from_here`.
OF_REQUESTS: frozenset[type] = frozenset(
    {
        *_classes_of(claim),
        *_classes_of(decide),
        *_classes_of(record),
        active_session.ActiveSession,
        shadow_session.ShadowSession,
        phases.Call,
        phases.ServedGroup,
        gang_claim.GangClaim,
        inputs.Inputs,
        nova_claims.Event,
        nova_claims.NovaClaims,
        allocation_candidates.ClaimedPlace,
        colocated_instances.ColocatedInstances,
        allocation_candidates.AllocationCandidates,
        group_members.GroupMembership,
        group_request.GroupRequest,
        processor_choice.ProcessorChoice,
        host_instances.HostInstances,
        host_manager.HostState,
        host_rooms.HostRooms,
        nova_fitting.DeviceUse,
        nova_fitting.NovaFitting,
        placement_amounts.PlacementAmounts,
        mdobp.MDOBPInput,
        objects.RequestSpec,
        problem.Problem,
        group_processors.HostProcessors,
        request_deadline.RequestDeadline,
        result.Plan,
        result.Refusal,
        result.Rejection,
        server_group_policy.HardPolicy,
    }
)
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Sample:
    """A look at the process when nothing is being scheduled."""

    requests: int  # sent so far
    vms: int  # that there are
    rss: int  # bytes
    blocks: int  # of Python's allocator
    live: Counter[str]  # objects of hpc_sched, HostStates and RequestSpecs by type
    threads: int
    files: Counter[
        str
    ]  # what descriptors are open, but those of databases, of which SQLAlchemy has a pool
    entries: int  # in the registry of requests
    caches: dict[str, int]


@contextlib.contextmanager
def from_here() -> Iterator[None]:
    """Look at nothing that there is already: of half a million objects Nova is made."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def look(requests: int, vms: int) -> Sample:
    """Return a sample, after the collector has run."""
    if not nova_release.is_threaded():
        _forget_cancelled_timers()
    # What a RequestSpec kept alive goes only after it.
    for _ in range(3):
        with mock.patch.multiple(landed_record, QUIET=0.0, IDLE=0.0):
            landed_record.write_all()
        with mock.patch.object(claim_followup, "LATE", 0.0):
            claim_followup.look()
        with mock.patch.multiple(hold_followup, IDLE=0.0, _look_at=0.0):
            hold_followup.look()
        gc.collect()
    live: Counter[str] = Counter()
    # Not while a topology is being read: CPython takes it amiss (SystemError) when somebody else
    # has a tuple that is being made.
    with loaded_topology.load_lock:
        for found in gc.get_objects():
            kind = type(found)
            # A metaclass may have made of __module__ something else than a name.
            if str(kind.__module__).startswith("hpc_sched") or kind in _NOVA:
                live[kind.__name__] += 1
    return Sample(
        requests,
        vms,
        int(Path("/proc/self/statm").read_text().split()[1]) * PAGE,
        sys.getallocatedblocks(),
        live,
        threading.active_count(),
        _open_files(),
        len(served_requests._sessions),
        {
            "applications": len(instance_applications.cache.applications),
            "creations": len(instance_applications.cache.creations),
            "processors": host_processors.parse_cpu_info.cache_info().currsize,
            "breakers": len(circuit_breaker.breakers),
            "compared": len(compared_hosts._known),
        },
    )


def _forget_cancelled_timers() -> None:
    """Do now what eventlet's hub does when a thousand timers have been cancelled."""
    from eventlet import hubs

    hub = hubs.get_hub()
    for timers in (hub.timers, hub.next_timers):
        timers[:] = [entry for entry in timers if not entry[1].called]
    heapq.heapify(hub.timers)
    hub.timers_canceled = 0


_NOVA = (host_manager.HostState, objects.RequestSpec)


def per_request(samples: Sequence[Sample], values: Sequence[float]) -> float:
    """Return by how much a value grows with a request over the last two thirds of the samples.

    A least-squares fit to requests and VMs: what grows with the VMs that there are is no leak.
    """
    late = samples[len(samples) // 3 :]
    known = np.array([[1.0, s.requests, s.vms] for s in late])
    return float(np.linalg.lstsq(known, np.array(values[len(samples) // 3 :]), rcond=None)[0][1])


def left_over(sample: Sample) -> dict[str, int]:
    """Return the objects of requests that are still alive although none is being served."""
    names = {kind.__name__ for kind in OF_REQUESTS}
    return {name: n for name, n in sorted(sample.live.items()) if name in names and n}


def ours(sample: Sample) -> int:
    """Return how many objects of hpc_sched there are."""
    return sum(sample.live.values())


def _open_files() -> Counter[str]:
    names = []
    for descriptor in Path("/proc/self/fd").iterdir():
        # The one of this list has been closed by now.
        with contextlib.suppress(FileNotFoundError):
            names.append(str(descriptor.readlink()))
    # Numbers tell one socket from the next.
    return Counter(name.partition("[")[0] for name in names if ".sqlite" not in name)
