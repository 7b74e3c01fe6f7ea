"""A nova-scheduler with its workers, as nova.cmd.scheduler starts it; requests come by a socket.

Run with the options of nova-scheduler and, first of all, a folder: each worker listens there on a
socket that its process id names. A connection sends one line of JSON and gets one, as those of
:mod:`tests.functional.scheduler_process`. RPC messages would need a server of messages.
"""

import os
import socket
import sys
import threading
from pathlib import Path

from hpc_sched.nova_glue import nova_release

nova_release.choose_threads()

import json

from nova import config, objects, service
from nova.conf import CONF
from nova.scheduler import manager, rpcapi
from oslo_log import log as logging

from tests.functional import scheduler_process

FOLDER = Path(sys.argv[1])


class Scheduler(service.Service):
    """Nova's service, which also takes requests at its worker's socket."""

    def start(self) -> None:
        """Start it in the worker."""
        super().start()
        threading.Thread(target=_listen, args=(self.manager,), daemon=True).start()


def _listen(scheduler: manager.SchedulerManager) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(FOLDER / f"{os.getpid()}.new"))
        listening.listen(16)
        os.rename(FOLDER / f"{os.getpid()}.new", FOLDER / str(os.getpid()))
        while True:
            threading.Thread(target=_serve, args=(scheduler, listening.accept()[0])).start()


def _serve(scheduler: manager.SchedulerManager, connection: socket.socket) -> None:
    with connection, connection.makefile("rw") as stream:
        stream.write(json.dumps(scheduler_process.serve(scheduler, stream.readline())))


def main() -> None:
    """Do what nova.cmd.scheduler does."""
    config.parse_args(["nova-scheduler", *sys.argv[2:]])
    logging.setup(CONF, "nova")
    objects.register_all()
    objects.Service.enable_min_version_cache()
    server = Scheduler.create(binary="nova-scheduler", topic=rpcapi.RPC_TOPIC)
    try:
        from nova import thread_pool_factory
    except ImportError:
        pass  # before Nova 34
    else:
        thread_pool_factory.reset_all_executors()
    service.serve(server, workers=CONF.scheduler.workers)
    service.wait()


if __name__ == "__main__":
    main()
