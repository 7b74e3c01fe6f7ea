"""Gupta2013, Figure 8: the case study of application-aware scheduling on eight nodes.

Published: a table of five applications with their placements for three values of beta, and a
chart of their performance. The placements are repeated here. The chart needs measured
interference, of which the paper states some in words only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hpc_sched.core.sharing.cache_interference import Application, Limits
from hpc_sched.experiments.experiment_table import Cell, Setting, Table, Verdict
from hpc_sched.sim.cluster.cluster import HostType, uniform
from hpc_sched.sim.cluster.placed_job import PlacedJob
from hpc_sched.sim.jobs.job import Job
from hpc_sched.sim.policies import plugin_policies
from hpc_sched.sim.queues.in_order import ListScheduling
from hpc_sched.sim.simulation import Simulation
from hpc_sched.sim.simulation_input import SimulationInput
from hpc_sched.topology.model import Topology

ALPHA = 100.0
BETAS = (100.0, 40.0, 60.0)  # in the order of the published table
CORES, NODE_MB, VM_MB = 4, 8192, 2048
NODES = [f"N{number}" for number in range(1, 9)]


@dataclass(frozen=True, slots=True)
class CaseStudyRow:
    """An application of the published table."""

    name: str
    app_class: str
    score: float  # of a VM
    time: float  # on dedicated nodes; taken as s
    placements: tuple[str, str, str]  # per beta of BETAS: VMs on N1 to N8
    after: tuple[str | None, str | None, str | None] = (None, None, None)  # what it waits for

    @property
    def vms(self) -> int:
        """The number that ends the name."""
        return int(self.name.rpartition(".")[2])


_ONE_EACH = "0 1 1 1 1 0 0 0"
_APPLICATIONS = (
    CaseStudyRow("IS.B.4", "extreme", 47, 89.5, ("4 0 0 0 0 0 0 0",) * 3),
    CaseStudyRow(
        *("LU.C.16", "sync", 16, 180.18),
        ("0 4 4 4 4 0 0 0", "2 2 2 2 2 2 2 2", "0 3 3 3 3 3 1 0"),
        (None, "all others", None),
    ),
    CaseStudyRow(
        *("LU.B.4", "sync", 29, 147),
        ("0 0 0 0 0 3 1 0", _ONE_EACH, "2 0 0 0 0 0 0 2"),
        (None, None, "IS.B.4"),
    ),
    CaseStudyRow("ChaNGa.4", "sync", 7.5, 100.42, ("0 0 0 0 0 1 3 0", _ONE_EACH, _ONE_EACH)),
    CaseStudyRow("EP.B.4", "async", 2.5, 101.5, ("0 0 0 0 0 0 0 4", _ONE_EACH, "0 0 0 0 0 1 3 0")),
)

_SETTINGS = (
    Setting("nodes", "8 of 4 cores", "VI-B"),
    Setting("memory of a node", "8 GB", "II-A"),
    Setting("VM", "1 core, 2 GB", "II-A, V-A"),
    Setting("applications", "VMs, classes, scores, times", "Figure 8"),
    Setting("beta", "100, 40, 60", "Figure 8"),
    Setting("alpha", f"{ALPHA:g}", "guessed"),
    Setting("arrivals", "all at the start, in this order", "VI-B: a stream; guessed"),
    Setting("queue", "passing: later ones overtake", "Figure 8: LU waits, others start"),
    Setting("run times", "those on dedicated nodes, in s", "Figure 8, without a unit: guessed"),
    Setting("racks", "1", "inferred: 32 nodes are a rack (II-B)"),
)

_COLUMNS = (
    *("beta", "application", "class", "VMs", "score", "dedicated time, s"),
    *("published VMs on N1 to N8", "simulated VMs on N1 to N8"),
    *("published: waits for", "simulated start, s"),
    *("scores on a dedicated node", "highest scores on a node"),
)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when an application runs."""

    application: CaseStudyRow
    start: float  # s
    vms: tuple[int, ...]  # on N1 to N8

    @property
    def end(self) -> float:
        """When it ends, at its run time on dedicated nodes, s."""
        return self.start + self.application.time


