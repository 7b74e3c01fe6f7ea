"""The table of a site whose jobs share no uplink: the use that it reaches, by queue discipline."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hpc_sched.experiments.experiment_table import Setting as Assumed
from hpc_sched.experiments.experiment_table import Table, mean_and_width
from hpc_sched.experiments.objectives import mix_study
from hpc_sched.experiments.objectives.fabrics import HOPS, ISOLATED
from hpc_sched.experiments.objectives.mix_study import ALL, Setting, Simulate, results, scenario
from hpc_sched.sim.results import Result
from hpc_sched.sim.statistics.estimate import Estimate
from hpc_sched.topology.model import Topology

# Sizes of the leaves of a Clos network of 847 hosts: 31 leaves of 18 hosts, 17 of 17, in 3 pods.
PODS, LEAVES, HOSTS, WITH_MORE = 3, 16, 17, 31
QUEUES = ("fcfs", "easy", "conservative", "list-scheduling")
SIZES = "choice:1:2:4:8:16:32:64:128"
OBJECTIVES = (HOPS, ISOLATED)
_ENOUGH = 0.9  # use


@dataclass(frozen=True, slots=True)
class IsolatedStudy:
    """Saturated queues of jobs; all values assumed."""

    seed: int = 1
    runs: int = 10
    queues: tuple[str, ...] = QUEUES
    sizes: str = SIZES
    jobs: int = 400
    load: float = 1.5  # offered: the queue grows
    leaf_ratio: float = 8.0
    pod_ratio: float = 2.0
    share: float = 0.3  # communication of the runtimes

    @property
    def seeds(self) -> range:
        """The seed of each run."""
        return range(self.seed, self.seed + self.runs)


class Row(NamedTuple):
    """A queue discipline and an objective."""

    queue: str
    objective: str
    use: Estimate  # part of the hosts
    goodput: Estimate  # part of what the hosts can do
    lost: Estimate  # part of their hosts' time that jobs lose by neighbours
    wait: Estimate  # s


def topology() -> Topology:
    """Return the tree; ``n2-03-07`` is a host under ``leaf2-03`` in ``pod2``."""
    leaves = [(pod, leaf) for pod in range(1, PODS + 1) for leaf in range(1, LEAVES + 1)]
    tree: dict[str, dict[str, list[str]]] = {f"pod{pod}": {} for pod in range(1, PODS + 1)}
    for number, (pod, leaf) in enumerate(leaves):
        hosts = range(1, HOSTS + (number < WITH_MORE) + 1)
        tree[f"pod{pod}"][f"leaf{pod}-{leaf:02}"] = [f"n{pod}-{leaf:02}-{n:02}" for n in hosts]
    return Topology.from_tree({"core": tree})


def rows(study: IsolatedStudy, simulate: Simulate, progress: Callable[[str], object]) -> list[Row]:
    """Return a row for each queue discipline and objective.

    :raises exceptions.SimulationError: naming a run in which no measured job is done
    """
    fabric = topology()
    setting = Setting(PODS * LEAVES, study.pod_ratio, study.leaf_ratio, study.load, ALL)
    found = []
    for queue in study.queues:
        progress(f"{len(fabric.hosts)} hosts, queue {queue}")
        base = scenario(fabric, setting, study.sizes, study.jobs, study.share, queue)
        by_objective = results(base, study.seeds, simulate, OBJECTIVES)
        found += [_row(queue, name, runs) for name, runs in by_objective.items()]
    return found


def _row(queue: str, objective: str, runs: Sequence[Result]) -> Row:
    summaries = [run.summary for run in runs]
    return Row(
        *(queue, objective),
        use=Estimate.of_drawn([each.vcpu_use for each in summaries]),
        goodput=Estimate.of_drawn([each.goodput or 0.0 for each in summaries]),
        lost=Estimate.of_drawn([each.lost or 0.0 for each in summaries]),
        wait=Estimate.of_drawn([each.wait_mean or 0.0 for each in summaries]),
    )


def table(study: IsolatedStudy, found: Sequence[Row]) -> Table:
    """Return the table of rows."""
    return Table(
        source="Objectives, isolated",
        title=f"a full queue on {PODS} pods of {LEAVES} leaves, by queue discipline",
        columns=(
            *("queue", "objective", "use, %", "± use", "goodput, %", "± goodput"),
            *("lost, %", "± lost", "wait, s", "± wait"),
        ),
        rows=tuple(
            (
                *(row.queue, row.objective),
                *mean_and_width(row.use, _percent),
                *mean_and_width(row.goodput, _percent),
                *mean_and_width(row.lost, _percent),
                *mean_and_width(row.wait, round),
            )
            for row in found
        ),
        settings=(
            Assumed("runs", str(study.runs), "95 % intervals of Student's t"),
            Assumed(
                "hosts", f"31 leaves of {HOSTS + 1}, 17 of {HOSTS}", "sizes of an 847-host Clos"
            ),
            Assumed("uplinks", f"{study.leaf_ratio:g}:1, pods {study.pod_ratio:g}:1", "assumed"),
            Assumed("offered load", f"{100 * study.load:g} %", "assumed"),
            Assumed("jobs", f"{study.jobs} drawn", "assumed"),
            Assumed("sizes", study.sizes, "assumed"),
            Assumed("runtimes", mix_study.RUNTIMES, "assumed"),
            Assumed("measured", "{} % to {} % of the jobs".format(*mix_study.MEASURED), "assumed"),
        ),
        notes=tuple(_notes(found)),
    )


def _percent(part: float) -> float:
    return round(100 * part, 2) + 0.0  # no minus before a zero


def _notes(found: Sequence[Row]) -> Iterator[str]:
    yield (
        "Use is the part of the hosts that have a job while the measured jobs arrive; goodput "
        "counts these jobs as long as they take alone on their hosts by the hops plan. Lost is the "
        "share of their hosts' time that jobs lose by their neighbours."
    )
    isolated = [row for row in found if row.objective == ISOLATED.name]
    enough = [row.queue for row in isolated if row.use.mean >= _ENOUGH]
    most = max(row.lost.most for row in isolated)
    yield (
        f"isolated: the most that jobs lose in any run is {_percent(most):g} %. Use is at least "
        f"{100 * _ENOUGH:g} % with the queues {', '.join(enough) or 'none'}."
    )
