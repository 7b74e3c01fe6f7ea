"""The first table of the network study: runtimes over those of random hosts."""

from collections.abc import Iterator

from hpc_sched.experiments.experiment_table import Cell, Setting, Table, mean_and_width
from hpc_sched.experiments.network.compared_placements import PLACEMENTS, RANDOM
from hpc_sched.experiments.network.drawn_cluster import NetworkStudy
from hpc_sched.experiments.network.findings import findings
from hpc_sched.experiments.network.job_seconds import NEIGHBOURS
from hpc_sched.experiments.network.paired_runs import Case, PairedRuns

_DIGITS = 3  # of a runtime over another one


def table(runs: PairedRuns) -> Table:
    """Return a row for each kind of neighbours, number of ranks, pattern and placement."""
    study = runs.study
    columns = [name for ratio in study.ratios for name in (f"at {ratio:g}:1", f"± at {ratio:g}:1")]
    return Table(
        source="Network",
        title="runtime over that on random hosts",
        columns=("other jobs send", "ranks", "pattern", "placement", "leaves", *columns),
        rows=tuple(_rows(runs)),
        settings=settings(study),
        notes=(*_notes(study), *findings(runs)),
    )


def settings(study: NetworkStudy) -> tuple[Setting, ...]:
    """Return what the study assumes."""
    return (
        Setting("runs", str(study.runs), "paired by seed, 95 % intervals of Student's t"),
        Setting(
            "fat tree",
            f"{study.pods} pods of {study.leaves} leaves of {study.hosts} hosts",
            "assumed",
        ),
        Setting(
            "link of a host",
            f"{study.host_rate * 8 / 1e9:g} Gb/s, {study.host_latency * 1e6:g} us",
            "assumed",
        ),
        Setting("uplink of a leaf", "that of its hosts over the ratio", "varied"),
        Setting("uplink of a pod", "that of its leaves", "assumed"),
        Setting(
            "other jobs",
            f"rings of {study.ring} VMs on {100 * study.taken:g} % of hosts",
            "assumed",
        ),
        Setting(
            "communication", f"{100 * study.share:g} % of the runtime, alone on links", "assumed"
        ),
    )


def _rows(runs: PairedRuns) -> Iterator[tuple[Cell, ...]]:
    study = runs.study
    for neighbours in NEIGHBOURS:
        for ranks in study.ranks:
            for pattern in study.patterns:
                for name in PLACEMENTS:
                    if name != RANDOM:
                        cases = [
                            Case(neighbours, ranks, pattern, ratio, name) for ratio in study.ratios
                        ]
                        leaves = runs.leaves[ranks, name]
                        yield (
                            *(neighbours, ranks, pattern, name),
                            round(sum(leaves) / len(leaves), 1),
                            *(
                                cell
                                for case in cases
                                for cell in mean_and_width(runs.against(case), rounded)
                            ),
                        )


def rounded(part: float) -> float:
    """Return a runtime over another one with the digits of the tables."""
    return round(part, _DIGITS)


def _notes(study: NetworkStudy) -> Iterator[str]:
    yield (
        "A value is the runtime over that on random hosts with the same seed, mean of the runs. "
        "Below 1 the placement gains, above 1 it harms. Leaves are those with ranks, the mean."
    )
    yield (
        "Other jobs that send endless flows never compute, and so take more of the links than real "
        "ones: these rows overstate neighbours. In the other rows each ring communicates "
        f"{100 * study.share:g} % of its runtime where it has its hosts' links for itself, and the "
        "rings slow each other down; this is the more realistic case."
    )
    yield (
        f"A leaf has {(1 - study.taken) * study.hosts:.1f} free hosts on average: where no leaf "
        "holds all ranks, every placement needs uplinks."
    )
    if "bt" in study.patterns:
        beyond = [ranks for ranks in study.ranks if int(ranks**0.5) ** 2 != ranks]
        for ranks in beyond:
            yield (
                f"bt needs a square number: {int(ranks**0.5) ** 2} of {ranks} ranks send, the "
                "others only compute."
            )
    yield (
        "Stock Nova finds equal free hosts and takes them by name, which follows the fabric here: "
        "its ranks are in fabric order. Where names do not follow the fabric it is as random hosts."
    )
