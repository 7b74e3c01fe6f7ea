"""The simulator's stock Nova places VMs as Nova's own weighers do."""

import random

import pytest
from nova.scheduler import weights
from nova.scheduler.weights import affinity, cpu, io_ops, ram

from hpc_sched.sim.policies import nova_default
from hpc_sched.topology import Topology
from tests.functional.states import States, host_state, place, queue_of, spec
from tests.unit.placing import request

WEIGHERS = (
    ram.RAMWeigher,
    cpu.CPUWeigher,
    io_ops.IoOpsWeigher,
    affinity.ServerGroupSoftAffinityWeigher,
)

VCPUS, MEMORY_MB = 2, 3000


def hosts_of(dice: random.Random) -> States:
    """Return hosts in the order of names, of all sizes and more or less full."""
    states = []
    for number in range(dice.randint(1, 12)):
        vcpus, ram_mb = dice.choice([8, 16, 24]), dice.choice([16384, 32768, 50000])
        used = dice.randrange(vcpus + 1)
        # Some have given away more memory than they have.
        free_ram = dice.choice([ram_mb, dice.randint(-1024, ram_mb)])
        states.append(
            host_state(
                f"n{number:02}",
                vcpus_total=vcpus,
                vcpus_used=used,
                total_usable_ram_mb=ram_mb,
                free_ram_mb=free_ram,
                free_disk_mb=1024 * 1000,
            )
        )
    return states


def room(state) -> int:
    """Return how many VMs more Placement would let a host take."""
    free = state.vcpus_total - state.vcpus_used
    return max(0, min(free // VCPUS, state.free_ram_mb // MEMORY_MB))


def stock(states: States, count: int, group: str | None) -> list[str]:
    """Place VMs one after the other with Nova's own weighers; return their hosts."""
    made = spec(group=group, group_policy="soft-affinity", count=count, vcpus=VCPUS)
    made.flavor.memory_mb = MEMORY_MB
    handler, weighers = weights.HostWeightHandler(), [weigher() for weigher in WEIGHERS]
    placed = []
    for uuid in queue_of(count):
        passing = [state for state in states if room(state)]
        weighed = handler.get_weighed_objects(weighers, passing, made)
        taken = place(states, [host.obj.nodename for host in weighed], made)
        placed.append(taken)
        if made.instance_group is not None:
            # As the scheduler does once a host is chosen; the API has made it a member before.
            made.instance_group.members.append(uuid)
            [host] = [state for state in states if state.nodename == taken]
            host.instances[uuid] = object()
    return placed


@pytest.mark.parametrize(
    ("policy", "group"),
    [
        pytest.param(nova_default.DEFAULT, None, id="without a server group"),
        pytest.param(nova_default.SOFT_AFFINITY, "group", id="with one of policy soft-affinity"),
    ],
)
def test_a_hundred_drawn_clouds_are_filled_as_nova_fills_them(policy, group):
    dice = random.Random(20)
    placed = 0
    for _ in range(100):
        states = hosts_of(dice)
        rooms = {state.nodename: int(room(state)) for state in states}
        free = {
            state.nodename: (
                float(state.vcpus_total - state.vcpus_used),
                float(state.free_ram_mb),
            )
            for state in states
        }
        count = dice.randint(0, min(sum(rooms.values()), 16))
        fabric = Topology.from_tree({"leaf": dice.sample(list(rooms), len(rooms))})
        made = request(fabric, rooms, count, demand=(VCPUS, MEMORY_MB), free=free)
        answer = policy.place(made)
        assert [fabric.hosts[host] for host in answer] == stock(states, count, group)
        placed += count
    assert placed > 500
