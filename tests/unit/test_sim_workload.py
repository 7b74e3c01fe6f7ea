"""From traces and from stated distributions to the jobs of a simulation."""

import math
import statistics
import tracemalloc
from dataclasses import replace
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.exceptions import ConfigError
from hpc_sched.sim.jobs import distributions, swf
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_sources import Synthetic, Workload, jobs
from hpc_sched.sim.jobs.swf import TraceRow
from tests import sample_data

RECORD = TraceRow(
    line=3,
    submit=1000.0,
    runtime=60.0,
    processors=10,
    requested_time=600.0,
    memory_kb=4_000,
    application=12,
    partition=1,
    number=77,
    user=7,
)
MIX = distributions.read_mix("sync=0.5,async=0.3,none=0.2", "x")
SEED = 3
SCORES = distributions.read("uniform:0:30", "x")


def job_of(record: TraceRow = RECORD, **workload) -> Job:
    [job] = jobs([record], Workload(**workload))
    return job


def test_a_row_becomes_a_job():
    assert job_of() == Job(
        number=1,
        submit=0.0,
        runtime=60.0,
        count=10,
        vcpus=1,
        memory_mb=0,
        walltime=600.0,
        trace_job=77,
        trace_submit=1000.0,
        application=Application("sync", "12", 0.0),
        user=7,
    )


@pytest.mark.parametrize(
    ("processors", "cores_per_vm", "count", "vcpus"),
    [
        (10, 1, 10, 1),
        (10, 4, 3, 4),
        (8, 4, 2, 4),
        (3, 4, 1, 3),
        (1, 1, 1, 1),
        (10**15, 1, 10**15, 1),
    ],
)
def test_processors_become_vms_that_are_alike(processors, cores_per_vm, count, vcpus):
    job = job_of(replace(RECORD, processors=processors), cores_per_vm=cores_per_vm)
    assert (job.count, job.vcpus) == (count, vcpus)


@pytest.mark.parametrize(
    ("memory", "cores_per_vm", "memory_mb"),
    [
        ("none", 4, 0),
        ("per-processor", 1, 4),  # 4,000 KB
        ("per-processor", 4, 16),
        ("total", 1, 1),  # 400 KB
        ("total", 4, 2),  # 1,600 KB
        ("total", 99, 4),
    ],
)
def test_memory_is_that_of_a_vm_rounded_up(memory, cores_per_vm, memory_mb):
    assert job_of(memory=memory, cores_per_vm=cores_per_vm).memory_mb == memory_mb


@pytest.mark.parametrize("memory", ["none", "per-processor", "total"])
def test_a_job_whose_memory_nobody_knows_needs_none(memory):
    assert job_of(replace(RECORD, memory_kb=None), memory=memory).memory_mb == 0


@given(
    st.integers(1, 200), st.integers(1, 64), st.integers(0, 10**9), st.sampled_from((1, 3, 1024))
)
def test_the_vms_together_have_what_the_job_has(processors, cores_per_vm, memory_kb, unit):
    record = replace(RECORD, processors=processors, memory_kb=memory_kb * unit)
    job = job_of(record, cores_per_vm=cores_per_vm, memory="total")
    assert processors <= job.count * job.vcpus < processors + job.vcpus
    assert record.memory_kb <= job.count * job.memory_mb * 1024
    exact = record.memory_kb * job.vcpus / processors / 1024
    assert exact - 1e-6 <= job.memory_mb < exact + 1 + 1e-6


@pytest.mark.parametrize("stated", [None, 0.0])
def test_who_stated_no_walltime_has_none(stated):
    assert job_of(replace(RECORD, requested_time=stated)).walltime is None


def test_the_load_divides_the_times_between_arrivals():
    records = [replace(RECORD, submit=submit) for submit in (1000.0, 1000.0, 1030.0, 1090.0)]
    found = list(jobs(records, Workload(load=1.5)))
    assert [job.submit for job in found] == [0.0, 0.0, 20.0, 60.0]
    assert [job.number for job in found] == [1, 2, 3, 4]


def test_no_rows_are_no_jobs():
    assert list(jobs([], Workload())) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"load": 0.0}, "load: expected a factor from 1e-06 to 1e"),
        ({"load": math.nan}, "load: expected a factor .*found nan"),
        ({"load": math.inf}, "load: expected a factor .*found inf"),
    ],
    ids=str,
)
def test_a_workload_that_cannot_be_is_refused(options, error):
    with pytest.raises(ConfigError, match=error):
        Workload(**options)


def test_what_is_drawn_follows_from_seed_and_number_alone():
    records = [replace(RECORD, submit=float(i)) for i in range(50)]
    workload = Workload(classes=MIX, scores=SCORES)
    drawn = [job.application for job in jobs(records, workload, SEED)]
    changed = (replace(record, processors=3, runtime=1.0) for record in records)
    other_shape = replace(workload, cores_per_vm=8, load=2.0)
    assert [job.application for job in jobs(changed, other_shape, SEED)] == drawn
    assert [job.application for job in jobs(records[:20], workload, SEED)] == drawn[:20]
    reseeded = jobs(records, workload, seed=4)
    assert [job.application for job in reseeded] != drawn
    assert {application.app_class for application in drawn} == {"sync", "async", "none"}


