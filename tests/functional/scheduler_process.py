"""A scheduler in a process of its own: Nova's manager, which gets lines of JSON for RPC messages.

Run with the options of nova-scheduler, a log file among them. It says "ready", then answers each
request on stdin, a RequestSpec with the uuids of its VMs, with the first of them and the hosts or
the reason why there is none. As nova-scheduler it serves many at a time.
"""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hpc_sched.nova_glue import nova_release

nova_release.choose_threads()

from nova import config, objects, rpc
from nova import context as nova_context
from nova.conf import CONF
from nova.scheduler import manager
from oslo_log import log as logging
from oslo_messaging import ExpectedException

LOG = logging.getLogger(__name__)


THREADS = 64  # as [DEFAULT] executor_thread_pool_size


def serve(scheduler: manager.SchedulerManager, line: str) -> dict[str, Any]:
    """Return the answer to a request."""
    context = nova_context.get_admin_context()
    asked = json.loads(line)
    spec = objects.RequestSpec.obj_from_primitive(asked["spec"], context)
    answer = {"first": asked["uuids"][0]}
    try:
        chosen = scheduler.select_destinations(
            context,
            spec_obj=spec,
            instance_uuids=asked["uuids"],
            return_objects=True,
            return_alternates=asked.get("alternates", False),
        )
    except ExpectedException as expected:
        return answer | {"refused": str(expected.exc_info[1])}
    except Exception as error:
        LOG.exception("A request failed")
        return answer | {"failed": repr(error)}
    return answer | {"hosts": [selections[0].nodename for selections in chosen]}


def main() -> None:
    """Serve requests until stdin ends."""
    config.parse_args(["nova-scheduler", *sys.argv[1:]])
    logging.setup(CONF, "nova")
    objects.register_all()
    rpc.init(CONF)
    scheduler = manager.SchedulerManager()
    lock = threading.Lock()

    def reply(line: str) -> None:
        answer = json.dumps(serve(scheduler, line))
        with lock:
            print(answer, flush=True)

    print(json.dumps("ready"), flush=True)
    with ThreadPoolExecutor(THREADS) as pool:
        for line in sys.stdin:
            pool.submit(reply, line)


if __name__ == "__main__":
    main()
