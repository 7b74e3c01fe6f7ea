"""Output of hpc-sched fits: columns, rows and the sentence above them."""

import math
from typing import Any

from hpc_sched import terminal_text
from hpc_sched.core.plan.result import Gang, Plan
from hpc_sched.snapshot import group_fit, request_builder
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.topology import hostlist, plurals

PLACES = ("Leaf", "Above", "VMs", "Hosts")
GANGS = ("Level", "VMs", "Switch")


def summary(state: request_builder.SnapshotRequest, fit: group_fit.Fit) -> dict[str, Any]:
    """Return the columns of the summary with their values."""
    plan = fit.plan
    return {
        "Fits": plan is not None,
        "Count": state.request.count,
        "Members": len(state.request.members),
        "Hosts": None if plan is None else len(plan.hosts),
        "Leaves": None if plan is None else len(_leaves(state.cloud, plan)),
        "Switch": None if plan is None else _top(state, plan),
        "Hop-Byte": _finite(fit.hop_bytes),
        "Least possible": _finite(fit.least),
        "Reason": fit.reason,
    }


def sentence(state: request_builder.SnapshotRequest, fit: group_fit.Fit, plan: Plan) -> str:
    """Return a sentence with the number of VMs, their hosts and the cost."""
    number = len(state.request.members)
    beside = f" beside {plurals.text(number, 'member')}" if number else ""
    top = _top(state, plan)
    where = "" if top is None else f" under {top}"
    on = f", all on {fit.processor}" if fit.processor is not None else ""
    # The plan has more VMs than requested where the flavor names the final size of the group.
    return (
        f"fits: {plurals.text(plan.count, 'VM')}{beside} "
        f"on {plurals.text(len(plan.hosts), 'host')} "
        f"in {plurals.text(len(_leaves(state.cloud, plan)), 'leaf switch')}{where}{on}; Hop-Byte "
        f"{terminal_text.hop_bytes(fit.hop_bytes)}, least possible "
        f"{terminal_text.hop_bytes(fit.least)}"
    )


def _top(state: request_builder.SnapshotRequest, plan: Plan) -> str | None:
    """Return the lowest switch above all VMs, members included, or None."""
    topology, host_of = state.cloud.topology, state.cloud.host_of
    hosts = {*plan.hosts, *(host_of[server.uuid] for server in state.request.members)}
    above = [topology.ancestors(host) for host in sorted(hosts)]
    return next((switch for switch in above[0] if all(switch in a for a in above)), None)


def _leaves(found: Cloud, plan: Plan) -> dict[str, dict[str, int]]:
    """Return leaf to host to number of planned VMs, in the order of the plan."""
    leaves: dict[str, dict[str, int]] = {}
    for host, count in plan.hosts.items():
        leaves.setdefault(found.topology.leaf_of(host), {})[host] = count
    return leaves


def place_rows(found: Cloud, plan: Plan) -> list[tuple[Any, ...]]:
    """Return the rows of :data:`PLACES`, leaves in the order of the plan."""
    rows = []
    for leaf, hosts in _leaves(found, plan).items():
        above = found.topology.ancestors(next(iter(hosts)))[1:]
        rows.append(
            (leaf, " ".join(above), sum(hosts.values()), ", ".join(hostlist.fold_counts(hosts)))
        )
    return rows


def gang_row(gang: Gang) -> tuple[Any, ...]:
    """Return the row of :data:`GANGS`."""
    return gang.level, gang.vms, gang.switch if gang.vms else None


def _finite(cost: float | None) -> float | None:
    """Return a cost, or None if it is infinite, which JSON cannot express."""
    return None if cost is None or math.isinf(cost) else cost
