"""The measures of a run as columns of tables: what is better, how numbers are written.

A measure becomes a column by a field of ``Summary``, its line in COLUMNS, and what it means in
MEANINGS.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from hpc_sched.sim.results import Summary

MORE, LESS = 1, -1  # what is better

# Smaller unit in s, how many make the larger unit, most of the larger unit, names.
_PAIRS = ((1, 60, 60, "min", "s"), (60, 60, 24, "h", "min"), (3600, 24, math.inf, "d", "h"))


class Scope(IntEnum):
    """The jobs that a measure is about, and so when a better number is a merit.

    Policies are compared by a measure only if these jobs are equally many for all of them, seed
    by seed.
    """

    SUBMITTED = 0
    DONE = 1
    DONE_ON_ONE_ISLAND = 2  # no Hop-Byte counts the other jobs
    # What VMs occupy is work only if every job takes the same time on any hosts, and none is
    # killed, lost or left: longer runtimes occupy more, and are no merit.
    OCCUPIED = 3
    # Core-hours, which shorter runtimes save: the same, but for the runtimes.
    SPENT = 4
    # The time of a run; a window cuts it.
    SPAN = 5


def duration(seconds: float) -> str:
    """Return a time with its two largest units: ``3d 4h``, ``5min 20s``, ``12.5 s``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    for part, parts, most, large, small in _PAIRS:
        # Rounded before it is compared: 59min 59.7s is 1h.
        whole, rest = divmod(round(seconds / part), parts)
        text = f"{whole:,}{large} {rest}{small}" if rest else f"{whole:,}{large}"
        if whole < most:
            break
    return text


def ratio(value: float) -> str:
    """Return a number with two decimals."""
    return f"{value:,.2f}"


def percent(share: float) -> str:
    """Return a share in percent with one decimal."""
    return f"{100 * share:.1f}"


