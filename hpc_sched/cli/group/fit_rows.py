"""What hpc-sched fits prints: columns, rows and the sentence above them."""

import math
from typing import Any

from hpc_sched.cli.group import leaf_picture
from hpc_sched.core.plan.result import Gang, Plan
from hpc_sched.snapshot import group_fit, request_builder
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.topology import hostlist, plurals

PLACES = ("Leaf", "Above", "VMs", "Hosts")
GANGS = ("Level", "VMs", "Switch")
SUMMARY = (
    "Fits",
    "Count",
    "Members",
    "Hosts",
    "Leaves",
    "Switch",
    "Hop-Byte",
    "Least possible",
    "Reason",
)


def summary(state: request_builder.State, fit: group_fit.Fit) -> tuple[Any, ...]:
    """Return the row of :data:`SUMMARY`."""
    plan = fit.plan
    leaves = _leaves(state.cloud, plan) if plan is not None else None
    return (
        plan is not None,
        state.request.count,
        len(state.request.members),
        None if plan is None else len(plan.hosts),
        None if leaves is None else len(leaves),
        None if plan is None else _top(state, plan),
        finite(fit.hop_bytes),
        finite(fit.least),
        fit.reason,
    )


def sentence(state: request_builder.State, fit: group_fit.Fit, plan: Plan) -> str:
    """Return what fits, on what and at what cost."""
    number = len(state.request.members)
    beside = f" beside {plurals.text(number, 'member')}" if number else ""
    top = _top(state, plan)
    where = "" if top is None else f" under {top}"
    on = f", all on {fit.processor}" if fit.processor is not None else ""
    # More than were asked for where the flavor says how large the group will become.
    return (
        f"fits: {plurals.text(plan.count, 'VM')}{beside} "
        f"on {plurals.text(len(plan.hosts), 'host')} "
        f"in {plurals.text(len(_leaves(state.cloud, plan)), 'leaf switch')}{where}{on}; Hop-Byte "
        f"{leaf_picture.number(finite(fit.hop_bytes))}, least possible "
        f"{leaf_picture.number(finite(fit.least))}"
    )


def _top(state: request_builder.State, plan: Plan) -> str | None:
    """Return the lowest switch above all VMs, members included; None where there is none."""
    topology, host_of = state.cloud.topology, state.cloud.host_of
    hosts = {*plan.hosts, *(host_of[server.uuid] for server in state.request.members)}
    above = [topology.ancestors(host) for host in sorted(hosts)]
    return next((switch for switch in above[0] if all(switch in a for a in above)), None)


def _leaves(found: Cloud, plan: Plan) -> dict[str, dict[str, int]]:
    """Return, per leaf of the fabric, the planned VMs per host, in the order of the plan."""
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


def finite(cost: float | None) -> float | None:
    """Return a cost, None where it is infinite: JSON has no word for that."""
    return None if cost is None or math.isinf(cost) else cost
