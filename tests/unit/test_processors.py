"""Processor types: what tells two apart, how they are named, which of them comes first."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.constraints import Bounds, Constraints
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.rejection import rejected
from hpc_sched.core.plan.result import Rejection
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.core.processor_choice import choose_processor
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.core.processors.processor import Processor, type_names
from hpc_sched.core.processors.processor_ranking import ProcessorRanking, best_first
from hpc_sched.topology import Topology

LABEL = "Intel Icelake-Server 2x32x2"


def processor(*features: str, model: str = "Icelake-Server", cores: int = 32) -> Processor:
    return Processor("Intel", model, 2, cores, 2, frozenset(features))


def test_a_type_is_named_by_vendor_model_and_sockets_cores_and_threads():
    assert type_names([processor("sse4", "avx512f")]) == [LABEL]


def test_hosts_alike_in_everything_are_of_one_type():
    assert type_names([processor("avx2", "sse4"), processor("sse4", "avx2")]) == [LABEL, LABEL]


def test_features_that_not_all_hosts_of_a_label_have_make_different_types():
    plain, wide, both = (
        processor("sse4"),
        processor("sse4", "avx512f"),
        processor("sse4", "avx512f", "amx"),
    )
    assert type_names([plain, wide, plain, both]) == [
        LABEL,
        f"{LABEL} +avx512f",
        LABEL,
        f"{LABEL} +amx +avx512f",
    ]


def test_features_that_each_host_has_for_itself_are_told_of_each():
    assert type_names([processor("a", "c"), processor("b", "c")]) == [f"{LABEL} +a", f"{LABEL} +b"]


def test_features_of_another_label_do_not_count():
    older = processor(model="Broadwell", cores=16)
    assert type_names([processor("avx512f"), older]) == [LABEL, "Intel Broadwell 2x16x2"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(processor(), processor(cores=28), id="cores"),
        pytest.param(processor(), processor(model="Sapphire"), id="model"),
        pytest.param(
            Processor("Intel", "x", 1, 64, 2, frozenset()),
            Processor("Intel", "x", 2, 32, 2, frozenset()),
            id="the same cores on more sockets",
        ),
        pytest.param(
            Processor("Intel", "x", 2, 32, 1, frozenset()),
            Processor("Intel", "x", 2, 32, 2, frozenset()),
            id="threads",
        ),
        pytest.param(
            Processor("Intel", "x", 2, 32, 2, frozenset()),
            Processor("AMD", "x", 2, 32, 2, frozenset()),
            id="vendor",
        ),
    ],
)
def test_whatever_differs_makes_two_types(a: Processor, b: Processor):
    first, second = type_names([a, b])
    assert first != second


def test_a_host_that_tells_nothing_has_no_type():
    assert type_names([None, processor(), None]) == [None, LABEL, None]
    assert type_names([]) == []


PROCESSORS = st.builds(
    Processor,
    st.sampled_from(["Intel", "AMD"]),
    st.sampled_from(["x", "y"]),
    st.integers(1, 2),
    st.integers(1, 2),
    st.integers(1, 2),
    st.frozensets(st.sampled_from("abc")),
)


@given(st.lists(st.none() | PROCESSORS, max_size=8))
def test_two_hosts_have_one_name_where_they_are_alike_and_only_there(
    processors: list[Processor | None],
):
    names = type_names(processors)
    assert len(set(zip(processors, names, strict=True))) == len(set(processors)) == len(set(names))


@given(st.lists(st.none() | PROCESSORS, max_size=8), st.data())
def test_the_names_do_not_depend_on_the_order_of_the_hosts(
    processors: list[Processor | None], data: st.DataObject
):
    turned = data.draw(st.permutations(processors))
    by_host = dict(zip(processors, type_names(processors), strict=True))
    assert type_names(turned) == [by_host[found] for found in turned]


@pytest.mark.parametrize(
    ("cores", "order", "members", "expected"),
    [
        pytest.param({"b": 64, "a": 64, "c": 128}, [], {}, "c a b", id="cores, then the name"),
        pytest.param({"a": 8, "b": 16, "c": 4}, ["c", "b"], {}, "c b a", id="the operator's order"),
        pytest.param({"a": 8, "b": 16}, ["x", "a"], {}, "a b", id="with a type that is not there"),
        pytest.param({"a": 8, "b": 9}, ["a", "b", "a"], {}, "a b", id="with one named twice"),
        pytest.param({"a": 8, "b": 16}, ["b"], {"a": 1}, "a b", id="members before all else"),
        pytest.param(
            {"a": 8, "b": 8, "c": 8}, ["a"], {"b": 1, "c": 3}, "c b a", id="most members first"
        ),
        pytest.param({"a": 8, "b": 9}, [], {"z": 4}, "b a", id="members on no type at hand"),
        pytest.param({}, ["a"], {"a": 1}, "", id="no type at all"),
    ],
)
def test_types_come_in_the_order_of_members_then_operator_then_cores_then_name(
    cores: dict[str, int], order: list[str], members: dict[str, int], expected: str
):
    assert best_first(cores, ProcessorRanking(order), Counter(members)) == expected.split()


def test_an_entry_without_features_names_its_label_with_any_features():
    cores = {f"{LABEL} +avx512f": 32, LABEL: 32, "AMD Milan 2x64x2": 64}
    assert best_first(cores, ProcessorRanking([LABEL]))[:2] == [LABEL, f"{LABEL} +avx512f"]
    assert best_first(
        {f"{LABEL} +amx +avx512f": 32, "AMD Milan 2x64x2": 64}, ProcessorRanking([LABEL])
    ) == [
        f"{LABEL} +amx +avx512f",
        "AMD Milan 2x64x2",
    ]


def test_an_entry_with_features_names_those_alone_and_comes_before_its_label():
    plain, wide, amx = LABEL, f"{LABEL} +avx512f", f"{LABEL} +amx"
    cores = {plain: 32, wide: 32, amx: 32, "AMD Milan 2x64x2": 64}
    assert best_first(cores, ProcessorRanking([wide, "AMD Milan 2x64x2", LABEL])) == [
        wide,
        "AMD Milan 2x64x2",
        plain,
        amx,
    ]
    assert best_first(cores, ProcessorRanking([wide])) == [wide, "AMD Milan 2x64x2", plain, amx]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3)),
    st.lists(st.sampled_from("abcdefg")),
    st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 2)),
    st.data(),
)
def test_the_order_is_total_and_every_type_stands_once(
    cores: dict[str, int], order: list[str], members: dict[str, int], data: st.DataObject
):
    turned = {name: cores[name] for name in data.draw(st.permutations(list(cores)))}
    found = best_first(cores, ProcessorRanking(order), members)
    assert found == best_first(turned, ProcessorRanking(order), members)
    assert sorted(found) == sorted(cores)


def test_no_gang_fits_on_a_type_whose_members_break_a_wish_themselves():
    """A rule that ignores ``max_leaves`` where all hosts have room, as the simulator's may::

            core
           /    \\
          l1     l2
          h1     h2      members on both, of the old type; room for 5 on h1, for 9 on h2
    """
    fabric = Topology.from_tree({"core": {"l1": ["h1"], "l2": ["h2"]}})
    group = GroupRequest(
        topology=fabric,
        tie=TieOrder(fabric, ""),
        host_index=None,
        room=np.array([5, 9]),
        members=np.array([1, 1]),
        left=6,
        awaiting=6,
        constraints=Constraints(max_leaves=1),
        homogeneous="true",
        processors=HostProcessors(
            {"old": np.array([True, False]), "new": np.array([False, True])},
            {"old": 8, "new": 16},
            {"old": 2},
        ),
    )

    def places(request: GroupRequest) -> int | Rejection:
        if int(request.room.sum()) >= request.left:
            return request.left
        return rejected(request.problem(), request.left, Bounds(most_leaves=1))

    refusal = choose_processor(group, places, lambda count: count)
    assert refusal is not None
    assert refusal.tenant == (
        "no single processor type holds 6 VMs: largest gang that fits on the type of the members: 0"
    )
