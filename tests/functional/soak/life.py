"""A cloud that lives: its VMs come, grow, move and go, its hosts fail, its fabric changes.

Nova's scheduler, host manager, databases and Placement are real; see
:mod:`tests.functional.soak.fleet` for hosts and VMs.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import nova.conf
from nova import exception, objects

from hpc_sched.nova_glue.io import loaded_topology
from tests.functional import build_requests, rows
from tests.functional.claims import ClaimsOnly, ask, hosts_of
from tests.functional.soak import fabrics
from tests.functional.soak.events import Event
from tests.functional.soak.fleet import Fleet
from tests.functional.soak.vms import TASK_OF, VM, Attempt, Group, Size
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
REQUESTS = ("create", "grow", *TASK_OF)


@dataclass
class Life:
    """A cloud, and what happens to it."""

    fleet: Fleet
    path: Path  # of the topology
    leaves: fabrics.Leaves = field(default_factory=lambda: fabrics.BASE)
    before: fabrics.Leaves = field(default_factory=lambda: fabrics.BASE)  # in this round
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # kind, what became of it
    mistakes: int = 0  # in the topology file
    is_spoilt: bool = False  # whether there is one now
    asking: set[str] = field(default_factory=set)  # groups that grow in this round

    @property
    def nova(self) -> ClaimsOnly:
        """Return the cloud itself."""
        return self.fleet.nova

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
        scheduler = self.nova.scheduler
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
            build_requests.remove(uuids)
        if attempt.hosts is None:
            for vm in attempt.vms:
                self.fleet.stay(vm)
            if is_new:
                self.fleet.leave_group(attempt.vms)
            return
        for vm, host in zip(attempt.vms, attempt.hosts, strict=True):
            vm.place = host
            self.fleet.vms[vm.uuid] = vm
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
            self.fleet.delete(attempt.vms)
        else:
            for vm in attempt.vms:
                self.fleet.stay(vm)

    def land(self, dice: random.Random, chance: float = 0.6) -> None:
        """Let VMs that are on their way arrive."""
        touched: set[str] = set()
        for vm in [vm for vm in self.fleet.vms.values() if vm.place]:
            if dice.random() < chance:
                touched |= set(vm.sides)
                if vm.moves == "resize" and dice.random() < 0.3:
                    self.fleet.stay(vm)
                else:
                    self.fleet.arrive(vm)
        self.fleet.report(touched)

    def _create(self, event: Event, dice: random.Random) -> Attempt | None:
        group: Group | None = None
        count = dice.choice((1, 1, 2, 3, 4))
        job = f"r-{_uuid(dice)}"
        busy = {vm.group for vm in self.fleet.vms.values() if vm.moves}
        free = [one for one in self.fleet.groups.values() if one.uuid not in busy]
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
                self.fleet.groups[group.uuid] = group
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
        spec = self.fleet.spec(vms[0], size)
        build_requests.add([vm.uuid for vm in vms], job, spec.flavor)
        return Attempt(event, vms, spec)

    def _move(self, event: Event, dice: random.Random) -> Attempt | None:
        busy = {vm.group for vm in self.fleet.vms.values() if vm.group and (vm.place or vm.moves)}
        busy |= self.asking
        able = [
            vm
            for vm in self.fleet.vms.values()
            if not vm.place and not vm.moves and not vm.left_on and vm.group not in busy
        ]
        if event.kind == "unshelve":
            able = [vm for vm in able if vm.is_shelved]
        elif event.kind == "evacuate":
            able = [vm for vm in able if vm.host in self.fleet.down]
        else:
            able = [vm for vm in able if vm.host and vm.host not in self.fleet.down]
        if not able:
            self.count(event, "nothing to do")
            return None
        vm = dice.choice(able)
        new = vm.size
        if event.kind == "resize":
            new = Size(*dice.choice(SIZES), vm.size.type_id + 1)
        self.fleet.set_out(vm, event.kind, new, _uuid(dice))
        spec = self.fleet.spec(vm, new)
        if vm.host:
            spec.ignore_hosts = [vm.host]
        return Attempt(event, [vm], spec)

    def _delete_one(self, dice: random.Random) -> bool:
        vms = self.fleet.vms.values()
        jobs = list(dict.fromkeys(vm.job for vm in vms if not vm.moves or vm.place))
        if not jobs:
            return False
        job = dice.choice(jobs)
        # A VM whose move is being scheduled in this round is not deleted under way.
        of_job = [vm for vm in vms if vm.job == job]
        if any(vm.moves and not vm.place for vm in of_job):
            return False
        self.fleet.delete(of_job)
        return True

    def _shelve(self, dice: random.Random) -> bool:
        able = [
            vm
            for vm in self.fleet.vms.values()
            if vm.host and not vm.place and not vm.moves and not vm.left_on
        ]
        if not able:
            return False
        vm = dice.choice(able)
        host, vm.host = str(vm.host), None
        rows.change_vm(self.nova.cloud, vm.uuid, host=None, node=None, vm_state="shelved_offloaded")
        self.fleet.release(vm.uuid)
        self.fleet.report([host])
        return True

    def _fail(self, dice: random.Random) -> bool:
        up = [host for host in fabrics.HOSTS if host not in self.fleet.down]
        if len(self.fleet.down) >= 4:
            return False
        here = self.fleet.by_host()
        host = dice.choice([host for host in up if here[host]] or up)
        self.fleet.down.add(host)
        rows.set_down(self.nova.cloud, host, True)
        return True

    def _recover(self, dice: random.Random) -> bool:
        if not self.fleet.down:
            return False
        host = dice.choice(sorted(self.fleet.down))
        self.fleet.down.remove(host)
        rows.set_down(self.nova.cloud, host, False)
        # A compute that comes back gives up what was evacuated from it.
        for vm in self.fleet.vms.values():
            if vm.left_on == host:
                self.fleet.clean_up(vm)
        return True

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
        self.nova.scheduler.reset()
        loaded_topology.on_mutate(CONF, {})
        return True


def _uuid(dice: random.Random) -> str:
    return str(UUID(int=dice.getrandbits(128), version=4))
