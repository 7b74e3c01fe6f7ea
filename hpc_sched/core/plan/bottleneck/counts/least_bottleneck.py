"""The least bottleneck with which something is possible, among all that there can be."""

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
    link. Those of one capacity are bisected, then what the next one has between the two that are
    left: after the first capacity these are few. O(log VMs) calls for each capacity.

    :param capacities: of all links
    :param is_possible: whether there is a plan within a bottleneck; if so, within each greater one
    :param at_least: none less is possible
    """
    if is_possible(at_least):
        return at_least
    in_order = sorted(set(capacities))
    # No link carries more than half of the VMs send to the other half.
    too_low, found = (
        Fraction(0),
        Fraction((everyone // 2) * (everyone - everyone // 2), in_order[0]),
    )
    for capacity in in_order:
        low = most_apart(everyone, too_low, capacity)  # too low
        high = most_apart(everyone, found, capacity)
        if high <= low:
            continue
        top = Fraction(high * (everyone - high), capacity)
        if top < found:
            if not is_possible(top):
                too_low = max(too_low, top)
                continue
            found = top
        while high - low > 1:
            middle = (low + high) // 2
            bound = Fraction(middle * (everyone - middle), capacity)
            if is_possible(bound):
                high, found = middle, bound
            else:
                low, too_low = middle, bound
    return found
