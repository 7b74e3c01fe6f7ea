"""Check: what flavors say of classes and caches has a filter or weigher that minds it."""

import nova.conf

from hpc_sched import exceptions
from hpc_sched.core import extra_specs
from hpc_sched.enabled_plugins import DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.status.check_result import Finding, failure, good, shortened, warning
from hpc_sched.status.inspected_cloud import Cloud
from hpc_sched.topology import plurals

CONF = nova.conf.CONF


def check(cloud: Cloud) -> list[Finding]:
    """Return the extra specs of flavors that nothing enabled here reads."""
    try:
        said = cloud.flavors()
    except exceptions.DatabaseError as error:
        return [failure(str(error))]
    flavors: dict[str, list[str]] = {}
    for (key, value), names in said.items():
        shown = f"{key}={value}" if key == extra_specs.APP_CLASS else key
        flavors.setdefault(shown, []).extend(names)
    plugins = configured_plugins.enabled()
    unminded = []
    if not plugins.has_filter(DEDICATED_FILTER):
        unminded.append(
            (
                f"{extra_specs.APP_CLASS}=extreme",
                "other VMs may join their hosts",
                f"Add {DEDICATED_FILTER} to enabled_filters",
            )
        )
    if not plugins.has_filter(INTERFERENCE_FILTER):
        unminded += [
            (
                key,
                "no host is kept from them for its neighbours",
                f"Add {INTERFERENCE_FILTER} to enabled_filters",
            )
            for key in (extra_specs.CACHE_SCORE, extra_specs.APP_NAME)
        ]
    if not plugins.has_mdobp:
        unminded.append(
            (
                f"{extra_specs.APP_CLASS}=async",
                "their VMs are not consolidated",
                "Add hpc_sched.weighers.mdobp.MDOBPWeigher to weight_classes, with a multiplier "
                "other than 0",
            )
        )
    found = [
        warning(
            f"{plurals.text(len(flavors[key]), 'flavor')} with {key} "
            f"({', '.join(shortened(sorted(flavors[key])))}): {what}. {do}, or remove {key}."
        )
        for key, what, do in unminded
        if key in flavors
    ]
    number = len({name for names in said.values() for name in names})
    return found or [
        good(f"{plurals.text(number, 'flavor')} with extra specs of hpc:, all minded.")
    ]
