"""Drawn clouds of capacities, caps and aggregates: groups against Nova's filters VM by VM.

::

             core
          /    |    \\
        L0    L1    L2       one to four hosts each, with VMs and operations of others

The oracle asks Nova's filters about each host alone, and counts the VMs with
HostState.consume_from_request until one refuses. A leaf takes the sum of its hosts.
"""

import copy
import dataclasses
import random
import re
from collections import Counter
from pathlib import Path

import nova.conf
import pytest
from nova import exception, objects
from nova.scheduler import filters
from nova.scheduler.filters import io_ops_filter, json_filter, num_instances_filter

from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional import test_caps
from tests.functional.states import (
    FILTERS,
    States,
    configured,
    databases_say,
    host_state,
    queue_of,
    schedule,
    spec,
    wishing,
)
from tests.functional.trees import write_tree

CONF = nova.conf.CONF
CLOUDS = 200
COUNTING = (
    io_ops_filter.IoOpsFilter,
    num_instances_filter.NumInstancesFilter,
    io_ops_filter.AggregateIoOpsFilter,
    num_instances_filter.AggregateNumInstancesFilter,
    json_filter.JsonFilter,
    test_caps.HalfFullFilter,
)
LIMITS = ("max_io_ops_per_host", "max_instances_per_host")


@dataclasses.dataclass
class Drawn:
    """A cloud and a request."""

    leaves: dict[str, list[str]]
    states: States
    chain: list[filters.BaseHostFilter]
    request: objects.RequestSpec
    is_in_leaf: bool

    def rooms(self) -> dict[str, int]:
        """Return the VMs that each host takes, by Nova's own filters and counters."""
        return {state.host: self._room(copy.deepcopy(state)) for state in self.states}

    def _room(self, state) -> int:
        free = state.vcpus_total - state.vcpus_used
        for number in range(free):
            if not all(one.host_passes(state, self.request) for one in self.chain):
                return number
            state.consume_from_request(self.request)
        return free


def drawn_leaves(dice: random.Random) -> dict[str, list[str]]:
    return {
        f"L{leaf}": [f"h{leaf}{host}" for host in range(dice.randint(1, 4))] for leaf in range(3)
    }


def drawn(seed: int) -> Drawn:
    dice = random.Random(seed)
    leaves = drawn_leaves(dice)
    for name in LIMITS:
        CONF.set_override(name, dice.randint(1, 6), "filter_scheduler")
    aggregates = [
        objects.Aggregate(
            id=number,
            metadata={
                name: dice.choice(["1", "2", "3", "5", "many"])
                for name in LIMITS
                if dice.random() < 0.7
            },
        )
        for number in range(3)
    ]
    states = [
        host_state(
            host,
            vcpus_total=dice.choice([4, 8, 16]),
            vcpus_used=dice.randint(0, 3),
            num_instances=dice.randint(0, 3),
            num_io_ops=dice.randint(0, 2),
            free_ram_mb=65536 - 1024 * dice.randint(0, 2),
            aggregates=[one for one in aggregates if dice.random() < 0.4],
            stats={},
        )
        for below in leaves.values()
        for host in below
    ]
    enabled = dice.sample(COUNTING, dice.randint(1, 3))
    test_caps.enable(*enabled)
    count, is_in_leaf = dice.randint(2, 12), dice.random() < 0.6
    request = spec(
        count=count,
        vcpus=1,
        uuid=queue_of(1)[0],
        group_policy="soft-affinity",
        extra_specs=wishing(require="leaf") if is_in_leaf else {},
        hints=test_caps.QUERY if dice.random() < 0.7 else {},
    )
    chain = [cls() for cls in enabled]
    # Nova asks them before those of hpc_sched.
    left = [state for state in states if all(one.host_passes(state, request) for one in chain)]
    return Drawn(leaves, left, chain, request, is_in_leaf)


@pytest.mark.parametrize("first", range(0, CLOUDS, 50))
def test_groups_are_placed_where_novas_filters_pass_them_and_nowhere_else(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = Counter[str]()
    for seed in range(first, first + 50):
        tree = {"core": drawn_leaves(random.Random(seed))}
        with configured(write_tree(tmp_path / f"{seed}.yaml", tree)):
            found[judged(drawn(seed), seed, monkeypatch)] += 1
        for name in (*LIMITS, "available_filters"):
            CONF.clear_override(name, "filter_scheduler")
    assert found["placed"] > 10
    assert found["refused"] > 5


def judged(cloud: Drawn, seed: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Place the group; return what became of it, which the oracle must allow."""
    count = cloud.request.num_instances
    rooms = cloud.rooms()
    of_leaf = {
        leaf: sum(rooms.get(host, 0) for host in there) for leaf, there in cloud.leaves.items()
    }
    most = max(of_leaf.values()) if cloud.is_in_leaf else sum(of_leaf.values())
    if not cloud.states:
        return "no host"
    queue = queue_of(count)
    databases_say(monkeypatch, queue=queue, left=count)
    chain = [*cloud.chain, *(cls() for cls in FILTERS)]
    placed, why = [], None
    try:
        placed, _ = schedule(cloud.states, cloud.request, queue, HopByteWeigher(), chain)
    except exception.NoValidHost as refused:
        why = str(refused)
    if why is not None:
        assert most < count, (seed, rooms, why)
        assert re.search(rf": {most}(;|$)", why), (seed, rooms, why)
        return "refused"
    assert most >= count, (seed, rooms, placed)
    on_host = Counter(placed)
    assert all(number <= rooms[host] for host, number in on_host.items()), (seed, rooms, on_host)
    used = {leaf for leaf, there in cloud.leaves.items() if not on_host.keys().isdisjoint(there)}
    if max(of_leaf.values()) >= count:
        assert len(used) == 1, (seed, of_leaf, on_host)
    return "placed"
