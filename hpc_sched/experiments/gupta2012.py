"""Gupta2012, section 5: gains of a job of 8 VMs by topology and by equal processors.

Published: placement that knows the racks gains up to 5 %, and placement on processors of one
type up to 20 % against 2 of the 8 VMs on slower ones.
"""

import random
import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hpc_sched.core.classic.build_plan import build_plan
from hpc_sched.core.plan.problem import Problem
from hpc_sched.experiments.experiment_table import Cell, Setting, Table, Verdict, gain, percent
from hpc_sched.experiments.shared_cluster import NetworkSetup, measured
from hpc_sched.sim.network.messages.iteration import iteration
from hpc_sched.sim.policies.placement_policy import Places, filled
from hpc_sched.topology.model import Topology

VMS, VMS_A_HOST = 8, 2
FAST, SLOW = "3.00 GHz", "2.13 GHz"
SPEED = 2.13 / 3.00  # of a slow processor relative to a fast one
RACKS = 2

SETUP = NetworkSetup(
    share=0.1,
    leaves=RACKS,
    hosts_a_leaf=32,
    host_rate=1e9 / 8,
    oversubscription=32 * 1e9 / 10e9,  # of a rack's 32 links to its uplink
)
SHARES = (0.2, 0.3, 0.5)
PUBLISHED_TOPOLOGY, PUBLISHED_TYPES = 5.0, 20.0  # percent, up to
NEAR = 3.0  # percent: published and simulated numbers that differ by less agree

_JOB = (
    Setting("VMs of the job", f"{VMS}, of 1 core", "4.1; 5, Figure 4"),
    Setting("VMs on a node", f"{VMS_A_HOST}", "5"),
)
_COMMUNICATION = Setting(
    "communication", f"{100 * SETUP.share:g} % of an iteration", "guessed: varied"
)
_TOPOLOGY = (
    *_JOB,
    Setting("nodes of a rack", f"{SETUP.hosts_a_leaf}, of 4 cores", "3.1.1"),
    Setting("link of a node", "1 Gb/s", "3.1.1"),
    Setting("link of a rack", f"10 Gb/s, {SETUP.oversubscription:g}:1", "3.1.1"),
    Setting("without topology", f"the VMs on nodes of {RACKS} racks", "5"),
    Setting("with topology", "all VMs in one rack", "5"),
    _COMMUNICATION,
    Setting("pattern", "stencil on a torus of 2 * 4", "4.2: Jacobi2D; guessed: a torus"),
    Setting("nodes of other jobs", f"{100 * SETUP.taken:g} %, at random", "guessed: varied"),
    Setting("others communicate", f"{100 * SETUP.talking:g} % of the time", "guessed: varied"),
    Setting("other jobs", f"rings of {SETUP.neighbour_vms} VMs, one a node", "guessed"),
)
_TYPES = (
    *_JOB,
    Setting("processors", f"{FAST} and {SLOW}", "4.1"),
    Setting("told apart by", "clock frequency", "3.2"),
    Setting("on slow processors", "2 of the 8 VMs", "5"),
    Setting("time less by", "(heterogeneous - homogeneous) / heterogeneous", "5"),
    Setting("speed of a slow processor", f"{SPEED:g}", "inferred: the ratio of the clocks; varied"),
    _COMMUNICATION,
)


def run(seed: int, runs: int = 10, setup: NetworkSetup = SETUP) -> tuple[float, ...]:
    """Return the fraction of the time that the build plan saves in each run, by topology.

    It is compared with nodes of two racks drawn at random.
    """
    # Only ratios matter: no latency is modelled.
    job = {"stencil": iteration("halo2", VMS, setup.host_rate)}

    def place(problem: Problem, draw: random.Random) -> dict[str, Sequence[int]]:
        return {"two racks": two_racks(problem, draw), "one rack": planned(problem)}

    # Communication takes its share in one rack without other jobs.
    *_, alone = measured(replace(setup, taken=0.0, iterations=1), job, seed, 1, place, VMS)
    computation = alone.communication * (1 - setup.share) / setup.share
    rows = measured(setup, job, seed, runs, place, VMS)
    times = [computation + each.communication for each in rows]
    return tuple(map(gain, times[::2], times[1::2]))


def two_racks(problem: Problem, draw: random.Random) -> Places:
    """Return places of which each rack has equally many, on random free nodes of it."""
    free = np.flatnonzero(problem.capacity)
    rack = problem.topology.leaf_index[free]
    wanted = problem.awaiting // VMS_A_HOST // RACKS
    racks = [free[rack == each].tolist() for each in np.unique(rack)[:RACKS]]
    return tuple(
        host for hosts in racks for host in draw.sample(hosts, wanted) for _ in range(VMS_A_HOST)
    )


def planned(problem: Problem) -> Places:
    """Return a host for each VM by the build plan, on hosts with room for two VMs.

    :raises ValueError: if they do not fit
    """
    room = replace(problem, capacity=VMS_A_HOST * (problem.capacity > 0).astype(np.int64))
    places = filled(room, build_plan(room))
    if not isinstance(places, tuple):
        raise ValueError(str(places))
    return places


def mixed_racks() -> Topology:
    """Return a rack that holds the job on mixed processors, and one with fast ones only.

    ::

                  core
               /        \\
          rack1          rack2
        a1 .. a3  fast   b1 .. b4  fast
        a4, a5    slow
    """
    racks = {"rack1": ["a1", "a2", "a3", "a4", "a5"], "rack2": ["b1", "b2", "b3", "b4"]}
    types = {host: FAST for hosts in racks.values() for host in hosts} | {"a4": SLOW, "a5": SLOW}
    return Topology.from_tree({"core": racks}, host_processors=types)