def test_names_of_applications_are_drawn_apart_from_everything_else():
    mix = distributions.read_applications("LU.C=1,ChaNGa=3", "--applications")
    records = [replace(RECORD, submit=float(i)) for i in range(50)]
    plain = Workload(classes=MIX, scores=SCORES)
    named = replace(plain, applications=mix)
    for make in (
        lambda workload: jobs(records, workload, SEED),
        lambda workload: replace(SYNTHETIC, applications=workload.applications).jobs(SEED),
    ):
        before, found = list(make(plain)), list(make(named))
        names = [job.application.name for job in found]
        assert 0 < names.count("LU.C") < names.count("ChaNGa")
        assert len(names) == names.count("LU.C") + names.count("ChaNGa")
        # All else is as without names.
        for one, other in zip(before, found, strict=True):
            kept = replace(other.application, name=one.application.name)
            assert replace(other, application=kept) == one


def test_a_workload_is_the_same_in_every_version_of_python():
    workload = Workload(classes=MIX, scores=SCORES)
    drawn = [job.application for job in jobs([RECORD] * 4, workload, seed=1)]
    assert [(each.app_class, round(each.score, 6)) for each in drawn] == [
        ("async", 8.384815),
        ("none", 12.507668),
        ("sync", 15.410207),
        ("async", 9.947302),
    ]


def test_jobs_are_made_one_at_a_time():
    def endless():
        while True:
            yield RECORD

    assert [job.number for job in islice(jobs(endless(), Workload()), 3)] == [1, 2, 3]


def test_a_real_trace_becomes_jobs_in_order():
    path = sample_data.path("swf/METACENTRUM-2009-2.swf.gz")
    workload = Workload(cores_per_vm=8, memory="total", classes=MIX, scores=SCORES)
    found = list(jobs(swf.read(path, limit=20_000), workload))
    assert len(found) == 20_000
    assert found[0].submit == 0.0
    assert all(one.submit <= other.submit for one, other in pairwise(found))
    assert max(job.vcpus for job in found) == 8
    assert max(job.memory_mb for job in found) < 64 * 1024


SYNTHETIC = Synthetic(
    count=2_000,
    interarrivals=distributions.read("exponential:30", "x"),
    sizes=distributions.read("choice:1:16", "x"),
    runtimes=distributions.read("exponential:600", "x"),
    walltimes=distributions.read("uniform:1:3", "x"),
    vcpus=4,
    memory_mb=distributions.read("constant:2048", "x"),
    classes=MIX,
    scores=SCORES,
)


def test_synthetic_jobs_are_as_stated():
    found = list(SYNTHETIC.jobs(5))
    assert [job.number for job in found] == list(range(1, 2_001))
    assert found[0].submit == 0.0
    between = [other.submit - one.submit for one, other in pairwise(found)]
    assert min(between) >= 0
    assert statistics.mean(between) == pytest.approx(30, rel=0.1)
    assert statistics.stdev(between) == pytest.approx(30, rel=0.1)
    assert statistics.mean(job.runtime for job in found) == pytest.approx(600, rel=0.1)
    assert {job.count for job in found} == {1, 16}
    assert {(job.vcpus, job.memory_mb) for job in found} == {(4, 2048)}
    assert all(job.runtime <= job.walltime <= 3 * job.runtime for job in found)
    assert {job.application.app_class for job in found} == {"sync", "async", "none"}


def test_the_same_seed_gives_the_same_jobs_and_another_one_others():
    found = list(SYNTHETIC.jobs(5))
    assert list(SYNTHETIC.jobs(5)) == found
    assert list(replace(SYNTHETIC, count=100).jobs(5)) == found[:100]
    assert list(SYNTHETIC.jobs(6))[:5] != found[:5]


def test_synthetic_jobs_without_more_being_said_are_whole():
    found = list(Synthetic(count=50).jobs(0))
    assert all(job.count >= 1 and job.runtime > 0 and job.memory_mb == 0 for job in found)


def test_a_size_rounds_to_a_vm_at_least():
    [job] = Synthetic(count=1, sizes=distributions.read("constant:0.2")).jobs(0)
    assert job.count == 1


def test_a_size_from_the_end_of_a_long_tail_is_still_a_number_of_vms():
    sizes = distributions.read("lognormal:1e15:20")
    counts = [job.count for job in Synthetic(count=50, sizes=sizes).jobs(0)]
    assert max(counts) == 10**15


def test_synthetic_jobs_take_no_memory():
    tracemalloc.start()
    try:
        assert sum(1 for _ in replace(SYNTHETIC, count=1_000).jobs(0)) == 1_000
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
