"""What must be true of the cloud whatever has happened."""

import functools
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from nova import context as nova_context
from oslo_utils import uuidutils
from placement import db_api as placement_db

from hpc_sched.nova_glue.claim import group_turns
from hpc_sched.nova_glue.claim.holds import hold_provider
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import group_members, host_instances
from tests.functional import rules
from tests.functional.claims import MEMORY_MB, VCPUS
from tests.functional.soak import fabrics
from tests.functional.soak.life import Life
from tests.functional.soak.vms import Attempt
from tests.functional.states import host_state
from tests.functional.workload import APART

ALPHA, BETA = 100.0, 60.0
# What the plugin may say on a day like this.
USUAL = (
    "is not in the interference index",
    "hosts are not in the topology",
    "the last good topology stays in use",
)

ALLOCATIONS = sa.text(
    "SELECT a.consumer_id, p.name, c.name, a.used FROM allocations a "
    "JOIN resource_providers p ON p.id = a.resource_provider_id "
    "JOIN resource_classes c ON c.id = a.resource_class_id"
)


class Listener(logging.Handler):
    """Keeps what hpc_sched says that is not usual."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.unusual: list[str] = []
        self.mistakes = 0  # of the topology file, that were told
        self.lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Judge a line."""
        text = record.getMessage()
        self.lines += 1
        self.mistakes += "the last good topology stays in use" in text
        usual = record.levelno <= logging.INFO or any(one in text for one in USUAL)
        if record.exc_info or not usual:
            self.unusual.append(f"{record.levelname} {record.name}: {text} {record.exc_info or ''}")


@contextmanager
def listening() -> Iterator[Listener]:
    """Hear what hpc_sched logs; silence what others say below ERROR.

    Who collects records, as pytest does, keeps what they name: HostStates and requests.
    """
    root, ours, listener = logging.getLogger(), logging.getLogger("hpc_sched"), Listener()
    before = root.level, ours.level, ours.propagate
    root.setLevel(logging.ERROR)
    ours.setLevel(logging.INFO)
    ours.propagate = False
    ours.addHandler(listener)
    try:
        yield listener
    finally:
        ours.removeHandler(listener)
        root.setLevel(before[0])
        ours.setLevel(before[1])
        ours.propagate = before[2]


def shared_hosts(life: Life, without: Collection[str] = ()) -> dict[str, list[str]]:
    """Return the rules that the VMs of each host break.

    :param without: VMs that are taken for not being there
    """
    found = {}
    for host, vms in life.fleet.by_host().items():
        there = [
            rules.running(vm.uuid, vm.said, vm.group or vm.job, vm.group is not None)
            for vm in vms
            # A VM that moves is where it was, whether or not its request is counted.
            if vm.uuid not in without or vm.host == host
        ]
        if broken := rules.broken(there, ALPHA, BETA, APART):
            found[host] = broken
    return found


def groups(life: Life, without: Collection[str] = ()) -> dict[str, list[str]]:
    """Return what groups asked for and do not have, neither on this fabric nor on the last one."""
    found = {}
    for uuid, vms in life.fleet.by_group().items():
        group = life.fleet.groups[uuid]
        at = [vm.host if vm.uuid in without else vm.goal for vm in vms]
        hosts = [host for host in at if host]
        broken = [
            fabrics.broken_wishes(leaves, group.policy, group.said, hosts)
            for leaves in (life.leaves, life.before)
        ]
        if all(broken):
            found[uuid] = broken[0]
    return found


def after_round(life: Life, attempts: list[Attempt], excused: set[str]) -> list[str]:
    """Return what is wrong after the requests of a round; take back what they raced for.

    Requests that are scheduled at the same time do not see each other's VMs (docs/placement.rst):
    where each of two alone breaks nothing, the later one is taken back.

    :param excused: groups that another fabric has torn apart
    """
    while True:
        wrong = _wrong(life, excused)
        if not wrong:
            return []
        placed = [attempt for attempt in attempts if attempt.hosts is not None]
        for attempt in placed:
            others = {uuid for other in placed if other is not attempt for uuid in other.uuids}
            alone = _wrong(life, excused, others)
            if alone:
                return [f"{what} after {attempt.event}" for what in alone]
        if len(placed) < 2:
            return wrong
        involved = _involved(life, excused)
        life.undo([attempt for attempt in placed if involved & set(attempt.uuids)][-1])


