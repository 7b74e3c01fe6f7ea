"""What several checks read: the compute nodes in Nova's databases, and the topology."""

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import nova.conf
import sqlalchemy as sa
from nova import context as nova_context
from nova.db.main import models as main_models
from oslo_utils import timeutils

from hpc_sched import exceptions, masking
from hpc_sched import topology as topology_
from hpc_sched.configuration import topology_options
from hpc_sched.nova_glue.io import databases
from hpc_sched.status.finding import Findings, warning
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class InspectedCompute:
    """One compute node; on bare metal a service host owns several."""

    host: str
    nodename: str
    enabled: bool  # whether its compute service takes new instances
    failed_builds: int = 0  # since the last one that succeeded


class InspectedCloud:
    """The cloud that nova.conf, which ``CONF`` has read, names.

    Compute nodes and topology are read at the first use. One that cannot be read is not tried
    again: every check that needs it gets the same error.
    """

    def __init__(self) -> None:
        self._read: dict[str, Any] = {}

    def computes(self) -> databases.CellAnswers[InspectedCompute]:
        """Return the compute nodes or raise DatabaseError. One query for cells and one in each."""
        return self._once("computes", lambda: self.from_cells("compute nodes", computes_of_cell))

    def topology(self) -> Topology:
        """Return the topology that nova.conf names, or raise TopologyError."""
        return self._once("topology", described_topology)

    def schedulers(self) -> list[str]:
        """Return the hosts whose nova-scheduler is up, sorted, or raise DatabaseError. One query.

        Reads the database in which nova-scheduler itself reports, that of [database].
        """
        return self._once(
            "schedulers",
            lambda: self.from_database("nova-schedulers", schedulers_up, "database"),
        )

    def from_cells(
        self, what: str, read: Callable[[nova_context.RequestContext, list[str]], list[Read]]
    ) -> databases.CellAnswers[Read]:
        """Return the rows that ``read`` finds in each cell; DatabaseError names ``what``.

        One query for the cells, and those of ``read`` in each.
        """
        return self.from_database(what, lambda context: databases.read_cells(context, None, read))

    def from_database(
        self,
        what: str,
        read: Callable[[nova_context.RequestContext], Read],
        section: str = "api_database",
    ) -> Read:
        """Return what ``read`` finds in one of Nova's databases; DatabaseError names ``what``.

        :param section: of nova.conf, with the connection to that database
        """
        try:
            return read(nova_context.get_admin_context())
        except Exception as error:
            # Drivers, SQLAlchemy, oslo.db and Nova have no exception in common.
            raise exceptions.DatabaseError(
                f"The {what} cannot be read from Nova's "
                f"{'API database' if section == 'api_database' else 'database'}: "
                f"{masking.first_line(error)}. Run this where nova-scheduler runs, as its user, "
                f"and see [{section}] connection in nova.conf."
            ) from error

    def _once(self, what: str, read: Callable[[], Read]) -> Read:
        if what not in self._read:
            try:
                self._read[what] = read()
            except exceptions.HPCSchedError as error:
                self._read[what] = error
        found = self._read[what]
        if isinstance(found, exceptions.HPCSchedError):
            raise found
        return cast(Read, found)


def unread_cells(computes: databases.CellAnswers[Any], what: str) -> Findings:
    """Yield a warning for each cell that did not answer: its computes are not ``what``."""
    for cell in computes.problems:
        yield warning(f"{cell}. Its computes are not {what}.")


def computes_of_cell(context: nova_context.RequestContext, _: list[str]) -> list[InspectedCompute]:
    """Return the compute nodes of one cell; as the scheduler, skip those without a service."""
    node, service = main_models.ComputeNode, main_models.Service
    same_host = sa.and_(
        service.host == node.host, service.binary == "nova-compute", service.deleted == 0
    )
    query = (
        sa.select(node.host, node.hypervisor_hostname, service.disabled, node.stats)
        .join(service, same_host)
        .where(node.deleted == 0)
    )
    return [
        InspectedCompute(host, nodename, not disabled, _failed_builds(stats))
        for host, nodename, disabled, stats in databases.cell_rows(context, query)
    ]


def schedulers_up(context: nova_context.RequestContext) -> list[str]:
    """Return the hosts whose nova-scheduler has reported lately, sorted. One query."""
    service = main_models.Service
    query = sa.select(service.host, service.last_seen_up, service.created_at).where(
        service.binary == "nova-scheduler", service.deleted == 0
    )
    # A service that has just started may not have reported yet.
    oldest = timeutils.utcnow() - datetime.timedelta(seconds=CONF.service_down_time)
    rows = databases.cell_rows(context, query)
    return sorted({host for host, seen, made in rows if (seen or made or oldest) > oldest})


def _failed_builds(stats: str | None) -> int:
    """Return the number of failed builds in a compute node's statistics; 0 if unreadable."""
    try:
        return int(json.loads(stats or "{}")["failed_builds"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return 0


def described_topology() -> Topology:
    """Return the topology that the options name, read now."""
    driver, options = topology_options.source(CONF)
    try:
        return topology_.load(driver, **options)
    except exceptions.TopologyError:
        raise
    except Exception as error:
        # A site's own driver, or a database that one reads, may raise anything.
        raise exceptions.TopologyError(
            f"topology driver {driver!r} failed: {type(error).__name__}: {error}"
        ) from error
