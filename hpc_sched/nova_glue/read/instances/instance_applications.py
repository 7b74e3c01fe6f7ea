"""The applications of the instances on the hosts, cached as long as they cannot change."""

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa
from nova import context as nova_context
from nova.conf import CONF
from nova.db.api import models as api_models
from nova.db.main import models as main_models

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance

# A source of its own: the first request after a start reads the RequestSpecs of all instances.
_REQUEST_SPECS = f"{databases.API_DATABASE}, requests of VMs"

# On which applications depend.
_OPTIONS = ("default_app_class", "allow_user_hints", "implicit_groups")

Cached = TypeVar("Cached")
CachedApplication = tuple[int | None, Application]  # with the id of the flavor


@dataclass(frozen=True, slots=True)
class _Creation:
    """What the request that created an instance says; it never changes."""

    hints: Mapping[str, Any] = field(default_factory=dict)  # hpc: ones
    group: str | None = None  # uuid of its server group
    is_multi_create: bool = False


@dataclass(frozen=True, slots=True)
class ApplicationCache:
    """Instances that were alive at the last read of all VMs of a cell, and those read since.

    Replaced as a whole.
    """

    options: tuple[Any, ...] = ()  # on which the applications depend
    creations: Mapping[str, _Creation] = field(default_factory=dict)  # by uuid
    applications: Mapping[str, CachedApplication] = field(default_factory=dict)  # by uuid


cache = ApplicationCache()


def options() -> tuple[Any, ...]:
    """Return the values of the options on which applications depend."""
    return tuple(CONF.hpc_sched[name] for name in _OPTIONS)


def read(
    context: nova_context.RequestContext,
    instances: Sequence[PlacedInstance],
    *,
    alive: Collection[str] | None = None,
    is_api_down: bool = False,
) -> tuple[list[PlacedInstance], tuple[str, ...]]:
    """Return the instances with their applications, as far as these are known, and the problems.

    For instances outside the cache: one query for their RequestSpecs in the API database, one for
    the cells and one for their flavors in each cell. None if all are cached.

    :param alive: uuids of all instances, also of cells that do not answer: others leave the cache.
        None if they are not known; then all stay in it
    :param is_api_down: whether the API database has not answered a moment ago
    """
    global cache
    before, current = cache, options()
    cached = before.applications if before.options == current else {}
    uuids, problems = {instance.uuid for instance in instances}, list[str]()
    uncached = {vm.uuid for vm in instances if vm.flavor is None and not _is_cached(vm, cached)}
    # Flavors first: most of them name a class, and then no request matters.
    flavors = _read_flavors(context, uncached, problems)
    creations = {uuid: before.creations[uuid] for uuid in uuids if uuid in before.creations}
    unread: Collection[str] = uuids - creations.keys()
    if not is_api_down:
        new, unread = _read_creations(context, unread, problems)
        creations |= new
    # Without a RequestSpec an instance is from before Nova had them.
    known = {uuid: creations.get(uuid, _Creation()) for uuid in uuids.difference(unread)}
    made = [_with_application(vm, known.get(vm.uuid), cached, flavors) for vm in instances]
    own = ((vm, number) for vm, number in made if vm.flavor is None and vm.uuid in creations)
    kept = {vm.uuid: (number, vm.application) for vm, number in own if vm.application is not None}
    cache = ApplicationCache(
        current, _merged(cache.creations, creations, alive), _merged(cached, kept, alive)
    )
    return [vm for vm, _ in made], tuple(problems)


def is_settled(vm: PlacedInstance) -> bool:
    """True if an instance's application need not be read again while its row stays."""
    return _is_cached(vm, cache.applications)


def _is_cached(vm: PlacedInstance, cached: Mapping[str, CachedApplication]) -> bool:
    """True if the cached entry matches the instance's flavor id: a resize changes it."""
    return vm.uuid in cached and cached[vm.uuid][0] == vm.type_id


def _with_application(
    vm: PlacedInstance,
    creation: _Creation | None,
    cached: Mapping[str, CachedApplication],
    flavors: Mapping[str, tuple[int | None, databases.Fields]],
) -> tuple[PlacedInstance, int | None]:
    """Return an instance with its application, and the id of the flavor that it was made from."""
    if vm.flavor is None and _is_cached(vm, cached):
        type_id, application = cached[vm.uuid]
        return vm._replace(application=application), type_id
    # A flavor of its own has what is in flight, or one side of a migration: few, and not long.
    type_id, flavor = (None, vm.flavor) if vm.flavor else flavors.get(vm.uuid, (None, None))
    made = _application(vm, creation, flavor) if flavor is not None else None
    return vm._replace(application=made), type_id