def _wrong(life: Life, excused: set[str], without: Collection[str] = ()) -> list[str]:
    return [
        *(f"host {host}: {what}" for host, what in shared_hosts(life, without).items()),
        *(
            f"group {uuid} {life.fleet.groups[uuid].policy} {life.fleet.groups[uuid].said}: {what}"
            for uuid, what in groups(life, without).items()
            if uuid not in excused
        ),
    ]


def _involved(life: Life, excused: set[str]) -> set[str]:
    hosts = life.fleet.by_host()
    return {vm.uuid for host in shared_hosts(life) for vm in hosts[host]} | {
        vm.uuid
        for uuid in groups(life).keys() - excused
        for vm in life.fleet.vms.values()
        if vm.group == uuid
    }


def consumers() -> set[str]:
    """Return who holds anything in Placement."""
    with placement_db.get_placement_engine().connect() as connection:
        rows = connection.execute(ALLOCATIONS)
        return {consumer for consumer, host, *_ in rows if host != hold_provider.NAME}


def placement(life: Life) -> list[str]:
    """Return where Placement holds something else than the VMs have, and overfull hosts."""
    held: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    with placement_db.get_placement_engine().connect() as connection:
        for consumer, host, name, used in connection.execute(ALLOCATIONS):
            # Places that are held for followers are no allocations of VMs.
            if host != hold_provider.NAME:
                held[consumer, host][name] = used
    wanted = {
        (consumer, host): {"VCPU": size.vcpus, "MEMORY_MB": size.memory_mb, "DISK_GB": 1}
        for vm in life.fleet.vms.values()
        for consumer, places in vm.allocations().items()
        for host, size in places.items()
    }
    found = [
        f"allocation {key}: {held.get(key)}, and {wanted.get(key)} was expected"
        for key in sorted(held.keys() | wanted.keys())
        if held.get(key) != wanted.get(key)
    ]
    used: Counter[tuple[str, str]] = Counter()
    for (_, host), amounts in held.items():
        for name, amount in amounts.items():
            used[host, name] += amount
    sizes = {"VCPU": VCPUS, "MEMORY_MB": MEMORY_MB}
    return found + [
        f"host {host} has {amount} {name}"
        for (host, name), amount in used.items()
        if amount > sizes.get(name, amount)
    ]


def beliefs(life: Life) -> list[str]:
    """Return where what the plugin reads of hosts and groups is not the truth."""
    context = nova_context.get_admin_context()
    states = [host_state(host) for host in fabrics.HOSTS]
    for state in states:
        state.uuid = life.nova.provider_of[state.host]
        state.cell_uuid = life.nova.cloud.cell_mappings["cell1"].uuid
    own = uuidutils.generate_uuid()
    read = host_instances.read(context, [own], states).seen_by(own, states)
    wrong = [f"occupancy: {problem}" for problem in read.problems]
    hosts = life.fleet.by_host()
    for state in states:
        believed = Counter(vm.uuid for vm in read.on(state))
        truth = Counter(vm.uuid for vm in hosts[state.host])
        if believed != truth:
            wrong.append(f"host {state.host}: {dict(believed)} for {dict(truth)}")
    for uuid, vms in life.fleet.by_group().items():
        spec = life.fleet.spec(vms[0], vms[0].size)
        spec.instance_uuid = uuidutils.generate_uuid()
        request = request_spec.from_spec(spec, loaded_topology.current().topology.levels)
        if request is None:
            continue  # of class none: nothing is read
        look_up = functools.partial(group_turns.turn_of(None).look_up, anew=True)
        group = group_members.read(request, states, look_up)
        truth = Counter(vm.goal for vm in vms if not vm.is_shelved)
        # Those on hosts that are down hold nobody, and are known all the same.
        known = (group.members + group.leaving).items()
        believed = Counter({node: n for (_, node), n in known})
        if believed != truth or group.problems:
            wrong.append(f"group {uuid}: {dict(believed)} for {dict(truth)} {group.problems}")
    return wrong