def on_one_type(problem: Problem) -> Problem:
    """Return the problem on the hosts of the fastest processor type that holds the job, if any."""
    types = np.array([problem.topology.processor_of(host) for host in problem.topology.hosts])
    of_types = (np.where(types == name, problem.capacity, 0) for name in (FAST, SLOW))
    holding = (each for each in of_types if VMS_A_HOST * np.count_nonzero(each) >= problem.awaiting)
    return replace(problem, capacity=next(holding, problem.capacity))


def homogeneity(share: float, speed: float = SPEED) -> float:
    """Return the fraction of the time saved by placing all VMs on fast processors.

    The build plan alone places 2 of the 8 on slow ones, and in each iteration the others wait for
    them. Computation is slower by the speed of the processor, communication is not: both
    placements are in one rack.
    """
    topology = mixed_racks()
    problem = Problem.from_counts(
        topology=topology,
        capacity=dict.fromkeys(topology.hosts, 1),
        members={},
        awaiting=VMS,
    )

    def time(places: Places) -> float:
        types = {topology.processor_of(topology.hosts[place]) for place in places}
        return (1 - share) / (speed if SLOW in types else 1.0) + share

    return gain(time(planned(problem)), time(planned(on_one_type(problem))))


def share_of(saved: float, speed: float = SPEED) -> float:
    """Return the fraction of time that does not depend on the clock, if ``saved`` was measured."""
    return 1 - saved / (1 - saved) / (1 / speed - 1)


def tables(seed: int, runs: int = 10, setup: NetworkSetup = SETUP) -> tuple[Table, Table]:
    """Return the gains by topology and by equal processors."""
    return _topology_table(seed, runs, setup), _types_table(setup.share)


def _topology_table(seed: int, runs: int, setup: NetworkSetup) -> Table:
    def line(numbers: str, varied: NetworkSetup) -> tuple[Cell, ...]:
        gains = run(seed, runs, varied)
        return (
            *(numbers, percent(varied.share), varied.oversubscription),
            *(percent(varied.taken), percent(varied.talking)),
            *(percent(statistics.fmean(gains)), percent(max(gains))),
        )

    others = (
        *(replace(setup, share=share) for share in SHARES),
        replace(setup, taken=0.8, talking=1.0),
        *(replace(setup, oversubscription=ratio) for ratio in (16.0, 32.0)),
    )
    simulated = line("simulated", setup)
    most = simulated[-1]
    assert isinstance(most, float)
    rate = VMS // VMS_A_HOST // RACKS * setup.host_rate * 8 / 1e9
    uplink = setup.hosts_a_leaf * setup.host_rate * 8 / 1e9 / setup.oversubscription
    return Table(
        source="Gupta2012, section 5, topology",
        title="time less by in one rack than on two",
        columns=(
            *("numbers", "communication, %", "oversubscription", "nodes of others, %"),
            *("others communicate, %", "time less by, mean, %", "time less by, up to, %"),
        ),
        rows=(
            ("published", *[None] * 5, PUBLISHED_TOPOLOGY),
            simulated,
            *(line("varied", each) for each in others),
        ),
        settings=_TOPOLOGY,
        verdict=Verdict(
            "reproduced" if abs(most - PUBLISHED_TOPOLOGY) <= NEAR else "not reproduced",
            "By bandwidth these racks leave nothing to gain: the job's nodes in a rack send "
            f"{rate:g} Gb/s at most through a link of {uplink:g}, which all other nodes together "
            "hardly fill. The paper measured next to no difference of latency and bandwidth "
            "between racks either (Figure 2), and expects the gain to grow with the job. Where "
            "its up to 5 % come from is not stated.",
        ),
        notes=(
            f"{runs} runs, {setup.iterations} iterations each; nothing is fitted.",
            "Only bandwidth is modelled: hops between racks cost no latency.",
            "On the side of two a VM sends two messages to one neighbour. They are two flows, and "
            "get twice the share of one where an uplink is full.",
        ),
    )


def _types_table(share: float) -> Table:
    def line(numbers: str, share: float, speed: float) -> tuple[Cell, ...]:
        return numbers, percent(share), round(speed, 2), percent(homogeneity(share, speed))

    fits = share_of(PUBLISHED_TYPES / 100)
    found, most = percent(homogeneity(share)), percent(homogeneity(0.0))
    return Table(
        source="Gupta2012, section 5, homogeneity",
        title="time less by on processors of one type",
        columns=("numbers", "communication, %", "slow processor's speed", "time less by, %"),
        rows=(
            ("published", None, None, PUBLISHED_TYPES),
            line("simulated", share, SPEED),
            *(line("varied", each, SPEED) for each in SHARES),
            *(line("varied", share, speed) for speed in (0.8, 0.9)),
        ),
        settings=_TYPES,
        verdict=Verdict(
            "reproduced" if abs(found - PUBLISHED_TYPES) <= NEAR else "explained",
            f"The clocks alone would save {most:g} %, with the guessed communication {found:g} %, "
            f"published are up to {PUBLISHED_TYPES:g} %. The paper states why it is less than the "
            "clocks: time of communication does not depend on them. Its number is that of "
            f"{100 * fits:.0f} % of such time, which may include waiting for memory.",
        ),
        notes=("All VMs wait for the slowest one in each iteration. No chance is involved.",),
    )
