"""Leaves with room as arrays: what VMs save there, and the bounds that leave out the rest.

::

                core
          /      |     \\
        pod     pod   (leaf)
       / | ..
    leaf leaf         1 to 4 hosts each
"""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.fragmentation.price import FragmentationPrice
from hpc_sched.core.fragmentation.rates import rates_of
from hpc_sched.core.plan.exact.group_tree import GroupTree
from hpc_sched.core.plan.exact.leaves.open_leaves import OpenLeaves
from hpc_sched.core.plan.exact.one_leaf import best_leaf
from hpc_sched.core.plan.exact.order import Greatest
from hpc_sched.core.plan.exact.pruning.filled_domains import filled_switch
from hpc_sched.core.plan.exact.pruning.saving_bounds import SavingBounds
from hpc_sched.core.plan.exact.search import Point, Search, tops_of
from hpc_sched.core.plan.leaf_hosts import leaf_gains, leaf_hosts
from hpc_sched.core.plan.problem import Problem
from hpc_sched.core.plan.switch_rooms import switches_with_room
from hpc_sched.core.plan.time_limit import Effort
from hpc_sched.topology import Topology


@st.composite
def groups(draw: st.DrawFn) -> OpenLeaves:
    """Draw the leaves of a fabric of two pods, maybe with a leaf below the core, and a group."""
    members = st.sampled_from([0, 0, 0, 1, 2]) if draw(st.booleans()) else st.just(0)
    largest = draw(st.sampled_from([1, 3, 9]))
    tree: dict[str, Any] = {"pod0": {}, "pod1": {}}
    if draw(st.booleans()):
        tree["alone"] = {}
    capacity, there = {}, {}
    for name, pod in tree.items():
        for leaf in range(draw(st.integers(1, 4))):
            hosts = [f"{name}-{leaf}-{i}" for i in range(draw(st.integers(1, 4)))]
            pod[f"{name}-{leaf}"] = hosts
            for host in hosts:
                capacity[host], there[host] = draw(st.integers(0, largest)), draw(members)
    if "alone" in tree:
        tree["alone"] = next(iter(tree["alone"].values()))
        kept = {*tree["alone"], *(h for h in capacity if not h.startswith("alone"))}
        capacity = {host: vms for host, vms in capacity.items() if host in kept}
        there = {host: vms for host, vms in there.items() if host in kept}
    capacity["pod0-0-0"] = max(capacity["pod0-0-0"], 1)
    count = draw(st.integers(1, min(sum(capacity.values()), 20)))
    problem = Problem.from_counts(
        topology=Topology.from_tree({"core": tree}),
        capacity=capacity,
        members=there,
        awaiting=count,
        group_id=draw(st.sampled_from("abc")),
    )
    price = None
    if draw(st.booleans()):
        rates = rates_of(draw(st.sampled_from([0, 0.1, 2])), draw(st.sampled_from([0.2, 0, 1])))
        price = FragmentationPrice(rates, draw(st.integers(1, 20)), draw(st.integers(1, 50)))
    return OpenLeaves.of(replace(problem, pack_hosts=draw(st.booleans()), price=price), count)


def tables(leaves: OpenLeaves) -> list[Array]:
    """Return the most pairs on one host of 0, 1, 2 .. VMs in each leaf, class by class."""
    problem = leaves.problem
    inside = leaf_hosts(problem, leaves.count, np.arange(len(problem.capacity)))
    sizes = np.minimum(leaves.rooms, leaves.count).tolist()
    return [
        leaf_gains(inside[int(leaf)], size)
        for leaf, size in zip(leaves.index.tolist(), sizes, strict=True)
    ]


def whole_search(leaves: OpenLeaves, tops: Array) -> Search:
    """Return the search with all leaves."""
    everyone = int(leaves.problem.members.sum()) + leaves.count
    most = 5 * leaves.scale * everyone**2 + leaves.most_charged
    greatest = Greatest(most, leaves.count, int(leaves.problem.capacity.sum()))
    if leaves.charges is not None:
        greatest = replace(greatest, excess=0)
    tree = GroupTree.of(leaves, Effort())
    return Search(tree, tops_of(tree, tops), greatest.weights())


@given(groups())
def test_pairs_on_hosts_are_those_of_the_classes_of_hosts(leaves: OpenLeaves):
    exact = tables(leaves)
    found = leaves.pair_tables(np.arange(len(exact))) if leaves.problem.pack_hosts else exact
    sizes = np.minimum(leaves.rooms, leaves.count)
    at_most = leaves.pairs(leaves.count)
    for i, (one, other) in enumerate(zip(exact, found, strict=True)):
        # In a leaf with several numbers of members others may be better.
        compared = np.less_equal if leaves.is_mixed[i] else np.equal
        assert compared(other, one).all()
        assert compared(at_most[i], one[sizes[i]])


@given(groups(), st.data())
def test_no_vm_saves_more_in_the_mean_than_the_bound_of_its_leaf(
    leaves: OpenLeaves, data: st.DataObject
):
    most = data.draw(st.integers(1, leaves.count))
    for i, pairs in enumerate(tables(leaves)):
        vms = np.arange(1, min(most, len(pairs) - 1) + 1)
        saved = pairs[vms] + leaves.rise[i] * vms * (vms - 1 + 2 * leaves.here[i])
        exact, bound = (saved / vms).max(), leaves.most_means(most)[i]
        assert bound >= exact - 1e-9
        assert leaves.is_mixed[i] or bound <= exact + 1e-9
    assert (leaves.means_on_largest(most) >= leaves.most_means(most) - 1e-9).all()


@given(groups())
def test_no_vms_save_more_below_a_switch_than_its_bound(leaves: OpenLeaves):
    topology = leaves.problem.topology
    [core] = [topology.switch_index(name) for name in topology.roots]
    search = whole_search(leaves, np.array([core]))
    bounds = SavingBounds.of(leaves, np.arange(len(leaves.index)))
    weights = search.weights
    for switch in (core, *search.tree.switches.get(core, [])):
        scores = search.tree.node(switch, weights).together.scores
        saved = weights.saved(scores, weights.leaves(scores))
        assert (bounds.below(switch)[: len(saved)] >= saved).all()


@given(groups(), st.data())
def test_one_leaf_is_the_best_of_those_with_room_and_says_whether_it_is_best_of_all(
    leaves: OpenLeaves, data: st.DataObject
):
    problem, count = leaves.problem, leaves.count
    level = data.draw(st.integers(1, problem.topology.depth))
    tops = switches_with_room(problem, count, level, Bounds())
    if not len(tops):
        return
    one = best_leaf(leaves, level, tops)
    search = whole_search(leaves, tops)
    best = Point.best_of(search)
    if one is None:
        assert len(best.counts().counts) > 1
        return
    assert one.saved <= best.saved
    if len(best.counts().counts) == 1:
        assert (one.top, {one.leaf: count}) == (best.counts().top, best.counts().counts)
        assert one.saved == best.saved
    assert not one.is_best or len(best.counts().counts) == 1


@given(groups())
def test_filling_saves_no_more_than_the_best_plan(leaves: OpenLeaves):
    problem, count = leaves.problem, leaves.count
    level = problem.topology.depth
    tops = switches_with_room(problem, count, level, Bounds())
    if len(tops):
        found = filled_switch(leaves, level, np.flatnonzero(leaves.are_below(tops, level))).saved
        assert found <= Point.best_of(whole_search(leaves, tops)).saved
