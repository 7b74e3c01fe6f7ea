"""A scheduler on hosts below two pods, and groups with objectives that nova-api has accepted.

::

                     core
              /               \\
           pod1               pod2
          /    \\             /    \\
       leaf1   leaf2      leaf3   leaf4
       n1-n3   n4-n6      n7-n9   n10-n12      a VM fills a host
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nova import exception
from nova.scheduler import manager
from oslo_utils import uuidutils

from hpc_sched.demo.nova_cloud import NovaCloud, read_options
from hpc_sched.topology.model import Topology
from tests.functional import build_requests, rows
from tests.functional.claims import STAYS_UP, ClaimsOnly, ask, claims_on, request
from tests.functional.clouds import SAMPLE_CONF
from tests.functional.states import wishing
from tests.functional.tested_cloud import BUSY_MACHINE
from tests.functional.trees import hosts_below, write_tree

TREE = {
    "core": {
        "pod1": {"leaf1": ["n1", "n2", "n3"], "leaf2": ["n4", "n5", "n6"]},
        "pod2": {"leaf3": ["n7", "n8", "n9"], "leaf4": ["n10", "n11", "n12"]},
    }
}
FABRIC = Topology.from_tree(TREE)


@dataclass
class Group:
    """The VMs of one request and their hosts; none if it was refused."""

    vms: Sequence[str]
    objective: str | None = None
    hosts: Sequence[str] = ()
    refused: str = ""
    server_group: str | None = None

    @property
    def uplinks(self) -> set[str]:
        """The switches above a part of its VMs."""
        below: Counter[str] = Counter()
        for host in self.hosts:
            leaf = FABRIC.leaf_index[FABRIC.index_of(host)]
            below.update(FABRIC.switches[s].name for s in FABRIC.upwards(int(leaf)))
        return {switch for switch, vms in below.items() if vms < len(self.hosts)}


@dataclass
class IsolatedCloud:
    """The cloud and the groups that run on it."""

    claims: ClaimsOnly
    groups: list[Group] = field(default_factory=list)

    def claim(
        self,
        count: int,
        objective: str | None = "isolated",
        scheduler: manager.SchedulerManager | None = None,
        hints: Mapping[str, list[str]] | None = None,
        **more: object,
    ) -> Group:
        """Return a group once it is claimed, or refused; its VMs are in no cell yet.

        :param more: extra specs without the prefix
        """
        vms = [uuidutils.generate_uuid() for _ in range(count)]
        specs = {"app_class": "sync", "objective": objective, **more}
        said = wishing(**{name: value for name, value in specs.items() if value is not None})
        spec = request(count=count, extra_specs=said, uuid=vms[0])
        spec.scheduler_hints = dict(hints or {})
        group = Group(vms, objective)
        build_requests.add(vms, f"r-{vms[0]}", spec.flavor)
        self.claims.consumers += vms
        chosen = scheduler or self.claims.scheduler
        self.claims.know_no_instances(chosen)
        try:
            found = ask(chosen, self.claims.context, spec, vms)
        except exception.NoValidHost as error:
            group.refused = str(error)
            build_requests.remove(vms)
        else:
            group.hosts = [of_one[0].nodename for of_one in found]
            self.groups.append(group)
        return group

    def land(self, group: Group, **more: object) -> Group:
        """Let VMs reach their hosts, as nova-conductor and nova-compute note it."""
        if group.hosts:
            build_requests.remove(group.vms)
            specs = {"app_class": "sync", "objective": group.objective, **more}
            rows.add_vms(
                self.claims.cloud,
                list(group.hosts),
                uuids=list(group.vms),
                reservation_id=f"r-{group.vms[0]}",
                siblings=len(group.vms),
                vcpus=16,
                memory_mb=1024,
                extra_specs=wishing(**{k: v for k, v in specs.items() if v is not None}),
            )
        return group

    def place(self, count: int, objective: str | None = "isolated", **more: object) -> Group:
        """Return a group that runs, or is refused."""
        return self.land(self.claim(count, objective, **more), **more)

    def delete(self, group: Group) -> None:
        """Delete the VMs of a group."""
        self.groups.remove(group)
        build_requests.remove(group.vms)
        rows.delete(self.claims.cloud, list(group.vms))
        self.claims.release(group.vms)

    def clear(self) -> None:
        """Remove all groups."""
        build_requests.remove([vm for group in self.groups for vm in group.vms])
        self.claims.release()
        rows.clear(self.claims.cloud)
        self.groups.clear()

    def shared(self) -> set[str]:
        """Return the switches whose uplinks several isolated groups use."""
        used = Counter(
            switch
            for group in self.groups
            if group.objective == "isolated"
            for switch in group.uplinks
        )
        return {switch for switch, groups in used.items() if groups > 1}


@contextmanager
def isolated_cloud(cloud: NovaCloud, folder: Path, **ours: object) -> Iterator[IsolatedCloud]:
    """Yield the hosts of the tree on a cloud, with a scheduler as etc/nova.conf.sample has it."""
    usual = {
        "topology_file": str(write_tree(folder / "topology.yaml", TREE)),
        "topology_reload_interval": 0,
        "cell_timeout": BUSY_MACHINE,
    }
    options = (
        read_options(SAMPLE_CONF)
        | STAYS_UP
        | {("hpc_sched", name): value for name, value in (usual | ours).items()}
    )
    with claims_on(cloud, dict.fromkeys(hosts_below(TREE), 0), options=options) as claims:
        yield IsolatedCloud(claims)
