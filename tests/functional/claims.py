"""Nova's scheduler on hosts that exist in its database and in Placement alone.

The hosts are those of a thin cloud, see :mod:`tests.functional.thin_cloud`, without a tracker:
here the host manager reads compute nodes from the cell's database and claims go to Placement, both
real; nothing builds the VMs that have been scheduled.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from nova import context as nova_context
from nova import objects
from nova.scheduler import manager
from nova.scheduler import utils as scheduler_utils
from oslo_messaging import ExpectedException
from oslo_utils import uuidutils

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.claim import claim_followup
from tests.functional import build_requests, host_rows, nova_objects, provider_rows
from tests.functional.faults import wait_until
from tests.functional.nova_objects import MEMORY_MB, VCPUS

# Computes that are rows report nothing; the scheduler must be started with this.
STAYS_UP = {("DEFAULT", "service_down_time"): 100000}


class ClaimsOnly:
    """Schedules requests on the compute nodes that it has made; undoes its claims."""

    def __init__(self, cloud: NovaCloud) -> None:
        self.cloud = cloud
        self.context = nova_context.get_admin_context()
        self.consumers: list[str] = []
        self.provider_of: dict[str, str] = {}
        self.providers: list[str] = []  # those of the hosts and all others
        # That of the cloud, unless one is started on these hosts.
        self.scheduler: manager.SchedulerManager | None = None
        # Whether the API database takes build requests; without them nothing is claimed at once.
        self.has_build_requests = True

    def add_hosts(
        self,
        used_vcpus: Mapping[str, int],
        used_mb: Mapping[str, int] | None = None,
        memory_mb: int = MEMORY_MB,
    ) -> None:
        """Make a compute node for each host, with some of it in use."""
        used_mb = used_mb or {}
        nodes = host_rows.add(
            self.cloud,
            {
                host: {
                    "vcpus_used": vcpus,
                    "memory_mb": memory_mb,
                    "memory_mb_used": used_mb.get(host, 0),
                }
                for host, vcpus in used_vcpus.items()
            },
        )
        self.provider_of |= {host: node.uuid for host, node in nodes.items()}
        self.add_providers([host_rows.provider(node) for node in nodes.values()])

    def add_providers(self, providers: Sequence[provider_rows.Provider]) -> None:
        """Write resource providers, parents before their children."""
        provider_rows.write(providers)
        self.providers += [found.uuid for found in providers]

    def set_options(self, options: Mapping[tuple[str, str], Any]) -> None:
        """Set options of nova.conf, by section and name."""
        for (section, name), value in options.items():
            self.cloud.flags(**{name: value}, group=None if section == "DEFAULT" else section)

    def start_scheduler(self, options: Mapping[tuple[str, str], Any]) -> manager.SchedulerManager:
        """Start a scheduler with options; place() uses it."""
        self.set_options(options)
        self.scheduler = manager.SchedulerManager()
        return self.scheduler

    def remove(self) -> None:
        """Remove all claims and hosts."""
        wait_until(lambda: not claim_followup._followed)
        self.release()
        if self.cloud.with_scheduler:
            for host in self.provider_of:
                self.cloud.scheduler.manager.host_manager._instance_info.pop(host, None)
        host_rows.remove(self.cloud, self.provider_of)
        provider_rows.remove(self.providers)
        self.provider_of.clear()
        self.providers.clear()

    def know_no_instances(self, scheduler: manager.SchedulerManager) -> None:
        """Spare a scheduler the query per host for instances, of which there are none."""
        for host in self.provider_of:
            scheduler.host_manager._instance_info[host] = {"instances": {}, "updated": True}

    def place(
        self,
        spec: objects.RequestSpec,
        scheduler: manager.SchedulerManager | None = None,
        alternates: bool = False,
        uuids: Sequence[str] = (),
    ) -> list[list[objects.Selection]]:
        """Return the selections for every VM of a request, claimed in Placement.

        :param uuids: of its VMs, the first being that of the spec; random ones by default
        """
        chosen = scheduler or self.scheduler or self.cloud.scheduler.manager
        self.know_no_instances(chosen)
        vms = list(uuids) or [
            spec.instance_uuid,
            *(uuidutils.generate_uuid() for _ in range(spec.num_instances - 1)),
        ]
        self.consumers += vms
        written = (
            build_requests.add(vms, f"r-{vms[0]}", spec.flavor) if self.has_build_requests else []
        )
        try:
            return ask(chosen, self.context, spec, vms, alternates)
        finally:
            if written:
                build_requests.remove(written)

    def release(self, consumers: Iterable[str] | None = None) -> None:
        """Remove claims, all by default."""
        gone = set(self.consumers if consumers is None else consumers)
        provider_rows.release(gone)
        self.consumers = [one for one in self.consumers if one not in gone]


@contextmanager
def claims_on(
    cloud: NovaCloud,
    used_vcpus: Mapping[str, int],
    used_mb: Mapping[str, int] | None = None,
    options: Mapping[tuple[str, str], Any] | None = None,
) -> Iterator[ClaimsOnly]:
    """Yield hosts on a cloud, removed afterwards, with a scheduler if options are given."""
    claims = ClaimsOnly(cloud)
    claims.add_hosts(used_vcpus, used_mb)
    try:
        if options is not None:
            claims.start_scheduler(options)
        yield claims
    finally:
        claims.remove()


def ask(
    scheduler: manager.SchedulerManager,
    context: nova_context.RequestContext,
    spec: objects.RequestSpec,
    uuids: Sequence[str],
    alternates: bool = False,
) -> list[list[objects.Selection]]:
    """Return the selections for every VM of a request, as the conductor gets them."""
    try:
        return scheduler.select_destinations(
            context,
            spec_obj=spec,
            instance_uuids=list(uuids),
            return_objects=True,
            return_alternates=alternates,
        )
    except ExpectedException as expected:
        # What oslo.messaging wraps for the way back to the conductor.
        raise expected.exc_info[1] from None


def request(
    *,
    count: int = 1,
    group: str | None = None,
    policy: str = "anti-affinity",
    vcpus: int = VCPUS,
    memory_mb: int = 1024,
    extra_specs: Mapping[str, str] | None = None,
    uuid: str | None = None,
) -> objects.RequestSpec:
    """Return a RequestSpec as nova-api and the conductor would hand it over.

    :param group: uuid of a server group that nobody else uses
    """
    return nova_objects.request_spec(
        nova_objects.flavor(vcpus=vcpus, memory_mb=memory_mb, extra_specs=extra_specs),
        nova_objects.server_group(group, policy) if group is not None else None,
        count=count,
        uuid=uuid or uuidutils.generate_uuid(),
    )


def hosts_of(selections: Sequence[Sequence[objects.Selection]]) -> list[str]:
    """Return the host that each VM was placed on."""
    return [chosen[0].nodename for chosen in selections]


@contextmanager
def watched_claims(
    monkeypatch: pytest.MonkeyPatch,
    hosts: Mapping[str, str],
    loses: Callable[[str, str, int], bool] = lambda _vm, _host, _attempt: False,
) -> Iterator[list[tuple[str, str, bool]]]:
    """Collect the claims that the scheduler makes, (VM, host, won); some may be made to fail.

    :param hosts: uuid of a resource provider to its host
    :param loses: told VM, host and how many claims of the VM there have been before
    """
    real = scheduler_utils.claim_resources
    tried: list[tuple[str, str, bool]] = []

    def claim(context, client, spec, instance_uuid, alloc_req, **kwargs):
        [provider] = alloc_req["allocations"]
        before = sum(vm == instance_uuid for vm, _, _ in tried)
        lost = loses(instance_uuid, hosts[provider], before)
        won = not lost and real(context, client, spec, instance_uuid, alloc_req, **kwargs)
        tried.append((instance_uuid, hosts[provider], won))
        return won

    with monkeypatch.context() as patch:
        patch.setattr(scheduler_utils, "claim_resources", claim)
        yield tried


def seeded_half(seed: int) -> Callable[[str, str, int], bool]:
    """Return a loss of half of the first choices, the same for the same seed."""
    numbers = random.Random(seed)
    return lambda _vm, _host, attempt: attempt == 0 and numbers.random() < 0.5
