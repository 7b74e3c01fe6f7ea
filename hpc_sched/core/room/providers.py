"""Free amounts of a host's resource providers, and the candidates for one VM's allocation."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

# Resource provider uuid and resource class.
Inventory: TypeAlias = tuple[str, str]
# Amounts by inventory; of one allocation candidate, or what is free.
Amounts: TypeAlias = Mapping[Inventory, int]


def times(free: Amounts, candidate: Amounts) -> int:
    """Return how often a candidate can be claimed; 0 if an inventory is not known."""
    return min((max(free.get(key, 0), 0) // amount for key, amount in candidate.items()), default=0)


def without(free: Amounts, candidate: Amounts) -> dict[Inventory, int]:
    """Return what is free once a candidate has been claimed."""
    left = dict(free)
    for key, amount in candidate.items():
        left[key] = left.get(key, 0) - amount
    return left


def per_class(amounts: Amounts) -> dict[str, int]:
    """Return the sums over all providers, by resource class."""
    found: dict[str, int] = {}
    for (_, resource_class), amount in amounts.items():
        found[resource_class] = found.get(resource_class, 0) + amount
    return found


def most_by_class(free: Amounts, candidates: Sequence[Amounts]) -> dict[str, int]:
    """Return, by resource class, how many VMs at most fit if no other class counts.

    The providers of all candidates count together, each inventory in whole parts of the least
    amount that a candidate takes there. Never less than what fits. Without classes that not every
    candidate takes: VCPU in place of PCPU, for instance.
    """
    least: dict[Inventory, int] = {}
    demands = [per_class(candidate) for candidate in candidates]
    for candidate in candidates:
        for key, amount in candidate.items():
            least[key] = min(least.get(key, amount), amount)
    usable: dict[str, int] = {}
    for (provider, name), part in least.items():
        most = max(free.get((provider, name), 0), 0) // part * part
        usable[name] = usable.get(name, 0) + most
    return {
        name: usable[name] // min(demand[name] for demand in demands)
        for name in usable
        if all(name in demand for demand in demands)
    }
