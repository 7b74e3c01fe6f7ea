"""What a placement does to a runtime, by a stated model."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.exceptions import ConfigError
from hpc_sched.sim.cluster.cluster import Cluster, HostType, uniform
from hpc_sched.sim.runtime import runtime_model
from hpc_sched.sim.runtime.runtime_model import RuntimeModel, pairs_by_level
from hpc_sched.topology import Topology
from tests.unit import fabrics

LEVELS = ("leaf", "pod", "core")


def pairs_of(topology: Topology, *places: str) -> tuple[int, ...]:
    """Return the pairs of VMs on hosts that are named once a VM."""
    return pairs_of_counts(topology, Counter(map(topology.index_of, places)))


def pairs_of_counts(topology: Topology, counts: Mapping[int, int]) -> tuple[int, ...]:
    """Return the pairs of VMs by the index of each host."""
    hosts, vms = np.array([*counts.items()], dtype=np.int64).reshape(-1, 2).T
    return pairs_by_level(topology, hosts, vms)


@pytest.mark.parametrize(
    ("places", "pairs"),
    [
        ("", (0, 0, 0, 0, 0)),
        ("a1", (0, 0, 0, 0, 0)),
        ("a1 a1 a1", (3, 0, 0, 0, 0)),
        ("a1 a2", (0, 1, 0, 0, 0)),
        ("a1 b1", (0, 0, 1, 0, 0)),
        ("a1 c1", (0, 0, 0, 1, 0)),
        ("a1 a1 a2 b1 d2", (1, 2, 3, 4, 0)),
    ],
)
def test_pairs_are_counted_by_the_level_where_they_meet(places: str, pairs: tuple[int, ...]):
    assert pairs_of(fabrics.two_pods(), *places.split()) == pairs


def test_a_short_branch_meets_the_others_where_it_joins_them():
    assert pairs_of(fabrics.lopsided(), "c1", "c2", "a1", "b1") == (0, 1, 1, 4, 0)


def test_pairs_between_islands_come_last():
    #                                                      a1-b1  each of two with e1
    assert pairs_of(fabrics.islands(), "a1", "b1", "e1") == (0, 0, 1, 2)


FABRICS = [fabrics.two_leaves(), fabrics.two_pods(), fabrics.lopsided(), fabrics.islands()]


@given(st.sampled_from(FABRICS), st.lists(st.integers(0, 99), max_size=12))
def test_pairs_agree_with_hops(topology: Topology, places: list[int]):
    hosts = [topology.hosts[place % len(topology.hosts)] for place in places]
    expected = [0] * (topology.depth + 2)
    for one, other in combinations(hosts, 2):
        hops = topology.hops(one, other)
        expected[topology.depth + 1 if math.isinf(hops) else math.ceil(hops / 2)] += 1
    assert pairs_of(topology, *hosts) == tuple(expected)


def test_hosts_without_vms_do_not_count():
    assert pairs_of_counts(fabrics.two_pods(), {0: 2, 1: 0, 7: 1}) == (1, 0, 0, 2, 0)


def test_as_delivered_a_placement_does_nothing():
    assert RuntimeModel().factor((1, 2, 3, 4, 5), ("gold", None), 30.0) == 1.0


@pytest.mark.parametrize(
    ("pairs", "factor"),
    [
        ((0, 0, 0, 0, 0), 1.0),
        ((3, 0, 0, 0, 0), 1.0),
        ((0, 0, 2, 0, 0), 1.1),
        ((1, 1, 1, 1, 0), (1 + 1 + 1.1 + 1.25) / 4),
        ((0, 0, 0, 0, 1), 1.25),
    ],
    ids=["one VM", "one host", "one pod", "some everywhere", "islands have the highest factor"],
)
def test_a_job_is_slowed_by_the_mean_over_its_pairs(pairs, factor):
    model = RuntimeModel(hop_factors=(1.0, 1.0, 1.1, 1.25))
    assert model.factor(pairs) == pytest.approx(factor)


def test_islands_have_the_highest_factor_wherever_it_stands():
    assert RuntimeModel(hop_factors=(3.0, 1.0, 2.0)).factor((0, 0, 0, 5)) == 3.0


@pytest.mark.parametrize(
    ("processors", "factor"),
    [
        ((), 1.0),
        (("gold",), 0.8),
        (("gold", "bronze", "gold"), 2.0),
        (("gold", None), 1.0),
        (("gold", "unheard of"), 1.0),
    ],
    ids=["none", "a fast type", "the slowest counts", "no type", "a type without a speed"],
)
def test_a_job_waits_for_its_slowest_processor(processors, factor):
    model = RuntimeModel(speeds={"gold": 1.25, "bronze": 0.5})
    assert model.factor((0, 1, 0), processors) == factor


@pytest.mark.parametrize(
    ("base", "score", "factor"),
    [(1.5, 0.0, 1.0), (1.5, 2.0, 2.25), (1.0, 1e9, 1.0), (1.01, 1e9, 1e6), (2.0, 100.0, 1e6)],
    ids=["alone", "two units", "no interference", "beyond all numbers", "beyond all sense"],
)
def test_neighbours_slow_a_job_by_their_cache_score(base, score, factor):
    assert RuntimeModel(interference=base).factor((1,), (), score) == factor


def test_the_three_multiply():
    model = RuntimeModel((1.0, 1.0, 1.2), {"bronze": 0.5}, 1.5)
    assert model.factor((0, 0, 1), ("bronze",), 1.0) == pytest.approx(1.2 * 2 * 1.5)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"hop_factors": (1.0, 0.0)}, "hop factors: expected 1e-06 to 1e+06, found 0.0"),
        ({"speeds": {"a": math.nan}}, "speeds: expected 1e-06 to 1e+06, found nan"),
        ({"interference": math.inf}, "interference: expected 1e-06 to 1e+06, found inf"),
    ],
    ids=["zero", "nan", "infinity"],
)
def test_a_model_with_a_factor_out_of_bounds_is_refused(arguments, error):
    with pytest.raises(ConfigError) as caught:
        RuntimeModel(**arguments)
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("text", "factors"),
    [
        ("host=1,leaf=1,pod=1.1,core=1.25", (1, 1, 1.1, 1.25)),
        (" core = 1.25 , pod=1.1", (1, 1, 1.1, 1.25)),
        ("pod=1.1", (1, 1, 1.1, 1.1)),
        ("host=0.9", (0.9, 0.9, 0.9, 0.9)),
        ("leaf=2,core=3", (1, 2, 2, 3)),
    ],
)
def test_a_level_that_is_not_named_has_the_factor_of_the_next_lower_one(text, factors):
    assert runtime_model.hop_factors(text, "x", LEVELS) == factors


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "expected LEVEL=FACTOR,..., found ''"),
        ("1.1", "expected LEVEL=FACTOR,..., found '1.1'"),
        ("rack=1.1", "with names of host, leaf, pod, core, found 'rack'"),
        ("pod=1,pod=2", "each name once, found 'pod again'"),
        ("pod=0", "expected pod from 1e-06 to 1e+06, found '0'"),
        ("pod=-1", "expected pod from 1e-06 to 1e+06, found '-1'"),
        ("pod=inf", "expected pod from 1e-06 to 1e+06, found 'inf'"),
        ("pod=1;core=2", "found 'pod=1;core'"),
    ],
)
def test_what_states_no_factors_is_refused(text, error):
    with pytest.raises(ConfigError) as caught:
        runtime_model.hop_factors(text, "--hop-factors", LEVELS)
    assert str(caught.value).startswith("--hop-factors: expected ")
    assert error in str(caught.value)


def of_types(*types: str | None) -> Cluster:
    """Return a cluster of one host of each type."""
    topology = Topology.from_tree({"leaf": [f"n{i}" for i in range(len(types))]})
    return replace(uniform(topology, HostType(1, 0)), processors=types)


ICELAKE = "Intel Icelake 2x32x2"


@pytest.mark.parametrize(
    ("types", "stated", "speeds"),
    [
        (("gold", "silver"), {"gold": 1, "silver": 0.8}, {"gold": 1, "silver": 0.8}),
        (("gold", "silver"), {"gold": 3000, "silver": 2130}, {"gold": 1, "silver": 0.71}),
        (("gold", "silver"), {"gold": 3, "silver": 2.13}, {"gold": 1, "silver": 0.71}),
        (("gold", "silver"), {"gold": 1.25, "silver": 1}, {"gold": 1, "silver": 0.8}),
        (("gold", "silver"), {"silver": 0.8}, {"silver": 0.8}),
        (("gold", "silver"), {"gold": 1.5}, {"gold": 1.5}),
        (("gold", None), {"gold": 1.5}, {"gold": 1.5}),
        (
            (f"{ICELAKE} +a", f"{ICELAKE} +b", "x"),
            {ICELAKE: 2, f"{ICELAKE} +b": 4, "x": 1},
            {f"{ICELAKE} +a": 0.5, f"{ICELAKE} +b": 1, "x": 0.25},
        ),
        (("gold", "silver"), {}, {}),
    ],
    ids=[
        "relative numbers stay",
        "frequencies in MHz",
        "frequencies in GHz",
        "the fastest is that of the trace",
        "a slow type among others, which have 1",
        "a fast type among others, which have 1",
        "a fast type among hosts of unknown type, which have 1",
        "an entry for all types of a label",
        "none",
    ],
)
def test_speeds_are_relative_to_the_fastest_type_or_to_those_without(types, stated, speeds):
    assert runtime_model.relative_speeds(stated, "x", of_types(*types)) == speeds


def test_hosts_that_take_no_vm_need_no_speed():
    """Bare-metal nodes, which have no vcpus, and a host that is down, of types without a speed."""
    there = of_types("gold", "silver", "old", None, "fast")
    total = there.total.copy()
    total[3] = 0
    there = replace(there, total=total, down=frozenset((2, 4)))
    stated = {"gold": 3000.0, "silver": 1500.0}
    assert runtime_model.relative_speeds(stated, "x", there) == {"gold": 1, "silver": 0.5}
    found = runtime_model.relative_speeds({**stated, "fast": 6000.0}, "x", there)
    assert found == {"gold": 1, "silver": 0.5, "fast": 2}


@pytest.mark.parametrize(
    ("types", "stated", "error"),
    [
        (("a b +c", "gold"), {"golden": 1}, "TYPE=NUMBER,... with names of a b +c, gold, found"),
        ((None,), {"gold": 1}, "TYPE=NUMBER,... with names of nothing, found 'gold'"),
        (
            ("gold", "old", "silver"),
            {"gold": 3000, "silver": 2130},
            "a speed of the processors of every host, or speeds relative to 1, that of hosts "
            "without: found gold with 3000, and hosts of old without",
        ),
        (
            ("gold", None),
            {"gold": 3000},
            "a speed of the processors of every host, or speeds relative to 1, that of hosts "
            "without: found gold with 3000, and hosts of unknown type without",
        ),
    ],
    ids=[
        "no type of the cluster",
        "no type at all",
        "frequencies of some types only",
        "frequencies beside hosts of unknown type",
    ],
)
def test_speeds_that_do_not_fit_the_cluster_are_refused(types, stated, error):
    with pytest.raises(ConfigError) as caught:
        runtime_model.relative_speeds(stated, "--speeds", of_types(*types))
    assert str(caught.value).startswith(f"--speeds: expected {error}")


@given(st.lists(st.integers(0, 7), min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_hosts_does_not_matter(places, rng):
    topology = fabrics.two_pods()
    counts = Counter(places)
    shuffled = list(counts.items())
    rng.shuffle(shuffled)
    assert pairs_of_counts(topology, dict(shuffled)) == pairs_of_counts(topology, counts)


def test_pairs_of_a_large_job_are_exact():
    topology = Topology.from_tree(
        {"core": {f"leaf{i}": [f"n{i}-{j}" for j in range(50)] for i in range(200)}}
    )
    counts = dict.fromkeys(np.arange(10_000).tolist(), 1_000)
    assert sum(pairs_of_counts(topology, counts)) == math.comb(10_000_000, 2)
    assert pairs_of_counts(topology, counts)[:2] == (
        10_000 * math.comb(1_000, 2),
        200 * (math.comb(50_000, 2) - 50 * math.comb(1_000, 2)),
    )
