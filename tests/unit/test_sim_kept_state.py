"""What a simulated cluster keeps and corrects equals what is computed anew."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.core.capacity import capacities
from hpc_sched.core.hopbyte import hop_bytes_of_counts
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim.cluster.changed_hosts import ChangedHosts
from hpc_sched.sim.cluster.cluster import Cluster, HostType, uniform
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.cluster.placed_rows import PlacedRows
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.measures import Measures
from hpc_sched.topology import Topology
from tests.unit.simulated import Simulated, cluster

SIZES = ((1, 0), (1, 2), (3, 1), (2, 5))
#            core
#         /        \
#      pod1         pod2         island
#     /    \          |             |
#   a1 a2  b1 b2 b3  c1 .. c20    d1 .. d3
FABRIC = Topology.from_tree(
    {
        "core": {
            "pod1": {"a": ["a1", "a2"], "b": ["b1", "b2", "b3"]},
            "pod2": {"c": [f"c{i}" for i in range(1, 21)]},
        },
        "island": {"d": ["d1", "d2", "d3"]},
    }
)
HOSTS = len(FABRIC.hosts)


def there(*, is_bounded: bool = False) -> Cluster:
    """Return hosts of two sizes; with a bound on one VM, and a host that is down, or without."""
    plain = uniform(FABRIC, HostType(4, 6), {"b3": HostType(3, 9)})
    most = np.minimum(plain.total, (2, 4))
    return Cluster(
        topology=FABRIC,
        total=plain.total,
        processors=plain.processors,
        most_of_vm=most if is_bounded else None,
        down=frozenset({1}) if is_bounded else frozenset(),
    )


def check_kept(state: ClusterState, size: tuple[int, int]) -> None:
    """Check what is kept for a size against what is free."""
    room = state.room(*size)
    expected = np.where(state.accepts(*size), capacities(state.free, size), 0)
    assert room.per_host.tolist() == expected.tolist()
    assert room.total == expected.sum()
    leaves = np.bincount(FABRIC.leaf_index, expected, len(FABRIC.switches))
    assert room.by_leaf.tolist() == leaves.tolist()
    assert np.array_equal(state.free_as_reals, state.free)
    assert state.free_in_total == state.free.sum(axis=0).tolist()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("take", "take", "release", "down", "up", "read")),
        st.integers(0, HOSTS - 1),
        st.integers(1, 4),
        st.sampled_from(SIZES),
    ),
    max_size=60,
)


@given(STEPS, st.booleans())
def test_what_is_kept_is_what_is_free(steps: list[tuple[str, int, int, tuple[int, int]]], bounded):
    state = ClusterState(there(is_bounded=bounded))
    for number, (what, host, count, size) in enumerate(steps):
        if what == "take":
            application = Application("sync", None, host / 10)
            job = Job(number, 0, 1, count, *size, application=application)
            places = [
                h for h in (host, (host + 1) % HOSTS) for _ in range(state.room(*size).per_host[h])
            ]
            if len(places) >= count:
                state.take(PlacedJob.of(job, tuple(places[:count])))
        elif what == "release" and state.jobs:
            state.release(list(state.jobs)[host % len(state.jobs)])
        elif what == "down" and state.up[host]:
            for hit in state.applications.jobs_on(host):
                state.release(hit)
            state.set_up(host, False)
        elif what == "up":
            state.set_up(host, True)
        elif what == "read":
            check_kept(state, size)
        state.check()
    for size in SIZES:
        check_kept(state, size)
    scores = [
        math.fsum(
            placed.job.application.score * placed.counts[placed.hosts == host].sum()
            for placed in state.jobs.values()
        )
        for host in range(HOSTS)
    ]
    assert state.applications.scores.tolist() == pytest.approx(scores)


def test_a_room_is_right_after_more_changes_than_are_remembered():
    state = ClusterState(cluster(vcpus=1000))
    assert state.room(1, 0).total == 5000
    for number in range(300):
        state.take(PlacedJob.of(Job(number, 0, 1, 1), (number % 5,)))
    assert state.room(1, 0).per_host.tolist() == [940] * 5
    assert np.array_equal(state.free_as_reals, state.free)


def test_sizes_that_are_kept_are_bounded():
    state = ClusterState(cluster(vcpus=1000))
    for vcpus in range(1, 300):
        assert state.room(vcpus, 0).total == 5 * (1000 // vcpus)
    state.take(PlacedJob.of(Job(1, 0, 1, 1, 1000), (0,)))
    assert all(state.room(vcpus, 0).total == 4 * (1000 // vcpus) for vcpus in range(1, 300))


def test_what_policies_are_given_cannot_be_changed():
    state = ClusterState(cluster())
    for array in (state.capacity(1, 0), state.room(1, 0).by_leaf, state.free_as_reals):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_changes_are_remembered_each_host_once():
    changed = ChangedHosts(1000)
    moment = changed.now
    changed.note(np.array([7]))
    changed.note(np.array([3, 7]))
    found = changed.since(moment)
    assert found is not None
    assert found.tolist() == [3, 7]
    last = changed.since(changed.now - 1)
    assert last is not None
    assert last.tolist() == [3, 7]
    changed.note(np.arange(900))
    assert changed.since(moment) is None  # all hosts are computed sooner


def test_rows_of_running_jobs_are_kept_while_others_come_and_go():
    """Against the sum over the running jobs, one by one."""
    dice, rows = random.Random(1), PlacedRows()
    running: dict[int, PlacedJob] = {}
    for number in range(3000):
        job = Job(number, 0, 1, 3, 1 + number % 3, number % 5)
        placed = running[number] = PlacedJob.of(job, tuple(dice.choices(range(HOSTS), k=3)))
        rows.add(placed)
        while len(running) > 200 + 100 * (number // 1000):
            gone = dice.choice(list(running))
            rows.remove(gone)
            del running[gone]
    expected = np.zeros((HOSTS, 2), dtype=np.int64)
    for placed in running.values():
        expected[placed.hosts] += placed.takes
    assert np.array_equal(rows.taken(HOSTS), expected)


@pytest.mark.parametrize("number", [1, -1])
def test_the_whole_check_finds_a_sum_that_differs_in_either_direction(number: int):
    state = ClusterState(there())
    state.take(PlacedJob.of(Job(1, 0, 1, 2), (0, 5)))
    state.check()
    state.free[5, 1] += number
    with pytest.raises(exceptions.ConservationError, match="host 'c1' should have"):
        state.check()


@given(st.lists(st.integers(0, HOSTS - 1), min_size=1, max_size=12))
def test_the_hop_byte_of_a_record_is_that_of_its_hosts(places: list[int]):
    """On two islands it is infinite."""
    everywhere = there()
    found = Simulated("random", [Job(1, 0, 1, len(places))], on=everywhere, seed=sum(places))
    placed = {FABRIC.hosts.index(host): n for host, n in hosts_of(found).items()}
    counts = {FABRIC.hosts[host]: n for host, n in placed.items()}
    expected = hop_bytes_of_counts(topology=FABRIC, counts=counts)
    assert repr(found.records[0].hop_bytes) == repr(expected)
    assert found.records[0].hosts == len(placed)


def hosts_of(found: Simulated) -> dict[str, int]:
    """Return the hosts of the only job, as the log has them."""
    [line] = found.starts
    parts = (part.partition("*") for part in line.partition(": ")[2].split())
    return {host: int(count or 1) for host, _, count in parts}


def test_the_shares_of_leaves_in_a_sample_are_those_of_what_is_free():
    state, measures = ClusterState(there()), Measures(there())
    dice = random.Random(3)
    for number in range(40):
        job = Job(number, 0, 1, 1)
        free = np.flatnonzero(state.capacity(1, 0)).tolist()
        placed = PlacedJob.of(job, (dice.choice(free),))
        state.take(placed)
        if number % 3:
            state.release(number)
        measures.sample(float(number), state, 0)
        used = (there().total - state.free)[:, 0]
        shares = [
            round(
                used[FABRIC.leaf_index == leaf].sum()
                / there().total[FABRIC.leaf_index == leaf, 0].sum(),
                4,
            )
            for leaf in measures.leaves_sampled
        ]
        assert measures.series.leaves[-1] == shares
