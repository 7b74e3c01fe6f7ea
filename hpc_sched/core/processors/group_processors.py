"""The processor types of the hosts of one request, and of the group's members."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.result import Refusal
from hpc_sched.core.processors.processor import Processor
from hpc_sched.core.processors.processor_ranking import UNRANKED, ProcessorRanking, best_first


@dataclass(frozen=True, slots=True, eq=False)
class HostProcessors:
    """The processor types of the hypervisors of one request, and of the group's members."""

    hypervisors: Mapping[str, Mask]  # type to hypervisors; shape (hypervisors,) each
    cores: Mapping[str, int]  # type to the cores of its largest hypervisor
    members: Mapping[str | None, int]  # VMs of the group per type; None: type not known
    ranking: ProcessorRanking = UNRANKED
    features: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of each type, if known

    @classmethod
    def of(
        cls,
        names: Sequence[str | None],
        reported: Sequence[Processor | None],
        vcpus: Sequence[int],
        candidates: Array | Mask,
        members: Mapping[str | None, int],
        ranking: ProcessorRanking,
    ) -> Self:
        """Return the processor types of hypervisors, by the type and processor of each.

        :param vcpus: the number that counts as cores of a hypervisor of unknown processor
        :param candidates: index of hypervisors; types and cores of others are omitted
        """
        cores: dict[str, int] = {}
        features: dict[str, frozenset[str]] = {}
        for i in np.arange(len(names))[candidates].tolist():
            name, found = names[i], reported[i]
            if name is not None:
                cores[name] = max(cores.get(name, 0), found.all_cores if found else vcpus[i])
                if found:
                    features[name] = found.features
        types = np.array([name or "" for name in names], dtype=object)
        hypervisors = {name: types == name for name in sorted(cores)}
        return cls(hypervisors, cores, members, ranking, features)

    @property
    def of_members(self) -> dict[str, int]:
        """Members per known type."""
        return {name: count for name, count in self.members.items() if name is not None}

    def best_first(self) -> list[str]:
        """Return the types that the group may take, best first; only those of its members."""
        members = self.of_members
        cores = {
            name: self.cores[name] for name in self.hypervisors if not members or name in members
        }
        return best_first(cores, self.ranking, members, self.features)

    def fault_of_members(self) -> Refusal | None:
        """Return the refusal if the members' type is unknown or not unique, or None."""
        if unknown := self.members.get(None):
            return Refusal.alike(
                f"the processor type of {unknown} members of the group is not known"
            )
        if len(self.members) > 1:
            what = f"members of the group run on {len(self.members)} processor types"
            return Refusal(f"{what}: {', '.join(sorted(self.of_members))}", what)
        return None

    def refusal(self, count: int, most: int | None, requested: int) -> Refusal:
        """Return the refusal of a group that no single type holds.

        :param count: VMs that must fit
        :param most: the largest gang that fits on one type; None: not proven
        :param requested: VMs of the request; the tenant's text has no number from there on
        """
        members = ", ".join(sorted(self.of_members))
        types = ", ".join(sorted(self.best_first())) or "none is known"
        operator = tenant = f"no single processor type holds {count} VMs"
        most_on = "largest gang that fits on"
        number = "not proven" if most is None else most
        if most is None or most < requested:
            where = "the type of the members" if members else "one type"
            tenant += f": {most_on} {where}: {number}"
        if members:
            operator += f" on {members}, where its members run"
        where = "it" if members else "one type"
        return Refusal(f"{operator}: {most_on} {where}: {number} (types: {types})", tenant)
