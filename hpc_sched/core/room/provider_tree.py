"""The resource providers of one host as plain values: its tree, and the shared ones it reaches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hpc_sched.core.room.providers import Amounts, Inventory

# Trait of a provider whose inventories the providers of its aggregates may use.
SHARES = "MISC_SHARES_VIA_AGGREGATE"


@dataclass(frozen=True, slots=True)
class ProviderInventory:
    """One resource class of a provider, in the units of Placement."""

    capacity: int  # (total - reserved) * allocation ratio, rounded down
    used: int = 0
    min_unit: int = 1
    max_unit: int | None = None  # None: no bound below the capacity
    step_size: int = 1

    @property
    def most(self) -> int:
        """The most that one VM gets now."""
        free = self.capacity - self.used
        return free if self.max_unit is None else min(free, self.max_unit)

    def takes(self, amount: int) -> bool:
        """True if one request group may have this amount of it now."""
        return self.min_unit <= amount <= self.most and amount % max(self.step_size, 1) == 0


@dataclass(frozen=True, slots=True)
class Provider:
    """One resource provider."""

    uuid: str
    parent: str | None = None
    inventories: Mapping[str, ProviderInventory] = field(default_factory=dict)
    traits: tuple[str, ...] = ()  # sorted
    aggregates: tuple[str, ...] = ()  # uuids, sorted; needed only where providers are shared

    def with_used(self, used: Mapping[str, int]) -> "Provider":
        """Return the provider with another usage of some of its resource classes."""
        return replace(
            self,
            inventories={
                name: replace(found, used=used.get(name, found.used))
                for name, found in self.inventories.items()
            },
        )


@dataclass(frozen=True, slots=True)
class ProviderTree:
    """The providers that one host's VMs may use."""

    own: tuple[Provider, ...]  # the root first
    shared: tuple[Provider, ...] = ()

    @classmethod
    def of(cls, own: Iterable[Provider], sharing: Iterable[Provider]) -> "ProviderTree":
        """Return a host's tree with those of the sharing providers that it reaches.

        Placement offers a sharing provider to all trees of which any provider is in one of its
        aggregates.
        """
        own = tuple(own)
        uuids = {provider.uuid for provider in own}
        aggregates = {aggregate for provider in own for aggregate in provider.aggregates}
        return cls(
            own,
            tuple(
                provider
                for provider in sharing
                if provider.uuid not in uuids and not aggregates.isdisjoint(provider.aggregates)
            ),
        )

    @property
    def root(self) -> Provider:
        """The provider of the compute node."""
        return self.own[0]

    @property
    def all(self) -> tuple[Provider, ...]:
        """All providers, in the order in which they are tried."""
        return self.own + self.shared

    def free(self) -> dict[Inventory, int]:
        """Return what is free of each inventory."""
        return {
            (provider.uuid, name): found.capacity - found.used
            for provider in self.all
            for name, found in provider.inventories.items()
        }

    def kind(self) -> tuple[object, ...]:
        """Return what trees have in common that differ in the uuids of their own providers."""
        numbers = {provider.uuid: number for number, provider in enumerate(self.own)}
        return (
            tuple((one.uuid, tuple(one.inventories.items())) for one in self.shared),
            tuple(
                (numbers.get(one.parent or ""), tuple(one.inventories.items()), one.traits)
                for one in self.own
            ),
        )

    def in_use(self) -> "ProviderTree":
        """Return the tree as if only what is used now were there, and free.

        Its allocation candidates are the allocations that a VM on the host may have.
        """

        def used(provider: Provider) -> Provider:
            found = provider.inventories.items()
            return replace(
                provider, inventories={name: ProviderInventory(stock.used) for name, stock in found}
            )

        return ProviderTree(tuple(map(used, self.own)), tuple(map(used, self.shared)))

    def less(self, amounts: Amounts) -> "ProviderTree":
        """Return the tree once some of what is used is free."""

        def less(provider: Provider) -> Provider:
            return provider.with_used(
                {
                    name: found.used - amounts.get((provider.uuid, name), 0)
                    for name, found in provider.inventories.items()
                }
            )

        return ProviderTree(tuple(map(less, self.own)), tuple(map(less, self.shared)))
