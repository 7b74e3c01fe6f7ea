"""The least bottleneck with which something is possible, among all that there can be."""

import itertools
from collections.abc import Callable, Iterable
from fractions import Fraction

from hpc_sched.core.plan.bottleneck.counts.achievable_counts import most_apart


def least_bottleneck(
    everyone: int,
    capacities: Iterable[int],
    is_possible: Callable[[Fraction], bool],
    at_least: Fraction = Fraction(0),
) -> Fraction:
    """Return the least bottleneck that is possible; of all that there can be the greatest is.

    A bottleneck is what k of all VMs send to the others, k * (everyone - k), by the capacity of a
    link. The middle ones of each capacity are weighed by their numbers: whether their median is
    possible or not, a quarter of all is left out. O(log(VMs * capacities)) calls, each after
    O(capacities) steps.

    :param capacities: of all links
    :param is_possible: whether there is a plan within a bottleneck; if so, within each greater one
    :param at_least: none less is possible
    """
    if is_possible(at_least):
        return at_least
    left = sorted(set(capacities))
    # No link carries more than half of the VMs send to the other half.
    half = everyone // 2
    too_low, found = at_least, Fraction(half * (everyone - half), left[0])
    while True:
        middles = []
        for capacity in left:
            low = most_apart(everyone, too_low, capacity)  # too low
            high = _most_below(everyone, found, capacity)
            if high > low:
                middle = (low + high + 1) // 2
                bottleneck = Fraction(middle * (everyone - middle), capacity)
                middles.append((bottleneck, high - low, capacity))
        if not middles:
            return found
        median = _median(middles)
        if is_possible(median):
            found = median
        else:
            too_low = median
        left = [capacity for *_, capacity in middles]


def _most_below(everyone: int, bottleneck: Fraction, capacity: int) -> int:
    """Return the most of some VMs, up to a half, that send less by a capacity than a bottleneck."""
    most = most_apart(everyone, bottleneck, capacity)
    return most - (Fraction(most * (everyone - most), capacity) == bottleneck)


def _median(weighed: list[tuple[Fraction, int, int]]) -> Fraction:
    """Return the weighted median of some numbers, each with its weight."""
    in_order = sorted(weighed)
    below = itertools.accumulate(weight for _, weight, _ in in_order)
    half = sum(weight for _, weight, _ in weighed) / 2
    return next(one[0] for one, sum_ in zip(in_order, below, strict=True) if sum_ >= half)
