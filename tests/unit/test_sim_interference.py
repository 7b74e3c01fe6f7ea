"""Hosts that applications share in the simulator: MDOBP's classes and the interference index."""

from dataclasses import replace

import numpy as np
import pytest

from hpc_sched.core.constraints import Constraints
from hpc_sched.core.sharing.cache_interference import Application, InterferenceIndex, Limits
from hpc_sched.sim.cluster.cluster import Cluster, HostType, ProcessorTypes, uniform
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.cluster.interference_rules import NO_RULES, InterferenceRules
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.runtime.runtime_model import RuntimeModel
from tests.unit.fabrics import two_leaves
from tests.unit.simulated import Simulated, cluster

ALL = frozenset({"sync", "async", "none"})
# LU.C runs 120 % better beside ChaNGa, which does not notice; IS.B and LU.C hurt each other.
INDEX = InterferenceIndex(
    {
        ("LU.C", "ChaNGa"): 2.2,
        ("ChaNGa", "LU.C"): 1.0,
        ("LU.C", "IS.B"): 0.5,
        ("IS.B", "LU.C"): 0.8,
        ("LU.C", "LU.C"): 0.95,
    }
)
RULES = InterferenceRules.of(INDEX, 0.1)
OTHERS = ("mdobp", "exact-plan", "dudina2013", "nova-default")


def app(app_class: str, name: str | None = None, score: float = 0.0) -> Application:
    return Application(app_class, name, score)


# Classes


def test_class_none_is_packed_by_mdobp_where_the_classes_name_it():
    jobs = [Job(number, number, 9, 1, application=app("none")) for number in range(1, 5)]
    spread = Simulated("gupta2013", jobs, on=cluster(vcpus=4)).starts
    assert [line.split()[-1] for line in spread] == ["a1", "a2", "b1", "b2"]
    packed = Simulated("gupta2013", jobs, on=cluster(vcpus=4), mdobp_classes=ALL).starts
    assert [line.split()[-1] for line in packed] == ["a1", "a1", "a1", "a1"]


def test_class_none_mixes_processors_and_ignores_constraints_whoever_places_it():
    fast, slow = HostType(2, 0, "fast"), HostType(2, 0, "slow")
    there = uniform(two_leaves(), fast, {"a2": slow})
    for classes in (ALL, frozenset()):
        [start] = Simulated(
            "gupta2013",
            [Job(1, 0, 9, 6, application=app("none"))],
            on=there,
            types=ProcessorTypes.of(there),
            one_type=True,
            constraints=Constraints(require="leaf"),
            mdobp_classes=classes,
        ).starts
        hosts = {name.split("*")[0] for name in start.split()[3:]}
        assert "a2" in hosts
        assert {host[0] for host in hosts} == {"a", "b"}


def test_class_sync_fills_the_fewest_hosts_where_the_classes_do_not_name_it():
    """VMs with little memory, which MDOBP puts on two hosts: the paper's Figure 1."""
    on = uniform(two_leaves(), HostType(4, 4096))
    group = [Job(1, 0, 9, 4, memory_mb=512, application=app("sync"))]
    assert Simulated("gupta2013", group, on=on).starts == ["0 start 1: a1*2 a2*2"]
    found = Simulated("gupta2013", group, on=on, mdobp_classes=frozenset({"async"})).starts
    assert found == ["0 start 1: a1*4"]


def test_class_async_is_spread_by_nova_where_the_classes_do_not_name_it():
    group = [Job(1, 0, 9, 4, application=app("async"))]
    on = cluster(vcpus=4)
    assert Simulated("gupta2013", group, on=on).starts == ["0 start 1: a1*4"]
    found = Simulated("gupta2013", group, on=on, mdobp_classes=frozenset({"sync"})).starts
    assert found == ["0 start 1: a1 a2 b1 b2"]
    # Constraints hold all the same.
    found = Simulated(
        "gupta2013",
        group,
        on=on,
        mdobp_classes=frozenset(),
        constraints=Constraints(require="leaf"),
    ).starts
    assert {name[0] for name in found[0].split()[3:]} in ({"a"}, {"b"})


# The index


def beside(changa: int) -> Cluster:
    """Return hosts of four cores: a1 has two free, and one host has three beside ChaNGa.

    Without an index MDOBP takes a1, the fuller host of the leaf with least room.
    """
    on = cluster(vcpus=4)
    used = np.zeros_like(on.total)
    used[0, 0], used[changa, 0] = 2, 1
    running = {0: (app("async", "EP.B"),), changa: (app("async", "ChaNGa"),)}
    return replace(on, used=used, running=running)


@pytest.mark.parametrize("app_class", ["sync", "async", "none"])
def test_a_job_is_placed_beside_those_that_it_gains_from(app_class: str):
    job = [Job(1, 0, 9, 1, application=app(app_class, "LU.C"))]
    for rules, host in ((NO_RULES, "a1"), (RULES, "a2")):
        found = Simulated("gupta2013", job, on=beside(1), mdobp_classes=ALL, interference=rules)
        assert found.starts == [f"0 start 1: {host}"]


def test_no_attraction_outweighs_the_leaf_of_the_plan():
    """ChaNGa runs on b2: class async goes there, class sync stays where least room is left."""
    for app_class, host in (("async", "b2"), ("sync", "a1"), ("extreme", "a2")):
        job = [Job(1, 0, 9, 1, application=app(app_class, "LU.C"))]
        found = Simulated("gupta2013", job, on=beside(3), interference=RULES)
        assert found.starts == [f"0 start 1: {host}"]


