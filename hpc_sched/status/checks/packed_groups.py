"""Check: nobody's server group is packed under one switch before the operator has said so."""

import nova.conf

from hpc_sched import exceptions
from hpc_sched.status.check_result import Finding, failure, good, shortened
from hpc_sched.status.inspected_cloud import Cloud
from hpc_sched.status.server_groups import ServerGroup
from hpc_sched.topology import plurals

CONF = nova.conf.CONF

OPTION = "default_app_class"
# The groups that lose most come first: those made for availability.
_POLICIES = ("anti-affinity", "soft-anti-affinity", "soft-affinity", "affinity")


def check(cloud: Cloud) -> list[Finding]:
    """Return the server groups for which ``default_app_class`` decides while nobody has set it.

    Groups of every policy count, for the default packs them all. A group whose VMs all name a
    class is not decided by it; one without VMs is. Set in nova.conf, to whatever value, the
    operator has decided and nothing is read.
    """
    value = CONF.hpc_sched.default_app_class
    if is_set():
        return [good(f"{OPTION} = {value} is set.")]
    try:
        groups = [group for group in cloud.groups() if group.takes_default]
    except exceptions.DatabaseError as error:
        return [failure(str(error))]
    if not groups:
        return [
            good(
                f"{OPTION} is not set, but there is no server group that {value}, its default, "
                "would be applied to. Set it before there is one."
            )
        ]
    groups.sort(key=_rank)
    return [
        failure(
            f"{OPTION} is not set: {plurals.text(len(groups), 'server group')} whose flavors do "
            "not say hpc:app_class would be packed under as few leaf switches as possible, also "
            f"where they are made for availability. Set [hpc_sched] {OPTION} = none, and "
            "hpc:app_class=sync on the flavors for HPC, or set hpc:app_class=none on the flavors "
            f"of these groups and {OPTION} = {value} in nova.conf:"
        ),
        *(failure(text) for text in shortened([_shown(group) for group in groups])),
    ]


def is_set() -> bool:
    """Tell whether the option is set anywhere, be it to its default."""
    location = CONF.get_location(OPTION, "hpc_sched")
    return location is not None and location.location.name not in ("opt_default", "set_default")


def _rank(group: ServerGroup) -> tuple[int, str, str]:
    known = group.policy in _POLICIES
    place = _POLICIES.index(group.policy) if known else len(_POLICIES)
    return place, group.name, group.uuid


def _shown(group: ServerGroup) -> str:
    return (
        f"{group.name} ({group.uuid}, project {group.project_id}, {group.policy}, "
        f"{plurals.text(group.members, 'VM')})"
    )
