"""The leaves that take the most VMs where services take few, against all sets of small cases."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.by_service import service_rooms
from hpc_sched.core.by_service.coverage import CoverageSearch, LeafSet
from hpc_sched.core.by_service.coverage_bound import UNIT, LeafRooms, upper_bound
from hpc_sched.core.by_service.leaf_choice import LeafChoice
from hpc_sched.core.by_service.leaf_matching import matched
from hpc_sched.core.plan.time_limit import Effort

ANY = 1 << 62


@st.composite
def choices(draw: st.DrawFn) -> LeafChoice:
    """Return up to 7 leaves and 4 services, some leaves forced, some to be used."""
    leaves, services = draw(st.integers(2, 7)), draw(st.integers(1, 4))
    numbers = st.integers(0, 3)
    rooms = [[draw(numbers) for _ in range(services)] for _ in range(leaves)]
    allowed = np.array([draw(st.integers(1, 4)) for _ in range(services)])
    others = np.array([draw(st.sampled_from([0, 0, 1])) for _ in range(leaves)])
    forced = tuple(range(draw(st.integers(0, 1))))
    return LeafChoice(
        LeafRooms(np.minimum(rooms, allowed), allowed, others),
        forced,
        draw(st.integers(1, leaves - len(forced))),
        draw(st.integers(0, 3)),
    )


def sets_of(choice: LeafChoice) -> list[tuple[int, ...]]:
    """Return all sets of leaves that may be chosen."""
    new = [leaf for leaf in range(len(choice.leaves.others)) if leaf not in choice.forced]
    return [(*choice.forced, *some) for some in itertools.combinations(new, choice.number)]


def most_vms(choice: LeafChoice) -> int:
    """Return the most VMs that any set takes."""
    return max(choice.take(some) for some in sets_of(choice))


@given(choices())
def test_the_search_finds_the_best_of_all_sets(choice: LeafChoice):
    start = choice.first()
    assert choice.take(start.leaves) == start.vms
    assert len(start.leaves) <= len(choice.forced) + choice.number
    assert set(choice.forced) <= set(start.leaves)
    best, most = (start, start.vms) if choice.is_whole else choice.best(start, -1, ANY, Effort())
    assert choice.take(best.leaves) == best.vms == most_vms(choice)
    assert most == best.vms or choice.missing


@given(choices(), st.integers(1, 12))
def test_wanted_vms_are_found_or_proven_to_fit_nowhere(choice: LeafChoice, wanted: int):
    if choice.is_whole:
        return
    found, most = choice.best(choice.first(), wanted - 1, wanted, Effort())
    if most_vms(choice) >= wanted:
        assert choice.take(found.leaves) >= wanted
    else:
        assert found.vms < wanted
        assert most < wanted or choice.missing


@given(choices(), st.integers(0, 200))
def test_the_search_ends_early_with_what_it_has_found(choice: LeafChoice, thousands: int):
    if choice.is_whole:
        return
    effort = Effort()
    with effort.at_most(1000 * thousands):
        found, most = choice.best(choice.first(), -1, ANY, effort)
    assert choice.take(found.leaves) == found.vms <= most_vms(choice) <= most


@given(choices(), st.data())
def test_no_set_exceeds_the_bound_at_any_price(choice: LeafChoice, data: st.DataObject):
    leaves, number = choice.leaves, choice.number
    price = [data.draw(st.integers(0, UNIT)) for _ in leaves.allowed]
    floor = data.draw(st.integers(-1, 12))
    bound = upper_bound(leaves, number, np.array(price), floor, ANY, 5, Effort())
    every = itertools.combinations(range(len(leaves.others)), number)
    assert leaves.take(bound.chosen) == bound.found
    for some in every:
        assert leaves.take(some) <= bound.vms
        if leaves.take(some) > max(floor, bound.found):
            assert set(some) <= set(bound.may_help.tolist())


@given(choices())
def test_as_many_leaves_as_possible_take_a_vm_each(choice: LeafChoice):
    rooms, allowed = choice.leaves.rooms, choice.leaves.allowed
    leaves = range(len(rooms))
    found = matched(rooms, allowed, leaves, len(rooms))
    for leaf, service in found.items():
        assert rooms[leaf, service]
    assert (np.bincount(list(found.values()), minlength=len(allowed)) <= allowed).all()
    places = [service for service, most in enumerate(allowed) for _ in range(most)]
    used = 0
    for number in range(1, len(rooms) + 1):
        for some in itertools.combinations(leaves, number):
            orders = itertools.permutations(range(len(places)), number)
            if number > used and any(
                all(rooms[leaf, places[at]] for leaf, at in zip(some, order, strict=True))
                for order in itertools.islice(orders, 5000)
            ):
                used = number
    assert len(found) >= used


def test_a_set_that_greedy_choice_and_exchanges_miss_is_found():
    """Six leaves have three nodes of each of 32 services; 100 others have as many nodes, of any."""
    draw = random.Random("exact cover 0")
    dealt = [*range(32)] * 3
    draw.shuffle(dealt)
    rooms = np.zeros((106, 32), dtype=np.int64)
    for leaf in range(106):
        nodes = dealt[16 * (leaf - 100) :][:16] if leaf >= 100 else draw.choices(range(32), k=16)
        np.add.at(rooms[leaf], nodes, 1)
    leaves = LeafRooms(np.minimum(rooms, 3), np.full(32, 3), np.zeros(106, dtype=np.int64))
    choice, effort = LeafChoice(leaves, (), 6, 0), Effort()
    assert choice.first().vms < 96
    with effort.at_most(service_rooms.SUMS):
        found, _ = choice.best(choice.first(), 95, 96, effort)
    assert (found.vms, sorted(found.leaves)) == (96, [*range(100, 106)])


@pytest.mark.parametrize("wanted", [None, 5])
def test_equal_leaves_are_taken_in_their_order(wanted):
    rooms = LeafRooms(np.ones((6, 3), dtype=np.int64), np.full(3, 2), np.zeros(6, dtype=np.int64))
    choice = LeafChoice(rooms, (), 2, 0)
    assert choice.first() == LeafSet((0, 1), 6)
    search = CoverageSearch(rooms, choice.first(), choice.take, Effort())
    assert search.run((), 2, -1, wanted or ANY) >= 6
    assert search.best == LeafSet((0, 1), 6)
