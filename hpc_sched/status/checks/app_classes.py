"""Checks: extra specs of flavors are valid and read; server groups are packed on purpose."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models

from hpc_sched import exceptions
from hpc_sched.core.constraints.constraint import LevelConstraint
from hpc_sched.core.constraints.extra_spec import NAMESPACE
from hpc_sched.core.constraints.values import CONSTRAINTS
from hpc_sched.core.extra_spec_names import APP_CLASS
from hpc_sched.core.extra_specs import APP_NAME, CACHE_SCORE
from hpc_sched.core.sharing import mdobp_classes
from hpc_sched.enabled_plugins import DEDICATED_FILTER, GROUP_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.status.finding import Findings, Verdict, failure, first_listed, listed, warning
from hpc_sched.status.inspected_cloud import CONF, InspectedCloud
from hpc_sched.topology import plurals
from hpc_sched.topology.grouping import by_key

OPTION = "default_app_class"
# Filters that refuse a wrong class, name or score.
_REFUSING = (GROUP_FILTER, DEDICATED_FILTER, INTERFERENCE_FILTER)
# Groups for availability lose most by packing and are listed first.
_POLICIES = ("anti-affinity", "soft-anti-affinity", "soft-affinity", "affinity")


def check_flavors(cloud: InspectedCloud) -> Verdict:
    """Return extra specs of flavors that are wrong, or that no enabled filter or weigher reads."""
    rows = sorted(cloud.from_database("flavors", read_flavors))
    by_name = by_key((name, (key, value)) for key, value, name in rows)
    specs_of = {name: dict(specs) for name, specs in by_name.items()}
    flavors = by_key(
        (f"{key}={value.strip().lower()}" if key == APP_CLASS else key, name)
        for key, value, name in rows
    )
    yield from _invalid(cloud, specs_of)
    yield from (
        warning(
            f"{plurals.text(len(flavors[key]), 'flavor')} with {key} "
            f"({', '.join(first_listed(sorted(flavors[key])))}): {harm}. {remedy}, or remove {key}."
        )
        for key, is_read, harm, remedy in _readers()
        if key in flavors and not is_read
    )
    return f"{plurals.text(len(specs_of), 'flavor')} with extra specs of hpc:, all valid."


def _invalid(cloud: InspectedCloud, specs_of: Mapping[str, Mapping[str, str]]) -> Findings:
    """Yield each wrong key or value of each flavor, after a line that says what it leads to."""
    levels: tuple[str, ...] = ()
    try:
        levels = cloud.topology().request_levels
    except exceptions.TopologyError:  # which the check of the topology reports
        keys = [one.spec.name for one in CONSTRAINTS if issubclass(one, LevelConstraint)]
        if any(key in specs for specs in specs_of.values() for key in keys):
            yield warning(
                f"The levels of {', '.join(keys[:-1])} and {keys[-1]} are not checked: the "
                "topology cannot be read. Correct it, see the check Topology."
            )
    plugins = configured_plugins.enabled()
    refusing = next(filter(plugins.has_filter, _REFUSING), None)
    refused: list[str] = []
    ignored: list[str] = []
    for name, specs in sorted(specs_of.items()):
        faults = request_spec.check_flavor(specs, levels)
        for texts, is_refused in (
            (faults.application, refusing is not None),
            (faults.group, refusing == GROUP_FILTER),
            (faults.ignored, False),
        ):
            (refused if is_refused else ignored).extend(f"{name}: {text}" for text in texts)
    yield from listed(
        failure,
        f"{plurals.text(len(refused), 'wrong extra spec')} of flavors: {refusing} refuses "
        "new VMs of these flavors. Correct or remove them, with "
        "--os-compute-api-version 2.86, so that nova-api validates them:",
        refused,
    )
    yield from listed(
        warning,
        f"{plurals.text(len(ignored), 'wrong or unknown extra spec')} of flavors: ignored, "
        "with at most a warning for each request. Correct or remove them:",
        ignored,
    )


def _readers() -> Iterable[tuple[str, bool, str, str]]:
    """Return valid extra specs and whether they have an effect; the harm if not, and the remedy."""
    plugins = configured_plugins.enabled()
    return (
        *(
            (key, plugins.has_filter(name), harm, f"Add {name} to enabled_filters")
            for key, name, harm in (
                (f"{APP_CLASS}=extreme", DEDICATED_FILTER, "other VMs may join their hosts"),
                (CACHE_SCORE, INTERFERENCE_FILTER, "no host is kept from them for its neighbours"),
                (APP_NAME, INTERFERENCE_FILTER, "no host is kept from them for its neighbours"),
            )
        ),
        (
            f"{APP_CLASS}=async",
            plugins.has_mdobp and mdobp_classes.places("async", CONF.hpc_sched.mdobp_classes),
            "their VMs are not consolidated",
            "Add async to mdobp_classes"
            if plugins.has_mdobp
            else "Add hpc_sched.weighers.mdobp.MDOBPWeigher to weight_classes, with a multiplier "
            "other than 0",
        ),
    )


def read_flavors(context: nova_context.RequestContext) -> list[tuple[str, str, str]]:
    """Return extra spec, value and flavor for each of the ``hpc:`` namespace. One query."""
    extra_spec, flavor = api_models.FlavorExtraSpecs, api_models.Flavors
    query = (
        sa.select(extra_spec.key, extra_spec.value, flavor.name)
        .join(flavor, flavor.id == extra_spec.flavor_id)
        .where(extra_spec.key.startswith(NAMESPACE, autoescape=True))
    )
    return [
        (key, value or "", name)
        for key, value, name in databases.api_rows(context, query)
        # Databases compare without case; the scheduler does not.
        if key.startswith(NAMESPACE)
    ]


@dataclass(frozen=True, slots=True)
class InspectedGroup:
    """One server group."""

    uuid: str
    name: str
    project_id: str
    policy: str
    members: int  # instances that are not deleted
    classed: int  # of these, the ones whose flavor or hints name an application class

    def __str__(self) -> str:
        return (
            f"{self.name} ({self.uuid}, project {self.project_id}, {self.policy}, "
            f"{plurals.text(self.members, 'VM')})"
        )


def check_groups(cloud: InspectedCloud) -> Verdict:
    """Return the server groups for which ``default_app_class`` decides although it is not set.

    Groups of every policy count, and those without instances; not those whose instances all name
    a class. With the option set in nova.conf, to whatever value, nothing is read.
    """
    value = CONF.hpc_sched.default_app_class
    location = CONF.get_location(OPTION, "hpc_sched")
    if location is not None and location.location.name not in ("opt_default", "set_default"):
        return f"{OPTION} = {value} is set."
    groups = cloud.from_database("server groups", read_groups)
    packed = [group for group in groups if group.classed < group.members or not group.members]
    yield from listed(
        failure,
        f"{OPTION} is not set: {plurals.text(len(packed), 'server group')} whose flavors do "
        "not say hpc:app_class would be packed under as few leaf switches as possible, also "
        f"where they are made for availability. Add to [hpc_sched] in nova.conf the line "
        f"{OPTION}=none, and to the flavors for HPC hpc:app_class=sync; or the line "
        f"{OPTION}={value}, and to the flavors of these groups hpc:app_class=none:",
        first_listed(list(map(str, sorted(packed, key=_rank)))),
    )
    return (
        f"{OPTION} is not set, but there is no server group that {value}, its default, "
        f"would be applied to. Before there is one, add the line {OPTION}={value}, or "
        f"{OPTION}=none, to [hpc_sched] in nova.conf."
    )


def _rank(group: InspectedGroup) -> tuple[int, str, str]:
    # Unknown policies come last.
    return (*_POLICIES, group.policy).index(group.policy), group.name, group.uuid


def read_groups(context: nova_context.RequestContext) -> list[InspectedGroup]:
    """Return the server groups of all projects. Two queries, whatever the size.

    The classes of instances are read from their request specs in the API database, which Nova
    updates on a resize; only request specs that name a class are fetched.
    """
    group, policy = api_models.InstanceGroup, api_models.InstanceGroupPolicy
    member, mapping = api_models.InstanceGroupMember, api_models.InstanceMapping
    # Deleted instances stay members until they are archived.
    is_alive = mapping.queued_for_delete.is_not(sa.true())
    exists = sa.and_(mapping.instance_uuid == member.instance_uuid, is_alive)
    columns = (group.id, group.uuid, group.name, group.project_id)
    members = sa.func.count(sa.distinct(mapping.instance_uuid))
    query = (
        sa.select(*columns, sa.func.min(policy.policy), members)
        .outerjoin(policy, policy.group_id == group.id)
        .outerjoin(member, member.group_id == group.id)
        .outerjoin(mapping, exists)
        .group_by(*columns)
    )
    rows = databases.api_rows(context, query)
    spec = api_models.RequestSpec
    naming_class = (
        sa.select(member.group_id, member.instance_uuid, spec.spec)
        .join(mapping, exists)
        .join(spec, spec.instance_uuid == member.instance_uuid)
        .where(spec.spec.contains(APP_CLASS, autoescape=True))
    )
    classed = Counter(
        group_id
        for group_id, _uuid, text in databases.iter_api_rows(context, naming_class)
        if _names_class(text)
    )
    return [
        InspectedGroup(uuid, name or "", project or "", chosen or "", number, classed[group_id])
        for group_id, uuid, name, project, chosen, number in rows
    ]


def _names_class(text: str) -> bool:
    try:
        spec = databases.object_in(text)
        flavor = databases.object_fields(spec.get("flavor"))
        return request_spec.has_class(
            databases.dict_field(flavor.get("extra_specs")),
            databases.dict_field(spec.get("scheduler_hints")),
        )
    except databases.UnreadableError:
        return False
