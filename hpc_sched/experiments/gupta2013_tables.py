"""The tables of Gupta2013's trace simulation: Table II, Figures 9a and 9b."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hpc_sched import files
from hpc_sched.experiments import gupta2013
from hpc_sched.experiments.gupta2013 import GUESSED, IN_LIMITS, JOBS, MDOBP, PlacementRule
from hpc_sched.experiments.gupta2013_counts import COLUMNS, DEFAULT_DONE, Study, lines, published
from hpc_sched.experiments.table import Cell, Table
from hpc_sched.sim.jobs import distributions, swf
from hpc_sched.sim.jobs.swf import TraceRow

# Published, when the default has completed DEFAULT_DONE.
MDOBP_DONE, IN_LIMITS_DONE = 910, 1060
PUBLISHED_JOBS, PUBLISHED_ABOVE_8 = 103_656, 33

BOUNDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # GB per core
_KB = 1024 * 1024  # in a GB

SCARCE, RARE = (2, 2, 2, 8), (2, 2, 2, 2, 2, 2, 2, 8)  # GB of nodes, where memory is scarce


def _nodes(sizes: Sequence[int]) -> str:
    return f"nodes of {', '.join(map(str, sizes))} GB"


def _varied(
    text: str, after: float | None = None, numbers: str = "varied", **guesses: Any
) -> Study:
    return Study((MDOBP,), replace(GUESSED, **guesses), numbers, text, after)


# Memory scarcer than guessed; see the notes.
_LATER = "varied later"
_LARGE = "VMs with the job's whole memory"

PACKING = (
    Study((MDOBP,)),
    *(
        _varied(_nodes(sizes), memories=sizes)
        for sizes in ((2, 8), (2, 4, 8), (2, 4, 8, 16, 32), (8, 16, 32), (16,))
    ),
    *(_varied(f"counted after {hours:g} h", hours) for hours in (12.0, 24.0, 48.0)),
    _varied("arrivals as in the trace", arrivals="trace"),
    _varied("arrivals at full load", arrivals="full load"),
    _varied("jobs that do not fit are lost", queue="none"),
    _varied("full load, and jobs that do not fit are lost", arrivals="full load", queue="none"),
    _varied("EASY backfilling", queue="easy"),
    *(_varied(_nodes(sizes), numbers=_LATER, memories=sizes) for sizes in (SCARCE, RARE)),
    _varied(_LARGE, numbers=_LATER, memory="per-processor"),
    _varied(f"{_LARGE}, {_nodes(SCARCE)}", numbers=_LATER, memory="per-processor", memories=SCARCE),
)

_BEST = PlacementRule(IN_LIMITS, max(gupta2013.BETAS), max(gupta2013.LESS))
INTERFERENCE = (
    Study(gupta2013.LIMITED),
    *(
        replace(study, placements=(_BEST,), defaults=(gupta2013.LEAST_FREE,))
        for study in (
            *(
                _varied(f"cache scores {scores}", scores=distributions.read(scores))
                for scores in ("uniform:0:20", "uniform:0:40")
            ),
            _varied("all jobs sync", sync="all"),
            _varied("no job sync: alpha alone", sync="none"),
            _varied("sync jobs alone run shorter", quicker="sync"),
            _varied("EASY backfilling", queue="easy"),
            _varied("counted after 24 h", 24.0),
        )
    ),
)


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


def figures(
    rows: Sequence[TraceRow], seed: int, runs: int, report: Callable[[str], None]
) -> Iterator[Table]:
    """Yield Figure 9a, the jobs completed with MDOBP and with the default, and Figure 9b.

    Figure 9b is the same for MDOBP that keeps cache scores in limits.
    """
    against = "jobs completed on 1,024 cores, MDOBP against the default"
    minded = "the same with cache interference minded"
    for name, title, placement, done, studies, notes in (
        ("9a", against, MDOBP.name, MDOBP_DONE, PACKING, _packing_notes(runs)),
        ("9b", minded, IN_LIMITS.name, IN_LIMITS_DONE, INTERFERENCE, _INTERFERENCE_NOTES),
    ):
        known = published(name, placement, done)
        found = lines(name, studies, rows, range(seed, seed + runs), report)
        yield Table(f"Gupta2013, Figure {name}: {title}", COLUMNS, (known, *found), notes)


def _packing_notes(runs: int) -> tuple[str, ...]:
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
        f"Guessed: as many nodes of each memory, {', '.join(map(str, GUESSED.memories))} GB, dealt "
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


_INTERFERENCE_NOTES = (
    "Published is the best of Figure 9b; which beta and which runtimes it is of is not "
    "known to us.",
    f"Guessed: a job's cache score, of each of its VMs, is drawn from {gupta2013.SCORES}, 1 being "
    f"100,000 misses a second; alpha is {GUESSED.alpha:g}. Jobs of several processors are sync, "
    "others async.",
    "Guessed: all jobs of these rows run shorter by so many percent, those of the default do not; "
    "that is an assumption of the paper, not a result.",
    "Rows of 0 % show what the limits cost: cores stay empty, which shorter runtimes have to make "
    "up for. All else as in Figure 9a.",
)
