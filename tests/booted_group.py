"""A group on a real Nova in this process, as the operator's nova.conf and topology place it.

A program for the environment in which only the wheel is installed (``test_installed_wheel.py``): it
imports nothing of the tests. Run with a nova.conf and the topology that it names; it prints JSON.
"""

import json
import sys
from pathlib import Path

import hpc_sched
from hpc_sched import topology
from hpc_sched.demo.nova_cloud import NovaCloud, read_options

VMS = 8


def main() -> None:
    """Set the flavor, create the group and its VMs; print where they are."""
    conf, file = sys.argv[1:]
    fabric = topology.load("yaml", path=file)
    cloud = NovaCloud()
    cloud.options = read_options(Path(conf))
    cloud.setUp()
    try:
        cloud.start_computes(fabric.hosts)
        flavor = cloud.flavor("hpc", vcpus=16)
        wrong = cloud.api.api_post(
            f"/flavors/{flavor}/os-extra_specs",
            {"extra_specs": {"hpc:app_class": "fast"}},
            check_response_status=False,
        )
        cloud.api.post_extra_spec(flavor, {"extra_specs": {"hpc:app_class": "sync"}})
        group = cloud.server_group("job1", "soft-anti-affinity")
        hosts = cloud.hosts_of(cloud.boot(flavor, count=VMS, group=group, name="rank"))
        found = {
            "package": hpc_sched.__file__,
            "refused extra spec": [wrong.status, wrong.body["badRequest"]["message"]],
            "hosts": sorted(hosts.values()),
            "leaves": sorted({fabric.leaf_of(host) for host in hosts.values()}),
            "log": [line for line in cloud.stdlog.logger.output.splitlines() if "Hop-Byte" in line],
        }
    finally:
        cloud.doCleanups()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
