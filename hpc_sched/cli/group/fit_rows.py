"""Output of hpc-sched fits: columns, rows and the sentence above them."""

import math
from collections.abc import Iterator

from hpc_sched import terminal_text
from hpc_sched.cli.common.base_command import Table
from hpc_sched.core.plan.objective import Isolation
from hpc_sched.core.plan.result import Plan, UnprovenGang
from hpc_sched.snapshot import group_fit, isolated_groups
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.request_builder import SnapshotRequest
from hpc_sched.topology import hostlist, plurals

_MAX_USERS = 12  # of uplinks
PLACES = ("Leaf", "Above", "VMs", "Hosts")


def summary(state: SnapshotRequest, fit: group_fit.Fit) -> Table:
    """Return one row with the numbers, or with the reason why the group does not fit."""
    plan = fit.plan
    row = {
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
    return tuple(row), [tuple(row.values())]


def sentence(state: SnapshotRequest, fit: group_fit.Fit, plan: Plan) -> str:
    """Return a sentence with the number of VMs, their hosts and the cost."""
    number = len(state.request.members)
    members = f" beside {plurals.text(number, 'member')}" if number else ""
    top = _top(state, plan)
    where = "" if top is None else f" under {top}"
    on = f", all on {fit.processor}" if fit.processor is not None else ""
    # The plan has more VMs than requested where the flavor names the final size of the group.
    return (
        f"fits: {plurals.text(plan.count, 'VM')}{members} "
        f"on {plurals.text(len(plan.hosts), 'host')} "
        f"in {plurals.text(len(_leaves(state.cloud, plan)), 'leaf switch')}{where}{on}; Hop-Byte "
        f"{terminal_text.hop_bytes(fit.hop_bytes)}, least possible "
        f"{terminal_text.hop_bytes(fit.least)}"
    )


def _top(state: SnapshotRequest, plan: Plan) -> str | None:
    """Return the lowest switch above all VMs, members included; None on several islands."""
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


def places(found: Cloud, plan: Plan) -> Table:
    """Return a row for each leaf with planned VMs, in the order of the plan."""
    return PLACES, [
        (
            leaf,
            " ".join(found.topology.ancestors(next(iter(hosts)))[1:]),
            sum(hosts.values()),
            ", ".join(hostlist.fold_counts(hosts)),
        )
        for leaf, hosts in _leaves(found, plan).items()
    ]


def largest(state: SnapshotRequest) -> Table:
    """Return a row for each level: the largest group that fits under one switch of it.

    No number if it is not proven to be the largest.
    """
    return ("Level", "VMs", "Switch"), [
        (gang.level, None, "not proven")
        if isinstance(gang, UnprovenGang)
        else (gang.level, gang.vms, gang.switch if gang.vms else None)
        for gang in group_fit.largest(state)
    ]


def uplinks_of_others(state: SnapshotRequest) -> Iterator[str]:
    """Yield a line on the uplinks that an isolated group cannot use, with the groups that do."""
    if not isinstance(state.group.objective, Isolation):
        return
    own = [vm.uuid for vm in state.request.members]
    users = isolated_groups.users_of_uplinks(state.cloud, own, state.group.topology)
    if users:
        shown = ", ".join(
            f"{switch} by {name}" for switch, name in list(users.items())[:_MAX_USERS]
        )
        more = f" and {len(users) - _MAX_USERS} more" if len(users) > _MAX_USERS else ""
        yield f"uplinks that other isolated groups use: {shown}{more}"


def _finite(cost: float | None) -> float | None:
    # JSON cannot express infinity.
    return None if cost is None or math.isinf(cost) else cost
