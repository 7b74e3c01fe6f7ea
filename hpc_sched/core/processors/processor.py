"""Processors as hypervisors report them, and the names of their types."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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
    shared = {label: frozenset.intersection(*each) for label, each in of_label.items()}
    names: dict[Processor | None, str] = {
        found: " +".join([found.label, *sorted(found.features - shared[found.label])])
        for found in known
    }
    return [names.get(found) for found in processors]
