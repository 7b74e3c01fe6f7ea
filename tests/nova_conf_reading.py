"""A nova.conf as nova-scheduler reads it: with Nova's options and its loaders of classes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# In a process of its own: importing Nova chooses threads for the whole process.
_CODE = """
import json, sys
import hpc_sched.conf, nova.conf
from hpc_sched.nova_glue import service_setup
service_setup.register_objects()
from nova.scheduler import filters, weights
CONF = nova.conf.CONF
hpc_sched.conf.register_opts(CONF)
CONF([f"--config-file={path}" for path in sys.argv[1:]], "nova", default_config_files=[])
section = CONF.filter_scheduler
known = filters.HostFilterHandler().get_matching_classes(section.available_filters)
weighers = weights.HostWeightHandler().get_matching_classes(section.weight_classes)
print(json.dumps({
    "available_filters": section.available_filters,
    "enabled_filters": section.enabled_filters,
    "weight_classes": section.weight_classes,
    "unknown_filters": sorted(set(section.enabled_filters) - {c.__name__ for c in known}),
    "weighers": sorted(c.__name__ for c in weighers),
    "host_subset_size": section.host_subset_size,
    "hpc_sched": {opt.dest: getattr(CONF.hpc_sched, opt.dest) for opt in hpc_sched.conf.OPTS},
}))
"""


def read(*paths: Path) -> dict[str, Any]:
    """Return the filters, weighers and options of hpc_sched that configuration files enable."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, *map(str, paths)],
        env={**os.environ, "OS_NOVA_DISABLE_EVENTLET_PATCHING": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
