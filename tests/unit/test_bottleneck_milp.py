"""The plan of least bottleneck on 50 to 300 hosts against integer programs.

The VMs below a node are counted in unary, as :mod:`tests.unit.plan_milp` says. So a bottleneck
rules out that a variable is 1 and the next one 0, and the harm is linear in the variables.
"""

import functools
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pytest

from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.result import Plan
from tests.unit import test_planner_milp
from tests.unit.bottleneck_cases import LinkedCase, common_denominator
from tests.unit.plan_milp import Node, Program
from tests.unit.plan_oracle import pair_by_pair

SEEDS = 200
SIZES = [
    10,
    pytest.param(
        SEEDS, marks=pytest.mark.nightly("planner", "200 groups, some ten integer programs each")
    ),
]
TRADEOFFS = [None, Fraction(0), Fraction(1, 10), Fraction(3, 10)]

Row = tuple[Counter[int], float, float]


class LinkedProgram(Program):
    """The integer program of a group, with the capacities of links."""

    def __init__(self, linked: LinkedCase):
        """Make variables and rows."""
        case = linked.case
        super().__init__(
            case.tree,
            case.capacity,
            case.members,
            case.count,
            level=case.require and case.fabric.levels.index(case.require) + 1,
            max_leaves=case.max_leaves,
            min_leaves=case.min_leaves,
            rates={**linked.uplinks, **linked.links},
        )
        self.group = case.count + sum(case.members.values())
        self.linked = [node for node in self.nodes if node.parent is not None]
        self.scale = common_denominator(linked)

    def crossing(self, node: Node, new: int) -> int:
        """Return what the members and some new VMs below a node send to all others."""
        vms = node.members + new
        return vms * (self.group - vms)

    def least_bottleneck(self) -> Fraction | None:
        """Return the least bottleneck, or None without a plan: bisected over all that there are."""
        rates = {node.rate for node in self.linked}
        sizes = range(self.group // 2 + 1)
        found = sorted(
            {Fraction(vms * (self.group - vms), rate) for rate in rates for vms in sizes}
        )
        low, high = -1, len(found) - 1
        if self._solved({}, self.rows) is None:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self._solved({}, self.rows + self.within(found[middle])) is None:
                low = middle
            else:
                high = middle
        return found[high]

    def within(self, bottleneck: Fraction) -> list[Row]:
        """Return the rows of plans within a bottleneck: numbers that exceed it are ruled out."""
        rows: list[Row] = []
        for node in self.linked:
            for new in range(len(node.variables) + 1):
                if self.crossing(node, new) > bottleneck * node.rate:
                    row = Counter(node.variables[new - 1 : new] if new else ())
                    row.subtract(node.variables[new : new + 1])
                    rows.append((row, -math.inf, 0 if new else -1))
        return rows

    def harm(self) -> tuple[Counter[int], int]:
        """Return the sum of crossing by uplinks, times ``scale``: coefficients, and a constant."""
        coefficients, fixed = Counter[int](), 0
        for node in self.linked:
            if not node.level:
                continue
            fixed += self.scale // node.rate * self.crossing(node, 0)
            for new, variable in enumerate(node.variables):
                more = self.crossing(node, new + 1) - self.crossing(node, new)
                coefficients[variable] = self.scale // node.rate * more
        return coefficients, fixed


def random_case(seed: int) -> LinkedCase:
    """Return a group of one of the planner's large cases, with links of a few capacities."""
    case = replace(test_planner_milp.random_case(seed), pack_hosts=True)
    draw = random.Random(f"large case of a bottleneck {seed}")
    tradeoff = TRADEOFFS[seed % len(TRADEOFFS)]
    leaves = len(case.fabric.leaves)
    if tradeoff is None and draw.random() < 0.5:
        case = replace(case, max_leaves=draw.randint(1, leaves))
    elif tradeoff is None and draw.random() < 0.5:
        case = replace(case, min_leaves=draw.randint(2, leaves))
    rates = draw.choice([[4], [2, 4], [1, 2, 3, 4], [4, 4, 4, 1]])
    of_hosts = draw.choice([[60], [2], [1, 2]])
    return LinkedCase(
        case,
        {switch.name: draw.choice(rates) for switch in case.fabric.switches},
        {host: draw.choice(of_hosts) for host in case.fabric.hosts},
        tradeoff,
    )


def values_of(linked: LinkedCase, answer: Plan) -> tuple[Fraction, Fraction, int]:
    """Return bottleneck, harm and cost of a plan by definition."""
    fabric, everyone = linked.case.fabric, linked.case.together(answer.hosts)
    group, below = sum(everyone.values()), Counter[str]()
    for host, vms in everyone.items():
        for switch in fabric.ancestors(host):
            below[switch] += vms
    roots = set(fabric.roots)
    of_switches = [
        Fraction(vms * (group - vms), linked.uplinks[switch])
        for switch, vms in below.items()
        if switch not in roots
    ]
    of_hosts = [Fraction(vms * (group - vms), linked.links[host]) for host, vms in everyone.items()]
    cost = int(pair_by_pair(linked.case, everyone))
    return max(of_switches + of_hosts, default=Fraction(0)), Fraction(sum(of_switches)), cost


@dataclass
class Comparison:
    """What was compared, and the differences."""

    kinds: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


@functools.cache
def compared(number: int) -> Comparison:
    """Return the comparison of the first seeds."""
    found = Comparison()
    for seed in range(number):
        linked = random_case(seed)
        found.kinds[f"tradeoff {linked.tradeoff}"] += 1
        found.differences += [f"seed {seed}: {each}" for each in differences(linked, found.kinds)]
    return found


def differences(linked: LinkedCase, kinds: Counter[str]) -> Iterator[str]:
    """Yield in what an answer is not the best plan."""
    case, program, answer = linked.case, LinkedProgram(linked), linked.answer()
    bounds = Bounds(case.require, None, case.max_leaves, case.min_leaves)
    hops = solve(replace(linked.problem(), objective=None), case.count, bounds)
    if isinstance(hops, Plan) and linked.tradeoff is not None:
        harm, fixed = program.harm()
        most = values_of(linked, hops)[1] * (1 + linked.tradeoff) * program.scale
        program.rows.append((harm, -math.inf, math.floor(most) - fixed + 0.5))
    least = program.least_bottleneck()
    if least is None or not isinstance(answer, Plan) or not isinstance(hops, Plan):
        kinds["rejected"] += 1
        if least is not None or isinstance(answer, Plan) or isinstance(hops, Plan):
            yield f"{answer}, expected bottleneck {least}"
        return
    program.rows += program.within(least)
    best = program.best(keys=1)
    bottleneck, harm_of_plan, cost = values_of(linked, answer)
    yield from test_planner_milp.broken_by(case, answer)
    if linked.tradeoff is not None and harm_of_plan * program.scale > most:
        yield f"harm {harm_of_plan}, expected at most {most / program.scale}"
    if (bottleneck, (cost,), answer.is_proven) != (least, best, True):
        yield f"bottleneck {bottleneck}, cost {cost}, {answer}, expected {least}, {best}"
    kinds["less bottleneck"] += least < values_of(linked, hops)[0]
    kinds["a bound on leaves"] += linked.bounds_leaves


@pytest.mark.parametrize("number", SIZES)
def test_an_integer_program_has_the_bottleneck_and_the_cost_of_the_plan(number: int):
    found = compared(number).differences
    assert not found, f"{len(found)} differences in {number} groups\n" + "\n".join(found[:10])


@pytest.mark.parametrize("number", SIZES)
def test_large_groups_with_links_are_of_every_kind(number: int):
    kinds = compared(number).kinds
    for tradeoff in TRADEOFFS:
        assert kinds[f"tradeoff {tradeoff}"] >= number / 5, kinds
    assert kinds["less bottleneck"] >= number / 5, kinds
    assert kinds["a bound on leaves"] >= number / 20, kinds
