"""The kinds of clouds that several modules share."""

from tests.functional.claims import STAYS_UP
from tests.functional.clouds import four_by_eight, sharing_options
from tests.functional.shared_clouds import CloudKind
from tests.functional.states import read_landings
from tests.functional.tested_cloud import TestedCloud

#: 32 hosts under 4 leaves, drawn in :func:`tests.functional.clouds.four_by_eight`; the plugin as
#: etc/nova.conf.sample enables it
FOUR_BY_EIGHT = CloudKind("four by eight", {"core": four_by_eight()})

#: ::
#:
#:         core
#:        /    \
#:     leaf1  leaf2
#:     n1-n4  n5-n8
TWO_BY_FOUR = CloudKind(
    "two by four",
    {"core": {"leaf1": ["n1", "n2", "n3", "n4"], "leaf2": ["n5", "n6", "n7", "n8"]}},
)

#: Real computes, for moves, with the filters that read the VMs on all hosts. node-a to node-d are
#: no computes: a test may start a service that has them. ::
#:
#:                      core
#:              /         |         \
#:          pod1        pod2        pod3
#:         /    \      /    \         |
#:      leaf1 leaf2 leaf3  leaf4    leaf5
#:      n1-n3 n4-n6 n7-n9 n10 n11   node-a to node-d
MOVES = CloudKind(
    "moves",
    {
        "core": {
            "pod1": {"leaf1": ["n1", "n2", "n3"], "leaf2": ["n4", "n5", "n6"]},
            "pod2": {"leaf3": ["n7", "n8", "n9"], "leaf4": ["n10", "n11"]},
            "pod3": {"leaf5": ["node-a", "node-b", "node-c", "node-d"]},
        }
    },
    options=lambda folder: (
        sharing_options(folder)
        # Only the hosts of a test are down: under eventlet computes report late while a test is
        # busy.
        | STAYS_UP
        | {("DEFAULT", "allow_resize_to_same_host"): False}
    ),
    hosts=[f"n{number}" for number in range(1, 12)],
    is_real=True,
)


def _fill(cloud: TestedCloud) -> None:
    classed = {"hpc:app_class": "sync"}
    cloud.flavor("whole", vcpus=16, memory_mb=65536, extra_specs=classed)
    cloud.flavor("two", vcpus=2, extra_specs=classed)
    # Alone in the cloud, so that its numbers are those of one VM.
    cloud.wait(cloud.boot("whole", host="n2", name="full"))
    group = cloud.server_group("job", "anti-affinity", {"max_server_per_host": 2})
    cloud.server_group("empty", "soft-affinity")
    cloud.wait(cloud.boot("two", count=3, group=group, name="worker"))
    read_landings(cloud.folder / "decisions.json")
    cloud.wait(cloud.boot("whole", count=9, group=group, name="nowhere"))
    _disable(cloud, "n5")
    aggregate = cloud.api.post_aggregate({"aggregate": {"name": "fast"}})
    cloud.api.add_host_to_aggregate(aggregate["id"], "n4")
    cloud.api.post_aggregate_action(
        aggregate["id"], {"set_metadata": {"metadata": {"hpc:processor": "gold"}}}
    )
    _add_child(cloud, "n6", "n6_numa0", {"PCPU": 6})
    _add_child(cloud, "n6", "n6_numa1", {"PCPU": 4, "VGPU": 2})


def _disable(cloud: TestedCloud, host: str) -> None:
    [service] = cloud.api.get_services(host=host, binary="nova-compute")
    cloud.api.put_service(service["id"], {"status": "disabled"})


def _add_child(cloud: TestedCloud, host: str, name: str, inventory: dict[str, int]) -> None:
    """Add a provider below a host, as libvirt does for NUMA nodes and GPUs."""
    placement = cloud.placement
    root = placement.get(f"/resource_providers?name={host}").body["resource_providers"][0]
    made = placement.post(
        "/resource_providers",
        {"name": name, "parent_provider_uuid": root["uuid"]},
        version="1.20",
    ).body
    totals = {resource: {"total": total} for resource, total in inventory.items()}
    placement.put(
        f"/resource_providers/{made['uuid']}/inventories",
        {"resource_provider_generation": made["generation"], "inventories": totals},
        version="1.20",
    )


#: A cloud for commands that show it, with a decision log, decisions.json in its folder. n7 is not
#: in the topology. n2 is full with the VM full, n5 is disabled, n6 has pinned processors and
#: virtual GPUs, n4 is in the aggregate fast. Server group job has three VMs, worker-1 to worker-3,
#: and nine that found no host, nowhere-1 to nowhere-9; server group empty has none. ::
#:
#:            core
#:           /    \
#:       leaf1    leaf2
#:       n1-n3    n4-n6      n7
SHOWN = CloudKind(
    "shown",
    {"core": {"leaf1": ["n1", "n2", "n3"], "leaf2": ["n4", "n5", "n6"]}},
    options=lambda folder: {("hpc_sched", "decision_log"): str(folder / "decisions.json")},
    hosts=[f"n{number}" for number in range(1, 8)],
    fill=_fill,
)


def _fill_status(cloud: TestedCloud) -> None:
    _disable(cloud, "n4")
    cloud.flavor("plain")
    cloud.flavor("hpc", extra_specs={"hpc:app_class": "sync"})


#: What hpc-sched-status judges: n4 is not enabled, x1 is no compute. ::
#:
#:            core
#:           /    \
#:       leaf1    leaf2
#:       n1-n3    n4 n5 x1
STATUS = CloudKind(
    "status",
    {"core": {"leaf1": ["n1", "n2", "n3"], "leaf2": ["n4", "n5", "x1"]}},
    hosts=["n1", "n2", "n3", "n4", "n5"],
    fill=_fill_status,
)
