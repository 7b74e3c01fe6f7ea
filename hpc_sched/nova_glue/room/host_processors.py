"""The processor types of candidates and members.

The metadata ``hpc:processor`` of a host's aggregates comes first; then the type in the topology
file; then vendor, model, sockets x cores x threads and features of the hypervisor's cpu_info.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import nova.conf
import numpy as np
import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from numpy.typing import NDArray
from oslo_log import log as logging

from hpc_sched.core.processors import (
    METADATA,
    HostProcessors,
    Processor,
    of_cpu_info,
    stated_type,
    type_names,
)
from hpc_sched.nova_glue.io import circuit_breaker, databases
from hpc_sched.nova_glue.request.group_state import GroupState

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

Place = tuple[str, str | None]  # host and nodename


def of(state: GroupState, positions: NDArray[np.int64]) -> HostProcessors:
    """Return the types of a request's candidates and of the hosts of its members.

    No query if all members are on candidates; else those of :func:`read_processors`.

    :param positions: of the HostStates that are candidates now; types of others are ignored
    """
    states = state.candidates
    places: list[Place] = [(found.host, found.nodename) for found in states]
    # The nodename of some members is not known; most service hosts have one node only.
    position = dict.fromkeys([*places, *((host, None) for host, _ in places)])
    elsewhere = sorted(
        (place for place in state.group.members if place not in position),
        key=lambda place: (place[0], place[1] or ""),
    )
    stated = [stated_type(_metadata(found.aggregates or ())) for found in states]
    reported: list[Processor | None] = [parse_cpu_info(found.cpu_info) for found in states]
    if elsewhere:
        metadata, cpu_info = read_processors(elsewhere, state.group.cells)
        places += elsewhere
        stated += [stated_type(metadata.get(host, ())) for host, _ in elsewhere]
        reported += [parse_cpu_info(cpu_info.get(place)) for place in elsewhere]
    fabric = state.fabric
    names: list[str | None] = []
    by_cpu_info = type_names(reported)
    for (host, node), said, measured in zip(places, stated, by_cpu_info, strict=True):
        name = fabric.name_of(host, node)
        in_file = fabric.topology.processor_of(name) if name in fabric.topology else None
        names.append(said or in_file or measured)
    cores: dict[str, int] = {}
    for found, type_name, processor in zip(states, names, reported, strict=False):
        if type_name is not None:
            number = (
                processor.sockets * processor.cores if processor else int(found.vcpus_total or 0)
            )
            cores[type_name] = max(cores.get(type_name, 0), number)
    type_at = dict(zip(places, names, strict=True))
    for host, node in places:
        type_at.setdefault((host, None), type_at[host, node])
    members: Counter[str | None] = Counter()
    for place, count in state.group.members.items():
        members[type_at[place]] += count
    types = np.array([name or "" for name in names[: len(states)]], dtype=object)
    here = sorted(set(types[positions].tolist()) - {""})
    return HostProcessors(
        hypervisors={name: types == name for name in here},
        cores=cores,
        members=members,
        order=CONF.hpc_sched.processor_order,
    )


def _metadata(aggregates: Iterable[Any]) -> list[str]:
    return [found.metadata[METADATA] for found in aggregates if METADATA in found.metadata]


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
) -> tuple[dict[str, list[str]], dict[Place, str]]:
    """Return the metadata by host and cpu_info by place of hosts that are no candidates.

    One query in the API database for the aggregates, one for the cells and one in each cell.
    Hosts of a database that does not answer are missing, with a WARNING.
    """
    context = nova_context.get_admin_context()
    hosts = sorted({host for host, _ in places})
    metadata: dict[str, list[str]] = {}
    cpu_info: dict[Place, str] = {}
    try:
        said = api_models.AggregateMetadata
        where = api_models.AggregateHost
        query = sa.select(where.host, said.value).join(
            said, said.aggregate_id == where.aggregate_id
        )
        wanted = query.where(said.key == METADATA, where.host.in_(hosts))
        for host, value in databases.read_api(lambda: databases.api_rows(context, wanted)):
            metadata.setdefault(host, []).append(value)
        answers = databases.read_cells(context, dict.fromkeys(cells, hosts), _compute_nodes)
        for host, node, text in answers.rows:
            cpu_info[host, node] = text
        problems = answers.problems
    except databases.OUTAGES as error:
        problems = [f"{databases.API_DATABASE}: {databases.reason(error)}"]
    except Exception:
        LOG.exception("Processors of members are not known")
        problems = []
    untold = circuit_breaker.not_yet_logged(problems)
    if untold:
        LOG.warning("Processors of members are not known: %s", "; ".join(untold))
    return metadata, cpu_info


def _compute_nodes(
    context: nova_context.RequestContext, hosts: list[str]
) -> list[tuple[str, str, str]]:
    """Return (host, nodename, cpu_info) of the compute nodes of some hosts. One query."""
    node = main_models.ComputeNode
    query = sa.select(node.host, node.hypervisor_hostname, node.cpu_info).where(
        node.host.in_(hosts), node.deleted == 0
    )
    with main_db.get_context_manager(context).reader.using(context) as session:
        return [tuple(row) for row in session.execute(query).all()]
