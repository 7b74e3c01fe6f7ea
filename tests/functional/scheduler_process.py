"""A scheduler in a process of its own: Nova's manager, told by lines of JSON what to place.

Run with the options of nova-scheduler, a log file among them. It says "ready", then answers each
request on stdin, a RequestSpec with the uuids of its VMs, with the hosts or the reason why there
is none.
"""

import json
import sys

from hpc_sched.nova_glue import nova_release

nova_release.choose_threads()

from nova import config, objects, rpc
from nova import context as nova_context
from nova.conf import CONF
from nova.scheduler import manager
from oslo_log import log as logging
from oslo_messaging import ExpectedException


def main() -> None:
    config.parse_args(["nova-scheduler", *sys.argv[1:]])
    logging.setup(CONF, "nova")
    objects.register_all()
    rpc.init(CONF)
    scheduler = manager.SchedulerManager()
    print(json.dumps("ready"), flush=True)
    context = nova_context.get_admin_context()
    for line in sys.stdin:
        asked = json.loads(line)
        spec = objects.RequestSpec.obj_from_primitive(asked["spec"], context)
        try:
            chosen = scheduler.select_destinations(
                context, spec_obj=spec, instance_uuids=asked["uuids"], return_objects=True
            )
        except ExpectedException as expected:
            answer = {"refused": str(expected.exc_info[1])}
        else:
            answer = {"hosts": [selections[0].nodename for selections in chosen]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
