"""What each policy does to the same few jobs, event by event."""

from pathlib import Path

import pytest

from hpc_sched import exceptions
from hpc_sched.core.constraints import NO_CONSTRAINTS, Constraints
from hpc_sched.core.processors.processor_ranking import ProcessorRanking
from hpc_sched.core.sharing.cache_interference import Application, Limits
from hpc_sched.sim.cluster.cluster import HostType, ProcessorTypes, uniform
from hpc_sched.sim.installed import POLICIES
from hpc_sched.sim.jobs.job import Job
from hpc_sched.topology import Topology
from tests.unit.fabrics import two_leaves
from tests.unit.simulated import Simulated, cluster

# Two VMs a host, so leaf1 takes 4 and leaf2 takes 6. Job 3 waits for job 2, job 4 for its turn.
JOBS = [Job(1, 0, 10, 3), Job(2, 1, 6, 4), Job(3, 2, 2, 5), Job(4, 3, 1, 1)]

STARTS = {
    # Three VMs send as much through the links of three hosts as through those of two.
    "bottleneck": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
    # By weight: leaf1 and leaf2 hold 3 alike and leaf1 has less left over; job 2 fits leaf2
    # alone; job 4 goes where least is left.
    # These jobs do not communicate.
    "bottleneck-pattern": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
    "dudina2013": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
    "exact-plan": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
    # By name, whatever the leaf.
    "first-fit": ["a1*2 a2", "a2 b1*2 b2", "a2 b1*2 b2*2", "b3"],
    # The largest rack first, and it is cut to pieces.
    "gupta2012": ["b1*2 b2", "a1*2 a2*2", "a1*2 a2*2 b3", "b2"],
    "gupta2012-best-fit": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
    # Class sync: planned leaves, and hosts by MDOBP, which prefers the fuller one.
    "gupta2013": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
    # Each job has a leaf for itself, or shares one with jobs that are wholly inside.
    "isolated": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
    "kueue-best-fit": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
    # The smallest domains first, and hosts are the only level looked at.
    "kueue-least-free": ["a1*2 a2", "a2 b1*2 b2", "a2 b1*2 b2*2", "b3"],
    "least-hops": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
    "least-free-pe": ["a1*2 a2", "a2 b1*2 b2", "a2 b1*2 b2*2", "b3"],
    "mdobp": ["a1*2 a2", "a2 b1*2 b2", "a2 b1*2 b2*2", "b3"],
    # As stock Nova without a group: always the emptiest host.
    "most-free-pe": ["a1 a2 b1", "a1 a2 b2 b3", "a1 a2 b1 b2 b3", "b2"],
    # Always the emptiest host: a1 a2 b1, then b2 b3 and those of one VM by name.
    "nova-default": ["a1 a2 b1", "a1 a2 b2 b3", "a1 a2 b1 b2 b3", "b2"],
    "nova-soft-affinity": ["a1 a2 b1", "a1 a2 b2 b3", "a1 a2 b1 b2 b3", "b2"],
    # Drawn; the same for the same seed.
    "random": ["a2*2 b2", "a1 b1 b2 b3", "a1*2 b2 b3*2", "b1"],
    "slurm-tree": ["a1*2 a2", "b1*2 b2*2", "b1*2 b2*2 b3", "a2"],
}


def test_every_installed_policy_has_a_case_here():
    assert sorted(STARTS) == POLICIES.names()


@pytest.mark.parametrize("policy", sorted(STARTS))
def test_a_policy_places_the_same_jobs_event_by_event(policy: str):
    first, second, third, fourth = STARTS[policy]
    assert Simulated(policy, [*JOBS, Job(5, 4, 1, 11)]).log == [
        "0 submit 1: 3 VMs",
        f"0 start 1: {first}",
        "1 submit 2: 4 VMs",
        f"1 start 2: {second}",
        "2 submit 3: 5 VMs",
        "3 submit 4: 1 VM",
        "4 submit 5: 11 VMs",
        "4 refuse 5: group of 11 does not fit: largest gang that fits: 10 on core",
        "7 end 2",
        f"7 start 3: {third}",
        f"7 start 4: {fourth}",
        "8 end 4",
        "9 end 3",
        "10 end 1",
    ]