def placements(beta: float) -> list[Placement]:
    """Return the placements of the applications, in the order of the published table."""
    cluster = uniform(Topology.from_tree({"rack1": NODES}), HostType(CORES, NODE_MB))
    queue = ListScheduling()
    seen: dict[int, tuple[float, PlacedJob]] = {}

    def discipline(simulation: Simulation) -> None:
        queue(simulation)
        seen.update(simulation.running())

    jobs = [
        Job(
            *(number, 0.0, each.time, each.vms),
            memory_mb=VM_MB,
            application=Application(each.app_class, each.name, each.score),
        )
        for number, each in enumerate(_APPLICATIONS, start=1)
    ]
    simulation = Simulation(
        SimulationInput(cluster, plugin_policies.CLASSES, limits=Limits(ALPHA, beta)),
        discipline,
        jobs,
    )
    simulation.run()
    simulation.conclude()
    vms = {number: placed.by_name(cluster.topology) for number, (_, placed) in seen.items()}
    return [
        Placement(each, seen[number][0], tuple(vms[number].get(node, 0) for node in NODES))
        for number, each in enumerate(_APPLICATIONS, start=1)
    ]


def table() -> Table:
    """Return the published placements and the simulated ones."""
    by_beta = {beta: placements(beta) for beta in BETAS}
    rows: list[tuple[Cell, ...]] = []
    equal = 0
    for i, (beta, found) in enumerate(by_beta.items()):
        for each in found:
            one, ours = each.application, " ".join(map(str, each.vms))
            is_published = each.start > 0, ours
            equal += (one.after[i] is not None, one.placements[i]) == is_published
            rows.append(
                (
                    *(beta, one.name, one.app_class, one.vms, one.score, one.time),
                    *(one.placements[i], ours, one.after[i], each.start),
                    *(one.score * CORES, highest_scores(each, found)),
                )
            )
    ends = ", ".join(
        f"{max(each.end for each in found):g} s with beta {beta:g}"
        for beta, found in by_beta.items()
    )
    longest = max(each.time for each in _APPLICATIONS)
    notes = (
        f"At the run times of dedicated nodes all applications have ended after {ends}. Dedicated "
        f"nodes, of which these five need all eight, would end after {longest:g} s: what waits has "
        "to be made up for by performance.",
        "Scores on a node: the sum over its VMs, with the node for the application alone, and the "
        "highest on any of its nodes as placed. Less means less contention, not how much faster.",
    )
    return Table(
        source="Gupta2013, Figure 8, table",
        title="placements of the case study for three values of beta",
        columns=_COLUMNS,
        rows=tuple(rows),
        settings=_SETTINGS,
        verdict=Verdict(
            "reproduced" if equal == len(rows) else "not reproduced",
            f"{equal} of {len(rows)} placements are the published ones; the applications that "
            "wait are those that wait in the paper, and later ones overtake them as there.",
        ),
        notes=notes,
    )


def highest_scores(placement: Placement, others: Sequence[Placement]) -> float:
    """Return the highest sum of scores on a node of a placement, over the time that it runs."""
    begins = [each.start for each in others if placement.start <= each.start < placement.end]
    return max(
        sum(
            each.vms[node] * each.application.score
            for each in others
            if each.start <= time < each.end
        )
        for time in begins
        for node, vms in enumerate(placement.vms)
        if vms
    )


def performance_table() -> Table:
    """Return what the paper states of performance in words; nothing of it is simulated."""
    case = "the case study, beta 60"
    return Table(
        source="Gupta2013, Figure 8, chart",
        title="performance against dedicated nodes, as far as it is stated in words",
        columns=("where", "application", "stated in", "published change, %", "simulated, %"),
        rows=(
            (case, "the application that gains most", "VI-B", 45.0, None),
            (case, "the application that loses most", "VI-B", -8.0, None),
            ("LU.C with ChaNGa, 4 cores each", "LU.C", "II-A", 120.0, None),
            ("LU.C with ChaNGa, 4 cores each", "ChaNGa", "II-A", 0.0, None),
            ("EP.B with ChaNGa", "either", "II-A", 0.0, None),
        ),
        verdict=Verdict(
            "not reproduced",
            "The chart of performance cannot be derived: it needs the measured speed of each "
            "application next to the others, which the paper shows as bars without numbers and "
            "states in words for these cases only. Cache scores say who contends, not how much "
            "that costs.",
        ),
        notes=(
            "120 is stated as almost that much, 0 as a normalised performance close to 1, 45 and "
            "-8 as limits. Pairs with IS.B are said to lose much, without a number.",
        ),
    )
