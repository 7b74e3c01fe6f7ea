"""Host aggregates of Nova's API database."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models

from hpc_sched.nova_glue.io import databases
from hpc_sched.topology.readers import aggregate_tree


class AggregateRow(NamedTuple):
    """A host aggregate with the metadata that name switches."""

    name: str
    hosts: tuple[str, ...]
    metadata: Mapping[str, str]


def read(keys: Collection[str]) -> tuple[AggregateRow, ...]:
    """Return the aggregates with one of some keys, or else ``hpc:`` keys, by name. Two queries."""
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
