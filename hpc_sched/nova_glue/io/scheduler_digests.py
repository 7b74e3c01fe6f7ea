"""The digests of what this nova-scheduler uses: its options, topology and interference index.

Schedulers with equal digests and versions do not differ in what hpc_sched decides by, but for the
files of ``pattern_directory``. Other options of Nova are not covered. Digests are in the log and in
each record of the decision log.
"""

import json
import threading
from dataclasses import replace

from nova.conf import CONF
from oslo_config import cfg
from oslo_log import log as logging

import hpc_sched
from hpc_sched import conf, digests
from hpc_sched.core.logged.decision_summary import LoggedScheduler

LOG = logging.getLogger(__name__)

# Options of Nova on which decisions depend, in addition to the weighers and their multipliers.
_OF_NOVA = {
    "filter_scheduler": (
        "enabled_filters",
        "host_subset_size",
        "pci_in_placement",
        "shuffle_best_same_weighed_hosts",
    ),
    "scheduler": ("max_attempts", "max_placement_results"),
}
_MULTIPLIER = "_weight_multiplier"
# What a file has is in a digest of its own; a log decides nothing.
_NOT_DECIDING = ("topology_", "metrics_", "interference_file", "decision_log")
# Lists whose order decides nothing.
_SETS = ("mdobp_classes",)


_scheduler = LoggedScheduler()  # what this process uses; replaced as a whole
_index: str | None = None  # digest of the interference index that was read last
_lock = threading.Lock()  # of changes


def option_lines() -> list[str]:
    """Return the canonical text of the options on which decisions depend, one a line.

    All of [hpc_sched] but those that name files, and those of Nova's scheduler that hpc_sched
    depends on. Values are those in effect, defaults too.
    """
    section = CONF.filter_scheduler
    own = [opt.dest for opt in conf.OPTS if not opt.dest.startswith(_NOT_DECIDING)]
    multipliers = [name for name in section if name.endswith(_MULTIPLIER)]
    named = [(conf.GROUP.name, own), *_OF_NOVA.items(), ("filter_scheduler", multipliers)]
    lines = [_line(group, name) for group, names in named for name in names]
    # The order of weighers decides nothing, that of filters does. A weigher that is named twice
    # counts twice.
    weighers = json.dumps(sorted(section.weight_classes))
    return sorted([*lines, f"[filter_scheduler] weight_classes = {weighers}"])


def _line(group: str, name: str) -> str:
    try:
        found = CONF[group][name]
        value = json.dumps(sorted(set(found)) if name in _SETS else found, sort_keys=True)
    except (cfg.Error, ValueError):
        value = "cannot be read"
    return f"[{group}] {name} = {value}"


def use_topology(digest: str, described: str) -> None:
    """Note the topology and the options in use; log all digests if one has changed.

    :param described: driver and size of the topology
    """
    global _scheduler
    lines = option_lines()
    with _lock:
        before, now = (
            _scheduler,
            LoggedScheduler(
                host=CONF.host,
                version=hpc_sched.__version__,
                options=digests.of(lines),
                topology=digest,
                interference=_index if conf.flag(CONF, "interference_file") else None,
            ),
        )
        if now == before:
            return
        _scheduler = now
    LOG.info("%s (%s)", now.text(), described)
    if now.options != before.options:
        LOG.debug("Options %s are those of: %s", now.options, "; ".join(lines))


def use_interference(digest: str) -> None:
    """Note the interference index in use; log all digests if it has changed."""
    global _scheduler, _index
    with _lock:
        before, _index = _scheduler, digest
        _scheduler = now = replace(before, interference=digest)
    if now != before:
        LOG.info("%s", now.text())


def record(topology: str) -> LoggedScheduler:
    """Return what the record of a decision has of this scheduler.

    :param topology: digest of the topology that the request is placed by
    """
    now = _scheduler
    return now if now.topology == topology else replace(now, topology=topology)
