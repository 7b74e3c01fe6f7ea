"""Core-hours and revenue of runs, worked out by hand, and against a plain sum over the events."""

from collections import defaultdict
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.cost import Prices, Usage
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.core.processors.processor_ranking import ProcessorRanking
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.sim.cluster.cluster import Cluster, HostType, ProcessorTypes, uniform
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.results import Summary, result_of
from hpc_sched.sim.runtime.runtime_model import RuntimeModel
from hpc_sched.sim.simulation_input import Failure
from hpc_sched.topology import Topology
from tests.unit.simulated import Simulated, cluster

HOUR = 3600.0  # s
ONE_PRICE = Prices(others=0.5)


def usage(found: Simulated) -> Usage:
    return found.simulation.measures.integrals.usage


def summary(found: Simulated, prices: Prices | None = None) -> Summary:
    return result_of("", 1, found.simulation, prices).summary


def job(number: int, app_class: str, vcpus: int, memory_mb: int = 0, **fields: float) -> Job:
    """Return a job of one VM that runs an hour."""
    found = Job(number, 0, HOUR, 1, vcpus, memory_mb, application=Application(app_class))
    return replace(found, **fields)


def test_core_hours_are_the_vcpus_of_vms_and_those_of_hosts_all_cores_of_hosts_with_a_vm():
    # Hosts of 2 vcpus: three VMs on two hosts for 2 hours, then one on one for an hour.
    jobs = [Job(1, 0, 2 * HOUR, 3), Job(2, 3 * HOUR, HOUR, 1)]
    found = summary(Simulated("first-fit", jobs))
    assert found.core_hours == 7
    assert found.host_hours == 5
    assert found.host_core_hours == 10
    assert found.makespan == 4 * HOUR


def test_a_host_that_several_jobs_share_is_in_use_until_the_last_one_leaves():
    jobs = [Job(1, 0, HOUR, 1), Job(2, 0.5 * HOUR, HOUR, 1)]
    found = summary(Simulated("first-fit", jobs))
    assert (found.core_hours, found.host_hours) == (2, 1.5)
    # Stock Nova spreads them, and keeps two hosts in use while both run.
    found = summary(Simulated("nova-default", jobs))
    assert (found.core_hours, found.host_hours) == (2, 2)


def test_there_is_no_revenue_without_prices_and_one_of_every_class_with_them():
    jobs = [job(1, "sync", 1), job(2, "async", 1)]
    found = Simulated("first-fit", jobs)
    assert summary(found).revenue is None
    assert summary(found).revenue_per_host_hour is None
    priced = summary(found, Prices({"sync": 0.25}, others=0.5))
    assert priced.revenue == 0.75
    assert priced.revenue_per_host_hour == 0.75
    assert priced.revenue_per_host_core_hour == 0.375


def test_the_work_that_a_failure_undoes_and_jobs_that_never_end_count_as_well():
    jobs = [Job(1, 0, 2 * HOUR, 1), Job(2, 0, 9 * HOUR, 1)]
    # Both on one host: an hour is lost, then both start again on the next.
    lost = Failure(HOUR, 0)
    found = Simulated("first-fit", jobs, failures=[lost], until=3.0 * HOUR)
    assert found.simulation.measures.jobs.restarts == 2
    assert summary(found).left == 1
    assert summary(found).core_hours == 2 + 2 * 2
    assert summary(found).host_hours == 1 + 2
    failed = Simulated("first-fit", jobs, failures=[lost], requeue=False)
    assert (summary(failed).failed, summary(failed).core_hours) == (2, 2)


def test_a_run_in_which_no_job_starts_has_no_core_hours_and_no_revenue_of_a_host():
    found = summary(Simulated("first-fit", [Job(1, 0, 1, 11)]), ONE_PRICE)
    assert (found.core_hours, found.host_hours, found.host_core_hours) == (0, 0, 0)
    assert (found.revenue, found.revenue_per_host_hour) == (0, None)


def test_hosts_of_vms_that_are_no_jobs_are_in_use_from_the_first_start_to_the_last_end():
    there = cluster()
    used = np.zeros_like(there.total)
    used[0] = 1, 0  # a1, half full
    there = replace(there, used=used, running={0: (Application("none"),)})
    # After an hour a VM on a1 as well, then VMs on a1 and a2: those on a1 need no further host.
    jobs = [Job(1, HOUR, HOUR, 1), Job(2, 2 * HOUR, HOUR, 3)]
    found = summary(Simulated("first-fit", jobs, on=there))
    assert found.makespan == 2 * HOUR
    assert found.core_hours == 1 + 3
    # a1 for both hours; in the second a2, full.
    assert found.host_hours == 2 + 1


def test_a_placement_that_is_a_fifth_faster_saves_a_fifth_of_time_times_cores():
    """Gupta2013, VI-A: 2 of 8 VMs on slower processors make all of them wait.

    ::

         core
         leaf
        g1 g2 g3 g4 s1 s2 s3 s4    2 vcpus each; s are of speed 0.8
    """
    names = ["g1", "g2", "g3", "g4", "s1", "s2", "s3", "s4"]
    fabric = Topology.from_tree({"core": {"leaf": names}})
    slow = dict.fromkeys(names[4:], HostType(2, 0, "silver"))
    there = uniform(fabric, HostType(2, 0, "gold"), slow)
    model = RuntimeModel(speeds={"gold": 1.0, "silver": 0.8})
    setting = {
        "on": there,
        "slowdown": partial(model.factor_of, there),
        "types": ProcessorTypes.of(there, ProcessorRanking(("gold", "silver"))),
    }
    # A short job in front takes a fast host: without it first-fit would be right by chance.
    jobs = [Job(1, 0, HOUR, 2), Job(2, HOUR, 10 * HOUR, 8)]
    aware = usage(Simulated("exact-plan", jobs, **setting)).all_core_hours - 2
    blind = usage(Simulated("nova-default", jobs, **setting)).all_core_hours
    blind -= usage(Simulated("nova-default", jobs[:1], **setting)).all_core_hours
    assert aware == pytest.approx(80)
    assert (blind - aware) / blind == pytest.approx(0.2)


