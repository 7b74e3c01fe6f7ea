"""A process that loads hpc_sched as nova-scheduler does, and places one request of each kind.

It prints the modules of hpc_sched that are loaded then, as JSON: by "requests", and then by each
option of [hpc_sched] that is set on the command line (OPTION=VALUE), once it is on at the start.
"""

import json
import logging
import sys
from pathlib import Path

import nova.conf
import pytest
from nova import objects
from nova.scheduler import filters, weights

objects.register_all()

import tests.functional.states as on_hosts

CONF = nova.conf.CONF
POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")


def loaded() -> list[str]:
    """Return the names of the loaded modules."""
    return sorted(name for name in sys.modules if name.split(".")[0] == "hpc_sched")


class Scheduler:
    """All filters and weighers, made as Nova makes them."""

    def __init__(self) -> None:
        find = filters.HostFilterHandler().get_matching_classes
        found = {one.__name__: one for one in find(["hpc_sched.filters.all_filters"])}
        self.filters = [found[name]() for name in CONF.filter_scheduler.enabled_filters]
        find = weights.HostWeightHandler().get_matching_classes
        self.weighers = [one() for one in find(["hpc_sched.weighers.all_weighers"])]

    def place(self, count: int, **fields: object) -> None:
        """Place the VMs of a request on empty hosts."""
        queue = on_hosts.queue_of(count)
        states = on_hosts.offered([on_hosts.host_state(f"n{number}") for number in range(1, 9)])
        request = on_hosts.spec(count=count, uuid=queue[0], vcpus=4, **fields)
        for index, uuid in enumerate(queue):
            request.instance_uuid = uuid
            states = on_hosts.run(states, request, *self.filters, index=index)
            weighed = weights.HostWeightHandler().get_weighed_objects(
                self.weighers, states, request
            )
            weighed[0].obj.consume_from_request(request)


def place_each_kind(monkeypatch: pytest.MonkeyPatch, scheduler: Scheduler) -> None:
    """Place a VM alone, a group without a server group, one of each policy, and a move."""

    def quiet(count: int) -> int:
        queue = on_hosts.queue_of(count)
        on_hosts.databases_say(monkeypatch, queue=queue, left=count)
        on_hosts.claims_succeed(monkeypatch, queue)
        return count

    on_hosts.hosts_have(monkeypatch, {})
    scheduler.place(quiet(1), group=None)
    scheduler.place(quiet(3), group=None, extra_specs=on_hosts.wishing(app_class="sync"))
    for policy in POLICIES:
        scheduler.place(quiet(3), group_policy=policy)
    on_hosts.databases_say(monkeypatch, members={("n2", "n2"): 1}, left=1, is_move=True)
    scheduler.place(1, group_policy="soft-affinity")


def main() -> None:
    """Print what is loaded."""
    # What goes wrong in a plugin is logged, and Nova goes on.
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    folder = Path(sys.argv[1])
    topology = folder / "topology.yaml"
    leaves = "".join(f"  - {{name: leaf{i}, hosts: 'n[{4 * i - 3}-{4 * i}]'}}\n" for i in (1, 2))
    topology.write_text(f"switches:\n- name: spine\n  switches:\n{leaves}")
    with on_hosts.configured(topology), pytest.MonkeyPatch.context() as monkeypatch:
        names = [f"HPC{name}Filter" for name in ("DedicatedHost", "Interference", "Homogeneity")]
        names += ["HPCGroupFilter", "HPCRackCapacityFilter"]
        CONF.set_override("enabled_filters", names, "filter_scheduler")
        place_each_kind(monkeypatch, Scheduler())
        found = {"requests": loaded()}
        for setting in sys.argv[2:]:
            option, _, value = setting.partition("=")
            CONF.set_override(option, value, "hpc_sched")
            Scheduler()
            found[option] = loaded()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
