"""Check: the application classes and cache scores of flavors are read by a filter or weigher."""

from collections.abc import Mapping

import sqlalchemy as sa
from nova import context as nova_context
from nova.db.api import models as api_models

from hpc_sched.core.extra_specs import APP_CLASS, APP_NAME, CACHE_SCORE
from hpc_sched.enabled_plugins import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.io import databases
from hpc_sched.status.finding import Finding, good, shortened, warning
from hpc_sched.status.inspected_cloud import InspectedCloud
from hpc_sched.topology import plurals


def check(cloud: InspectedCloud) -> list[Finding]:
    """Return the extra specs of flavors that no enabled filter or weigher reads."""
    values = cloud.from_database("flavors", read_flavors)
    flavors: dict[str, list[str]] = {}
    for (key, value), names in values.items():
        shown = f"{key}={value}" if key == APP_CLASS else key
        flavors.setdefault(shown, []).extend(names)
    found = [
        warning(
            f"{plurals.text(len(flavors[key]), 'flavor')} with {key} "
            f"({', '.join(shortened(sorted(flavors[key])))}): {harm}. {remedy}, or remove {key}."
        )
        for key, harm, remedy in _ignored()
        if key in flavors
    ]
    number = len({name for names in values.values() for name in names})
    return found or [
        good(f"{plurals.text(number, 'flavor')} with extra specs of hpc:, all in effect.")
    ]


def _ignored() -> list[tuple[str, str, str]]:
    """Return extra specs that have no effect, each with the harm and the remedy."""
    plugins = configured_plugins.enabled()
    ignored = []
    if not plugins.has_filter(DEDICATED_FILTER):
        remedy = f"Add {DEDICATED_FILTER} to enabled_filters"
        ignored.append((f"{APP_CLASS}=extreme", "other VMs may join their hosts", remedy))
    if not plugins.has_filter(INTERFERENCE_FILTER):
        harm = "no host is kept from them for its neighbours"
        remedy = f"Add {INTERFERENCE_FILTER} to enabled_filters"
        ignored += [(CACHE_SCORE, harm, remedy), (APP_NAME, harm, remedy)]
    if not plugins.has_mdobp:
        remedy = (
            "Add hpc_sched.weighers.mdobp.MDOBPWeigher to weight_classes, with a multiplier "
            "other than 0"
        )
        ignored.append((f"{APP_CLASS}=async", "their VMs are not consolidated", remedy))
    return ignored


def read_flavors(context: nova_context.RequestContext) -> Mapping[tuple[str, str], list[str]]:
    """Return the names of flavors by extra spec of the ``hpc:`` namespace, and value. One query."""
    extra_spec, flavor = api_models.FlavorExtraSpecs, api_models.Flavors
    query = (
        sa.select(extra_spec.key, extra_spec.value, flavor.name)
        .join(flavor, flavor.id == extra_spec.flavor_id)
        .where(extra_spec.key.startswith("hpc:", autoescape=True))
    )
    found: dict[tuple[str, str], list[str]] = {}
    for key, value, name in sorted(databases.api_rows(context, query), key=lambda row: row[2]):
        found.setdefault((key, (value or "").strip().lower()), []).append(name)
    return found
