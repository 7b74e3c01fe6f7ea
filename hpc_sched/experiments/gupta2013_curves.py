"""The curves of Gupta2013's Figure 9: jobs completed over time."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from hpc_sched.experiments.gupta2013 import LEAST_FREE, MDOBP, MOST_FREE, Curve, curve
from hpc_sched.experiments.gupta2013_tables import LIMITED
from hpc_sched.sim.jobs.swf import TraceRow

COLUMNS = ("placement", "seconds", "jobs")


def curves(rows: Sequence[TraceRow], seed: int) -> Iterator[Curve]:
    """Return the curves of Figures 9a and 9b, one at a time, as guessed.

    :param rows: the first jobs of the trace
    """
    for placement in (LEAST_FREE, MOST_FREE, MDOBP, *LIMITED):
        yield curve(rows, placement, seed)


def as_csv(found: Iterable[Curve]) -> str:
    """Return CSV with a row for every completed job: when it ended, and how many had by then."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in found:
        writer.writerows(
            (each.placement, f"{end:g}", number) for number, end in enumerate(each.ends, start=1)
        )
    return text.getvalue()
