"""A tree from host aggregates whose metadata name the switches above their hosts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers.level_tree import LEAF, LevelTree
from hpc_sched.topology.readers.reader_errors import Problems

PREFIX = "hpc:"
# Other keys of metadata and flavors with the same prefix. Kept current by
# test_no_extra_spec_and_no_processor_type_is_a_level in tests/unit/test_topology_aggregates.py.
NOT_LEVELS = {
    *("app_class", "app_name", "cache_score", "group_size", "min_size", "homogeneous"),
    *("max_leaves", "min_leaves", "objective", "pattern", "prefer", "processor", "require"),
    *("segment", "segment_level", "balance"),
}


class _HostAggregate(Protocol):
    """A host aggregate of Nova's database or of a snapshot; its hosts are service hosts."""

    @property
    def name(self) -> str: ...
    @property
    def hosts(self) -> Sequence[str]: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


def topology_of(
    aggregates: Iterable[_HostAggregate], keys: Mapping[str, str] | None = None
) -> Topology:
    """Return the topology that aggregates describe; see :class:`LevelTree`. Linear in their hosts.

    ``hpc:leaf`` names the leaf switch of an aggregate's hosts, ``hpc:pod`` or any other name the
    switch above it on that level; an aggregate may name one of them or several.

    :param keys: level to key of metadata, bottom up, in place of the keys with ``hpc:``
    :raises exceptions.TopologyError: where no aggregate has one of the keys, or none names a level,
        or they contradict each other: with every host or switch that is in two places
    """
    problems = Problems()
    tree = LevelTree(problems, tuple(keys or ()))
    with_hosts = (aggregate for aggregate in aggregates if aggregate.hosts)
    for aggregate in sorted(with_hosts, key=lambda one: one.name):
        _read(aggregate, keys, tree)
    problems.stop()
    missing = "host aggregate with hosts has metadata"
    stated = {level: f"{missing} {key}" for level, key in (keys or {}).items()}
    tree.require(stated, "topology_aggregate_key")
    if not keys and not tree.hosts:
        problems.note(
            None, f"no {missing} {PREFIX}{LEAF}: set it, or choose another topology_driver"
        )
    problems.stop()
    key = next(iter(keys.values())) if keys else f"{PREFIX}{LEAF}"
    return tree.topology(f"hosts in no aggregate with {key}")


def _read(aggregate: _HostAggregate, keys: Mapping[str, str] | None, tree: LevelTree) -> None:
    known = keys or {
        level: key
        for key in sorted(aggregate.metadata)
        if (level := key.removeprefix(PREFIX)) != key and level not in NOT_LEVELS
    }
    stated = ((level, key) for level, key in known.items() if key in aggregate.metadata)
    for level, key in stated:
        switch = str(aggregate.metadata[key]).strip()
        if level and switch:
            tree.add(level, switch, sorted(aggregate.hosts), f"aggregate {aggregate.name!r}")
        else:
            missing = "the name of a switch" if level else "the name of a level"
            tree.problems.note(None, f"aggregate {aggregate.name!r}: {key}: expected {missing}")
