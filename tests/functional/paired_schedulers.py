"""Stock Nova's scheduler and one with all of hpc_sched, in one process, over equal states.

Each request is sent to both, one after the other, on the same hosts with the same claims; what the
first has claimed is removed before the second is asked. The VMs of the second stay.
"""

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import nova.conf
from nova import context as nova_context
from nova import exception, objects
from nova.scheduler import manager
from oslo_utils import uuidutils

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional import build_requests, nova_objects, provider_rows, rows
from tests.functional.claims import ClaimsOnly, ask
from tests.functional.clouds import sharing_options
from tests.functional.provider_rows import Held

CONF = nova.conf.CONF

ALL_WEIGHERS = ["nova.scheduler.weights.all_weighers", "hpc_sched.weighers.all_weighers"]


@dataclass(frozen=True)
class Asked:
    """A request for VMs of one flavor."""

    vms: tuple[str, ...]
    vcpus: int
    memory_mb: int
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    policy: str = "anti-affinity"


@dataclass(frozen=True)
class Answer:
    """All that the conductor gets, and all that Placement has afterwards."""

    selections: str  # with alternates, allocation requests and limits, in their order
    allocations: tuple[Held, ...]
    hosts: tuple[str, ...]  # of the VMs; empty without a valid host


@dataclass
class Placed:
    """VMs that run."""

    asked: Asked
    hosts: tuple[str, ...]


class PairedSchedulers:
    """Hosts on a cloud, its scheduler, which is stock Nova's, and another one."""

    def __init__(self, cloud: NovaCloud, hosts: Sequence[str], seed: int = 3) -> None:
        self.claims = ClaimsOnly(cloud)
        numbers = random.Random(seed)
        self.first_vcpus = {host: numbers.choice([0, 0, 4]) for host in hosts}
        self.first_mb = {host: numbers.choice([0, 0, 8192]) for host in hosts}
        self.claims.add_hosts(self.first_vcpus, self.first_mb)
        self.stock: manager.SchedulerManager = cloud.scheduler.manager
        self.own: manager.SchedulerManager | None = None
        self.placed: list[Placed] = []

    def start_own(self, folder: Any, **options: Any) -> manager.SchedulerManager:
        """Start the scheduler with all filters and weighers of hpc_sched."""
        weighers = {("filter_scheduler", "weight_classes"): ALL_WEIGHERS}
        self.own = self.claims.start_scheduler(sharing_options(folder, **options) | weighers)
        return self.own

    def both(self, asked: Asked, *, stock_first: bool = True) -> tuple[Answer, Answer]:
        """Return what stock Nova and ours answer; the VMs run where the second one puts them."""
        order = [self.stock, self.own] if stock_first else [self.own, self.stock]
        if asked.group is not None:
            self._join(asked)
        build_requests.add(asked.vms, f"r-{asked.vms[0]}", self._flavor(asked))
        answers = []
        for number, scheduler in enumerate(order):
            answers.append(self._answer(asked, scheduler))
            if number == 0:
                self.claims.release(asked.vms)
        build_requests.remove(asked.vms)
        self._land(asked, answers[-1].hosts)
        return (answers[0], answers[1]) if stock_first else (answers[1], answers[0])

    def delete(self, placed: Placed) -> None:
        """Delete the VMs of one request."""
        self.placed.remove(placed)
        self.claims.release(placed.asked.vms)
        rows.delete(self.claims.cloud, placed.asked.vms)
        self._report(placed.hosts)

    def end(self) -> None:
        """Remove all VMs and hosts."""
        self.placed.clear()
        rows.clear(self.claims.cloud)
        self.claims.remove()

    def _answer(self, asked: Asked, scheduler: manager.SchedulerManager) -> Answer:
        for host in self.claims.provider_of:
            there = {
                vm: objects.Instance(uuid=vm)
                for one in self.placed
                for vm, its in zip(one.asked.vms, one.hosts, strict=True)
                if its == host
            }
            scheduler.host_manager._instance_info[host] = {"instances": there, "updated": True}
        self.claims.consumers += asked.vms
        try:
            found = ask(scheduler, self.claims.context, self._spec(asked), asked.vms, True)
        except exception.NoValidHost as error:
            said, hosts = str(error), ()
        else:
            shown = [[chosen.obj_to_primitive() for chosen in of_one] for of_one in found]
            said = json.dumps(shown, sort_keys=True, default=str)
            hosts = tuple(of_one[0].nodename for of_one in found)
        return Answer(said, tuple(provider_rows.held(asked.vms)), hosts)

    def _flavor(self, asked: Asked) -> objects.Flavor:
        return nova_objects.flavor(
            vcpus=asked.vcpus, memory_mb=asked.memory_mb, extra_specs=asked.extra_specs
        )

    def _spec(self, asked: Asked) -> objects.RequestSpec:
        """Return the RequestSpec as the conductor makes it."""
        group = None
        if asked.group is not None:
            own = [one for one in self.placed if one.asked.group == asked.group]
            hosts = sorted({host for one in own for host in one.hosts})
            members = [vm for one in own for vm in one.asked.vms] + list(asked.vms)
            group = nova_objects.server_group(
                asked.group, asked.policy, members=members, hosts=hosts
            )
        return nova_objects.request_spec(
            self._flavor(asked), group, count=len(asked.vms), uuid=asked.vms[0]
        )

    def _join(self, asked: Asked) -> None:
        context = nova_context.RequestContext("user", "project", is_admin=True)
        assert asked.group is not None
        if not any(one.asked.group == asked.group for one in self.placed):
            group = objects.InstanceGroup(
                context,
                uuid=asked.group,
                name="group",
                project_id="project",
                user_id="user",
                policy=asked.policy,
                members=[],
            )
            group.create()
        objects.InstanceGroup.add_members(context, asked.group, list(asked.vms))

    def _land(self, asked: Asked, hosts: Sequence[str]) -> None:
        if not hosts:
            return
        self.placed.append(Placed(asked, tuple(hosts)))
        rows.add_vms(
            self.claims.cloud,
            hosts,
            uuids=asked.vms,
            group=asked.group,
            siblings=len(asked.vms),
            reservation_id=f"r-{asked.vms[0]}",
            vcpus=asked.vcpus,
            memory_mb=asked.memory_mb,
            extra_specs=asked.extra_specs,
        )
        self._report(hosts)

    def _report(self, hosts: Sequence[str]) -> None:
        """Report what is in use on hosts, as their computes do."""
        vms, vcpus, memory = Counter[str](), Counter[str](), Counter[str]()
        for one in self.placed:
            for host in one.hosts:
                vms[host] += 1
                vcpus[host] += one.asked.vcpus
                memory[host] += one.asked.memory_mb
        for host in sorted(set(hosts)):
            rows.set_usage(
                self.claims.cloud,
                host,
                vcpus=self.first_vcpus[host] + vcpus[host],
                memory_mb=self.first_mb[host] + memory[host],
                vms=vms[host],
            )


