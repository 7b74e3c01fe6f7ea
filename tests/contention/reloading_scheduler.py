"""A nova-scheduler with one worker, as nova.cmd.scheduler starts it, that can be sent SIGHUP.

Run as ``tests.contention.timed_scheduler``, with the path of a socket before its other arguments:
each connection there sends one request as a line of JSON and gets one line. It stands for the
queue of messages: the master listens, so what is sent while the worker is replaced waits for the
next one. A worker that ends takes no more requests, and waits for those that it serves, as Nova's
does for those of oslo.messaging.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hpc_sched.nova_glue import nova_release

nova_release.choose_threads()

from nova import config, objects, rpc, service
from nova.conf import CONF
from nova.scheduler import rpcapi
from oslo_log import log as logging

from tests.contention import timed_scheduler
from tests.contention.wsgi_server import die_with_parent
from tests.functional import scheduler_process

LOOK_EVERY = 0.05  # seconds, whether the worker ends


class Scheduler(service.Service):
    """Nova's service, which takes requests at a socket."""

    listening: socket.socket

    def start(self) -> None:
        """Start it in the worker."""
        super().start()
        self._ends = threading.Event()
        self._requests = ThreadPoolExecutor(scheduler_process.THREADS)
        self._taking = threading.Thread(target=self._take, daemon=True)
        self._taking.start()
        print(json.dumps("ready"), flush=True)

    def stop(self) -> None:
        """End as Nova's does: it takes no further requests, and waits for those that it serves."""
        self._ends.set()
        self._taking.join()
        self._requests.shutdown(wait=True)
        super().stop()

    def _take(self) -> None:
        while not self._ends.is_set():
            if select.select([self.listening], [], [], LOOK_EVERY)[0]:
                self._requests.submit(self._serve, self.listening.accept()[0])

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rw") as stream:
            answer = scheduler_process.serve(self.manager, stream.readline())
            stream.write(json.dumps(answer) + "\n")


def main() -> None:
    """Do what nova.cmd.scheduler does."""
    die_with_parent()
    path = sys.argv.pop(1)
    timed_scheduler.install(Path(sys.argv.pop(1)))
    config.parse_args(["nova-scheduler", *sys.argv[1:]])
    logging.setup(CONF, "nova")
    objects.register_all()
    objects.Service.enable_min_version_cache()
    rpc.init(CONF)
    # The threads of its pools do not survive a fork, and the end of a worker waits for them.
    from nova import thread_pool_factory

    server = Scheduler.create(binary="nova-scheduler", topic=rpcapi.RPC_TOPIC)
    server.listening = socket.socket(socket.AF_UNIX)
    server.listening.bind(path)
    server.listening.listen(128)
    thread_pool_factory.reset_all_executors()
    service.serve(server, workers=1)
    service.wait()


if __name__ == "__main__":
    main()
