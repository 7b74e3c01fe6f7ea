"""The record of a request that is over: where its VMs were claimed.

Nova calls nothing of hpc_sched after the last claim of a request, and its RequestSpec is in
cycles of references, so that it may be deleted much later. A thread of the worker looks at the
HostStates of each request until they show all claims, or their release.
"""

import math
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Mapping

import numpy as np
from oslo_log import log as logging
from oslo_utils import timeutils

from hpc_sched.core.decision_entry import LANDED, DecisionEntry, LoggedLanding, LoggedPlan
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.nova_glue.io import scheduler_digests
from hpc_sched.nova_glue.io.decision_log import append
from hpc_sched.nova_glue.io.periodic_thread import PeriodicThread
from hpc_sched.nova_glue.request.decision_record import MAX_INSTANCES, name_of
from hpc_sched.nova_glue.request.group_state import GroupState, LoggedDecision

LOG = logging.getLogger(__name__)

INTERVAL = 1.0  # seconds between two looks
QUIET = 1.0  # seconds without a call of Nova after which a request with all its claims is over
IDLE = 60.0  # seconds after which any request is over; longer than a claim takes
# Requests that are followed. If the thread hangs, the records of earlier ones are lost.
MAX_FOLLOWED = 1000

# A quiet request without claims is not kept alive, nor are its HostStates.
_followed: deque[tuple[weakref.ref[GroupState], GroupState | None]] = deque(maxlen=MAX_FOLLOWED)
_lock = threading.Lock()  # of write_all


def follow(state: GroupState) -> None:
    """Log where the VMs of a request have landed once it is over."""
    _followed.append((weakref.ref(state), state))
    _thread.start()


def write_all() -> None:
    """Log all requests that are over."""
    with _lock:
        for _ in range(len(_followed)):
            reference, kept = _followed.popleft()
            state = kept or reference()
            try:
                if state is not None and not _log(state):
                    kept = kept if _idle(state) < QUIET else None
                    has_claims = state.claims.hosts.placed().any()
                    _followed.append((reference, state if has_claims else kept))
            except Exception:
                LOG.exception("Where the VMs of a request landed cannot be logged")


_thread = PeriodicThread(write_all, lambda: INTERVAL, "hpc_sched landed")


def _idle(state: GroupState) -> float:
    """Return the seconds since Nova's last call for a request."""
    return time.monotonic() - state.observed_at


def _log(state: GroupState) -> bool:
    """Log a request if it is over, and return whether it is; without claims there is no line.

    INFO if the request failed, or its VMs are not where the plan has them, else DEBUG.
    """
    idle, logged, placed = _idle(state), state.logged, state.claims.hosts.placed()
    took = np.flatnonzero(placed > 0).tolist()
    if logged is None or not took:
        return idle >= IDLE or (logged is not None and logged.is_refused)
    is_released = state.is_over
    is_over = is_released or int(placed.sum()) >= state.group.left
    if idle < (QUIET if is_over else IDLE):
        return False
    hosts: Counter[str] = Counter()
    for i in took:
        hosts[state.topology.hosts[state.host_index[i]]] += int(placed[i])
    landed = _landing(state, logged, hosts, is_released=is_released)
    is_expected = not is_released and landed.as_planned is not False
    level = logging.DEBUG if is_expected else logging.INFO
    LOG.log(level, "%s: %s", name_of(state.request), _sentence(landed))
    if logged.path:
        entry = DecisionEntry(
            time=timeutils.utcnow().isoformat(),
            request_id=state.request.request_id,
            instance=state.request.instance_uuid,
            instances=state.group.queue[:MAX_INSTANCES],
            group=state.request.group_uuid,
            left=state.group.left,
            decision=LANDED,
            landed=landed,
            scheduler=scheduler_digests.record(state.fabric.digest),
        )
        append(logged.path, entry.as_json())
    return True


def _landing(
    state: GroupState, logged: LoggedDecision, hosts: Counter[str], *, is_released: bool
) -> LoggedLanding:
    topology = state.topology
    leaves: Counter[str] = Counter()
    for host, count in hosts.items():
        leaves[topology.leaf_of(host)] += count
    members = {topology.hosts[i]: int(state.members[i]) for i in np.flatnonzero(state.members)}
    cost = hop_bytes_of_counts(topology=topology, counts=hosts + Counter(members))
    plan: LoggedPlan | None = None
    # The weighers do not follow the plan of a class that is not placed by leaves.
    if isinstance(logged.made, LoggedPlan) and state.request.hpc_specs.by_topology:
        plan = logged.made
    as_planned = None
    if plan is not None and not is_released:
        # The plan may be for more VMs than those of the request.
        as_planned = hosts.total() >= state.group.left and hosts <= Counter(plan.hosts)
    return LoggedLanding(
        leaves=dict(leaves.most_common()),
        hosts=dict(hosts),
        hop_bytes=None if math.isinf(cost) else cost,
        planned=None if plan is None else plan.leaves,
        as_planned=as_planned,
        released=is_released,
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
