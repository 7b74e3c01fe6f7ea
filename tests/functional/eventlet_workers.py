"""Two workers of oslo.service on eventlet, as nova-scheduler of Nova 31 and 32 has them.

Each counts a decision when a line comes: ``DIRECTORY/PID`` is made for it. Without databases, for
these are in memory where Nova's fixtures run on eventlet.

Arguments: a topology file, the address of the metrics, a directory.
"""

import eventlet

eventlet.monkey_patch()

import os
import sys
import time
from pathlib import Path

try:
    from oslo_service import backend
except ImportError:
    pass  # before 4.2 there is nothing else
else:
    # First: with Nova 31 and 32 the import of service chooses, too.
    backend.init_backend(backend.BackendType.EVENTLET)

import nova.conf
from nova import objects
from oslo_service import service

objects.register_all()

from hpc_sched import conf
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.exporter import decision_counts, worker

CONF = nova.conf.CONF
TOPOLOGY, ADDRESS, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])


class Counting(service.Service):
    """Counts a decision for each file in its folder."""

    def start(self) -> None:
        """Start it in the worker."""
        super().start()
        self.tg.add_thread(self.serve)

    def serve(self) -> None:
        """Take requests."""
        (FOLDER / str(os.getpid())).mkdir()
        while True:
            for path in (FOLDER / str(os.getpid())).iterdir():
                worker.start()
                decision_counts.add("planned", None)
                path.unlink()
            time.sleep(0.1)


def main() -> None:
    """Build a filter in the parent, then fork."""
    conf.register_opts(CONF)
    CONF([], default_config_files=[])
    CONF.set_override("topology_file", TOPOLOGY, "hpc_sched")
    CONF.set_override("metrics_address", ADDRESS, "hpc_sched")
    CONF.set_override("metrics_directory", str(FOLDER / "metrics"), "hpc_sched")
    HPCGroupFilter()
    service.launch(CONF, Counting(), workers=2, restart_method="mutate").wait()


if __name__ == "__main__":
    main()
