"""What is true of every plan of least bottleneck, whatever the fabric and the group."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.constraints import Bounds
from hpc_sched.core.plan.planner import solve
from hpc_sched.core.plan.result import Plan
from tests.unit import fabrics
from tests.unit.bottleneck_cases import LinkedCase
from tests.unit.test_bottleneck_milp import values_of
from tests.unit.test_planner_properties import cases


@st.composite
def linked_cases(draw: st.DrawFn) -> LinkedCase:
    """Draw a group, and the capacities of its links."""
    case = replace(draw(cases()), pack_hosts=draw(st.booleans()))
    most = draw(st.sampled_from([1, 3, 40, 10**9]))

    def rates(names: list[str]) -> dict[str, int]:
        drawn = st.lists(st.integers(1, most), min_size=len(names), max_size=len(names))
        return dict(zip(names, draw(drawn), strict=True))

    return LinkedCase(
        case,
        rates([switch.name for switch in case.fabric.switches]),
        rates(list(case.fabric.hosts)),
        draw(st.none() | st.fractions(0, 2, max_denominator=10)),
    )


def planned(linked: LinkedCase) -> Plan:
    """Return the plan of a drawn case; cases without one are drawn again."""
    return fabrics.only_plans(linked.answer())


def without_bounds(linked: LinkedCase) -> LinkedCase:
    """Return a case without bounds on harm and on leaves."""
    return replace(linked, case=replace(linked.case, max_leaves=None, min_leaves=0), tradeoff=None)


def of_least_hops(linked: LinkedCase) -> Plan:
    """Return the plan without an objective; cases without one are drawn again."""
    case = linked.case
    bounds = Bounds(case.require, None, case.max_leaves, case.min_leaves)
    return fabrics.only_plans(solve(replace(linked.problem(), objective=None), case.count, bounds))


@given(linked_cases())
def test_a_plan_of_least_bottleneck_keeps_the_room_of_hosts(linked: LinkedCase):
    answer = planned(linked)
    assert sum(answer.hosts.values()) == linked.case.count == len(answer.places)
    for host, count in answer.hosts.items():
        assert 1 <= count <= linked.case.capacity[host]


@given(linked_cases())
def test_the_bottleneck_is_no_more_and_the_cost_no_less_than_in_the_plan_of_least_hops(
    linked: LinkedCase,
):
    answer, hops = planned(linked), of_least_hops(linked)
    bottleneck, harm, _ = values_of(linked, answer)
    least, of_hops, _ = values_of(linked, hops)
    assert bottleneck <= least
    if linked.case.pack_hosts:
        assert answer.hop_bytes >= hops.hop_bytes
    if linked.tradeoff is not None:
        assert harm <= of_hops * (1 + linked.tradeoff)


@given(linked_cases())
def test_without_a_trade_off_the_harm_is_at_most_that_of_the_plan_of_least_hops(linked: LinkedCase):
    linked = replace(linked, tradeoff=Fraction(0))
    harm_of_answer = values_of(linked, planned(linked))[1]
    assert harm_of_answer <= values_of(linked, of_least_hops(linked))[1]


@given(linked_cases(), st.data())
def test_the_order_of_the_description_and_of_the_dicts_changes_nothing(
    linked: LinkedCase, data: st.DataObject
):
    case = linked.case

    def turned(counts: Mapping[str, int]) -> dict[str, int]:
        return {name: counts[name] for name in data.draw(st.permutations(list(counts)))}

    other = replace(
        linked,
        case=replace(
            case,
            tree=fabrics.shuffled(data.draw, case.tree),
            capacity=turned(case.capacity),
            members=turned(case.members),
        ),
    )
    one, two = linked.answer(), other.answer()
    assert one == two
    if isinstance(one, Plan) and isinstance(two, Plan):
        assert one.places == two.places
        assert list(one.leaves.items()) == list(two.leaves.items())


@given(linked_cases(), st.integers(2, 1000))
def test_capacities_that_are_all_multiplied_change_no_plan(linked: LinkedCase, by: int):
    more = replace(
        linked,
        uplinks={name: by * rate for name, rate in linked.uplinks.items()},
        links={name: by * rate for name, rate in linked.links.items()},
    )
    assert linked.answer() == more.answer()


@given(linked_cases())
def test_a_bound_on_harm_that_all_plans_keep_changes_no_plan(linked: LinkedCase):
    linked = without_bounds(linked)
    without = planned(linked)
    # Of no harm at all, any multiple is none.
    if values_of(linked, of_least_hops(linked))[1]:
        assert replace(linked, tradeoff=Fraction(10**12)).answer() == without
