"""Processor types, and the order in which a group takes them (Gupta2012, homogeneity)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.plan.result import Refusal

METADATA = "hpc:processor"  # of host aggregates


@dataclass(frozen=True, slots=True)
class Processor:
    """The processors of a host, as its hypervisor reports them."""

    vendor: str
    model: str
    sockets: int
    cores: int
    threads: int
    features: frozenset[str]

    @property
    def all_cores(self) -> int:
        """Cores of all sockets."""
        return self.sockets * self.cores

    @property
    def label(self) -> str:
        """The name without features: vendor, model, sockets x cores x threads."""
        return f"{self.vendor} {self.model} {self.sockets}x{self.cores}x{self.threads}".strip()


def of_cpu_info(found: Any) -> Processor | None:
    """Return the processor of a hypervisor's cpu_info, or None if it is invalid.

    :param found: a mapping in the format of libvirt's driver
    """
    try:
        topology = found.get("topology") or {}
        return Processor(
            vendor=str(found.get("vendor") or ""),
            model=str(found.get("model") or ""),
            sockets=int(topology.get("sockets") or 1) * int(topology.get("cells") or 1),
            cores=int(topology.get("cores") or 1),
            threads=int(topology.get("threads") or 1),
            features=frozenset(str(name) for name in found.get("features") or ()),
        )
    except (AttributeError, OverflowError, TypeError, ValueError):
        return None


def types_of(
    metadata: Iterable[Iterable[str]],
    in_file: Iterable[str | None],
    reported: Sequence[Processor | None],
) -> list[str | None]:
    """Return the type of each host; None if it is unknown.

    The metadata ``hpc:processor`` of its aggregates comes first, different values joined; then
    the type in the topology file; then what the hypervisor reports, by :func:`type_names`.
    """
    return [
        ", ".join(sorted({value.strip() for value in values if value.strip()})) or named or measured
        for values, named, measured in zip(metadata, in_file, type_names(reported), strict=True)
    ]


def type_names(processors: Sequence[Processor | None]) -> list[str | None]:
    """Return the name of each processor's type; None for an unknown processor.

    Processors of one label with different features are different types. The name ends with the
    features that not all processors of the label have: ``Intel Icelake 2x32x2 +avx512f``.
    """
    known = {found for found in processors if found is not None}
    of_label: dict[str, list[frozenset[str]]] = {}
    for found in known:
        of_label.setdefault(found.label, []).append(found.features)
    names: dict[Processor | None, str] = {}
    for found in known:
        own = found.features - frozenset.intersection(*of_label[found.label])
        names[found] = " ".join([found.label, *(f"+{name}" for name in sorted(own))])
    return [names.get(found) for found in processors]


def best_first(
    cores: Mapping[str, int],
    order: Sequence[str] = (),
    prefer: Mapping[str, int] | None = None,
    features: Mapping[str, frozenset[str]] | None = None,
) -> list[str]:
    """Return the types in the order in which a group takes them.

    Types of members come first, most members first; then the types in ``order``, named with or
    without their features; then the others by cores of a host, most first; then by name.

    :param cores: type to the cores of its largest host
    :param order: the operator's order, best first
    :param prefer: type to the members that run on it
    :param features: type to all features of its processors. A name has only the features that
        distinguish types, so it changes with the hosts at hand: an entry of ``order`` that is no
        type's name holds for the types of its label with all its features.
    """
    place = {name: i for i, name in reversed(list(enumerate(order)))}
    entries = [(*_label_and_features(name), i) for name, i in place.items() if name not in cores]
    members = prefer or {}

    def key(name: str) -> tuple[int, int, int, str]:
        label, shown = _label_and_features(name)
        all_of_it = shown | (features or {}).get(name, frozenset())
        # The entry with the most features comes before the bare label.
        named = [
            (-len(wanted), i) for of, wanted, i in entries if of == label and wanted <= all_of_it
        ]
        named.append((0, place.get(label, len(place))))
        return -members.get(name, 0), place.get(name, min(named)[1]), -cores[name], name

    return sorted(cores, key=key)


def _label_and_features(name: str) -> tuple[str, frozenset[str]]:
    label, *features = name.split(" +")
    return label, frozenset(features)


@dataclass(frozen=True, slots=True, eq=False)
class HostProcessors:
    """The processor types of the hypervisors of one request, and of the group's members."""

    hypervisors: Mapping[str, Mask]  # type to hypervisors; shape (hypervisors,) each
    cores: Mapping[str, int]  # type to the cores of its largest hypervisor
    members: Mapping[str | None, int]  # VMs of the group per type; None: type not known
    order: Sequence[str] = ()  # the operator's order, best first
    features: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of each type, if known

    @classmethod
    def of(
        cls,
        names: Sequence[str | None],
        reported: Sequence[Processor | None],
        vcpus: Sequence[int],
        candidates: Array | Mask,
        members: Mapping[str | None, int],
        order: Sequence[str],
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
                own = found.all_cores if found else vcpus[i]
                cores[name] = max(cores.get(name, 0), own)
                if found:
                    features[name] = found.features
        types = np.array([name or "" for name in names], dtype=object)
        return cls({name: types == name for name in sorted(cores)}, cores, members, order, features)

    @property
    def of_members(self) -> dict[str, int]:
        """Members per known type."""
        return {name: count for name, count in self.members.items() if name is not None}

    def best_first(self) -> list[str]:
        """Return the types that the group may take, best first; only those of its members."""
        members = self.of_members
        known = [name for name in self.hypervisors if not members or name in members]
        cores = {name: self.cores[name] for name in known}
        return best_first(cores, self.order, members, self.features)

    def fault_of_members(self) -> Refusal | None:
        """Return the refusal if the members' type is unknown or not unique, or None."""
        if unknown := self.members.get(None):
            return Refusal.alike(
                f"the processor type of {unknown} members of the group is not known"
            )
        if len(self.members) > 1:
            names = ", ".join(sorted(self.of_members))
            what = f"members of the group run on {len(self.members)} processor types"
            return Refusal(f"{what}: {names}", what)
        return None

    def refusal(self, count: int, most: int, requested: int) -> Refusal:
        """Return the refusal of a group that no single type holds.

        :param count: VMs that must fit
        :param most: the largest gang that fits on one type
        :param requested: VMs of the request; the tenant's text has no number from there on
        """
        members = ", ".join(sorted(self.of_members))
        why = f"no single processor type holds {count} VMs"
        most_on = "largest gang that fits on"
        types = ", ".join(sorted(self.best_first())) or "none is known"
        tenant = why
        if most < requested:
            where = "the type of the members" if members else "one type"
            tenant += f": {most_on} {where}: {most}"
        if members:
            why += f" on {members}, where its members run"
        where = "it" if members else "one type"
        return Refusal(f"{why}: {most_on} {where}: {most} (types: {types})", tenant)