def app(app_class: str, score: float = 0.0) -> Application:
    return Application(app_class, score=score)


def test_classes_of_gupta2013_share_hosts_as_the_paper_has_it():
    jobs = [
        Job(1, 0, 9, 1, application=app("extreme")),  # gets a host of its own
        Job(2, 1, 9, 2, application=app("sync", 30)),  # leaf1 has least left; a2 is full by beta
        Job(3, 2, 9, 1, application=app("async", 20)),  # vcpus are free on a2, but no score
        Job(4, 3, 9, 1, application=app("async", 70)),  # packed: 90 are within alpha
        Job(5, 4, 9, 1, application=app("none")),  # spread, as stock Nova does
        Job(6, 5, 9, 1, application=app("extreme")),  # the one host that is empty
        Job(7, 6, 9, 1, application=app("extreme")),  # waits until one is
    ]
    found = Simulated("gupta2013", jobs, limits=Limits(100, 60), on=cluster(vcpus=4))
    assert found.starts == [
        "0 start 1: a1",
        "1 start 2: a2*2",
        "2 start 3: b1",
        "3 start 4: b1",
        "4 start 5: b2",
        "5 start 6: b3",
        "9 start 7: a1",
    ]


def test_a_score_that_no_host_may_have_is_refused():
    jobs = [Job(1, 0, 1, 1, application=app("sync", 61))]
    found = Simulated("gupta2013", jobs, limits=Limits(100, 60))
    assert [record.outcome for record in found.records] == ["refused"]


def test_policies_that_know_processor_types_keep_a_job_on_one():
    """::

          core
        /      \\
     leaf1     leaf2
     a1 a2     b1 b2 b3
     slow      fast  (b3 is slow)
    """
    fast, slow = HostType(2, 0, "fast"), HostType(2, 0, "slow")
    there = uniform(two_leaves(), slow, {"b1": fast, "b2": fast})
    types = ProcessorTypes.of(there, ProcessorRanking(("fast",)))
    jobs = [Job(1, 0, 9, 4), Job(2, 1, 9, 5), Job(3, 2, 9, 2)]
    by_plan = Simulated("exact-plan", jobs, on=there, types=types)
    assert by_plan.starts == [
        "0 start 1: b1*2 b2*2",
        "1 start 2: a1*2 a2*2 b3",
        # No type holds it whole before job 1 has gone, and none is required.
        "9 start 3: b1*2",
    ]
    wanting = Simulated("exact-plan", [*jobs[:1], Job(2, 1, 9, 7)], on=there, types=types)
    assert wanting.starts[1] == "9 start 2: a1 b1*2 b2*2 b3*2"
    strict = Simulated("exact-plan", [Job(2, 1, 9, 7)], on=there, types=types, one_type=True)
    assert [record.outcome for record in strict.records] == ["refused"]


@pytest.mark.parametrize(
    ("ranking", "taken"),
    [
        (ProcessorRanking(), "a"),
        (ProcessorRanking(speeds={"small": 3000, "large": 2130}), "b"),
        (ProcessorRanking(("large",), {"small": 3000, "large": 2130}), "a"),
        (ProcessorRanking(speeds={"small": 1}), "b"),
    ],
    ids=["by cores", "by speed", "the operator's order first", "one without a speed is last"],
)
def test_the_fastest_processor_type_comes_before_the_one_with_most_cores(ranking, taken):
    there = uniform(
        two_leaves(),
        HostType(2, 0, "small"),
        {host: HostType(4, 0, "large") for host in ("a1", "a2")},
    )
    types = ProcessorTypes.of(there, ranking)
    for policy in ("exact-plan", "dudina2013", "gupta2012", "gupta2013"):
        found = Simulated(policy, [Job(1, 0, 9, 4)], on=there, types=types)
        assert {name[0] for name in found.starts[0].split()[3:]} == {taken}, policy