@contextmanager
def options(cloud: NovaCloud, **values: Any):
    """Set options of [hpc_sched] for a while."""
    before = {name: CONF.hpc_sched[name] for name in values}
    cloud.flags(**values, group="hpc_sched")
    try:
        yield
    finally:
        cloud.flags(**before, group="hpc_sched")


def drawn(numbers: random.Random, groups: Sequence[Placed] = ()) -> Asked:
    """Return one of the requests that a cloud gets, the ones that hpc_sched refuses included.

    :param groups: VMs of server groups, one of which may grow
    """
    kind = numbers.choice(list(KINDS))
    count, extra_specs, policy = KINDS[kind](numbers)
    if groups and kind == "grown":
        one = numbers.choice(list(groups)).asked
        vms = tuple(uuidutils.generate_uuid() for _ in range(count))
        return Asked(vms, one.vcpus, one.memory_mb, one.extra_specs, one.group, one.policy)
    return Asked(
        vms=tuple(uuidutils.generate_uuid() for _ in range(count)),
        vcpus=numbers.choice([1, 2, 4, 8, 16]),
        memory_mb=numbers.choice([512, 2048, 8192]),
        extra_specs=extra_specs,
        group=None if policy is None else uuidutils.generate_uuid(),
        policy=policy or "",
    )


POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")


def _wishing(**specs: object) -> dict[str, str]:
    return {f"hpc:{name}": str(value) for name, value in specs.items()}


KINDS = {
    "single": lambda numbers: (1, {}, None),
    "single of a class": lambda numbers: (
        1,
        _wishing(app_class=numbers.choice(["async", "extreme", "none", "sync"])),
        None,
    ),
    "several": lambda numbers: (numbers.choice([2, 3, 5]), {}, None),
    "implicit group": lambda numbers: (
        numbers.choice([2, 4, 6]),
        _wishing(app_class=numbers.choice(["async", "extreme", "sync"])),
        None,
    ),
    "server group": lambda numbers: (numbers.choice([1, 2, 4, 8]), {}, numbers.choice(POLICIES)),
    "required": lambda numbers: (
        numbers.choice([2, 4, 8]),
        _wishing(require="leaf"),
        numbers.choice(POLICIES[1:]),
    ),
    "few leaves": lambda numbers: (
        numbers.choice([3, 6]),
        _wishing(max_leaves=numbers.choice([1, 2]), homogeneous="true"),
        numbers.choice(POLICIES[1:]),
    ),
    "too large": lambda numbers: (9, _wishing(require="leaf"), "anti-affinity"),
    "much too large": lambda numbers: (40, {}, "anti-affinity"),
    "wrong": lambda numbers: (
        2,
        numbers.choice(
            [
                _wishing(require="nowhere"),
                _wishing(max_leaves="none"),
                _wishing(app_class="fast"),
                _wishing(cache_score="-1"),
            ]
        ),
        numbers.choice([None, "soft-affinity"]),
    ),
    "loud": lambda numbers: (1, _wishing(app_class="sync", cache_score=90), None),
    "grown": lambda numbers: (numbers.choice([1, 2]), {}, "soft-anti-affinity"),
}
