"""The applications of the instances on the hosts, cached as long as they cannot change."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import nova.conf
import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models
from nova.db.main import models as main_models

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.nova_glue.instances.host_instances import HostInstances
from hpc_sched.nova_glue.instances.placed_instance import PlacedInstance
from hpc_sched.nova_glue.io import databases, serialized_objects
from hpc_sched.nova_glue.request import request_spec

CONF = nova.conf.CONF

# A source of its own: the first request after a start reads the RequestSpecs of all instances.
_REQUEST_SPECS = f"{databases.API_DATABASE}, requests of VMs"

# Largest cache that an incomplete read leaves unpruned, in instances.
_MAX_UNPRUNED = 200_000

Cached = TypeVar("Cached")
Place = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class _Creation:
    """What the request that created an instance says; it never changes."""

    hints: Mapping[str, Any] = field(default_factory=dict)  # hpc: ones
    group: str | None = None  # uuid of its server group
    is_multi_create: bool = False


@dataclass(frozen=True, slots=True)
class ApplicationCache:
    """What has been read about instances; replaced as a whole.

    Holds the instances of the last read, and those of cells that did not answer then.
    """

    options: tuple[Any, ...] = ()  # on which the applications depend
    creations: Mapping[str, _Creation] = field(default_factory=dict)  # by uuid
    # By uuid, with the id of the flavor.
    applications: Mapping[str, tuple[int | None, Application]] = field(default_factory=dict)


cache = ApplicationCache()


def reset() -> None:
    """Empty the cache, as in a process that has just started."""
    global cache
    cache = ApplicationCache()


def read(
    context: nova_context.RequestContext, host_instances: HostInstances
) -> tuple[dict[Place, list[Application]], tuple[str, ...]]:
    """Return the applications on each host, and what could not be read.

    For instances outside the cache: one query for their RequestSpecs in the API database, one for
    the cells and one for their flavors in each cell. None if all are cached.
    """
    global cache
    before = cache
    options = _options()
    cached = before.applications if before.options == options else {}
    instances = host_instances.all()
    uuids = {instance.uuid for instance in instances}
    creations = {uuid: before.creations[uuid] for uuid in uuids if uuid in before.creations}
    problems: list[str] = []
    creations |= _read_creations(context, uuids - creations.keys(), problems)
    uncached = {instance.uuid for instance in instances if not _is_cached(instance, cached)}
    flavors = _read_flavors(context, uncached, problems)
    kept: dict[str, tuple[int | None, Application]] = {}
    found: dict[Place, list[Application]] = {}
    for instance in instances:
        uuid, creation = instance.uuid, creations.get(instance.uuid, _Creation())
        if instance.flavor is not None:
            # In flight, or one side of a migration: few, and not for long.
            application = _application(instance, creation, instance.flavor)
        elif uuid in uncached:
            type_id, flavor = flavors.get(uuid, (None, {}))
            application = _application(instance, creation, flavor)
            if uuid in flavors and uuid in creations:
                kept[uuid] = type_id, application
        else:
            kept[uuid] = cached[uuid]
            application = cached[uuid][1]
        found.setdefault((instance.host, instance.nodename), []).append(application)
    if host_instances.down_cells:
        # Keep their instances: once they answer, a request would have to read the whole cell.
        creations, kept = _unpruned(creations, cache.creations), _unpruned(kept, cached)
    cache = ApplicationCache(options, creations, kept)
    return found, tuple(problems)


def _unpruned(seen: dict[str, Cached], before: Mapping[str, Cached]) -> dict[str, Cached]:
    """Return the entries of this read and of the cache; only the former if the cache is full."""
    return {**before, **seen} if len(before) <= _MAX_UNPRUNED else seen


def _options() -> tuple[Any, ...]:
    ours = CONF.hpc_sched
    return ours.default_app_class, ours.allow_user_hints, ours.implicit_groups


def _is_cached(
    instance: PlacedInstance, cached: Mapping[str, tuple[int | None, Application]]
) -> bool:
    """True if the instance has its flavor or the cached entry matches its flavor id."""
    if instance.flavor is not None:
        return True
    return instance.uuid in cached and cached[instance.uuid][0] == instance.type_id


def _application(
    instance: PlacedInstance, creation: _Creation, flavor: serialized_objects.Fields
) -> Application:
    in_group = creation.group is not None or (
        creation.is_multi_create and bool(CONF.hpc_sched.implicit_groups)
    )
    # Its faults were refused, or logged, when the instance was scheduled.
    extra_specs = flavor.get("extra_specs")
    application, _ = request_spec.application_in(
        extra_specs if isinstance(extra_specs, dict) else {}, creation.hints, in_group=in_group
    )
    return dataclasses.replace(application, group=creation.group or instance.reservation_id)


def _read_creations(
    context: nova_context.RequestContext, uuids: Collection[str], problems: list[str]
) -> dict[str, _Creation]:
    """Return what the RequestSpecs of instances say. One query, or none.

    An instance without a RequestSpec gets a default, if few enough are read to name them in the
    query. Unreadable ones are left out, and so are read again by the next request.
    """
    if not uuids:
        return {}
    spec, mapping = api_models.RequestSpec, api_models.InstanceMapping
    query = sa.select(spec.instance_uuid, spec.spec)
    defaults: dict[str, _Creation] = {}
    if len(uuids) <= databases.MAX_UUIDS:
        query = query.where(spec.instance_uuid.in_(sorted(uuids)))
        defaults = dict.fromkeys(uuids, _Creation())
    else:
        # RequestSpecs of deleted instances stay until they are archived. A soft-deleted instance
        # that is restored is read by its uuid.
        query = query.join(mapping, mapping.instance_uuid == spec.instance_uuid).where(
            mapping.queued_for_delete.is_not(sa.true())
        )

    def read() -> tuple[dict[str, _Creation], list[str]]:
        found, unreadable = dict(defaults), []
        for uuid, text in databases.iter_api_rows(context, query):
            if uuid in uuids:
                try:
                    found[uuid] = _creation_in(serialized_objects.fields_in(text))
                except serialized_objects.Unreadable as error:
                    found.pop(uuid, None)
                    unreadable.append(serialized_objects.problem(uuid, "request", error))
        _keep(found)
        return found, unreadable

    found, unreadable = databases.read_api(read, _REQUEST_SPECS)
    problems += unreadable
    return found


def _keep(creations: Mapping[str, _Creation]) -> None:
    """Cache a read even if its request has timed out: the first one may take long."""
    global cache
    cache = dataclasses.replace(cache, creations={**cache.creations, **creations})


def _creation_in(spec: serialized_objects.Fields) -> _Creation:
    hints = serialized_objects.mapping(spec.get("scheduler_hints"))
    group = spec.get("instance_group")
    count = spec.get("num_instances")
    return _Creation(
        {key: value for key, value in hints.items() if key.startswith("hpc:")},
        (serialized_objects.fields(group).get("uuid") if group is not None else None) or None,
        isinstance(count, int) and count > 1,
    )


def _read_flavors(
    context: nova_context.RequestContext, uuids: Collection[str], problems: list[str]
) -> dict[str, tuple[int | None, serialized_objects.Fields]]:
    """Return the extra specs of each instance's flavor, with its id.

    One query for the cells and one in each, or none. Unreadable flavors are left out.
    """
    if not uuids:
        return {}
    vm, extra = main_models.Instance, main_models.InstanceExtra
    query = (
        sa.select(vm.uuid, vm.instance_type_id, extra.flavor)
        .join(extra, extra.instance_uuid == vm.uuid)
        .where(vm.deleted == 0)
    )
    if len(uuids) <= databases.MAX_UUIDS:
        query = query.where(vm.uuid.in_(sorted(uuids)))

    def in_cell(cell_context: nova_context.RequestContext, _: list[str]) -> list[Any]:
        with databases.cell_session(cell_context) as session:
            return [
                # Parsed at once: the texts of a whole cell would fill the memory.
                (uuid, type_id, _extra_specs_in(text))
                for uuid, type_id, text in session.execute(databases.in_batches(query))
                if uuid in uuids
            ]

    answers = databases.read_cells(context, None, in_cell)
    problems += answers.problems
    found = {}
    for uuid, type_id, flavor in answers.rows:
        if isinstance(flavor, serialized_objects.Unreadable):
            problems.append(serialized_objects.problem(uuid, "flavor", flavor))
        else:
            found[uuid] = type_id, flavor
    return found


def _extra_specs_in(text: str | None) -> serialized_objects.Fields | serialized_objects.Unreadable:
    """Return an instance's current flavor with its extra specs alone, or why it is unreadable."""
    try:
        flavor = serialized_objects.flavors_in(text)["cur"]
        return {"extra_specs": serialized_objects.mapping(flavor.get("extra_specs"))}
    except serialized_objects.Unreadable as error:
        return error
    except KeyError:
        return serialized_objects.Unreadable("no flavor")
