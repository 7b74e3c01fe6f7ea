"""The modules that an option of [hpc_sched] turns on: loaded at the start if the option is on.

So a module that cannot be loaded is found when nova-scheduler starts, and no request waits for an
import. None of these options changes on SIGHUP. Where a module is used it is imported by name.
"""

import importlib
from collections.abc import Mapping

import nova.conf
from oslo_config import cfg

from hpc_sched.core.logged.decision_summary import ACTIVE

CONF = nova.conf.CONF

# By option.
MODULES: Mapping[str, tuple[str, ...]] = {
    "mode": ("hpc_sched.nova_glue.shadow_session",),
    "interference_file": ("hpc_sched.core.sharing.interference_file",),
    "decision_log": ("hpc_sched.nova_glue.record.logged_entry",),
    "gather_groups": ("hpc_sched.core.plan.gathering",),
    "metrics_address": ("hpc_sched.nova_glue.exporter.worker",),
}


def load() -> None:
    """Load the modules of all options that are on; raises ImportError for a damaged package."""
    for option, names in MODULES.items():
        if is_on(option):
            for name in names:
                importlib.import_module(name)


def is_on(option: str) -> bool:
    """True unless an option has its default: none, ``active`` or false; also if unreadable."""
    try:
        return CONF.hpc_sched[option] not in (None, "", ACTIVE, False)
    except (cfg.Error, ValueError):
        return True