def test_bad_company_is_kept_apart_and_waits():
    full = Job(1, 0, 9, 5, vcpus=2, application=app("none", "IS.B"))
    lu = Job(2, 1, 9, 1, application=app("sync", "LU.C"))
    found = Simulated("gupta2013", [full, lu], on=cluster(vcpus=4), interference=RULES)
    assert found.starts[1].startswith("9 start 2")
    # Without the index, and for policies that do not look at neighbours, it starts at once.
    assert Simulated("gupta2013", [full, lu], on=cluster(vcpus=4)).starts[1].startswith("1 start")
    for policy in OTHERS:
        at_once = Simulated(policy, [full, lu], on=cluster(vcpus=4), interference=RULES).starts
        assert at_once[1].startswith("1 start 2")


def test_policies_that_do_not_look_at_neighbours_are_not_attracted():
    jobs = [
        Job(1, 0, 9, 1, vcpus=3, application=app("none", "ChaNGa")),
        Job(2, 1, 9, 2, application=app("sync", "LU.C")),
    ]
    for policy in OTHERS:
        with_index = Simulated(policy, jobs, on=cluster(vcpus=4), interference=RULES).log
        assert with_index == Simulated(policy, jobs, on=cluster(vcpus=4)).log


def test_the_tolerance_decides_which_pairs_count():
    assert InterferenceRules.of(INDEX, 0.01).apart_from("LU.C") == {"IS.B", "LU.C"}
    assert RULES.apart_from("LU.C") == {"IS.B"}
    assert RULES.gains_of("ChaNGa") == {"LU.C": pytest.approx(1.2)}
    assert RULES.apart_from(None) == RULES.apart_from("EP.B") == frozenset()
    assert RULES.gains_of(None) == RULES.gains_of("EP.B") == {}


def test_what_runs_on_a_host_from_the_start_counts_too():
    on = cluster(vcpus=4)
    running = Cluster(on.topology, on.total, on.processors, running={3: (app("none", "ChaNGa"),)})
    lu = Job(1, 0, 9, 1, application=app("none", "LU.C"))
    found = Simulated("gupta2013", [lu], on=running, interference=RULES, mdobp_classes=ALL)
    assert found.starts == ["0 start 1: b2"]


# Runtimes


MODEL = RuntimeModel(interference=1.5, index=INDEX)


@pytest.mark.parametrize(
    ("neighbours", "expected"),
    [
        ([], (0.0, 1.0)),
        ([("ChaNGa", 9.0, 3)], (0.0, 2.2)),
        ([("ChaNGa", 9.0, 3), ("IS.B", 9.0, 1)], (0.0, 0.5)),
        ([("EP.B", 2.0, 2)], (4.0, 1.0)),
        ([("ChaNGa", 9.0, 1), ("EP.B", 2.0, 1), (None, 1.0, 1)], (3.0, 2.2)),
    ],
    ids=["nobody", "a pair that gains", "the worst pair counts", "no pair: its score", "both"],
)
def test_a_pair_of_the_index_counts_by_its_performance_and_others_by_their_score(
    neighbours, expected
):
    there = [(app("sync", name, score), count) for name, score, count in neighbours]
    assert MODEL.effect_of("LU.C", there) == expected
    # Nothing is known of an application without a name.
    scores = sum(score * count for _, score, count in neighbours)
    assert MODEL.effect_of(None, there) == (scores, 1.0)


def test_the_slowest_vm_of_a_job_counts():
    on = cluster(vcpus=4)
    state = ClusterState(on)
    state.take(PlacedJob.of(Job(1, 0, 9, 1, application=app("sync", "ChaNGa")), (0,)))
    state.take(PlacedJob.of(Job(2, 0, 9, 1, application=app("sync", "EP.B", 2.0)), (1,)))
    lu = Job(3, 0, 9, 2, application=app("sync", "LU.C"))
    for hosts, factor in (
        ((0, 0), 1 / 2.2),
        ((0, 2), 1.0),
        ((0, 1), 2.25),
    ):
        placed = PlacedJob.of(lu, hosts)
        assert MODEL.factor_of(on, state, placed) == pytest.approx(factor)


def test_the_factor_is_that_of_the_start_whatever_comes_later():
    jobs = [
        Job(1, 0, 22, 1, application=app("async", "LU.C")),
        Job(2, 1, 5, 1, application=app("async", "ChaNGa")),
        Job(3, 2, 22, 1, application=app("async", "LU.C")),
    ]
    on = cluster(vcpus=4)
    model = RuntimeModel(index=INDEX)
    found = Simulated(
        "gupta2013",
        jobs,
        on=on,
        interference=RULES,
        slowdown=lambda state, placed: model.factor_of(on, state, placed),
    )
    factors = {record.number: record.factor for record in found.records}
    # The third has another LU.C beside it too: 0.95 is the worst.
    assert factors == {1: 1.0, 2: 1.0, 3: pytest.approx(1 / 0.95)}


def test_limits_hold_beside_attraction():
    jobs = [
        Job(1, 0, 9, 1, application=app("async", "ChaNGa", 90.0)),
        Job(2, 1, 9, 1, application=app("async", "LU.C", 20.0)),
    ]
    found = Simulated(
        "gupta2013", jobs, on=cluster(vcpus=4), interference=RULES, limits=Limits(100, 60)
    )
    assert [line.partition(": ")[2] for line in found.starts] == ["a1", "a2"]