def _merged(
    before: Mapping[str, Cached], seen: dict[str, Cached], alive: Collection[str] | None
) -> Mapping[str, Cached]:
    """Return earlier and new entries, of some instances alone if these are known."""
    if alive is None:
        return {**before, **seen} if seen else before
    return {uuid: entry for uuid, entry in {**before, **seen}.items() if uuid in alive}


def _application(
    instance: PlacedInstance, creation: _Creation | None, flavor: databases.Fields
) -> Application | None:
    """Return the application of an instance, or None if its unread request could change it."""
    found = flavor.get("extra_specs")
    extra_specs = found if isinstance(found, dict) else {}
    if creation is None and not request_spec.has_class(extra_specs, {}):
        return None
    creation = creation or _Creation()
    in_group = creation.group is not None or (
        creation.is_multi_create and request_spec.is_implicit_group(extra_specs, creation.hints)
    )
    # Its faults were refused, or logged, when the instance was scheduled.
    application, _ = request_spec.application_in(extra_specs, creation.hints, in_group=in_group)
    return dataclasses.replace(application, group=creation.group or instance.reservation_id)


def _read_creations(
    context: nova_context.RequestContext, uuids: Collection[str], problems: list[str]
) -> tuple[dict[str, _Creation], Collection[str]]:
    """Return what was read of instances' requests, and those that could not be read."""
    if not uuids:
        return {}, ()
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

    def read() -> tuple[dict[str, _Creation], dict[str, str]]:
        global cache
        found, unreadable = dict(defaults), {}
        for uuid, text in databases.with_progress(databases.iter_api_rows(context, query)):
            if uuid in uuids:
                try:
                    found[uuid] = _creation_in(databases.object_in(text))
                except databases.UnreadableError as error:
                    found.pop(uuid, None)
                    unreadable[uuid] = databases.unreadable(uuid, "request", error)
        # Kept even if the request has timed out: the first read may take long.
        cache = dataclasses.replace(cache, creations={**cache.creations, **found})
        return found, unreadable

    try:
        found, unreadable = databases.read_api(read, _REQUEST_SPECS)
    except databases.OUTAGES as error:
        problems.append(f"{_REQUEST_SPECS}: {databases.reason(error)}")
        return {}, uuids
    problems += unreadable.values()
    return found, unreadable.keys()


def _creation_in(spec: databases.Fields) -> _Creation:
    hints = databases.dict_field(spec.get("scheduler_hints"))
    ours = {key: value for key, value in hints.items() if key.startswith("hpc:")}
    group, count = spec.get("instance_group"), spec.get("num_instances")
    uuid = databases.object_fields(group).get("uuid") if group is not None else None
    return _Creation(ours, uuid or None, isinstance(count, int) and count > 1)


def _read_flavors(
    context: nova_context.RequestContext, uuids: Collection[str], problems: list[str]
) -> dict[str, tuple[int | None, databases.Fields]]:
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
        # The same text of many VMs of a flavor is parsed once, and not kept.
        parse = functools.lru_cache(maxsize=64)(_extra_specs_in)
        with databases.cell_session(cell_context) as session:
            rows = databases.with_progress(session.execute(databases.in_batches(query)))
            return [(uuid, type_id, parse(text)) for uuid, type_id, text in rows if uuid in uuids]

    try:
        answers = databases.read_cells(context, None, in_cell)
    except databases.OUTAGES as error:
        problems.append(databases.api_problem(error))
        return {}
    problems += answers.problems
    found = {}
    for uuid, type_id, flavor in answers.rows:
        if isinstance(flavor, databases.UnreadableError):
            problems.append(databases.unreadable(uuid, "flavor", flavor))
        else:
            found[uuid] = type_id, flavor
    return found


def _extra_specs_in(text: str | None) -> databases.Fields | databases.UnreadableError:
    try:
        flavor = databases.flavors_in(text).get("cur")
        if flavor is None:
            return databases.UnreadableError("no flavor")
        return {"extra_specs": databases.dict_field(flavor.get("extra_specs"))}
    except databases.UnreadableError as error:
        return error
