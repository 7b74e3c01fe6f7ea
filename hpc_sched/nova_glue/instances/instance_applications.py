"""What the VMs on the hosts run, cached per VM for as long as it cannot change."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import nova.conf
import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.nova_glue.instances.host_instances import Occupancy
from hpc_sched.nova_glue.instances.placed_instance import PlacedInstance
from hpc_sched.nova_glue.io import databases, serialized_objects
from hpc_sched.nova_glue.request import request_extra_specs

CONF = nova.conf.CONF

# The first request after a start reads the requests of all VMs, which takes its time.
_MANY = f"{databases.API_DATABASE}, requests of VMs"

# How many VMs may be known for one reading that misses some of them to forget none.
_MOST_ABSENT = 200_000

Known = TypeVar("Known")
Place = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class _Said:
    """What the request that made a VM said; it never changes."""

    hints: Mapping[str, Any] = field(default_factory=dict)  # of our namespace
    group: str | None = None  # uuid of its server group
    is_one_of_many: bool = False  # made with others by one request


@dataclass(frozen=True, slots=True)
class _Cache:
    """What is known of VMs; replaced as a whole.

    Only VMs that were seen last are kept, and those of cells that have not answered then.
    """

    settings: tuple[Any, ...] = ()  # the options by which the applications were judged
    said: Mapping[str, _Said] = field(default_factory=dict)  # by uuid
    # By uuid, with the id of the flavor that it comes from.
    applications: Mapping[str, tuple[int | None, Application]] = field(default_factory=dict)


_cache = _Cache()


def read(
    context: nova_context.RequestContext, occupancy: Occupancy
) -> tuple[dict[Place, list[Application]], tuple[str, ...]]:
    """Return what runs on each host, and what could not be read.

    For the VMs that are not known yet: one query for their requests in the API database, one
    for the cells and one for their flavors in each cell; none where all are known.
    """
    global _cache
    before = _cache
    settings = _settings()
    judged = before.applications if before.settings == settings else {}
    everyone = occupancy.everyone()
    uuids = {occupant.uuid for occupant in everyone}
    said = {uuid: before.said[uuid] for uuid in uuids if uuid in before.said}
    problems: list[str] = []
    said |= _read_said(context, uuids - said.keys(), problems)
    unknown = {o.uuid for o in everyone if not _is_judged(o, judged)}
    flavors = _read_flavors(context, unknown, problems)
    kept: dict[str, tuple[int | None, Application]] = {}
    found: dict[Place, list[Application]] = {}
    for occupant in everyone:
        uuid, of = occupant.uuid, said.get(occupant.uuid, _Said())
        if occupant.flavor is not None:
            # On its way, or one of the two sides of a move: few, and not for long.
            application = _judge(occupant, of, occupant.flavor)
        elif uuid in unknown:
            type_id, flavor = flavors.get(uuid, (None, {}))
            application = _judge(occupant, of, flavor)
            if uuid in flavors and uuid in said:
                kept[uuid] = type_id, application
        else:
            kept[uuid] = judged[uuid]
            application = judged[uuid][1]
        found.setdefault((occupant.host, occupant.nodename), []).append(application)
    if occupancy.silent_cells:
        # Their VMs will be back: all of a cell anew would be read under way of a request.
        said, kept = _with_absent(said, _cache.said), _with_absent(kept, judged)
    _cache = _Cache(settings, said, kept)
    return found, tuple(problems)


def _with_absent(seen: dict[str, Known], before: Mapping[str, Known]) -> dict[str, Known]:
    """Return what is known of VMs, those included that were not seen, while there is room."""
    return {**before, **seen} if len(before) <= _MOST_ABSENT else seen


def _settings() -> tuple[Any, ...]:
    ours = CONF.hpc_sched
    return ours.default_app_class, ours.allow_user_hints, ours.implicit_groups


def _is_judged(
    occupant: PlacedInstance, judged: Mapping[str, tuple[int | None, Application]]
) -> bool:
    """Tell whether nothing must be read for a VM: a resize changes the id of its flavor."""
    if occupant.flavor is not None:
        return True
    return occupant.uuid in judged and judged[occupant.uuid][0] == occupant.type_id


def _judge(occupant: PlacedInstance, said: _Said, flavor: serialized_objects.Fields) -> Application:
    in_group = said.group is not None or (
        said.is_one_of_many and bool(CONF.hpc_sched.implicit_groups)
    )
    # What is wrong in them was refused, or logged, when the VM was scheduled.
    extra_specs = flavor.get("extra_specs")
    application, _ = request_extra_specs.application(
        extra_specs if isinstance(extra_specs, dict) else {}, said.hints, in_group=in_group
    )
    return dataclasses.replace(application, group=said.group or occupant.reservation_id)


def _read_said(
    context: nova_context.RequestContext, uuids: Collection[str], problems: list[str]
) -> dict[str, _Said]:
    """Return what the requests of VMs said. One query.

    Of VMs that were asked for by name also that they left no trace. What cannot be read is left
    out, and so read again the next time.
    """
    if not uuids:
        return {}
    spec, mapping = api_models.RequestSpec, api_models.InstanceMapping
    query = sa.select(spec.instance_uuid, spec.spec)
    asked_for: dict[str, _Said] = {}
    if len(uuids) <= databases.MAX_LISTED:
        query = query.where(spec.instance_uuid.in_(sorted(uuids)))
        asked_for = dict.fromkeys(uuids, _Said())
    else:
        # Specs of VMs that are long gone stay until they are archived. One that is deleted
        # softly may come back; it is then asked for by name.
        query = query.join(mapping, mapping.instance_uuid == spec.instance_uuid).where(
            mapping.queued_for_delete.is_not(sa.true())
        )

    def read() -> tuple[dict[str, _Said], list[str]]:
        found, wrong = dict(asked_for), []
        for uuid, text in databases.each_api_row(context, query):
            if uuid in uuids:
                try:
                    found[uuid] = _said_in(serialized_objects.fields_in(text))
                except serialized_objects.Unreadable as error:
                    found.pop(uuid, None)
                    wrong.append(serialized_objects.problem(uuid, "request", error))
        _keep(found)
        return found, wrong

    found, wrong = databases.of_api(read, _MANY)
    problems += wrong
    return found


def _keep(said: Mapping[str, _Said]) -> None:
    """Keep what was read, also where nobody waits for it any more: it may take long at first."""
    global _cache
    _cache = dataclasses.replace(_cache, said={**_cache.said, **said})


def _said_in(spec: serialized_objects.Fields) -> _Said:
    hints = serialized_objects.mapping(spec.get("scheduler_hints"))
    group = spec.get("instance_group")
    count = spec.get("num_instances")
    return _Said(
        {key: value for key, value in hints.items() if key.startswith("hpc:")},
        (serialized_objects.fields(group).get("uuid") if group is not None else None) or None,
        isinstance(count, int) and count > 1,
    )


def _read_flavors(
    context: nova_context.RequestContext, uuids: Collection[str], problems: list[str]
) -> dict[str, tuple[int | None, serialized_objects.Fields]]:
    """Return the flavor of each VM with its id. One query for the cells and one in each.

    A flavor that cannot be read is left out.
    """
    if not uuids:
        return {}
    vm, extra = main_models.Instance, main_models.InstanceExtra
    query = (
        sa.select(vm.uuid, vm.instance_type_id, extra.flavor)
        .join(extra, extra.instance_uuid == vm.uuid)
        .where(vm.deleted == 0)
    )
    if len(uuids) <= databases.MAX_LISTED:
        query = query.where(vm.uuid.in_(sorted(uuids)))

    def in_cell(cell_context: nova_context.RequestContext, _: list[str]) -> list[Any]:
        with main_db.get_context_manager(cell_context).reader.using(cell_context) as session:
            return [
                # Not the text, of which there may be very much.
                (uuid, type_id, _current_flavor(text))
                for uuid, type_id, text in session.execute(databases.streamed(query))
                if uuid in uuids
            ]

    answers = databases.ask_cells(context, None, in_cell)
    problems += [f"cell {cell}: {why}" for cell, why in sorted(answers.silent.items())]
    found = {}
    for uuid, type_id, flavor in answers.rows:
        if isinstance(flavor, serialized_objects.Unreadable):
            problems.append(serialized_objects.problem(uuid, "flavor", flavor))
        else:
            found[uuid] = type_id, flavor
    return found


def _current_flavor(text: str | None) -> serialized_objects.Fields | serialized_objects.Unreadable:
    """Return what matters of a VM's flavor, or why that cannot be read."""
    try:
        flavor = serialized_objects.flavors_in(text)["cur"]
        return {"extra_specs": serialized_objects.mapping(flavor.get("extra_specs"))}
    except serialized_objects.Unreadable as error:
        return error
    except KeyError:
        return serialized_objects.Unreadable("no flavor")
