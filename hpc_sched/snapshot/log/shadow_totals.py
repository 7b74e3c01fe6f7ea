"""Sums over decisions in shadow mode and what stock Nova did instead, by project and size."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hpc_sched.core.logged.decision_summary import PLANNING, READS, LoggedLanding
from hpc_sched.snapshot.log.shadow_lines import Line, bounded_seconds

# Projects with rows of their own; a log may have any number.
MAX_PROJECTS = 10_000
MAX_COST = 1e15  # of one request
ALL, OTHERS, UNKNOWN = "all", "others", "unknown"

# Why a request with a plan is not compared.
NO_LANDING = "without a record of where the VMs landed"
FAILED = "that Nova refused"
IN_PART = "of which Nova placed a part"
NOT_BY_TOPOLOGY = "of a class that is not placed by topology"
ON_ISLANDS = "without a cost, as of VMs on several islands"
PART_PLANNED = "with a plan for a part of the VMs"


SUMS = (
    "requests",
    "vms",
    "compared",  # with a plan and VMs that landed
    "plan_cost",
    "stock_cost",
    "plan_leaves",
    "stock_leaves",
    "refused_placed",  # that would have been refused, and Nova placed
    "refused_both",
    "refused_open",  # without a record of what Nova did
    "no_plan",
    "unproven",
    "degraded",
    "seconds",
    "read_seconds",  # of them
    "planning_seconds",
)


@dataclass(slots=True)
class Totals:
    """Sums over requests. Costs are Hop-Bytes of members and new VMs."""

    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SUMS, 0))  # by name
    not_compared: Counter[str] = field(default_factory=Counter)  # by reason

    @property
    def saved(self) -> float | None:
        """Part of the cost of stock Nova that the plans save; None without a cost."""
        cost = self.sums["stock_cost"]
        return 1 - self.sums["plan_cost"] / cost if cost else None

    def add(self, decided: Line, landed: LoggedLanding | None) -> None:
        """Add one request."""
        plan, outcome = decided.plan_of_request, _outcome(decided, landed)
        found: dict[str, float] = {
            "requests": 1,
            "vms": decided.vms,
            "unproven": not decided.proven,
            "degraded": bool(decided.degraded),
            "seconds": bounded_seconds(decided.seconds),
            "read_seconds": decided.seconds_of(READS),
            "planning_seconds": decided.seconds_of(PLANNING),
        }
        if outcome in self.sums:
            found[outcome] = 1
        else:
            self.not_compared[outcome] += 1
        if outcome == "compared" and plan is not None and landed is not None:
            found |= {
                "plan_cost": plan.hop_bytes or 0,
                "stock_cost": landed.hop_bytes or 0,
                "plan_leaves": len(plan.leaves),
                "stock_leaves": len(landed.leaves),
            }
        for name, number in found.items():
            self.sums[name] += number


@dataclass(slots=True)
class ShadowTotals:
    """All sums of a report."""

    by_row: dict[tuple[str, int], Totals] = field(default_factory=dict)  # project, size class
    first: str = ""  # times
    last: str = ""
    _projects: set[str] = field(default_factory=set)

    def add_all(self, pairs: Iterable[tuple[Line, LoggedLanding | None]]) -> Iterator[None]:
        """Add decisions; yield after each of them."""
        for decided, landed in pairs:
            project = decided.project or UNKNOWN
            if project not in self._projects and len(self._projects) >= MAX_PROJECTS:
                project = OTHERS
            self._projects.add(project)
            size = size_class(decided.vms)
            for key in ((project, size), (project, 0), ("", size), ("", 0)):
                self.by_row.setdefault(key, Totals()).add(decided, landed)
            self.first = min(self.first or decided.time, decided.time)
            self.last = max(self.last, decided.time)
            yield

    @property
    def all(self) -> Totals:
        """The sums over all requests."""
        return self.by_row.get(("", 0)) or Totals()

    def rows(self) -> Iterator[tuple[str, str, Totals]]:
        """Yield project, number of VMs and sums: each project by size, then all of them.

        A project with one size has one row.
        """
        sizes = Counter(project for project, _ in self.by_row)
        for (project, size), totals in sorted(self.by_row.items(), key=_order):
            if size or sizes[project] > 2 or not project:
                yield project or ALL, size_text(size), totals


def size_class(vms: int) -> int:
    """Return the most VMs of the class: 1, 4, 8, 16 and so on; 1 for a number that is not known."""
    return 1 if vms < 2 else max(4, 1 << (vms - 1).bit_length())


def size_text(size: int) -> str:
    """Return the name of a size class; 0 is all."""
    if not size:
        return ALL
    return "1" if size == 1 else f"{2 if size == 4 else size // 2 + 1}-{size}"


def _order(item: tuple[tuple[str, int], Totals]) -> tuple[bool, str, bool, int]:
    (project, size), _ = item
    return (not project, project, not size, size)


def _is_cost(value: float | None) -> bool:
    # Costs are whole numbers; a tiny one would make a ratio infinite.
    return value is not None and (value == 0 or 1 <= value <= MAX_COST)


def _outcome(decided: Line, landed: LoggedLanding | None) -> str:
    """Return the name of the sum that counts a request, or why it is not compared."""
    plan = decided.plan_of_request
    if decided.decision == "refused":
        if landed is None:
            return "refused_open"
        return "refused_both" if landed.released else "refused_placed"
    if decided.decision != "planned" or plan is None:
        return "no_plan"
    if landed is None:
        return NO_LANDING
    if landed.released:
        return FAILED
    if sum(landed.hosts.values()) < decided.vms:
        return IN_PART
    if landed.planned is None:
        return NOT_BY_TOPOLOGY
    if not (_is_cost(plan.hop_bytes) and _is_cost(landed.hop_bytes)):
        return ON_ISLANDS
    return PART_PLANNED if sum(plan.leaves.values()) < decided.vms else "compared"
