"""The tables of Gupta2013's trace simulation: Table II, Figures 9a and 9b."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hpc_sched import files
from hpc_sched.experiments.gupta2013 import (
    BETAS,
    GUESSED,
    IN_LIMITS,
    JOBS,
    LEAST_FREE,
    LESS,
    LIMITED,
    MDOBP,
    SCORES,
    PlacementRule,
    TraceSetup,
)
from hpc_sched.experiments.gupta2013_counts import COLUMNS, DEFAULT_DONE, Study, lines, published
from hpc_sched.experiments.table import Cell, Table
from hpc_sched.sim.jobs import distributions, swf
from hpc_sched.sim.jobs.swf import TraceRow

# Published, when the default has completed DEFAULT_DONE.
MDOBP_DONE, IN_LIMITS_DONE = 910, 1060
PUBLISHED_JOBS, PUBLISHED_ABOVE_8 = 103_656, 33

BOUNDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # GB per core
_KB = 1024 * 1024  # in a GB

HOURS = (12.0, 24.0, 48.0)
SCARCE, RARE = (2, 2, 2, 8), (2, 2, 2, 2, 2, 2, 2, 8)  # GB of nodes, where memory is scarce


def memory_table(trace: files.Path) -> Table:
    """Return Table II: numbers of jobs that use more memory per core than some bounds.

    Reads the whole trace.

    :raises exceptions.TraceError: naming file and line of what cannot be read
    """
    per_core = [(record.memory_kb or 0) / (record.processors * _KB) for record in swf.read(trace)]
    rows: list[tuple[Cell, ...]] = [
        ("all jobs", PUBLISHED_JOBS, len(per_core), min(JOBS, len(per_core)))
    ]
    for bound in BOUNDS:
        known = PUBLISHED_ABOVE_8 if bound == 8 else None
        counts = [sum(each > bound for each in some) for some in (per_core, per_core[:JOBS])]
        rows.append((f"above {bound:g} GB", known, *counts))
    columns = ("memory per core", "published", "ours", f"ours, first {JOBS:,} jobs")
    note = (
        "Used memory (field 7) by processors (field 5). Of what was published only the numbers "
        "that are shown are known to us."
    )
    title = "Gupta2013, Table II: jobs of METACENTRUM-2009-2 by memory used per core"
    return Table(title, columns, tuple(rows), (note,))


def figure_9a(
    rows: Sequence[TraceRow], seed: int, runs: int, report: Callable[[str], None]
) -> Table:
    """Return Figure 9a: the jobs completed with MDOBP and with the default."""
    known = published("9a", MDOBP.name, MDOBP_DONE)
    found = lines("9a", tuple(_packed(GUESSED)), rows, range(seed, seed + runs), report)
    title = "Gupta2013, Figure 9a: jobs completed on 1,024 cores, MDOBP against the default"
    return Table(title, COLUMNS, (known, *found), _notes(GUESSED, runs))


def _packed(setting: TraceSetup) -> Iterator[Study]:
    only = (MDOBP,)
    yield Study(only, setting)
    for sizes in ((2, 8), (2, 4, 8), (2, 4, 8, 16, 32), (8, 16, 32), (16,)):
        yield Study(only, replace(setting, memories=sizes), "varied", _nodes(sizes))
    for hours in HOURS:
        yield Study(only, setting, "varied", f"counted after {hours:g} h", hours)
    full = replace(setting, arrivals="full load")
    for text, varied in (
        ("arrivals as in the trace", replace(setting, arrivals="trace")),
        ("arrivals at full load", full),
        ("jobs that do not fit are lost", replace(setting, queue="none")),
        ("full load, and jobs that do not fit are lost", replace(full, queue="none")),
        ("EASY backfilling", replace(setting, queue="easy")),
    ):
        yield Study(only, varied, "varied", text)
    # Memory scarcer than guessed; see the notes.
    whole = replace(setting, memory="per-processor")
    large = "VMs with the job's whole memory"
    for text, scarce in (
        (_nodes(SCARCE), replace(setting, memories=SCARCE)),
        (_nodes(RARE), replace(setting, memories=RARE)),
        (large, whole),
        (f"{large}, {_nodes(SCARCE)}", replace(whole, memories=SCARCE)),
    ):
        yield Study(only, scarce, "varied later", text)


def figure_9b(
    rows: Sequence[TraceRow], seed: int, runs: int, report: Callable[[str], None]
) -> Table:
    """Return Figure 9b: the same for MDOBP that keeps cache scores in limits."""
    known = published("9b", IN_LIMITS.name, IN_LIMITS_DONE)
    found = lines("9b", tuple(_limited(GUESSED)), rows, range(seed, seed + runs), report)
    return Table(
        title="Gupta2013, Figure 9b: the same with cache interference minded",
        columns=COLUMNS,
        rows=(known, *found),
        notes=(
            "Published is the best of Figure 9b; which beta and which runtimes it is of is not "
            "known to us.",
            "Guessed: a job's cache score, of each of its VMs, is drawn from "
            f"{SCORES}, 1 being 100,000 misses a second; alpha is "
            f"{GUESSED.alpha:g}. Jobs of several processors are sync, others async.",
            "Guessed: all jobs of these rows run shorter by so many percent, those of the "
            "default do not; that is an assumption of the paper, not a result.",
            "Rows of 0 % show what the limits cost: cores stay empty, which shorter runtimes have "
            "to make up for. All else as in Figure 9a.",
        ),
    )


def _limited(setting: TraceSetup) -> Iterator[Study]:
    yield Study(LIMITED, setting)
    best = PlacementRule(IN_LIMITS, max(BETAS), max(LESS))
    to_20, to_40 = map(distributions.read, ("uniform:0:20", "uniform:0:40"))
    for text, varied, after in (
        ("cache scores uniform:0:20", replace(setting, scores=to_20), None),
        ("cache scores uniform:0:40", replace(setting, scores=to_40), None),
        ("all jobs sync", replace(setting, sync="all"), None),
        ("no job sync: alpha alone", replace(setting, sync="none"), None),
        ("sync jobs alone run shorter", replace(setting, quicker="sync"), None),
        ("EASY backfilling", replace(setting, queue="easy"), None),
        ("counted after 24 h", setting, 24.0),
    ):
        yield Study((best,), varied, "varied", text, after, defaults=(LEAST_FREE,))


def _nodes(sizes: Sequence[int]) -> str:
    return f"nodes of {', '.join(map(str, sizes))} GB"


def _notes(setting: TraceSetup, runs: int) -> tuple[str, ...]:
    return (
        "Rows 'simulated' were chosen before any result of theirs was seen and are not fitted: "
        f"means of {runs} runs, which differ in the nodes' memories and the cache scores. Rows "
        "'varied' are of the first run alone, which saves time.",
        "Jobs are counted at the moment when the default has completed as many as published, "
        f"{DEFAULT_DONE} of {JOBS:,}: its own number is thereby no result. Where no hours are "
        "given it never does, and all are counted at the end.",
        "Which rule the published default is, is not clear: it is said to take the node with the "
        "least free processors, but CloudSim's own, VmAllocationPolicySimple, takes the one with "
        "the most. Both are shown.",
        f"Guessed: as many nodes of each memory, {', '.join(map(str, setting.memories))} GB, dealt "
        "at random; published is nodes of 2 GB and larger. A VM is one core, with the memory that "
        "its job used by processors.",
        "Guessed: all jobs are submitted at once. As the trace has them, they would keep 8 % of "
        "the cores busy, none would wait, and no placement could gain anything.",
        "Guessed: what does not fit waits, first come, first served. 'Full load': the times of "
        "submission are pushed together until jobs come as fast as all cores can do them.",
        "Why nothing is gained: were VMs to need no memory at all, the 801st job would end at the "
        "same moment, and at no moment would more than 5 jobs further be completed (seeds 1 to 3). "
        "Cores hold the queue up, not memory.",
        "Rows 'varied later' were added when this had been seen; memory is scarcer there than we "
        "believe it was. Where 32 nodes alone have 8 GB, the first of the queue waits for one of "
        "them while other cores are free, under MDOBP more often; why, was not looked into.",
    )
