"""A host takes as many VMs as any choice of their candidates allows."""

from collections.abc import Sequence
from itertools import combinations_with_replacement

from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.core.room.claim_search import claim_order
from hpc_sched.core.room.providers import Amounts, Inventory, without

ACCELERATORS: list[Inventory] = [("gpu1", "VGPU"), ("gpu2", "VGPU")]
NETWORKS: list[Inventory] = [("nic1", "SRIOV_NET_VF"), ("nic2", "SRIOV_NET_VF")]


def fit(order: Sequence[int], candidates: Sequence[Amounts], free: Amounts) -> bool:
    """True if all claims of an order fit one after the other."""
    for number in order:
        free = without(free, candidates[number])
    return all(amount >= 0 for amount in free.values())


def most_that_fit(candidates: Sequence[Amounts], free: Amounts, most: int) -> int:
    """Return the largest number of VMs by trying all combinations of candidates."""
    return next(
        count
        for count in range(most, -1, -1)
        if any(
            fit(order, candidates, free)
            for order in combinations_with_replacement(range(len(candidates)), count)
        )
    )


def test_two_vms_fit_though_the_first_candidate_would_leave_room_for_one():
    """One of each device is free; gpu1 and gpu2 both reach nic1, gpu1 alone reaches nic2.

    ::

        gpu1 ---- nic2
            \\
             nic1
            /
        gpu2
    """
    (gpu1, gpu2), (nic1, nic2) = ACCELERATORS, NETWORKS
    candidates = [{gpu1: 1, nic1: 1}, {gpu1: 1, nic2: 1}, {gpu2: 1, nic1: 1}]
    free = dict.fromkeys((gpu1, gpu2, nic1, nic2), 1)
    assert sorted(claim_order(candidates, free, 5)) == [1, 2]


@given(
    st.lists(
        st.tuples(st.sampled_from(ACCELERATORS), st.sampled_from(NETWORKS)),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.integers(0, 4),
)
def test_as_many_vms_fit_as_by_trying_all_combinations(
    pairs: list[tuple[Inventory, Inventory]], amounts: list[int], most: int
):
    candidates = [dict.fromkeys(pair, 1) for pair in pairs]
    free = dict(zip((*ACCELERATORS, *NETWORKS), amounts, strict=True))
    order = claim_order(candidates, free, most)
    assert fit(order, candidates, free)
    assert len(order) == most_that_fit(candidates, free, most)