@pytest.mark.parametrize(
    ("policy", "app_class"),
    [("dudina2013", "sync"), ("gupta2012", "sync"), ("gupta2013", "async")],
    ids=["Listing 1", "build plan", "async"],
)
def test_a_weigher_behind_the_filters_keeps_processor_types_too(policy: str, app_class: str):
    """The slow hosts would be taken where they are no type of their own."""
    fast, slow = HostType(2, 0, "fast"), HostType(2, 0, "slow")
    there = uniform(two_leaves(), fast, {"a2": slow, "b3": slow})
    types = ProcessorTypes.of(there)
    found = Simulated(policy, [Job(1, 0, 9, 4, application=app(app_class))], on=there, types=types)
    assert len(found.starts) == 1
    assert not {"a2", "b3"} & {name.split("*")[0] for name in found.starts[0].split()[3:]}


def test_of_two_types_the_one_whose_free_hosts_are_larger_is_taken():
    """Job 1 takes the one large host of type mixed; Placement offers Nova what is left."""
    large, middle, small = HostType(8, 0, "mixed"), HostType(6, 0, "even"), HostType(4, 0, "mixed")
    there = uniform(two_leaves(), middle, {"a1": large, "a2": small})
    found = Simulated(
        "exact-plan",
        [Job(1, 0, 9, 1, vcpus=8), Job(2, 1, 9, 1, vcpus=4)],
        on=there,
        types=ProcessorTypes.of(there),
    )
    assert found.starts == ["0 start 1: a1", "1 start 2: b1"]


@pytest.mark.parametrize(
    ("policy", "app_class"),
    [("dudina2013", "sync"), ("gupta2012", "sync"), ("gupta2013", "async")],
    ids=["Listing 1", "build plan", "async"],
)
def test_a_weigher_behind_the_filters_stays_below_the_switch_that_is_required(
    policy: str, app_class: str
):
    """::

             core
          /       \\
       pod1       pod2
        |        /    \\
      leaf1   leaf2   leaf3
     b1 b2 b3 a1 a2   c1 c2
    """
    fabric = Topology.from_tree(
        {
            "core": {
                "pod1": {"leaf1": ["b1", "b2", "b3"]},
                "pod2": {"leaf2": ["a1", "a2"], "leaf3": ["c1", "c2"]},
            }
        }
    )
    jobs = [Job(1, 0, 9, 7, application=app(app_class))]
    pods = []
    for constraints in (NO_CONSTRAINTS, Constraints(require="pod")):
        found = Simulated(policy, jobs, on=cluster(topology=fabric), constraints=constraints)
        hosts = [name.split("*")[0] for name in found.starts[0].split()[3:]]
        pods.append({fabric.ancestors(host)[1] for host in hosts})
    assert pods == [{"pod1", "pod2"}, {"pod2"}]
    strict = Simulated(
        policy, jobs, on=cluster(topology=fabric), constraints=Constraints(require="leaf")
    )
    assert [record.outcome for record in strict.records] == ["refused"]


OURS = (
    *("exact-plan", "bottleneck", "bottleneck-pattern", "isolated"),
    *("dudina2013", "gupta2012", "gupta2012-best-fit", "gupta2013"),
)


@pytest.mark.parametrize("app_class", ["sync", "async", "extreme", "none"])
@pytest.mark.parametrize("policy", OURS)
def test_the_first_eight_keep_constraints_and_gupta2013_not_those_of_class_none(
    policy: str, app_class: str
):
    """Of the fast hosts, b2 and b3 alone are under one leaf; the page says which jobs stay."""
    page = (Path(__file__).parents[2] / "docs/reference/policies.rst").read_text()
    assert "``gupta2013``, a job of class ``none``: it is placed like ``nova-default``" in page
    jobs = [Job(1, 0, 9, 3, application=app(app_class))]
    types = (HostType(2, 0, "fast"), HostType(2, 0, "slow"))
    there = uniform(two_leaves(), types[0], {"a1": types[1], "b1": types[1]})
    constraints = Constraints(require="leaf")
    [start] = Simulated(
        policy, jobs, on=there, constraints=constraints, types=ProcessorTypes.of(there)
    ).starts
    hosts = {name.split("*")[0] for name in start.split()[3:]}
    keeps = (policy, app_class) != ("gupta2013", "none")
    assert (len({host[0] for host in hosts}) == 1) is keeps
    assert hosts == {"b2", "b3"} if keeps else {"a1", "a2", "b1"}


def test_an_unknown_policy_is_told_with_the_nearest_name():
    with pytest.raises(exceptions.SimulationError, match="did you mean exact-plan: expected one"):
        POLICIES.load("exact-pln")
