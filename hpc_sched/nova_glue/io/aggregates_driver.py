"""The ``aggregates`` driver: a topology from the metadata of Nova's host aggregates."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models

from hpc_sched import exceptions
from hpc_sched.nova_glue.io import databases
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import aggregate_tree
from hpc_sched.topology.readers.topology_driver import TopologyDriver


class AggregateRow(NamedTuple):
    """A host aggregate with the metadata that name switches."""

    name: str
    hosts: tuple[str, ...]
    metadata: Mapping[str, str]


class AggregatesDriver(TopologyDriver):
    """Reads host aggregates with metadata such as ``hpc:leaf``, from the API database.

    Hosts are compute services: the nodes of one bare-metal service count as one host.
    """

    def __init__(self, aggregate_key: Mapping[str, str] | None = None, **options: object) -> None:
        """Raise TopologyError for any other option, such as a file or a command.

        :param aggregate_key: level to key of metadata, bottom up, in place of ``hpc:`` keys
        """
        if options:
            raise exceptions.TopologyError(
                "topology_driver = aggregates reads Nova's database: expected none of "
                "topology_file, topology_command and what goes with them, found "
                f"{', '.join(sorted(options))}"
            )
        self.keys = dict(aggregate_key or {})

    def load(self) -> Topology:
        """Return the topology that the aggregates describe now. Two queries."""
        return self.parse(self.read())

    def read(self) -> tuple[AggregateRow, ...]:
        """Return aggregates with such metadata, by name; raises TopologyError. Two queries."""
        try:
            return _aggregates(self.keys.values())
        except Exception as error:
            raise exceptions.TopologyError(
                f"host aggregates: the API database does not answer: {databases.reason(error)}"
            ) from error

    def parse(self, description: tuple[AggregateRow, ...]) -> Topology:
        """Return the topology of aggregates; raises as :func:`aggregate_tree.topology_of` does."""
        return aggregate_tree.topology_of(description, self.keys)


def _aggregates(keys: Collection[str]) -> tuple[AggregateRow, ...]:
    aggregate, member = api_models.Aggregate, api_models.AggregateHost
    metadata_row = api_models.AggregateMetadata
    is_ours = (
        metadata_row.key.in_(sorted(keys))
        if keys
        else metadata_row.key.startswith(aggregate_tree.PREFIX, autoescape=True)
    )
    context = nova_context.get_admin_context()
    names: dict[int, str] = {}
    metadata: dict[int, dict[str, str]] = defaultdict(dict)
    query = (
        sa.select(aggregate.id, aggregate.name, metadata_row.key, metadata_row.value)
        .join(metadata_row, metadata_row.aggregate_id == aggregate.id)
        .where(is_ours)
    )
    for id_, name, key, value in databases.api_rows(context, query):
        names[id_] = name
        metadata[id_][key] = value
    hosts: dict[int, list[str]] = defaultdict(list)
    listed = sa.select(metadata_row.aggregate_id).where(is_ours)
    query = sa.select(member.aggregate_id, member.host).where(member.aggregate_id.in_(listed))
    for id_, host in databases.api_rows(context, query):
        hosts[id_].append(host)
    rows = (AggregateRow(names[id_], tuple(sorted(hosts[id_])), metadata[id_]) for id_ in names)
    return tuple(sorted(rows, key=lambda row: (row.name, row.hosts)))