#                    core
#                    leaf
#  h1 .. h8: 88 compute units as vcpus, 60.5 GB (Gupta2013, Table I)
UNITS, MEMORY_MB = 88, 61952
TABLE_1 = Prices({"extreme": 2.4 / 88, "sync": 2.4 / 88, "async": 0.9 / 13})
BESIDE = [job(n, "sync", 75, 26 * 1024) for n in range(4)]  # a Cluster Compute instance less 13
SMALL = [job(n, "async", 13, 35020) for n in range(4, 8)]  # High-Memory
WHOLE = [job(n, "extreme", 88, 26 * 1024) for n in range(4)]  # Cluster Compute


def earned(policy: str, jobs: list[Job]) -> float:
    """Return the revenue of a host in use in an hour."""
    fabric = Topology.from_tree({"core": {"leaf": [f"h{i}" for i in range(1, 9)]}})
    there = uniform(fabric, HostType(UNITS, MEMORY_MB))
    found = Simulated(policy, jobs, on=there)
    assert {record.outcome.value for record in found.records} == {"done"}
    per_host_hour = summary(found, TABLE_1).revenue_per_host_hour
    assert per_host_hour is not None
    return per_host_hour


def test_a_host_earns_23_percent_more_where_mdobp_packs_memory_left_over_as_in_table_1():
    dedicated = earned("gupta2013", WHOLE)
    assert dedicated == pytest.approx(2.4)
    for policy in ("gupta2013", "mdobp"):
        assert earned(policy, BESIDE + SMALL) / dedicated == pytest.approx(1.2273, abs=1e-4)


def test_the_same_vms_earn_less_than_dedicated_hosts_where_a_policy_spreads_them():
    # Each on a host of its own.
    spread = earned("nova-default", BESIDE + SMALL)
    assert spread == pytest.approx((75 / 88 * 2.4 + 0.9) / 2)
    assert spread < earned("gupta2013", WHOLE)


@st.composite
def busy_days(draw: st.DrawFn) -> tuple[list[Job], list[Failure]]:
    times = st.integers(0, 20).map(lambda number: number * 600.0)
    jobs = [
        Job(
            number,
            submit,
            draw(st.integers(1, 20)) * 500.0,
            draw(st.integers(1, 6)),
            draw(st.integers(1, 2)),
            application=Application(draw(st.sampled_from(APP_CLASSES))),
        )
        for number, submit in enumerate(sorted(draw(st.lists(times, max_size=8))))
    ]
    hosts = st.integers(0, 4)
    failures = draw(st.lists(st.builds(Failure, times, hosts, times), max_size=3))
    return jobs, sorted(failures, key=lambda failure: failure.time)


def summed(log: list[str], there: Cluster, jobs: list[Job]) -> Usage:
    """Return the usage by a plain sum over the log's starts, ends and failures."""
    classes, vcpus = {}, {}
    for each in jobs:
        classes[each.number], vcpus[each.number] = each.application.app_class, each.vcpus
    core_hours: dict[str, float] = defaultdict(float)
    host_hours = host_core_hours = 0.0
    places: dict[int, dict[str, int]] = {}
    before = 0.0
    for line in log:
        time, what, rest = line.split(" ", 2)
        hours = (float(time) - before) / HOUR
        before = float(time)
        for number, hosts in places.items():
            core_hours[classes[number]] += hours * vcpus[number] * sum(hosts.values())
        in_use = {host for hosts in places.values() for host in hosts}
        host_hours += hours * len(in_use)
        cores = there.total[:, 0].tolist()
        host_core_hours += hours * sum(cores[there.topology.index_of(host)] for host in in_use)
        name, _, more = rest.partition(": ")
        if what == "start":
            parts = (part.partition("*") for part in more.split())
            places[int(name)] = {host: int(count or 1) for host, _, count in parts}
        elif what == "end":
            del places[int(name)]
        elif what == "fail:":
            gone = more.removeprefix("jobs ")
            for number in [] if gone == "none" else gone.split(", "):
                del places[int(number)]
    return Usage(dict(core_hours), host_hours, host_core_hours)


@given(busy_days(), st.sampled_from(["first-fit", "nova-default", "exact-plan"]), st.booleans())
def test_integrals_equal_a_plain_sum_over_all_events(day, policy, requeue):
    jobs, failures = day
    there = uniform(
        Topology.from_tree({"core": {"l1": ["a", "b"], "l2": ["c", "d", "e"]}}),
        HostType(3, 0),
        {"e": HostType(5, 0)},
    )
    found = Simulated(policy, jobs, on=there, failures=failures, requeue=requeue)
    expected = summed(found.log, there, jobs)
    have = usage(found)
    assert have.core_hours == pytest.approx(
        {name: hours for name, hours in expected.core_hours.items() if hours}
    )
    assert have.host_hours == pytest.approx(expected.host_hours)
    assert have.host_core_hours == pytest.approx(expected.host_core_hours)
    # The share of vcpus in use comes from an integral of its own.
    all_vcpus = int(there.total[:, 0].sum())
    used = summary(found).vcpu_use * all_vcpus * summary(found).makespan / HOUR
    assert have.all_core_hours == pytest.approx(used)
    assert have.all_core_hours <= have.host_core_hours + 1e-9
