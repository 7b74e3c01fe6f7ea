"""What is free of the providers of one request in Placement, as far as Placement has said it."""

from collections.abc import Callable, Iterable, Mapping

from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.room.providers import Amounts, Inventory
from hpc_sched.nova_glue.io.placement import Stock
from hpc_sched.nova_glue.read.room.providers.offered_candidates import Candidate, amounts_of


class FreeAmounts:
    """The free amounts of providers when they were read, less the claims of the request since."""

    def __init__(self) -> None:
        # Returns what the request has claimed for VMs that Nova has not placed: Placement counts
        # it as used, and it is free for them.
        self.held: Callable[[], Iterable[Candidate]] = tuple
        self.providers: set[str] = set()  # that were read
        self._free: dict[Inventory, int] = {}
        self._names: dict[str, tuple[str, ...]] = {}  # provider to the classes that were read

    def of(self, candidates: Iterable[Amounts]) -> dict[Inventory, int]:
        """Return what is free for some candidates; more than enough where it was not read."""
        return {
            key: self._free.get(key, 0) if key[0] in self.providers else UNBOUNDED * amount
            for found in candidates
            for key, amount in found.items()
        }

    def of_provider(self, provider: str) -> dict[str, int]:
        """Return what is free of a provider that was read, by resource class."""
        return {name: self._free[provider, name] for name in self._names.get(provider, ())}

    def claim(self, claimed: Amounts) -> None:
        """Subtract a claim of the request."""
        self._free |= {key: self._free.get(key, 0) - claimed[key] for key in claimed}

    def held_providers(self) -> set[str]:
        """Return the providers of what the request holds."""
        return {key[0] for candidate in self.held() for key in amounts_of(candidate)}

    def set_full(self, providers: Iterable[str], names: Iterable[str]) -> None:
        """Set that providers have nothing of some classes."""
        for provider in providers:
            self._free |= {(provider, name): 0 for name in names}
            self._names[provider] = (*{*self._names.get(provider, ()), *names},)
            self.providers.add(provider)

    def take_over(self, read: Mapping[str, Mapping[str, Stock]]) -> None:
        """Set what is free on providers that have just been read; what the request holds is."""
        self._names |= {provider: tuple(stocks) for provider, stocks in read.items()}
        self._free |= {
            (provider, name): stock.capacity - stock.used
            for provider, stocks in read.items()
            for name, stock in stocks.items()
        }
        for candidate in self.held() if read else ():
            for (provider, name), amount in amounts_of(candidate).items():
                if provider in read:
                    self._free[provider, name] = self._free.get((provider, name), 0) + amount
        self.providers |= read.keys()
