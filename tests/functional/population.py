"""The cloud that Nova's databases describe in the tests of real databases, and what is true of it.

::

               cell1                cell2                 cell0
    hosts      a0001 ... a0500      b0001 ... b0500       -
    VMs        5,000, and 2,000     5,000, and 2,000      200 that found no host
               deleted ones         deleted ones

Three server groups of 2,000 members, and a hundred of 16. ``wide`` has members in all cells and
some that no cell has yet, ``narrow`` in cell1 alone; ``mixed`` is of VMs in every state. Of a
fourth of that size, ``coming``, all VMs still have their build requests.

The rows of deleted VMs are never archived here: for each row there are three more, of VMs and
groups that are gone.
"""

from __future__ import annotations

import datetime
import itertools
import random
import uuid as uuid_
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nova.compute import task_states, vm_states
from oslo_utils import timeutils

from tests.functional.engines import CELLS

HOSTS = 500  # of a cell
PER_CELL = 5000
DELETED = 2000
GROUP = 2000
NEW = "r-coming"  # the request for a group that is not placed yet
OLD = "old-"  # begins the name of a group whose VMs are all gone
LONG_AGO = datetime.timedelta(days=2)

FLAVORS: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "rank": {"hpc:app_class": "sync", "hpc:app_name": "LU", "hpc:cache_score": "16"},
    "alone": {"hpc:app_class": "extreme"},
    "web": {"hpc:app_class": "none", "trait:CUSTOM_NET": "required"},
}
VCPUS = {name: 2 ** (1 + number) for number, name in enumerate(FLAVORS)}
FLAVOR_ID = {name: number for number, name in enumerate(FLAVORS, 1)}
CPU_INFO = {
    "a": {"vendor": "Intel", "model": "Icelake", "topology": {"sockets": 2, "cores": 16}},
    "b": {"vendor": "AMD", "model": "Milan", "topology": {"sockets": 2, "cores": 32}},
}


@dataclass(frozen=True)
class VM:
    """One VM as the test has written it."""

    uuid: str
    flavor: str
    cell: str | None  # None: it has a build request alone
    host: str | None = None
    vm_state: str = vm_states.ACTIVE
    task_state: str | None = None
    deleted: bool = False
    hidden_in: str | None = None  # the cell of its hidden twin
    group: str | None = None
    reservation: str = "r-alone"
    build_request: datetime.datetime | None = None  # when it was made
    moves_to: str | None = None  # the other host of a move that goes on
    moves_from: str | None = None
    other_flavor: str | None = None  # that it has on the other host

    @property
    def is_there(self) -> bool:
        """True if it holds room on a host."""
        return self.host is not None and not self.deleted

    @property
    def awaits_host(self) -> bool:
        """True if its cell has it building or unshelving."""
        return (
            self.cell in CELLS
            and self.host is None
            and not self.deleted
            and self.vm_state == vm_states.BUILDING
            and self.task_state != task_states.DELETING
        )


@dataclass(frozen=True)
class Population:
    """All VMs, groups, hosts, aggregates and flavors of the cloud."""

    vms: tuple[VM, ...]
    now: datetime.datetime = field(default_factory=timeutils.utcnow)

    @cached_property
    def by_group(self) -> dict[str, list[VM]]:
        """The members of each server group, deleted ones too."""
        found: dict[str, list[VM]] = {}
        for vm in self.vms:
            if vm.group is not None:
                found.setdefault(vm.group, []).append(vm)
        return found

    @cached_property
    def moving(self) -> list[VM]:
        """The VMs that are on two hosts."""
        return [vm for vm in self.vms if vm.moves_to or vm.moves_from]

    def members(self, group: str) -> Counter[tuple[str, str | None]]:
        """Return the VMs of a server group by host and nodename."""
        return Counter((vm.host, vm.host) for vm in self.by_group[group] if vm.is_there)


def group_uuid(name: str) -> str:
    """Return the uuid of a server group."""
    return str(uuid_.uuid5(uuid_.NAMESPACE_DNS, name))


def hosts_of(cell: str) -> list[str]:
    """Return the hosts of a cell, each with one node of the same name."""
    letter = {"cell1": "a", "cell2": "b"}[cell]
    return [f"{letter}{number:04}" for number in range(1, HOSTS + 1)]


def leaves() -> dict[str, list[str]]:
    """Return the hosts of each leaf, 25 under one."""
    found = {}
    for cell in CELLS:
        hosts = hosts_of(cell)
        for number in range(0, HOSTS, 25):
            found[f"leaf-{hosts[number]}"] = hosts[number : number + 25]
    return found


