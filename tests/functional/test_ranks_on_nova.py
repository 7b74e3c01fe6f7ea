"""VMs in the order of launch are in the order of the fabric, after any history of their group.

Nova's scheduler places them, on its databases and Placement; rows say that they run, move and are
deleted. Names are in no order, neither of letters nor of the description::

                            core
              /                            \\
           pod10                           pod2
         /       \\              /            |           \\
      leaf-b    leaf-a       leaf10        leaf9        leaf1
    c21 c3 c20  b9 b10    n1 n11 n2     m4 m30       l1 l2 l10      4 VCPUs each
"""

import logging
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock
from uuid import UUID

import pytest
from nova import context as nova_context
from nova import exception, objects
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report

from hpc_sched.nova_glue.claim import claim_followup
from tests.functional import build_requests, nova_objects, provider_rows, rows
from tests.functional.claims import ask, hosts_of
from tests.functional.faults import wait_until
from tests.functional.shared_clouds import CloudKind, cloud_mark
from tests.functional.tested_cloud import TestedCloud

TREE = {
    "pod10": {"leaf-b": ["c21", "c3", "c20"], "leaf-a": ["b9", "b10"]},
    "pod2": {"leaf10": ["n1", "n11", "n2"], "leaf9": ["m4", "m30"], "leaf1": ["l1", "l2", "l10"]},
}
#: Depth first, by natural order: pod2 with leaf1, leaf9, leaf10, then pod10 with leaf-a, leaf-b.
ORDER = ["l1", "l2", "l10", "m4", "m30", "n1", "n2", "n11", "b9", "b10", "c3", "c20", "c21"]
LEAF = {host: leaf for pod in TREE.values() for leaf, hosts in pod.items() for host in hosts}
LEAVES = list(dict.fromkeys(map(LEAF.__getitem__, ORDER)))
VCPUS, MEMORY_MB = 4, 256
RANKS = CloudKind("ranks", {"core": TREE}, attributes={"vcpus": VCPUS})
#: Names of VMs in their order; two may have one.
NAMES = ["10", "a2b", "a10", "gpu", "vm-1", "vm-2", "vm-2", "vm-2-1", "vm-2b", "vm-9", "vm-10"]
POLICIES = ("soft-affinity", "soft-anti-affinity", "anti-affinity")

pytestmark = cloud_mark(RANKS)


