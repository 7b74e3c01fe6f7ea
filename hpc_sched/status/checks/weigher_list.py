"""Check: one weigher by topology, MDOBP where hosts are shared, and no misspelt weigher."""

import difflib
from collections import Counter

import nova.conf

from hpc_sched.enabled_plugins import ALL_WEIGHERS, DEDICATED_FILTER, INTERFERENCE_FILTER
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.status import loaded_weighers
from hpc_sched.status.finding import Finding, failure, good, warning
from hpc_sched.status.inspected_cloud import InspectedCloud
from hpc_sched.status.loaded_weighers import LoadedWeigher

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


def check(_cloud: InspectedCloud) -> list[Finding]:
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
                f"{len(deciding)} weighers by topology are enabled, "
                f"{loaded_weighers.names(deciding)}: their ranks add up and groups follow none of "
                f"their orders. Enable one. Set {_line(without=by_topology)}"
            )
        )
    elif not by_topology and not missing:
        found.append(
            warning(
                "No weigher by topology is enabled: hosts are chosen by Nova's weighers alone. "
                f"Set {_line()}"
            )
        )
    for name, count in Counter(weigher.name for weigher in weighers).items():
        if count > 1:
            found.append(
                warning(f"{name} is enabled {count} times and counts as often. Name it once.")
            )
    plugins = configured_plugins.enabled()
    sharing = list(filter(plugins.has_filter, (DEDICATED_FILTER, INTERFERENCE_FILTER)))
    if sharing and not any(weigher.is_mdobp for weigher in weighers):
        found.append(
            warning(
                f"{', '.join(sharing)} without MDOBPWeigher: class async is not consolidated, and "
                f"class sync fills the fewest hosts of a leaf. Set {_line(last=MDOBP)}"
            )
        )
    if not any(type(one.weigher).__module__.startswith("nova.") for one in weighers):
        found.append(
            warning(
                "None of Nova's own weighers is enabled: hosts whose builds fail are not avoided, "
                f"and requests without a group go anywhere. Set {_line(first=NOVAS)}"
            )
        )
    names = loaded_weighers.names(deciding) or "no weigher"
    return found or [good(f"{names} places by topology.")]


def _line(
    without: list[LoadedWeigher] | None = None,
    first: str | None = None,
    last: str | None = None,
) -> str:
    """Return the line with the recommended value of weight_classes.

    :param without: the weighers by topology to replace by the recommended one
    :param first: the path to put first; with it, or ``last``, no weigher by topology is added
        unless one is replaced
    :param last: the path to put last
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
    """Return the remedy for a path that cannot be loaded."""
    if "#" in path or ";" in path:
        return "nova.conf has no comments behind a value: put it on a line of its own."
    close = difflib.get_close_matches(path, [NOVAS, *OURS], 1)
    if close and close[0] != path:
        return f"Did you mean {close[0]}?"
    return "Remove it, or mend its package."
