"""What the checks look at: Nova's databases and the fabric, each part read once, when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import nova.conf
import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models

from hpc_sched import conf, exceptions, masking
from hpc_sched import topology as topology_
from hpc_sched.nova_glue.io import databases
from hpc_sched.status import server_groups
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Compute:
    """One compute node; on bare metal a service host owns several."""

    host: str
    nodename: str
    enabled: bool  # whether its compute service takes new VMs


@dataclass(frozen=True, slots=True)
class Computes:
    """The compute nodes of all cells that have answered."""

    nodes: tuple[Compute, ...]  # by nodename, then host
    silent: tuple[str, ...]  # the cells that have not, and why

    @property
    def enabled(self) -> tuple[Compute, ...]:
        """The nodes whose compute service takes new VMs."""
        return tuple(node for node in self.nodes if node.enabled)


class Cloud:
    """A cloud while it is checked.

    What could not be read is not tried again: every check that needs it gets the same error.
    """

    def __init__(self) -> None:
        self._read: dict[str, Any] = {}

    def computes(self) -> Computes:
        """Return the compute nodes. One query for the cells and one in each.

        :raises exceptions.DatabaseError: where the API database cannot be read
        """
        return self._once("compute nodes", _computes)

    def aggregates(self) -> list[objects.Aggregate]:
        """Return the host aggregates, by name. One query.

        :raises exceptions.DatabaseError: where they cannot be read
        """
        return self._once("host aggregates", _aggregates)

    def groups(self) -> list[server_groups.ServerGroup]:
        """Return the server groups, see :func:`server_groups.read`. Two queries.

        :raises exceptions.DatabaseError: where they cannot be read
        """
        return self._once("server groups", server_groups.read)

    def flavors(self) -> Mapping[tuple[str, str], list[str]]:
        """Return the names of the flavors by what they say: extra spec and value. One query.

        Only extra specs of the ``hpc:`` namespace.

        :raises exceptions.DatabaseError: where they cannot be read
        """
        return self._once("flavors", _flavors)

    def topology(self) -> Topology:
        """Return the fabric that nova.conf names.

        :raises exceptions.TopologyError: where it cannot be read or is wrong
        """
        return self._remembered("topology", _topology)

    def _once(self, what: str, read: Callable[[nova_context.RequestContext], Read]) -> Read:
        def from_database() -> Read:
            try:
                return read(nova_context.get_admin_context())
            except Exception as error:
                # Drivers, SQLAlchemy, oslo.db and Nova have no exception in common.
                raise exceptions.DatabaseError(_why(what, error)) from error

        return self._remembered(what, from_database)

    def _remembered(self, what: str, read: Callable[[], Read]) -> Read:
        if what not in self._read:
            try:
                self._read[what] = read()
            except exceptions.HPCSchedError as error:
                self._read[what] = error
        found = self._read[what]
        if isinstance(found, exceptions.HPCSchedError):
            raise found
        answer: Read = found
        return answer


def _why(what: str, error: Exception) -> str:
    return (
        f"The {what} cannot be read from Nova's API database: {masking.first_line(error)}. "
        "Run this where nova-scheduler runs, as its user, and see [api_database] connection in "
        "nova.conf."
    )


def _computes(context: nova_context.RequestContext) -> Computes:
    answers = databases.read_cells(context, None, _compute_nodes)
    nodes = sorted(answers.rows, key=lambda node: (node.nodename, node.host))
    return Computes(tuple(nodes), tuple(answers.problems))


def _compute_nodes(context: nova_context.RequestContext, _: list[str]) -> list[Compute]:
    """Return the compute nodes of one cell; those without a service the scheduler skips too."""
    node, service = main_models.ComputeNode, main_models.Service
    same_host = sa.and_(
        service.host == node.host, service.binary == "nova-compute", service.deleted == 0
    )
    query = (
        sa.select(node.host, node.hypervisor_hostname, service.disabled)
        .join(service, same_host)
        .where(node.deleted == 0)
    )
    with main_db.get_context_manager(context).reader.using(context) as session:
        rows = session.execute(query).all()
    return [Compute(host, nodename, not disabled) for host, nodename, disabled in rows]


def _aggregates(context: nova_context.RequestContext) -> list[objects.Aggregate]:
    return sorted(objects.AggregateList.get_all(context), key=lambda found: (found.name, found.id))


def _flavors(context: nova_context.RequestContext) -> dict[tuple[str, str], list[str]]:
    said, flavor = api_models.FlavorExtraSpecs, api_models.Flavors
    query = (
        sa.select(said.key, said.value, flavor.name)
        .join(flavor, flavor.id == said.flavor_id)
        .where(said.key.startswith("hpc:", autoescape=True))
    )
    found: dict[tuple[str, str], list[str]] = {}
    for key, value, name in sorted(databases.api_rows(context, query), key=lambda row: row[2]):
        found.setdefault((key, (value or "").strip().lower()), []).append(name)
    return found


def _topology() -> Topology:
    driver, options = conf.topology_source(CONF)
    try:
        return topology_.load(driver, **options)
    except exceptions.TopologyError:
        raise
    except Exception as error:
        # A site's own driver, or a database that one reads, may raise anything.
        raise exceptions.TopologyError(
            f"topology driver {driver!r} failed: {type(error).__name__}: {error}"
        ) from error
