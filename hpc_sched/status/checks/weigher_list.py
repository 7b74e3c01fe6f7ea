"""Check: one weigher by topology, and MDOBP where hosts are shared, all by their right names."""

import difflib
from collections import Counter

import nova.conf

from hpc_sched.enabled_plugins import ALL_WEIGHERS, DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.status import loaded_weighers
from hpc_sched.status.check_result import Finding, failure, good, warning
from hpc_sched.status.inspected_cloud import Cloud

CONF = nova.conf.CONF

NOVAS = "nova.scheduler.weights.all_weighers"
HOP_BYTE = "hpc_sched.weighers.hop_byte.HopByteWeigher"
MDOBP = "hpc_sched.weighers.mdobp.MDOBPWeigher"
OURS = (
    "hpc_sched.weighers.bunch.BunchWeigher",
    HOP_BYTE,
    MDOBP,
    "hpc_sched.weighers.rack_capacity.RackCapacityWeigher",
)


def check(_cloud: Cloud) -> list[Finding]:
    """Return what is wrong in weight_classes."""
    weighers, missing = loaded_weighers.load()
    found = [
        failure(f"{one.why} nova-scheduler does not start. {_meant(one.path)}") for one in missing
    ]
    by_topology = [weigher for weigher in weighers if weigher.is_topology]
    deciding = [weigher for weigher in by_topology if weigher.multiplier() != 0]
    if len(deciding) > 1:
        found.append(
            failure(
                f"{len(deciding)} weighers by topology are enabled, {_names(deciding)}: their "
                "ranks add up and groups follow none of their orders. Enable one. Set "
                f"{_line(without=by_topology)}"
            )
        )
    elif not by_topology and not missing:
        found.append(
            warning(
                "No weigher by topology is enabled: hosts are chosen by Nova's weighers alone. "
                f"Set {_line()}"
            )
        )
    found += _twice(weighers) + _mdobp(weighers)
    if not any(type(one.weigher).__module__.startswith("nova.") for one in weighers):
        found.append(
            warning(
                "None of Nova's own weighers is enabled: hosts whose builds fail are not avoided, "
                f"and requests without a group go anywhere. Set {_line(first=NOVAS)}"
            )
        )
    return found or [good(f"{_names(deciding)} places by topology.")]


def _names(weighers: list[loaded_weighers.Enabled]) -> str:
    return loaded_weighers.names(weighers) or "no weigher"


def _line(
    without: list[loaded_weighers.Enabled] | None = None,
    first: str | None = None,
    last: str | None = None,
) -> str:
    """Return weight_classes as they should be, with the recommended weigher by topology.

    :param without: the weighers by topology that are there, in place of which it stands
    :param first: what is missing before them, and ``last`` what is missing behind
    """
    gone = {weigher.path for weigher in without or ()}
    paths = [path for path in CONF.filter_scheduler.weight_classes if path not in gone]
    if ALL_WEIGHERS in gone:
        last = MDOBP
    if first:
        paths.insert(0, first)
    elif not last or without:
        paths.append(HOP_BYTE)
    if last:
        paths.append(last)
    return f"weight_classes = {', '.join(dict.fromkeys(paths))}"


def _meant(path: str) -> str:
    """Return the weigher that a path may mean."""
    if "#" in path or ";" in path:
        return "nova.conf has no comments behind a value: put it on a line of its own."
    close = difflib.get_close_matches(path, [NOVAS, *OURS], 1)
    if close and close[0] != path:
        return f"Did you mean {close[0]}?"
    return "Remove it, or mend its package."


def _twice(weighers: list[loaded_weighers.Enabled]) -> list[Finding]:
    counts = Counter(weigher.name for weigher in weighers)
    return [
        warning(f"{name} is enabled {count} times and counts as often. Name it once.")
        for name, count in counts.items()
        if count > 1
    ]


def _mdobp(weighers: list[loaded_weighers.Enabled]) -> list[Finding]:
    sharing = [
        name
        for name in (DEDICATED_FILTER, INTERFERENCE_FILTER)
        if configured_plugins.enabled().has_filter(name)
    ]
    if not sharing or any(weigher.is_mdobp for weigher in weighers):
        return []
    return [
        warning(
            f"{', '.join(sharing)} without MDOBPWeigher: class async is not consolidated, and "
            f"class sync fills the fewest hosts of a leaf. Set {_line(last=MDOBP)}"
        )
    ]
