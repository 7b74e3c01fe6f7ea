"""The fragmentation price of a group that requires one switch of a level."""

from dataclasses import replace
from fractions import Fraction

from hpc_sched.core.fragmentation.price import LEAF, POD, FragmentationPrice
from hpc_sched.core.fragmentation.rates import MOST

# The rate of the level that a group requires is this many times as high: of the switches that hold
# the group it takes one of the fullest, since the next one is refused if none has room for it.
REQUIRED = 500


def where_required(price: FragmentationPrice, level: int) -> FragmentationPrice:
    """Return the price for a group of which one switch of a level must hold all VMs.

    :param level: with that of leaves, or of pods, a higher rate than that of the option
    """
    leaf, pod = price.rates.leaf, price.rates.pod
    if level == LEAF:
        return replace(price, rates=replace(price.rates, leaf=_raised(leaf)))
    if level == POD:
        return replace(price, rates=replace(price.rates, pod=_raised(pod)))
    return price


def _raised(rate: Fraction) -> Fraction:
    return min(rate * REQUIRED, Fraction(MOST))
