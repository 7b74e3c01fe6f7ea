"""The record of a request that is over: where its VMs were claimed.

Nova calls nothing of hpc_sched after the last claim of a request, and its RequestSpec is in
cycles of references, so that it may be deleted much later. A thread of the worker looks at the
HostStates of each request until they show all claims, or their release.
"""

import math
import threading
import weakref
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import nova.conf
import numpy as np
from nova import objects
from oslo_log import log as logging

from hpc_sched import clock, conf
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.logged.decision_summary import LoggedLanding, LoggedPlan
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread
from hpc_sched.nova_glue.read.nova_claims import ClaimObserver
from hpc_sched.nova_glue.record.decision_record import LoggedDecision
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

INTERVAL = 1.0  # seconds between two looks
QUIET = 1.0  # seconds without a call of Nova after which a request with all its claims is over
IDLE = 60.0  # seconds after which any request is over; longer than a claim takes
# Requests that are followed. If the thread hangs, the records of earlier ones are lost.
MAX_FOLLOWED = 1000

# A quiet request without claims is not kept alive, nor are its HostStates, except in shadow mode.
_followed: deque["_Watched"] = deque(maxlen=MAX_FOLLOWED)
_lock = threading.Lock()  # of write_all


@dataclass(frozen=True, slots=True)
class Subject:
    """What the records of a request have of it."""

    request_id: str | None
    instance: str
    instances: tuple[str, ...] | None
    group: str | None
    left: int  # VMs of the request
    name: str  # in log lines
    topology: Topology | None
    digest: str  # of the topology
    members: Counter[str] | None  # by host; None if they have not been read
    by_topology: bool  # whether weighers follow a plan


class Followed(Protocol):
    """A request that is followed until its VMs are claimed."""

    logged: LoggedDecision | None  # the decision that was logged

    @property
    def observed_at(self) -> float:
        """Monotonic time of Nova's last call."""

    @property
    def subject(self) -> Subject:
        """What its records have of it; read once the decision is logged."""

    @property
    def observer(self) -> ClaimObserver:
        """The HostStates that may take its VMs."""

    def name_of(self, position: int) -> str:
        """Return the name of a HostState in the topology."""


@dataclass(frozen=True, slots=True)
class _Watched:
    reference: weakref.ref[Followed]
    kept: Followed | None
    spec: weakref.ref[objects.RequestSpec] | None


def follow(request: Followed, spec: objects.RequestSpec | None = None) -> None:
    """Log where the VMs of a request have landed once it is over.

    :param spec: whose end is that of the request: then one without a claim is logged too. The
        HostStates stay for a look at what a slow claim has taken since the last one.
    """
    end = None if spec is None else weakref.ref(spec)
    _followed.append(_Watched(weakref.ref(request), request, end))
    _thread.start()


def write_all() -> None:
    """Log all requests that are over."""
    with _lock:
        for _ in range(len(_followed)):
            watched = _followed.popleft()
            # Whether Nova has dropped the RequestSpec, as far as that is known.
            is_ended = watched.spec is not None and watched.spec() is None
            request = watched.kept or watched.reference()
            try:
                if request is not None and not _log(request, is_ended=is_ended):
                    is_quiet = watched.spec is None and _idle(request) >= QUIET
                    # What was not kept any more, is again with a claim alone.
                    kept = None if is_quiet else watched.kept
                    has_claim = request.observer.placed().any()
                    _followed.append(replace(watched, kept=request if has_claim else kept))
            except Exception:
                LOG.exception("Where the VMs of a request landed cannot be logged")


_thread = PeriodicThread(write_all, lambda: INTERVAL, "hpc_sched landed")


def _idle(request: Followed) -> float:
    """Return the seconds since Nova's last call for a request."""
    return clock.current.monotonic() - request.observed_at


def _log(request: Followed, *, is_ended: bool) -> bool:
    """Log a request if it is over, and return whether it is.

    Without claims there is no line, except in shadow mode. INFO if the request failed, or its VMs
    are not where the plan has them, else DEBUG.
    """
    idle, logged, placed = _idle(request), request.logged, request.observer.placed()
    took = np.flatnonzero(placed > 0).tolist()
    is_shadow = conf.is_shadow(CONF)
    if logged is None or not took:
        if is_ended or idle >= IDLE:
            if is_shadow and logged is not None and logged.path:
                failed = LoggedLanding(released=True)
                _append(logged.path, request.subject, failed)
            return True
        return not is_shadow and logged is not None and logged.is_refused
    subject, has_failed = request.subject, request.observer.nova_has_released
    is_over = has_failed or int(placed.sum()) >= subject.left
    if not is_ended and idle < (QUIET if is_over else IDLE):
        return False
    hosts = Counter(request.name_of(i) for i in np.repeat(took, placed[took]).tolist())
    landed = _landing(subject, logged, hosts, has_failed=has_failed)
    is_expected = is_shadow or (not has_failed and landed.as_planned is not False)
    level = logging.DEBUG if is_expected else logging.INFO
    LOG.log(level, "%s: %s", subject.name, _sentence(landed))
    if logged.path:
        _append(logged.path, subject, landed)
    return True


def _append(path: str, subject: Subject, landed: LoggedLanding) -> None:
    """Append a line to the decision log."""
    # Loaded by optional_modules.
    from hpc_sched.nova_glue.record import logged_entry

    entry = logged_entry.of_landing(
        landed,
        request_id=subject.request_id,
        instance=subject.instance,
        instances=subject.instances,
        group=subject.group,
        left=subject.left,
        topology=subject.digest,
    )
    logged_entry.append(path, entry)


def _landing(
    subject: Subject, logged: LoggedDecision, hosts: Counter[str], *, has_failed: bool
) -> LoggedLanding:
    leaves, cost = Counter[str](), math.inf
    if subject.topology is not None:
        topology = subject.topology.including(hosts)
        leaves.update(map(topology.leaf_of, hosts.elements()))
        if subject.members is not None:
            cost = hop_bytes_of_counts(topology=topology, counts=hosts + subject.members)
    # The weighers do not follow the plan of a class that is not placed by leaves.
    made = logged.made if subject.by_topology else None
    plan = made if isinstance(made, LoggedPlan) else None
    as_planned = None
    if plan is not None and not has_failed:
        # The plan may be for more VMs than those of the request.
        as_planned = hosts.total() >= subject.left and hosts <= Counter(plan.hosts)
    return LoggedLanding(
        leaves=dict(leaves.most_common()),
        hosts=dict(hosts),
        hop_bytes=None if math.isinf(cost) else cost,
        planned=None if plan is None else plan.leaves,
        as_planned=as_planned,
        released=has_failed,
    )


def _sentence(landed: LoggedLanding) -> str:
    if landed.released:
        number = sum(landed.hosts.values())
        return f"the request has failed, and Nova has released its claims: {number}"
    text = f"landed {_counts(landed.leaves)}"
    if landed.as_planned:
        return f"{text}, as planned"
    return text if landed.planned is None else f"{text}; planned {_counts(landed.planned)}"


def _counts(leaves: Mapping[str, int]) -> str:
    shown = ", ".join(f"{leaf} ({count})" for leaf, count in leaves.items())
    return f"{sum(leaves.values())} in {shown}"