@dataclass
class History:
    """What happens to one group."""

    cloud: TestedCloud
    draw: random.Random
    policy: str
    vcpus: int
    log: list[str]  # lines of the plugin
    group: str = ""  # its uuid
    host_of: dict[str, str] = field(default_factory=dict)  # of the VMs that run
    consumers: list[str] = field(default_factory=list)
    reported: set[str] = field(default_factory=set)  # hosts
    checked: Counter[str] = field(default_factory=Counter)  # requests in several leaves

    def begin(self) -> None:
        """Create the group; others have some of the hosts."""
        self.group = self.uuid()
        context = nova_context.RequestContext("user", "project", is_admin=True)
        named = {"name": "group", "project_id": "project", "user_id": "user"}
        group = objects.InstanceGroup(
            context, uuid=self.group, policy=self.policy, members=[], **named
        )
        group.create()
        for host in self.draw.sample(ORDER, self.draw.randint(0, 6)):
            self.take(host, self.draw.randint(1, VCPUS))
            self.report(host)

    def uuid(self) -> str:
        """Return a new uuid, the same in each run of the history."""
        return str(UUID(int=self.draw.getrandbits(128), version=4))

    def take(self, host: str, vcpus: int, consumer: str | None = None) -> bool:
        """Let a consumer, another one by default, have VCPUs of a host as far as they are free."""
        consumer, client = consumer or self.uuid(), self.cloud.placement
        path = f"/resource_providers/{self.cloud.thin[host].provider.uuid}"
        free = min(VCPUS - client.get(f"{path}/usages").body["usages"]["VCPU"], vcpus)
        if free <= 0:
            return False
        allocations = {path.rpartition("/")[2]: {"resources": {"VCPU": free}}}
        owner = {"project_id": "other", "user_id": "other", "consumer_generation": None}
        body = {"allocations": allocations, **owner}
        self.consumers.append(consumer)
        return bool(client.put(f"/allocations/{consumer}", body, version="1.28").status == 204)

    def report(self, *hosts: str) -> None:
        """Let computes report what is in use on their hosts."""
        self.reported.update(hosts)
        for host in hosts:
            path = f"/resource_providers/{self.cloud.thin[host].provider.uuid}/usages"
            used = self.cloud.placement.get(path).body["usages"]["VCPU"]
            rows.set_usage(self.cloud, host, vcpus=used, memory_mb=0, vms=0)

    def write(self, names: Sequence[str]) -> list[str]:
        """Write the VMs of a request, as nova-api does; return them by launch index."""
        vms = [self.uuid() for _ in names]
        build_requests.add(vms, f"r-{vms[0]}", self._flavor, names)
        objects.InstanceGroup.add_members(nova_context.get_admin_context(), self.group, vms)
        self.consumers += vms
        return vms

    def schedule(self, vms: Sequence[str]) -> list[str]:
        """Return the hosts of the VMs of a request; none if it is refused."""
        group = nova_objects.server_group(self.group, self.policy, members=list(vms))
        spec = nova_objects.request_spec(self._flavor, group, count=len(vms), uuid=vms[0])
        context = nova_context.get_admin_context()
        try:
            return hosts_of(ask(self.cloud.scheduler.manager, context, spec, vms))
        except exception.NoValidHost:
            return []

    def land(self, vms: Sequence[str], hosts: Sequence[str]) -> None:
        """Let VMs run on their hosts, or be refused if there are none."""
        wait_until(lambda: not claim_followup._followed)
        build_requests.remove(vms)
        if hosts:
            given = {"group": self.group, "siblings": len(vms), "reservation_id": f"r-{vms[0]}"}
            rows.add_vms(self.cloud, hosts, uuids=vms, vcpus=self.vcpus, **given)
            self.host_of |= dict(zip(vms, hosts, strict=True))
            self.report(*set(hosts))

    def create(self) -> None:
        """Create VMs in one request, which may lose its first claims to others."""
        count, name = self.draw.randint(2, 6), self.draw.choice(NAMES)
        vms = self.write([f"{name}-{number}" for number in range(1, count + 1)])
        with self.losses(self.draw.choice((0, 0, 1, 2))) as lost:
            hosts = self.schedule(vms)
        self.land(vms, hosts)
        self.check("one request after lost claims" if lost else "one request", hosts)

    def create_vm_by_vm(self) -> None:
        """Create VMs in one request that Nova claims VM by VM, and may lose some of its claims.

        Where each lands in the leaf that it was planned in, they are in order by leaf.
        """
        vms = self.write([f"vm-{number}" for number in range(1, self.draw.randint(3, 7))])
        self.log.clear()
        self.cloud.flags(gang_claims=False, group="hpc_sched")
        with self.lost_claims(self.draw.choice((0.0, 0.3))) as tried:
            hosts = self.schedule(vms)
        self.cloud.flags(gang_claims=True, group="hpc_sched")
        self.land(vms, hosts)
        leaves = [LEAF[host] for host in hosts]
        if not hosts or all(len(some) == 1 for some in tried.values()):
            self.check("one request, VM by VM", hosts)
        elif [LEAF[tried[vm][0]] for vm in vms] == leaves == self.planned(len(vms), leaves):
            self.check("elsewhere in their leaves", hosts, by_leaf=True)

    @contextmanager
    def lost_claims(self, share: float) -> Iterator[dict[str, list[str]]]:
        """Have Nova lose a share of its claims; yield the hosts that each VM has tried."""
        tried: dict[str, list[str]] = {}
        real = scheduler_utils.claim_resources

        def claim(context: Any, client: Any, spec: Any, vm: str, chosen: Any, **said: Any) -> bool:
            [provider] = chosen["allocations"]
            tried.setdefault(vm, []).append(self.host_at(provider))
            is_lost = self.draw.random() < share
            return not is_lost and bool(real(context, client, spec, vm, chosen, **said))

        with mock.patch.object(scheduler_utils, "claim_resources", claim):
            yield tried

    def planned(self, count: int, leaves: Sequence[str]) -> Sequence[str]:
        """Return the leaves of VMs if the first plan has as many in each, else nothing."""
        found = re.search(rf"planned {count} in (.*?);", " ".join(self.log))
        texts = {f"{leaf} ({number})" for leaf, number in Counter(leaves).items()}
        return leaves if found is not None and texts == set(found[1].split(", ")) else ()

    def host_at(self, provider: str) -> str:
        """Return the host of a resource provider."""
        return next(h for h, one in self.cloud.thin.items() if one.provider.uuid == provider)

    def create_at_once(self) -> None:
        """Create VMs by a request each, of which all wait before one is scheduled.

        Each is planned with those that are left: of plans that cost the same a later request may
        have another one, and then they are not in order.
        """
        numbers = sorted(self.draw.sample(range(len(NAMES)), self.draw.randint(2, 4)))
        vms = [vm for number in numbers for vm in self.write([NAMES[number]])]
        # Nova has two of one name in the order of their uuids.
        in_order = [vm for _, vm in sorted(zip([NAMES[n] for n in numbers], vms, strict=True))]
        in_order.sort(key=lambda vm: NAMES.index(NAMES[numbers[vms.index(vm)]]))
        found = {}
        for vm in self.draw.sample(vms, len(vms)):
            found[vm] = self.schedule([vm])
            if self.draw.random() < 0.5:
                # The others are in flight while the next one is scheduled.
                self.land([vm], found[vm])
        for vm in found:
            if vm not in self.host_of:
                self.land([vm], found[vm])
        if all(found.values()):
            ranks = [ORDER.index(found[vm][0]) for vm in in_order]
            self.checked["single creates"] += 1
            self.checked["single creates in order"] += ranks == sorted(ranks)

    def delete(self) -> None:
        """Delete some VMs."""
        gone = self.draw.sample(sorted(self.host_of), self.draw.randint(0, len(self.host_of)))
        rows.delete(self.cloud, gone)
        provider_rows.release(gone)
        self.report(*{self.host_of.pop(vm) for vm in gone})

    def move(self) -> None:
        """Move a VM anywhere: it keeps to no order."""
        if self.host_of:
            vm, host = self.draw.choice(sorted(self.host_of)), self.draw.choice(ORDER)
            provider_rows.release([vm])
            if not self.take(host, self.vcpus, vm):
                host = self.host_of[vm]
                self.take(host, self.vcpus, vm)
            rows.change_vm(self.cloud, vm, host=host, node=host)
            self.report(host, self.host_of[vm])
            self.host_of[vm] = host

    def check(self, what: str, hosts: Sequence[str], *, by_leaf: bool = False) -> None:
        """Check VMs in the order of their launch."""
        leaves = [LEAF[host] for host in hosts]
        order, found = (LEAVES, leaves) if by_leaf else (ORDER, hosts)
        ranks = list(map(order.index, found))
        assert ranks == sorted(ranks), f"{what}: {', '.join(hosts)}"
        self.checked[what] += len(set(leaves)) > 1

    @contextmanager
    def losses(self, number: int) -> Iterator[list[str]]:
        """Let others take the room on a host of each of the first claims of a group."""
        real, lost = report.SchedulerReportClient.post, list[str]()

        def post(client: Any, url: str, data: Any, *args: Any, **said: Any) -> Any:
            if url == "/allocations" and len(lost) < number:
                providers = {p for one in data.values() for p in one["allocations"]}
                lost.append(self.host_at(self.draw.choice(sorted(providers))))
                self.take(lost[-1], VCPUS)
            return real(client, url, data, *args, **said)

        with mock.patch.object(report.SchedulerReportClient, "post", post):
            yield lost

    @property
    def _flavor(self) -> objects.Flavor:
        return nova_objects.flavor(vcpus=self.vcpus, memory_mb=MEMORY_MB, disk_gb=1)

    def end(self) -> None:
        """Leave nothing."""
        wait_until(lambda: not claim_followup._followed)
        provider_rows.release(self.consumers)
        self.report(*self.reported)
        rows.clear(self.cloud)


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Return the lines of the plugin."""
    lines, logger = list[str](), logging.getLogger("hpc_sched")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


def drawn(cloud: TestedCloud, seed: int, log: list[str]) -> Counter[str]:
    """Carry out the history of a seed; return how often what was checked."""
    draw = random.Random(f"ranks {seed}")
    history = History(cloud, draw, draw.choice(POLICIES), draw.choice((1, 2, 2, 4)), log)
    creates = (history.create, history.create_vm_by_vm, history.create_at_once)
    try:
        history.begin()
        for _ in range(draw.choice((1, 2, 2, 3))):
            draw.choice(creates)()
            if draw.random() < 0.5:
                draw.choice((history.delete, history.move))()
    except AssertionError as error:
        raise AssertionError(f"history {seed}: {error}") from error
    finally:
        history.end()
    return history.checked


def check(cloud: TestedCloud, log: list[str], seeds: range) -> Counter[str]:
    """Return how often what was checked in some histories."""
    seen = sum((drawn(cloud, seed, log) for seed in seeds), Counter[str]())
    assert seen["single creates in order"] >= 0.9 * seen["single creates"]
    return seen


def test_after_15_histories_the_vms_of_each_request_are_in_the_order_of_the_fabric(cloud, log):
    seen = check(cloud, log, range(15))
    # Those in several leaves: in one leaf there is less to see.
    for what in ("one request", "one request after lost claims", "one request, VM by VM"):
        assert seen[what]
    assert seen["single creates"]


@pytest.mark.nightly("streams", "200 histories take some minutes")
def test_after_200_histories_the_vms_of_each_request_are_in_the_order_of_the_fabric(cloud, log):
    seen = check(cloud, log, range(200))
    for what in ("one request", "one request after lost claims", "one request, VM by VM"):
        assert seen[what] > 20
    assert seen["single creates"] > 60
