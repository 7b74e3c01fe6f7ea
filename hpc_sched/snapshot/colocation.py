"""The room that the VMs on a host leave to VMs of others (Gupta2013), from a snapshot."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpc_sched.core import extra_specs
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.sharing.cache_interference import Application, Limits, dedicated_room, room
from hpc_sched.enabled_plugins import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.snapshot import nova_options
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.model import Hypervisor, Server

_ALPHA, _BETA = "cache_score_limit", "sync_cache_score_limit"


def rooms(
    cloud: Cloud, newcomer: Application, without: frozenset[str] = frozenset()
) -> NDArray[np.int64]:
    """Return how many VMs like the newcomer each hypervisor takes beside those that it has.

    By dedication for class ``extreme`` and where HPCDedicatedHostFilter is enabled, by cache
    scores and company where HPCInterferenceFilter is; any number otherwise. Linear in VMs.

    :param without: uuids of VMs that count as gone
    """
    snapshot = cloud.snapshot
    plugins = nova_options.enabled(snapshot)
    by_limits = plugins.has_filter(INTERFERENCE_FILTER)
    by_dedication = newcomer.app_class == "extreme" or plugins.has_filter(DEDICATED_FILTER)
    nodes = snapshot.hypervisors
    found = np.full(len(nodes), UNBOUNDED, dtype=np.int64)
    if not (by_limits or by_dedication):
        return found
    there_now = running(cloud, without)
    bad = nova_options.bad_company(snapshot, newcomer.name)
    limits = _LimitsByHost(cloud)
    for i, node in enumerate(nodes):
        there = there_now.get((node.host, node.nodename), [])
        if by_dedication:
            found[i] = min(int(found[i]), dedicated_room(newcomer, there))
        if by_limits:
            found[i] = min(int(found[i]), room(newcomer, there, limits.of(node), bad))
    return found


def group_of(cloud: Cloud, server: Server) -> str | None:
    """Return the group that a VM belongs to: its server group, else what it was made with."""
    group = cloud.group_of.get(server.uuid)
    return group.uuid if group is not None else server.reservation_id


def running(
    cloud: Cloud, without: frozenset[str] = frozenset()
) -> dict[tuple[str, str], list[Application]]:
    """Return what runs on each hypervisor, by service host and nodename. Linear in VMs.

    :param without: uuids of VMs that count as gone
    """
    snapshot = cloud.snapshot
    together = Counter(server.reservation_id for server in snapshot.servers)
    implicit = bool(nova_options.option(snapshot, "implicit_groups"))
    defaults = nova_options.defaults(snapshot)
    found: dict[tuple[str, str], list[Application]] = {}
    for server in snapshot.servers:
        if not server.host or server.uuid in without:
            continue
        many = server.reservation_id is not None and together[server.reservation_id] > 1
        in_group = server.uuid in cloud.group_of or (implicit and many)
        # What is wrong in them was refused, or logged, when the VM was scheduled.
        runs, _ = extra_specs.application(
            server.flavor.extra_specs, {}, defaults, in_group=in_group
        )
        place = server.host, server.nodename or server.host
        found.setdefault(place, []).append(replace(runs, group=group_of(cloud, server)))
    return found


class _LimitsByHost:
    """The limits of each host: the options, or the lowest metadata of its aggregates."""

    def __init__(self, cloud: Cloud) -> None:
        snapshot = cloud.snapshot
        self.default = Limits(
            nova_options.option(snapshot, _ALPHA), nova_options.option(snapshot, _BETA)
        )
        self.stated: dict[str, dict[str, float]] = {}
        for aggregate in snapshot.aggregates:
            for key in (_ALPHA, _BETA):
                value = _number(aggregate.metadata, key)
                if value is not None:
                    for host in aggregate.hosts:
                        here = self.stated.setdefault(host, {})
                        here[key] = min(here.get(key, value), value)

    def of(self, node: Hypervisor) -> Limits:
        here = self.stated.get(node.host, {})
        return Limits(here.get(_ALPHA, self.default.alpha), here.get(_BETA, self.default.beta))


def _number(metadata: Mapping[str, str], key: str) -> float | None:
    """Return metadata that is a number >= 0; what is none is left out, as the filter does."""
    try:
        value = float(metadata[key])
    except (KeyError, ValueError):
        return None
    return value if math.isfinite(value) and value >= 0 else None
