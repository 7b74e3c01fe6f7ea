"""What one VM requests of Placement: request groups, and what holds between them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hpc_sched.core.room.provider_tree import Provider


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """Resources and traits. Without a suffix, each class may come from another provider."""

    suffix: str
    resources: Mapping[str, int]  # resource class to amount, without zeros
    required: tuple[frozenset[str], ...] = ()  # of each set, one trait at least
    forbidden: frozenset[str] = frozenset()

    def fulfils(self, providers: Iterable[Provider]) -> bool:
        """True if providers have the required traits together, and none has a forbidden one."""
        traits = {trait for provider in providers for trait in provider.traits}
        return self.forbidden.isdisjoint(traits) and not any(
            any_of.isdisjoint(traits) for any_of in self.required
        )


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """The query for allocation candidates of one VM."""

    groups: tuple[RequestGroup, ...]
    group_policy: str | None = None  # none or isolate
    same_subtree: tuple[frozenset[str], ...] = ()  # suffixes
    root: RequestGroup = RequestGroup("", {})  # traits of the root provider

    @property
    def demand(self) -> dict[str, int]:
        """Resource class to amount, over all groups."""
        found: dict[str, int] = {}
        for group in self.groups:
            for name, amount in group.resources.items():
                found[name] = found.get(name, 0) + amount
        return dict(sorted(found.items()))

    def without_groups(self) -> "ResourceRequest":
        """Return a request for the same amounts that says nothing about providers."""
        return ResourceRequest((RequestGroup("", self.demand),))