def made() -> Population:
    """Return the cloud; the same in every run."""
    numbers = random.Random(34)
    now = timeutils.utcnow().replace(microsecond=0)
    uuids = (str(uuid_.UUID(int=numbers.getrandbits(128), version=4)) for _ in itertools.count())
    vms: list[VM] = []
    for cell in CELLS:
        vms += _living(cell, uuids, numbers)
        vms += [
            VM(next(uuids), "rank", cell, host=host, vm_state=vm_states.DELETED, deleted=True)
            for host in itertools.islice(itertools.cycle(hosts_of(cell)), DELETED)
        ]
    vms += [VM(next(uuids), "rank", "cell0", vm_state=vm_states.ERROR) for _ in range(200)]
    # The conductors of the older ones have given up.
    vms += [VM(next(uuids), "rank", None, build_request=now) for _ in range(150)]
    vms += [VM(next(uuids), "rank", None, build_request=now - LONG_AGO) for _ in range(50)]
    vms += [VM(next(uuids), "rank", None, build_request=now, reservation=NEW) for _ in range(GROUP)]
    return Population(tuple(_grouped(vms, numbers)), now)


def _living(cell: str, uuids: Iterator[str], numbers: random.Random) -> list[VM]:
    """Return the VMs of a cell that are not deleted."""
    hosts = hosts_of(cell)
    other = {"cell1": "cell2", "cell2": "cell1"}[cell]
    states: list[dict[str, Any]] = [
        *[{"vm_state": vm_states.BUILDING, "task_state": "spawning"}] * 60,
        *[{"vm_state": vm_states.BUILDING, "task_state": task_states.DELETING}] * 20,
        *[{"vm_state": vm_states.SHELVED_OFFLOADED}] * 40,
    ]
    vms = [VM(next(uuids), "rank", cell, **state) for state in states]
    flavors = list(FLAVORS)
    while len(vms) < PER_CELL:
        number = len(vms)
        host, elsewhere = hosts[number % HOSTS], hosts[(number + 7) % HOSTS]
        vm: dict[str, Any] = {"host": host, "flavor": flavors[numbers.randrange(len(flavors))]}
        if number < 140:
            # Of half of them the destination's compute does not know yet.
            task = (task_states.RESIZE_PREP, task_states.RESIZE_MIGRATING)[number % 2]
            vm |= {"task_state": task, "moves_to": elsewhere}
            vm |= {"flavor": "plain", "other_flavor": "alone"}
        elif number < 160:
            vm |= {"vm_state": vm_states.RESIZED, "moves_from": elsewhere}
            vm |= {"flavor": "alone", "other_flavor": "plain"}
        elif number < 180:
            vm |= {"hidden_in": other}
        # A twin is seen by its reservation too, among VMs of its other cell.
        reservation = f"r-{other if 'hidden_in' in vm else cell}{number // 250}"
        vms.append(VM(next(uuids), cell=cell, reservation=reservation, **vm))
    return vms


def _grouped(vms: Sequence[VM], numbers: random.Random) -> Iterator[VM]:
    """Yield the VMs, some of them in server groups."""

    def some(candidates: Iterable[VM], count: int) -> list[VM]:
        free = [vm for vm in candidates if vm.uuid not in group_of]
        return numbers.sample(free, count)

    group_of: dict[str, str] = {}
    waiting = [vm for vm in vms if vm.cell is None and vm.reservation != NEW]
    coming = [vm for vm in vms if vm.reservation == NEW]
    odd = [vm for vm in vms if vm.cell == "cell0" or vm.awaits_host or vm.hidden_in]
    running = [vm for vm in vms if vm.is_there]
    for name, chosen in (
        ("wide", lambda: [*some(waiting, 60), *some(odd, 40), *some(running, GROUP - 100)]),
        ("narrow", lambda: some((vm for vm in running if vm.cell == "cell1"), GROUP)),
        ("coming", lambda: coming),
        ("mixed", lambda: [*some(odd, 200), *some(vms, GROUP - 200)]),
        *((f"small{n}", lambda: some(running, 16)) for n in range(100)),
    ):
        group_of.update(dict.fromkeys((vm.uuid for vm in chosen()), name))
    for vm in vms:
        yield VM(**{**vars(vm), "group": group_of.get(vm.uuid)})


def is_disabled(host: str) -> bool:
    """True if a host's compute service takes no new VMs."""
    return host.endswith("7")


def vcpus_of(host: str) -> int:
    """Return the processors of a host."""
    return 64 if host[0] == "a" else 128
