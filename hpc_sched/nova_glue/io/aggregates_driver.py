"""The ``aggregates`` driver: a topology from the metadata of Nova's host aggregates."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models

from hpc_sched import exceptions
from hpc_sched.nova_glue.io import databases
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import aggregate_tree
from hpc_sched.topology.readers.topology_driver import TopologyDriver


@dataclass(frozen=True, slots=True)
class AggregateRow:
    """A host aggregate with its ``hpc:`` metadata."""

    name: str
    hosts: tuple[str, ...]
    metadata: Mapping[str, str]


class AggregatesDriver(TopologyDriver):
    """Reads host aggregates with metadata such as ``hpc:leaf`` from the API database.

    Hosts are compute services: the nodes of one bare-metal service count as one host.
    """

    def __init__(self, **options: object) -> None:
        """Take no options.

        :raises exceptions.TopologyError: if the configuration names a file or a command
        """
        if options:
            raise exceptions.TopologyError(
                "topology_driver = aggregates reads Nova's database: expected none of "
                "topology_file, topology_command and what goes with them, found "
                f"{', '.join(sorted(options))}"
            )

    def load(self) -> Topology:
        """Return the topology that the aggregates describe now. Two queries.

        :raises exceptions.TopologyError: as :meth:`read` and :meth:`parse` do
        """
        return self.parse(self.read())

    def read(self) -> tuple[AggregateRow, ...]:
        """Return the aggregates with ``hpc:`` metadata, by name. Two queries.

        :raises exceptions.TopologyError: if the database does not answer
        """
        try:
            return _aggregates()
        except Exception as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise exceptions.TopologyError(
                f"host aggregates: the API database does not answer: {first}"
            ) from error

    def parse(self, description: tuple[AggregateRow, ...]) -> Topology:
        """Return the topology of aggregates.

        :raises exceptions.TopologyError: as :func:`aggregate_tree.topology_of` does
        """
        return aggregate_tree.topology_of(description)


def _aggregates() -> tuple[AggregateRow, ...]:
    metadata_row, aggregate, member = (
        api_models.AggregateMetadata,
        api_models.Aggregate,
        api_models.AggregateHost,
    )
    is_ours = metadata_row.key.startswith(aggregate_tree.PREFIX, autoescape=True)
    context = nova_context.get_admin_context()
    metadata: dict[int, dict[str, str]] = {}
    names: dict[int, str] = {}
    query = (
        sa.select(aggregate.id, aggregate.name, metadata_row.key, metadata_row.value)
        .join(metadata_row, metadata_row.aggregate_id == aggregate.id)
        .where(is_ours)
    )
    for id_, name, key, value in databases.api_rows(context, query):
        names[id_] = name
        metadata.setdefault(id_, {})[key] = value
    hosts: dict[int, list[str]] = {}
    listed = sa.select(metadata_row.aggregate_id).where(is_ours)
    query = sa.select(member.aggregate_id, member.host).where(member.aggregate_id.in_(listed))
    for id_, host in databases.api_rows(context, query):
        hosts.setdefault(id_, []).append(host)
    found = [
        AggregateRow(name, tuple(sorted(hosts.get(id_, ()))), metadata[id_])
        for id_, name in names.items()
    ]
    return tuple(sorted(found, key=lambda one: (one.name, one.hosts)))
