"""A cloud that lives: its VMs come, grow, move and go, its hosts fail, its fabric changes.

Nova's scheduler, host manager, databases and Placement are real; hosts and VMs are rows. What a
compute or a conductor would do on the way is written by :mod:`tests.functional.rows`.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import nova.conf
from nova import exception, objects

from hpc_sched.nova_glue import fabric
from tests.functional import rows
from tests.functional.claims import ClaimsOnly, ask, hosts_of, request
from tests.functional.soak import fabrics
from tests.functional.soak.events import Event
from tests.functional.soak.vms import VM, Attempt, Group, Size
from tests.functional.states import wishing
from tests.functional.workload import APPLICATIONS

CONF = nova.conf.CONF

WISHES = [
    {},
    {},
    wishing(require="leaf"),
    wishing(require="pod"),
    wishing(max_leaves=2),
    wishing(homogeneous="true"),
    wishing(require="leaf", group_size=6),
]
POLICIES = ["soft-anti-affinity", "soft-affinity", "anti-affinity", "affinity"]
SIZES = [(1, 2048), (2, 2048), (4, 16384)]
TASK_OF = {
    "cold migrate": "resize_prep",
    "resize": "resize_prep",
    "live migrate": "migrating",
    "evacuate": "rebuilding",
    "unshelve": "unshelving",
}
TYPE_OF = {
    "cold migrate": "migration",
    "resize": "resize",
    "live migrate": "live-migration",
    "evacuate": "evacuation",
}
ENDED = ("confirmed", "reverted", "error", "completed", "done")
REQUESTS = ("create", "grow", *TASK_OF)


@dataclass
class Life:
    """A cloud, and what is true of it."""

    nova: ClaimsOnly
    path: Path  # of the topology
    vms: dict[str, VM] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    leaves: fabrics.Leaves = field(default_factory=lambda: fabrics.BASE)
    before: fabrics.Leaves = field(default_factory=lambda: fabrics.BASE)  # in this round
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # kind, what became of it
    mistakes: int = 0  # in the topology file
    is_spoilt: bool = False  # whether there is one now
    asking: set[str] = field(default_factory=set)  # groups that grow in this round

    def count(self, event: Event, what: str) -> None:
        """Note what became of an event."""
        self.counts[event.kind, what] += 1

    @property
    def requests(self) -> int:
        """How many requests the scheduler has got."""
        return sum(
            n
            for (kind, what), n in self.counts.items()
            if kind in REQUESTS and what in ("placed", "refused")
        )

    def begin(self, event: Event) -> Attempt | None:
        """Let an event happen; return the request that it sends to the scheduler."""
        dice = event.dice
        if event.kind in ("create", "grow"):
            return self._create(event, dice)
        if event.kind in TASK_OF:
            return self._move(event, dice)
        happened = {
            "delete": self._delete_one,
            "shelve": self._shelve,
            "host fails": self._fail,
            "host recovers": self._recover,
            "topology": self._change_fabric,
            "bad topology": self._spoil_fabric,
            "SIGHUP": self._mutate,
        }[event.kind](dice)
        self.count(event, "done" if happened else "nothing to do")
        return None

    def send(self, attempt: Attempt) -> None:
        """Ask the scheduler; called from a thread of the request's own."""
        scheduler = self.nova.cloud.scheduler.manager
        try:
            placed = ask(scheduler, self.nova.context.elevated(), attempt.spec, attempt.uuids)
            attempt.hosts = hosts_of(placed)
        except exception.NoValidHost:
            pass
        except BaseException as error:
            attempt.error = error

    def end(self, attempt: Attempt) -> None:
        """Write down what the conductor does with the scheduler's answer."""
        event, uuids = attempt.event, attempt.uuids
        is_new = event.kind in ("create", "grow")
        self.count(event, "refused" if attempt.hosts is None else "placed")
        if is_new:
            rows.end_builds(uuids)
        if attempt.hosts is None:
            for vm in attempt.vms:
                self._stay(vm)
            if is_new:
                self._leave_group(attempt.vms)
            return
        for vm, host in zip(attempt.vms, attempt.hosts, strict=True):
            vm.place = host
            self.vms[vm.uuid] = vm
        if is_new:
            first = attempt.vms[0]
            rows.add_vms(
                self.nova.cloud,
                [None] * len(uuids),
                uuids=uuids,
                siblings=first.siblings,
                reservation_id=first.job,
                group=first.group,
                extra_specs=first.said,
                vcpus=first.size.vcpus,
                memory_mb=first.size.memory_mb,
            )
        elif event.kind == "unshelve":
            rows.change_vm(self.nova.cloud, uuids[0], task_state="spawning")
        elif event.dice.random() < 0.5:
            # Its record names the destination already; of the others only Placement knows.
            [host] = attempt.hosts
            rows.change_migrations(self.nova.cloud, uuids[0], dest_compute=host, dest_node=host)

    def undo(self, attempt: Attempt) -> None:
        """Take back what two requests gave away at the same time."""
        self.counts[attempt.event.kind, "raced"] += 1
        attempt.hosts = None
        if attempt.event.kind in ("create", "grow"):
            self.delete(attempt.vms)
        else:
            for vm in attempt.vms:
                self._stay(vm)

    def land(self, dice: random.Random, chance: float = 0.6) -> None:
        """Let VMs that are on their way arrive."""
        touched: set[str] = set()
        for vm in [vm for vm in self.vms.values() if vm.place]:
            if dice.random() < chance:
                touched |= set(vm.sides)
                if vm.moves == "resize" and dice.random() < 0.3:
                    self._stay(vm)
                else:
                    self._arrive(vm)
        self.report(touched)

    def report(self, hosts: Iterable[str]) -> None:
        """Report what is in use on hosts, as their computes do to databases and scheduler."""
        here = self.by_host()
        info = self.nova.cloud.scheduler.manager.host_manager._instance_info
        for host in sorted(set(hosts)):
            vms = [vm for vm in here[host] if vm.host == host]
            rows.set_usage(
                self.nova.cloud,
                host,
                vcpus=sum(vm.size.vcpus for vm in vms),
                memory_mb=sum(vm.size.memory_mb for vm in vms),
                vms=len(vms),
            )
        for host in fabrics.HOSTS:
            landed = [vm for vm in here[host] if vm.host == host]
            there = {vm.uuid: objects.Instance(uuid=vm.uuid) for vm in landed}
            info[host] = {"instances": there, "updated": True}

    def by_host(self) -> dict[str, list[VM]]:
        """Return the VMs on each host, those that move on both."""
        found: dict[str, list[VM]] = defaultdict(list)
        for vm in self.vms.values():
            for host in vm.sides:
                found[host].append(vm)
        return found

    def by_group(self) -> dict[str, list[VM]]:
        """Return the VMs of each server group."""
        found: dict[str, list[VM]] = defaultdict(list)
        for vm in self.vms.values():
            if vm.group:
                found[vm.group].append(vm)
        return found

    def delete(self, vms: Iterable[VM]) -> None:
        """Delete VMs, wherever they are on their way."""
        gone = list(vms)
        rows.delete(self.nova.cloud, [vm.uuid for vm in gone])
        for vm in gone:
            for consumer in vm.allocations():
                self._release(consumer)
            del self.vms[vm.uuid]
        self._leave_group(gone)
        self.report(host for vm in gone for host in vm.sides)

    def clean(self) -> None:
        """Remove what Nova keeps of the deleted, and what its fixtures collect."""
        rows.purge(self.nova.cloud, ENDED)
        used = self.by_group()
        for uuid in [uuid for uuid in self.groups if uuid not in used]:
            objects.InstanceGroup.get_by_uuid(self.nova.context, uuid).destroy()
            del self.groups[uuid]
        self.nova.cloud.notifier.reset()

    def _create(self, event: Event, dice: random.Random) -> Attempt | None:
        group: Group | None = None
        count = dice.choice((1, 1, 2, 3, 4))
        job = f"r-{_uuid(dice)}"
        busy = {vm.group for vm in self.vms.values() if vm.moves}
        free = [one for one in self.groups.values() if one.uuid not in busy]
        if event.kind == "grow":
            if not free:
                self.count(event, "nothing to do")
                return None
            group = dice.choice(free)
            self.asking.add(group.uuid)
            said, size = group.said, group.size
        else:
            said, size = dice.choice(APPLICATIONS), Size(*dice.choice(SIZES))
            if dice.random() < 0.6:
                said = said | dice.choice(WISHES)
                group = Group(_uuid(dice), dice.choice(POLICIES), said, size)
                self.groups[group.uuid] = group
                objects.InstanceGroup(
                    self.nova.context,
                    uuid=group.uuid,
                    name="job",
                    user_id="user",
                    project_id="project",
                    policy=group.policy,
                ).create()
        uuid = group.uuid if group else None
        vms = [VM(_uuid(dice), job, count, uuid, said, size) for _ in range(count)]
        if group:
            objects.InstanceGroup.add_members(
                self.nova.context, group.uuid, [vm.uuid for vm in vms]
            )
        spec = self._spec(vms[0], size)
        rows.await_builds([vm.uuid for vm in vms], spec, job)
        return Attempt(event, vms, spec)

    def _move(self, event: Event, dice: random.Random) -> Attempt | None:
        busy = {vm.group for vm in self.vms.values() if vm.group and (vm.place or vm.moves)}
        busy |= self.asking
        able = [
            vm
            for vm in self.vms.values()
            if not vm.place and not vm.moves and not vm.left_on and vm.group not in busy
        ]
        if event.kind == "unshelve":
            able = [vm for vm in able if vm.is_shelved]
        elif event.kind == "evacuate":
            able = [vm for vm in able if vm.host in self.down]
        else:
            able = [vm for vm in able if vm.host and vm.host not in self.down]
        if not able:
            self.count(event, "nothing to do")
            return None
        vm = dice.choice(able)
        vm.moves, vm.new = event.kind, vm.size
        if event.kind == "resize":
            vm.new = Size(*dice.choice(SIZES), vm.size.type_id + 1)
        rows.change_vm(self.nova.cloud, vm.uuid, task_state=TASK_OF[event.kind])
        if event.kind in TYPE_OF:
            is_evacuation = event.kind == "evacuate"
            rows.add_migration(
                self.nova.cloud,
                vm.uuid,
                status="accepted" if is_evacuation else "pre-migrating",
                migration_type=TYPE_OF[event.kind],
                source_compute=vm.host,
                source_node=vm.host,
                dest_compute=None,
                dest_node=None,
                old_instance_type_id=vm.size.type_id,
                new_instance_type_id=vm.new.type_id,
            )
            if event.kind == "resize":
                rows.set_flavors(
                    self.nova.cloud,
                    vm.uuid,
                    cur=self._flavor(vm, vm.size),
                    old=None,
                    new=self._flavor(vm, vm.new),
                )
            if not is_evacuation:
                vm.migration = _uuid(dice)
                self._release(vm.uuid)
                self._allocate(vm.migration, {str(vm.host): vm.size})
        spec = self._spec(vm, vm.new)
        if vm.host:
            spec.ignore_hosts = [vm.host]
        return Attempt(event, [vm], spec)

    def _spec(self, vm: VM, size: Size) -> objects.RequestSpec:
        """Return the request as the conductor hands it to the scheduler."""
        group = self.groups[vm.group] if vm.group else None
        spec = request(
            count=vm.siblings,
            group=vm.group,
            policy=group.policy if group else "",
            vcpus=size.vcpus,
            memory_mb=size.memory_mb,
            extra_specs=vm.said,
            uuid=vm.uuid,
        )
        spec.flavor.id = size.type_id
        if group:
            others = [one for one in self.vms.values() if one.group == group.uuid]
            spec.instance_group.members = [one.uuid for one in others]
            spec.instance_group.hosts = sorted(
                {one.host for one in others if one.host and one is not vm}
            )
        return spec

    def _flavor(self, vm: VM, size: Size) -> objects.Flavor:
        return self._spec(vm, size).flavor

    def _arrive(self, vm: VM) -> None:
        """Let a VM reach the place that it was given."""
        cloud, kind = self.nova.cloud, vm.moves
        assert vm.place is not None
        values: dict[str, object] = {"task_state": None}
        if kind == "resize":
            assert vm.new is not None
            size = vm.new
            values |= {
                "instance_type_id": size.type_id,
                "vcpus": size.vcpus,
                "memory_mb": size.memory_mb,
            }
            rows.set_flavors(cloud, vm.uuid, cur=self._flavor(vm, size))
        if kind in TYPE_OF:
            status = "done" if kind == "evacuate" else "confirmed"
            rows.change_migrations(cloud, vm.uuid, status=status)
            if kind == "evacuate":
                vm.left_on = vm.host
            else:
                self._release(vm.migration)
                vm.migration = ""
        rows.change_vm(cloud, vm.uuid, **values)
        rows.land(cloud, vm.uuid, vm.place)
        vm.host, vm.size = vm.place, vm.new or vm.size
        vm.place = vm.new = vm.moves = None
        if vm.left_on and vm.left_on not in self.down:
            self._clean_up(vm)

    def _stay(self, vm: VM) -> None:
        """Let a VM be where and what it was before it set out, if it was anywhere."""
        if vm.moves is None:
            return
        cloud, was_placed = self.nova.cloud, vm.place is not None
        kind, vm.moves, vm.place, vm.new = vm.moves, None, None, None
        if was_placed or kind not in ("evacuate", "unshelve"):
            self._release(vm.uuid)
            if vm.migration:
                self._release(vm.migration)
            if vm.host:
                self._allocate(vm.uuid, {vm.host: vm.size})
        vm.migration = ""
        rows.change_vm(cloud, vm.uuid, task_state=None)
        if kind in TYPE_OF:
            rows.change_migrations(cloud, vm.uuid, status="error")
        if kind == "resize":
            rows.set_flavors(cloud, vm.uuid, cur=self._flavor(vm, vm.size))

    def _delete_one(self, dice: random.Random) -> bool:
        jobs = list(dict.fromkeys(vm.job for vm in self.vms.values() if not vm.moves or vm.place))
        if not jobs:
            return False
        job = dice.choice(jobs)
        # A VM whose move is being scheduled in this round is not deleted under way.
        of_job = [vm for vm in self.vms.values() if vm.job == job]
        if any(vm.moves and not vm.place for vm in of_job):
            return False
        self.delete(of_job)
        return True

    def _shelve(self, dice: random.Random) -> bool:
        able = [
            vm
            for vm in self.vms.values()
            if vm.host and not vm.place and not vm.moves and not vm.left_on
        ]
        if not able:
            return False
        vm = dice.choice(able)
        host, vm.host = str(vm.host), None
        rows.change_vm(self.nova.cloud, vm.uuid, host=None, node=None, vm_state="shelved_offloaded")
        self._release(vm.uuid)
        self.report([host])
        return True

    def _fail(self, dice: random.Random) -> bool:
        up = [host for host in fabrics.HOSTS if host not in self.down]
        if len(self.down) >= 4:
            return False
        here = self.by_host()
        host = dice.choice([host for host in up if here[host]] or up)
        self.down.add(host)
        rows.set_down(self.nova.cloud, host, True)
        return True

    def _recover(self, dice: random.Random) -> bool:
        if not self.down:
            return False
        host = dice.choice(sorted(self.down))
        self.down.remove(host)
        rows.set_down(self.nova.cloud, host, False)
        # A compute that comes back gives up what was evacuated from it.
        for vm in self.vms.values():
            if vm.left_on == host:
                self._clean_up(vm)
        return True

    def _clean_up(self, vm: VM) -> None:
        """Give up what an evacuation has left on the host that failed."""
        vm.left_on = None
        self._release(vm.uuid)
        for consumer, places in vm.allocations().items():
            self._allocate(consumer, places)

    def _change_fabric(self, dice: random.Random) -> bool:
        self.leaves = dice.choice([one for one in fabrics.ALL if one is not self.leaves])
        fabrics.write(self.path, self.leaves)
        self.is_spoilt = False
        return True

    def _spoil_fabric(self, dice: random.Random) -> bool:
        fabrics.spoil(self.path, dice.choice(fabrics.BAD))
        self.mistakes += 1
        self.is_spoilt = True
        return True

    def _mutate(self, _dice: random.Random) -> bool:
        """Do what the service does on SIGHUP."""
        self.nova.cloud.scheduler.manager.reset()
        fabric._on_mutate(CONF, {})
        return True

    def _leave_group(self, vms: Iterable[VM]) -> None:
        for uuid, members in _grouped(vms):
            group = objects.InstanceGroup.get_by_uuid(self.nova.context, uuid)
            objects.InstanceGroup._remove_members_in_db(self.nova.context, group.id, members)

    def _release(self, consumer: str) -> None:
        self.nova.cloud.placement.delete(f"/allocations/{consumer}", version="1.28")

    def _allocate(self, consumer: str, places: dict[str, Size]) -> None:
        body = {
            "allocations": {
                self.nova.provider_of[host]: {
                    "resources": {
                        "VCPU": size.vcpus,
                        "MEMORY_MB": size.memory_mb,
                        "DISK_GB": 1,
                    }
                }
                for host, size in places.items()
            },
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
        }
        answer = self.nova.cloud.placement.put(
            f"/allocations/{consumer}", version="1.28", body=body
        )
        assert answer.status == 204, answer.body


def _grouped(vms: Iterable[VM]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, list[str]] = defaultdict(list)
    for vm in vms:
        if vm.group:
            found[vm.group].append(vm.uuid)
    yield from found.items()


def _uuid(dice: random.Random) -> str:
    return str(UUID(int=dice.getrandbits(128), version=4))
