"""Kinds of jobs on a network: size classes, goodput, what neighbours lose by each other."""

from dataclasses import replace

import pytest

from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.jobs.job_record import NetworkedJobRecord, Outcome
from hpc_sched.sim.measured.job_kinds import JobKinds, KindMeasures
from hpc_sched.sim.measured.measured_window import WHOLE_RUN, Window
from hpc_sched.sim.measured.size_classes import SizeClasses
from hpc_sched.sim.statistics.kind_comparison import KIND_COLUMNS, kinds
from hpc_sched.topology import Topology
from tests import sim_results
from tests.unit import fabrics

RECORD = NetworkedJobRecord(
    number=1,
    trace_job=1,
    trace_submit=0.0,
    outcome=Outcome.DONE,
    app_class="sync",
    submit=0.0,
    start=10.0,
    end=60.0,
    runtime=40.0,
    factor=1.25,
    vms=2,
    vcpus=3,
    memory_mb=0,
    hosts=2,
    leaves=1,
    least_leaves=1,
    hop_bytes=1,
    least_hop_bytes=1,
    pattern="ring",
    communication=0.3,
    lost=20.0,
    caused=5.0,
    host_seconds=100.0,
)


def classes(topology: Topology, vcpus: int = 4) -> SizeClasses:
    return SizeClasses(uniform(topology, HostType(vcpus, 0)))


def measured(
    *records: NetworkedJobRecord, window: Window = WHOLE_RUN, available: float = 1000.0
) -> dict[str, KindMeasures]:
    """Return the numbers of each kind by its name.

    :param available: vcpu-seconds in all
    """
    found = JobKinds(classes(fabrics.two_pods()), window)
    for record in records:
        found.add(record)
    return {kind.name: kind for kind in found.measures(available)}


def test_a_size_is_the_smallest_part_of_the_empty_cluster_that_holds_the_job():
    """Two pods of two leaves of two hosts: 4 VMs a host, 8 a leaf, 16 a pod."""
    found = classes(fabrics.two_pods())
    names = {vms: found.of(replace(RECORD, vms=vms, vcpus=1)) for vms in (1, 4, 5, 32, 33)}
    # Eight hosts are the whole cluster.
    assert names == {
        1: "one host",
        4: "one host",
        5: "up to 8 hosts",
        32: "up to 8 hosts",
        33: "more",
    }


def test_a_leaf_of_more_than_eight_hosts_is_a_class_of_its_own():
    tree = {
        f"pod{pod}": {
            f"leaf{pod}{leaf}": [f"h{pod}{leaf}{n:02}" for n in range(10)] for leaf in "ab"
        }
        for pod in "xy"
    }
    found = classes(Topology.from_tree({"core": tree}), vcpus=1)
    sizes = (1, 8, 9, 10, 11, 20, 21, 40, 41)
    assert [found.of(replace(RECORD, vms=vms, vcpus=1)) for vms in sizes] == [
        *("one host", "up to 8 hosts", "up to a leaf", "up to a leaf"),
        *("up to a pod", "up to a pod", "up to a core", "up to a core", "more"),
    ]


def test_a_run_without_length_has_no_goodput_and_not_an_unknown_one():
    at_once = replace(RECORD, end=RECORD.start, runtime=0.0, host_seconds=0.0)
    found = measured(at_once, available=0.0)
    assert {kind.goodput for kind in found.values()} == {0.0}


def test_a_job_counts_for_its_size_its_class_and_its_pattern():
    found = measured(RECORD)
    assert list(found) == ["up to 8 hosts", "sync", "ring"]
    for kind in found.values():
        assert kind == KindMeasures(
            dimension=kind.dimension,
            name=kind.name,
            jobs=1,
            done=1,
            goodput=0.24,  # 2 * 3 vcpus for the stated 40 s
            wait_mean=10.0,
            slowdown_mean=1.5,
            factor_mean=1.25,
            lost=0.2,  # 20 of 2 hosts for 50 s
            caused=0.05,
        )


def test_goodput_counts_the_part_of_a_job_in_the_measured_time():
    """From 35 to 60 of 10 to 60: half of it, though it was submitted before."""
    kind, *_ = measured(RECORD, window=Window(35.0)).values()
    assert (kind.jobs, kind.done, kind.goodput) == (0, 0, pytest.approx(0.12))
    assert kind.wait_mean is kind.factor_mean is kind.lost is None


def test_jobs_that_were_not_done_are_no_goodput():
    for outcome in (Outcome.KILLED, Outcome.FAILED, Outcome.RUNNING):
        (kind, *_) = measured(replace(RECORD, outcome=outcome, end=None)).values()
        assert (kind.jobs, kind.done, kind.goodput) == (1, 0, 0.0)


def test_kinds_of_several_seeds_have_means_and_intervals_by_policy():
    rows = [
        replace(
            sim_results.empty("exact-plan", seed=seed, drawn=True),
            kinds=[KindMeasures("pattern", "ring", 2, 2, 0.5, 1.0, 1.0, 1.0 + seed / 10, 0.0, 0.0)],
        )
        for seed in range(1, 11)
    ]
    other = replace(sim_results.empty("nova-default", seed=1, drawn=True), kinds=[])
    (kind,) = kinds([*rows, other])
    assert (kind.dimension, kind.name) == ("pattern", "ring")
    factor = kind.policies["exact-plan"]["factor_mean"]
    assert factor is not None
    assert factor.mean == pytest.approx(1.55)
    # 2.262 * 0.3028 / sqrt(10), Student's t of 9 degrees of freedom.
    assert factor.half_width == pytest.approx(0.2166, abs=1e-4)
    assert set(kind.policies["nova-default"].values()) == {None}
    assert all(hasattr(rows[0].kinds[0], column.field) for column in KIND_COLUMNS)


def test_a_seed_without_jobs_of_a_kind_has_done_none_of_it():
    """So the goodput of all sizes adds up to that of all jobs; a wait is of the other seeds."""
    ring = KindMeasures("pattern", "ring", 2, 2, 0.5, 1.0, 1.0, 1.0, 0.0, 0.0)
    rows = [
        replace(
            sim_results.empty("exact-plan", seed=seed, drawn=True),
            kinds=[ring, replace(ring, name="bt")][: 1 + seed % 2],
        )
        for seed in range(1, 5)
    ]
    found = {kind.name: kind.policies["exact-plan"] for kind in kinds(rows)}
    means = [found["bt"][field] for field in ("done", "goodput", "wait_mean")]
    assert [each and (each.mean, each.seeds) for each in means] == [(1.0, 4), (0.25, 4), (1.0, 2)]


def test_without_a_network_there_are_no_kinds():
    assert kinds([sim_results.empty("exact-plan")]) == ()
