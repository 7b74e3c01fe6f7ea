"""What the dearest requests cost a scheduler: processor time and memory, on 2,000 hosts.

The bounds are some ten times what 2 cores took; what matters is that there are bounds. ``pytest
-rP`` prints what was measured.
"""

import contextlib
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import nova.conf
import pytest
from nova import exception

from hpc_sched.core.constraints import group_size, max_leaves
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.counted_calls import calls_of
from tests.functional.states import (
    FILTERS,
    States,
    configured,
    databases_say,
    host_state,
    queue_of,
    run,
    spec,
    weigh,
    wishing,
)
from tests.functional.trees import write_tree

CONF = nova.conf.CONF

PODS, LEAVES, HOSTS = 10, 10, 20
TREE = {
    "core": {
        f"p{pod}": {
            f"p{pod}l{leaf}": [f"p{pod}l{leaf}h{host:02}" for host in range(HOSTS)]
            for leaf in range(LEAVES)
        }
        for pod in range(PODS)
    }
}
NAMES = [host for pod in TREE["core"].values() for hosts in pod.values() for host in hosts]
CALLS = 500_000  # some 30 a host
MEGABYTES = 300


@pytest.fixture(autouse=True)
def fabric(tmp_path: Path) -> Iterator[None]:
    with configured(write_tree(tmp_path / "topology.yaml", TREE)):
        yield


def hosts_of(vms: int) -> States:
    """Return hosts that take so many of the smallest VMs, a few more or less."""
    return [
        host_state(
            name,
            vcpus_total=vms + number % 7,
            total_usable_ram_mb=4096 * vms,
            free_ram_mb=4096 * vms,
            total_usable_disk_gb=4 * vms,
        )
        for number, name in enumerate(NAMES)
    ]


CASES = {
    "a group of the largest size on hosts of 1,000 VMs": (1000, 1, {"group_size": group_size.MOST}),
    "one that must be under one switch": (
        1000,
        1,
        {"group_size": group_size.MOST, "require": "core", "prefer": "pod"},
    ),
    "one on as many leaves as there could be": (
        8,
        1,
        {"group_size": group_size.MOST, "max_leaves": max_leaves.MOST},
    ),
    "one on few leaves": (8, 1, {"group_size": group_size.MOST, "max_leaves": 25}),
    "as many VMs in one request": (8, group_size.MOST, {}),
    "more VMs than the cloud holds": (8, 100_000, {"require": "core"}),
}


@pytest.mark.parametrize("members", [0, 10_000], ids=["a new group", "10,000 members"])
@pytest.mark.parametrize("what", CASES)
def test_the_dearest_requests_end_in_time_and_with_bounded_memory(monkeypatch, what, members):
    vms, count, constraints = CASES[what]
    databases_say(
        monkeypatch,
        members={(name, name): members // len(NAMES) for name in NAMES} if members else None,
        queue=queue_of(min(count, 2)),
        left=count,
    )
    states = hosts_of(vms)
    request = spec(count=count, vcpus=1, extra_specs=wishing(**constraints), uuid=queue_of(1)[0])
    chain = [made() for made in FILTERS]

    def place() -> None:
        with contextlib.suppress(exception.NoValidHost):
            assert weigh(HopByteWeigher(), run(states, request, *chain), request)

    tracemalloc.start()
    calls = calls_of(place)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{what}, {members} members: {calls} calls, {most / 1e6:.0f} MB")
    assert calls < CALLS
    assert most < MEGABYTES * 1e6


def test_a_size_of_a_billion_costs_what_a_fault_costs(monkeypatch):
    databases_say(monkeypatch, queue=queue_of(1))
    states = hosts_of(1000)

    def refused(size: int) -> None:
        request = spec(vcpus=1, extra_specs=wishing(group_size=size), uuid=queue_of(1)[0])
        with pytest.raises(exception.NoValidHost, match="a whole number from 1 to 4096"):
            run(states, request, *(made() for made in FILTERS))

    refused(4097)
    costs = [calls_of(partial(refused, size)) for size in (4097, 10**9)]
    assert costs[1] < 1.1 * costs[0] < 250_000
