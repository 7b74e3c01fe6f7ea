"""The processor types of candidates and members."""

import functools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova.conf import CONF
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched import conf
from hpc_sched.core.arrays import Array
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.core.processors.processor import METADATA, Processor, of_cpu_info, types_of
from hpc_sched.core.processors.processor_ranking import ProcessorRanking
from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.io.fabric import Fabric

LOG = logging.getLogger(__name__)

Place = tuple[str, str | None]  # host and nodename


def of(
    states: Sequence[host_manager.HostState],
    positions: Array,
    members: Mapping[Place, int],
    cells: Collection[int],
    fabric: Fabric,
) -> HostProcessors:
    """Return the types of a request's candidates and of the hosts of its members.

    No query if all members are on candidates; else those of :func:`read_processors`.

    :param positions: of the HostStates that are candidates now; types of others are ignored
    :param members: VMs of the group that have a place
    :param cells: ids of the cells with members
    """
    places: list[Place] = [(state.host, state.nodename) for state in states]
    # The nodename of some members is not known; most service hosts have one node only.
    known = {*places, *((host, None) for host, _ in places)}
    elsewhere = sorted(members.keys() - known, key=lambda place: (place[0], place[1] or ""))
    read = read_processors(elsewhere, cells) if elsewhere else ({}, {})
    metadata, cpu_info = read or ({}, {})
    places += elsewhere
    in_metadata = [
        *([there.metadata.get(METADATA, "") for there in s.aggregates or ()] for s in states),
        *(metadata.get(host, []) for host, _ in elsewhere),
    ]
    reported = [parse_cpu_info(state.cpu_info) for state in states]
    reported += [parse_cpu_info(cpu_info.get(place)) for place in elsewhere]
    names = types_of(in_metadata, _in_file(places, fabric), reported)
    # The metadata of aggregates would come before what the topology says.
    unknown = dict.fromkeys(elsewhere if read is None else ())
    type_at = {**dict(zip(places, names, strict=True)), **unknown}
    return HostProcessors.of(
        names[: len(states)],
        reported[: len(states)],
        [int(state.vcpus_total or 0) for state in states],
        positions,
        _of_members(members, places, type_at),
        ProcessorRanking(CONF.hpc_sched.processor_order, conf.processor_speeds(CONF)),
    )


def _in_file(places: Iterable[Place], fabric: Fabric) -> list[str | None]:
    """Return the types that the topology file names."""
    hosts, topology = (fabric.name_of(*place) for place in places), fabric.topology
    return [topology.processor_of(name) if name in topology else None for name in hosts]


def _of_members(
    members: Mapping[Place, int], places: Iterable[Place], type_at: dict[Place, str | None]
) -> Counter[str | None]:
    """Return the number of members on each type.

    :param type_at: gets the type of each service host too
    """
    for host, node in places:
        type_at.setdefault((host, None), type_at[host, node])
    types: Counter[str | None] = Counter()
    for place, count in members.items():
        types[type_at[place]] += count
    return types


# Hosts of one kind report the same text: more entries than a cloud has kinds of hosts.
@functools.lru_cache(maxsize=256)
def parse_cpu_info(cpu_info: str | None) -> Processor | None:
    """Return the processor of a hypervisor's cpu_info, or None if it is invalid."""
    try:
        return of_cpu_info(json.loads(cpu_info or ""))
    except (RecursionError, TypeError, ValueError):
        return None


def read_processors(
    places: Collection[Place], cells: Collection[int]
) -> tuple[dict[str, list[str]], dict[Place, str]] | None:
    """Return the metadata by host and cpu_info by place of hosts that are no candidates.

    One query in the API database for the aggregates, one for the cells and one in each cell.
    Hosts of a cell that does not answer are missing, with a WARNING. None if the API database does
    not answer, likewise.
    """
    context = nova_context.get_admin_context()
    hosts = sorted({host for host, _ in places})
    metadata: dict[str, list[str]] = {}
    cpu_info: dict[Place, str] = {}
    try:
        row, member = api_models.AggregateMetadata, api_models.AggregateHost
        query = sa.select(member.host, row.value).where(
            row.aggregate_id == member.aggregate_id, row.key == METADATA, member.host.in_(hosts)
        )
        for host, value in databases.read_api(lambda: databases.api_rows(context, query)):
            metadata.setdefault(host, []).append(value)
        answers = databases.read_cells(context, dict.fromkeys(cells, hosts), _compute_nodes)
        cpu_info = {(host, node): text for host, node, text in answers.rows}
        problems, found = answers.problems, (metadata, cpu_info)
    except databases.OUTAGES as error:
        problems, found = [databases.api_problem(error)], None
    except Exception:
        LOG.exception("Processors of members are not known")
        problems, found = [], None
    if new := request_deadline.not_yet_logged(problems):
        LOG.warning("Processors of members are not known: %s", "; ".join(new))
    return found


def _compute_nodes(context: nova_context.RequestContext, hosts: list[str]) -> list[Any]:
    node = main_models.ComputeNode
    query = sa.select(node.host, node.hypervisor_hostname, node.cpu_info)
    return databases.cell_rows(context, query.where(node.host.in_(hosts), node.deleted == 0))