def whole(value: float) -> str:
    """Return a number without decimals, or with one if it is not whole."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _money(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 100 else f"{amount:.3g}"


def plus_minus(mean: float, half_width: float, thousands: str = ",") -> tuple[str, str]:
    """Return a mean and half the width of its interval with the same decimals.

    The half width, above 0, has two digits that count: ``("1.254", "0.012")``.
    """
    decimals = max(0, 1 - math.floor(math.log10(half_width)))
    form = f"{thousands}.{decimals}f"
    return format(mean, form), format(half_width, form)


@dataclass(frozen=True, slots=True)
class Column:
    """A measure; the columns of one group have one heading above theirs."""

    group: str
    name: str  # with the unit
    field: str  # of Summary
    better: int  # MORE or LESS
    text: Callable[[float], str]
    scope: Scope = Scope.DONE
    is_important: bool = False  # in the table that needs no scrolling

    def value(self, summary: Summary) -> float | None:
        """Return the number of a run, or None if it has none that can be shown."""
        found = getattr(summary, self.field)
        return found if found is not None and math.isfinite(found) else None

    def interval(self, mean: float, half_width: float) -> tuple[str, str]:
        """Return a mean and half the width of its interval, which is above 0, as texts."""
        if self.text is duration:
            return duration(mean), duration(half_width)
        factor = 100 if self.text is percent else 1
        return plus_minus(factor * mean, factor * half_width)


_SUBMITTED, _, _ISLAND, _OCCUPIED, _SPENT, _SPAN = Scope

# A column is one line.
# fmt: off
COLUMNS = (
    Column("Jobs", "done", "done", MORE, whole, _SUBMITTED, is_important=True),
    Column("Jobs", "refused", "refused", LESS, whole, _SUBMITTED, is_important=True),
    Column("Jobs", "killed", "killed", LESS, whole, _SUBMITTED),
    Column("Jobs", "failed", "failed", LESS, whole, _SUBMITTED),
    Column("Jobs", "left", "left", LESS, whole, _SUBMITTED, is_important=True),
    Column("Jobs", "restarts", "restarts", LESS, whole),
    Column("Jobs", "apart", "apart", LESS, whole),
    Column("Time", "makespan", "makespan", LESS, duration, _SPAN, is_important=True),
    Column("Wait", "mean", "wait_mean", LESS, duration, is_important=True),
    Column("Wait", "median", "wait_median", LESS, duration),
    Column("Wait", "95 %", "wait_p95", LESS, duration),
    Column("Wait", "jobs held", "held", LESS, whole),
    Column("Bounded slowdown", "mean", "slowdown_mean", LESS, ratio, is_important=True),
    Column("Bounded slowdown", "95 %", "slowdown_p95", LESS, ratio),
    Column("Use", "vcpus, %", "vcpu_use", MORE, percent, _OCCUPIED),
    Column("Use", "memory, %", "memory_use", MORE, percent, _OCCUPIED),
    Column("Hop-Byte", "over least", "hop_byte_ratio", LESS, ratio, _ISLAND, is_important=True),
    Column("Hops", "per pair", "hops_per_pair", LESS, ratio, _ISLAND),
    Column("Leaves", "over least", "leaf_ratio", LESS, ratio, is_important=True),
    Column("Place", "as preferred, %", "as_preferred", MORE, percent),
    Column("Crossing jobs per leaf", "mean", "crossing", LESS, ratio),
    Column("Crossing jobs per leaf", "most", "most_crossing", LESS, whole),
    Column("Largest group", "in a pod, VMs", "largest_gang", MORE, whole),
    Column("Runtime", "factor", "factor_mean", LESS, ratio, is_important=True),
    Column("Goodput", "%", "goodput", MORE, percent),
    Column("Lost", "by neighbours, %", "lost", LESS, percent),
    Column("Uplinks of leaves", "in use, %", "uplink_use", LESS, percent),
    Column("Core-hours", "of VMs", "core_hours", LESS, whole, _SPENT),
    Column("Core-hours", "of hosts in use", "host_core_hours", LESS, whole, _SPENT),
    Column("Hours", "of hosts in use", "host_hours", LESS, whole, _SPENT),
    Column("Revenue", "in all", "revenue", MORE, _money, _OCCUPIED),
    Column("Revenue", "per host-hour", "revenue_per_host_hour", MORE, _money, _OCCUPIED),
    Column("Revenue", "per host core-hour", "revenue_per_host_core_hour", MORE, _money, _OCCUPIED),
)
# fmt: on
IMPORTANT = tuple(column for column in COLUMNS if column.is_important)
OTHERS = tuple(column for column in COLUMNS if not column.is_important)

MEANINGS = (
    ("Jobs", "refused: no place even on the empty cluster, or none when submitted with queue "
     "refuse; killed: ran beyond their walltime; failed: lost a host; left: ran or waited when "
     "the run stopped; restarts: of jobs that had lost a host; apart: done with VMs on several "
     "islands, which no Hop-Byte knows. The other columns are about jobs that were done."),
    ("Makespan", "From the first start to the last end."),
    ("Wait", "From submission to start; 95 % of the jobs done waited no longer than stated. Jobs "
     "held could have started earlier on hosts that they do not prefer; only with limits of "
     "waiting for a place."),
    ("Bounded slowdown", "Time from submission to end over the runtime, which counts as 10 s at "
     "least; 1 is a job that did not wait."),
    ("Use", "Share of the cluster's vcpus and memory that VMs had, over the makespan. No policy "
     "is marked as the best where placements change runtimes, or jobs were killed, failed, "
     "restarted or were left: VMs then use more without more jobs being done."),
    ("Hop-Byte over least", "Hops between VMs of a job, summed over pairs and jobs, over the sum "
     "of what each job would have alone on the cluster."),
    ("Hops per pair", "Hops between two VMs of one job, on average over all pairs."),
    ("Leaves over least", "Leaf switches of jobs over those that each would have alone."),
    ("Place as preferred", "Share of the jobs that started, on their last hosts; only with limits "
     "of waiting for a place."),
    ("Crossing jobs per leaf", "Jobs that have VMs under a leaf and under others: on average "
     "over leaves and time, and most at one leaf at one time."),
    ("Largest group", "VMs of one more job that fit below one switch of the level above leaves, "
     "mean over time: what the policy leaves to the next."),
    ("Runtime factor", "By which placements made jobs longer, on average; 1 without a model of "
     "runtimes."),
    ("Goodput", "Vcpu-hours of the jobs done, as long as they are stated to take, over those of "
     "the cluster in the measured time; only with a network."),
    ("Lost by neighbours", "Share of the time of jobs' hosts that they lost because other jobs "
     "used the same links; only with a network."),
    ("Uplinks of leaves", "Share of their rate that messages of jobs take, both directions, on "
     "average over time; only with a network."),
    ("Core-hours", "Of VMs: their vcpus times the hours that they ran, which users pay for. Of "
     "hosts in use: all cores of the hosts that had a VM, which the operator runs. All jobs that "
     "ran count, not only those done."),
    ("Revenue", "What users pay for the core-hours of their VMs, also over the hours, and the "
     "core-hours, of the hosts in use; only with prices. Marked as use is: longer runtimes are "
     "paid for too."),
)  # fmt: skip
