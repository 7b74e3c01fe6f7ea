"""The ``aggregates`` driver: a topology from the metadata of Nova's host aggregates."""

from collections.abc import Mapping
from typing import Any

from hpc_sched import exceptions
from hpc_sched.topology.model import Topology
from hpc_sched.topology.readers import aggregate_tree, driver_options
from hpc_sched.topology.readers.topology_driver import TopologyDriver


class AggregatesDriver(TopologyDriver):
    """Reads host aggregates with metadata such as ``hpc:leaf``, from the API database.

    Hosts are compute services: the nodes of one bare-metal service count as one host.
    """

    options = driver_options.of("aggregate_key")

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

    def read(self) -> tuple[Any, ...]:
        """Return aggregates with such metadata, by name; raises TopologyError. Two queries."""
        # Commands without Nova import the class, to know its options.
        from hpc_sched.nova_glue.io import aggregate_rows, databases

        try:
            return aggregate_rows.read(self.keys.values())
        except Exception as error:
            raise exceptions.TopologyError(
                f"host aggregates: the API database does not answer: {databases.reason(error)}"
            ) from error

    def parse(self, description: tuple[Any, ...]) -> Topology:
        """Return the topology of aggregates; raises as :func:`aggregate_tree.topology_of` does."""
        return aggregate_tree.topology_of(description, self.keys)
