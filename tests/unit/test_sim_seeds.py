"""What depends on the seed: where nothing does, one run stands for all seeds."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched import exceptions
from hpc_sched.core.sharing.cache_interference import Limits
from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.cluster.cluster_state import ClusterState
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.jobs import distributions
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.jobs.job_sources import Synthetic, TraceJobs, Workload
from hpc_sched.sim.policies.placement_policy import Policy
from hpc_sched.sim.queues.in_order import Fcfs
from hpc_sched.sim.scenario import Run, Scenario, simulate
from hpc_sched.sim.simulation import Simulation
from hpc_sched.sim.simulation_input import SimulationInput
from tests.unit import fabrics
from tests.unit.simulated import cluster

CONSTANT = {
    "interarrivals": "constant:3",
    "sizes": "constant:4",
    "runtimes": "lognormal:20:0",
    "walltimes": "uniform:2:2",
    "memory_mb": "choice:1:1",
    "scores": "constant:0",
}
VARYING = {
    "interarrivals": "exponential:3",
    "sizes": "choice:1:4:6",
    "runtimes": "lognormal:20:1",
    "walltimes": "uniform:1:3",
    "memory_mb": "choice:0:1",
    "scores": "uniform:0:30",
}
MIX = distributions.read_mix("sync=0.4,async=0.3,extreme=0.1,none=0.2", "mix")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Sixty jobs of 1 to 7 processors that come faster than they end."""
    path = tmp_path / "jobs.swf"
    path.write_text(
        "".join(
            f"{n} {2 * n} -1 {5 + 3 * (n % 7)} {1 + n % 7} -1 -1 {1 + n % 7} 60" + " -1" * 9 + "\n"
            for n in range(1, 61)
        )
    )
    return path


def of_trace(trace: Path, **workload: object) -> Scenario:
    return Scenario(cluster(), TraceJobs(trace, Workload(**workload)), queue="easy")


def outcome(scenario: Scenario, policy: str, seed: int, folder: Path) -> tuple[object, ...]:
    """Return everything that a run gives, but for its seed."""
    folder.mkdir(exist_ok=True)
    run = Run(policy, seed)
    result = simulate(replace(scenario, folder=folder, events=True), run)
    written = [(folder / f"{run.name}-{name}").read_text() for name in ("jobs.csv", "events.txt")]
    return replace(result, summary=replace(result.summary, seed=0)), *written


def test_only_the_policy_random_draws():
    assert [name for name in POLICIES.names() if POLICIES.load(name).draws] == ["random"]
    assert Policy("of another package", "", lambda request: ()).draws


@pytest.mark.parametrize("policy", POLICIES.names())
def test_the_runs_left_out_are_those_that_are_identical(policy, trace, tmp_path):
    """Run both seeds: with the same files and numbers exactly where one run stands for both."""
    scenario = of_trace(trace)
    first, second = (outcome(scenario, policy, seed, tmp_path / str(seed)) for seed in (1, 2))
    assert scenario.draws(policy) == first[0].summary.drawn == (policy == "random")
    assert (first == second) == (policy != "random")


@pytest.mark.parametrize(
    "change",
    [
        {"classes": MIX},
        {"scores": distributions.read("uniform:0:30")},
    ],
)
def test_what_is_drawn_for_the_jobs_of_a_trace_needs_every_seed(change, trace, tmp_path):
    scenario = replace(of_trace(trace, **change), limits=Limits(30.0, 30.0))
    assert scenario.draws("gupta2013")
    one, other = (outcome(scenario, "gupta2013", seed, tmp_path / str(seed)) for seed in (1, 2))
    assert one != other


def test_failures_of_hosts_need_every_seed(trace, tmp_path):
    scenario = replace(of_trace(trace), mtbf=200.0, repair=20.0)
    assert scenario.draws("first-fit")
    one, other = (outcome(scenario, "first-fit", seed, tmp_path / str(seed)) for seed in (1, 2))
    assert one != other


@given(st.sets(st.sampled_from(sorted(VARYING))), st.booleans())
def test_drawn_jobs_need_every_seed_unless_all_is_constant(varying, mixed):
    stated = CONSTANT | {name: VARYING[name] for name in varying}
    source = Synthetic(
        30,
        **{name: distributions.read(text) for name, text in stated.items()},
        **({"classes": MIX} if mixed else {}),
    )
    jobs = [list(source.jobs(seed)) for seed in (1, 2)]
    assert source.draws == bool(varying or mixed) == (jobs[0] != jobs[1])


def test_every_policy_gets_the_same_jobs_and_failures_with_a_seed(tmp_path):
    """Pairs of runs: what differs between them is where jobs run, and what follows from it."""
    texts = {name: distributions.read(text) for name, text in VARYING.items()}
    source = Synthetic(40, **texts, classes=MIX)
    fabric = uniform(fabrics.two_leaves(), HostType(8, 4096))
    scenario = Scenario(fabric, source, mtbf=100.0, repair=10.0, folder=tmp_path, events=True)
    given_ = ("submit", "runtime", "vms", "vcpus", "memory_mb", "app_class")
    jobs, failed = set(), set()
    for policy in POLICIES.names():
        simulate(scenario, Run(policy, 7))
        with open(tmp_path / f"{policy}-seed7-jobs.csv", newline="") as rows:
            found = sorted(csv.DictReader(rows), key=lambda row: int(row["number"]))
        jobs.add(tuple((row["number"], *(row[name] for name in given_)) for row in found))
        lines = (tmp_path / f"{policy}-seed7-events.txt").read_text().splitlines()
        words = [line.split() for line in lines]
        # The end of a run depends on the policy, and failures come until then.
        failed.add(tuple((time, host) for time, what, host, *_ in words if what == "fail:")[:5])
    assert len(jobs) == 1
    assert len(next(iter(jobs))) == 40
    assert len(failed) == 1
    assert len(next(iter(failed))) == 5


def test_a_policy_that_draws_although_it_says_that_it_does_not_is_stopped():
    def place(request):
        return tuple([request.draw.randrange(5)] * request.group.left)

    def run(**more):
        setting = SimulationInput(cluster(), Policy("liar", "", place, **more))
        Simulation(setting, Fcfs(), [Job(1, 0, 1, 2)]).run()

    run()
    with pytest.raises(exceptions.SimulationError, match=r"'liar' failed: .*draws=False"):
        run(draws=False)


@pytest.mark.parametrize("policy", POLICIES.names())
def test_requests_of_policies_that_read_what_is_free_have_it_and_others_do_not(policy):
    setting = SimulationInput(cluster(), POLICIES.load(policy))
    state = ClusterState(setting.cluster)
    job = Job(1, 0, 1, 2)
    group = setting.request(job, state.capacity(*job.size), state).group
    assert (group.packing is not None) == setting.policy.packs
    reads = {"least-free-pe", "most-free-pe", "mdobp", "gupta2013"}
    assert setting.policy.packs == (policy in reads or policy.startswith("nova"))
