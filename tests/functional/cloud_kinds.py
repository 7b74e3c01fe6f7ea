"""The kinds of clouds that several modules share."""

from pathlib import Path

from tests.functional.claims import STAYS_UP
from tests.functional.clouds import four_by_eight, sharing_options
from tests.functional.shared_clouds import CloudKind, Options
from tests.functional.states import read_landings
from tests.functional.tested_cloud import TestedCloud
from tests.functional.trees import hosts_below

#: 32 hosts under 4 leaves, drawn in :func:`tests.functional.clouds.four_by_eight`; the plugin as
#: etc/nova.conf.sample enables it
FOUR_BY_EIGHT = CloudKind("four by eight", {"core": four_by_eight()})

#: No host and no plugin: a test writes its hosts and starts a scheduler on them, see
#: :func:`tests.functional.claims.claims_on`.
EMPTY = CloudKind("empty", None)

#: As EMPTY, with a second cell.
EMPTY_TWO_CELLS = CloudKind("empty, two cells", None, attributes={"NUMBER_OF_CELLS": 2})

WEIGHERS = ("hpc_sched.weighers.hop_byte.HopByteWeigher", "hpc_sched.weighers.mdobp.MDOBPWeigher")


def _with_mdobp(_folder: Path) -> Options:
    return {
        ("filter_scheduler", "weight_classes"): ["nova.scheduler.weights.all_weighers", *WEIGHERS]
    }


#: The plugin as etc/nova.conf.sample enables it, and MDOBPWeigher without the filters that belong
#: to it. ::
#:
#:               core
#:           /          \
#:        leaf1        leaf2
#:      n1 n2 n3     n4 n5 n6      4 cores and 8 GB each
MDOBP = CloudKind(
    "mdobp",
    {"core": {"leaf1": ["n1", "n2", "n3"], "leaf2": ["n4", "n5", "n6"]}},
    _with_mdobp,
    attributes={"vcpus": 4, "memory_mb": 8192},
)

ATTRACTING = {"leaf1": ["a1", "a2", "a3"], "leaf2": ["a4", "a5", "a6"]}
CASE_STUDY = [f"N{number}" for number in range(1, 9)]
FIGURE_1 = ["F1", "F2"]
TABLE_1 = [f"T{number}" for number in range(1, 7)]
#: Hosts that applications share, the sample's other choice. A module uses one of the fabrics, and
#: the services of the others are disabled meanwhile (``cloud.only``). ::
#:
#:           core                gupta2013-1    gupta2013-2     gupta2013-3
#:         /      \                   |              |               |
#:      leaf1    leaf2              rack1          rack2           rack3
#:      a1-a3    a4-a6              N1-N8          F1 F2           T1-T6
#:           4 cores, 8 GB each                  4 cores, 4 GB   88 units, 60.5 GB
SHARING = CloudKind(
    "sharing",
    {
        "core": ATTRACTING,
        "gupta2013-1": {"rack1": CASE_STUDY},
        "gupta2013-2": {"rack2": FIGURE_1},
        "gupta2013-3": {"rack3": TABLE_1},
    },
    sharing_options,
    attributes={"vcpus": 4, "memory_mb": 8192},
    sizes=dict.fromkeys(FIGURE_1, (4, 4096)) | dict.fromkeys(TABLE_1, (88, 61952)),
)

#: Three levels of switches
TWO_PODS = {
    pod: {leaf: [f"{leaf}{number}" for number in range(1, 5)] for leaf in leaves}
    for pod, leaves in {"pod1": ("la", "lb", "lc"), "pod2": ("ld", "le", "lf")}.items()
}
#: Leaves of different sizes
UNEVEN_PODS = {
    "pod3": {"leaf1": ["n1", "n2"], "leaf2": ["n3", "n4"], "leaf3": ["n5", "n6"]},
    "pod4": {"leaf4": ["n7", "n8", "n9", "n10"], "leaf5": ["n11"]},
}
ISLANDS = {"west": ["w1", "w2"], "east": ["e1", "e2"]}
UNNAMED = ["u1", "u2", "u3", "u4"]
#: Fabrics without a path from one to the other. A module uses one of them, and the services of
#: the others are disabled meanwhile (``cloud.only``). The topology does not name u1 to u4. ::
#:
#:                core                                core2                west     east    unnamed
#:           /            \                     /              \            |        |       |
#:        pod1            pod2               pod3              pod4       w1 w2    e1 e2    u1-u4
#:      /  |   \        /  |   \          /   |    \          /    \       are full
#:    la  lb  lc      ld  le  lf     leaf1 leaf2 leaf3    leaf4   leaf5
#:                                   n1 n2 n3 n4 n5 n6    n7-n10  n11
#:    4 hosts each, la1 to lf4; half of lb4, lc4 and ld4 is in use
PODS = CloudKind(
    "pods",
    {"core": TWO_PODS, "core2": UNEVEN_PODS, **ISLANDS},
    hosts=[*hosts_below({"core": TWO_PODS, "core2": UNEVEN_PODS, **ISLANDS}), *UNNAMED],
    in_use=dict.fromkeys(("lb4", "lc4", "ld4"), 8) | dict.fromkeys(hosts_below(ISLANDS), 16),
)

#: Real computes, for moves and failed builds. ::
#:
#:              core
#:            /      \
#:         pod1      pod2
#:        /    \    /    \
#:      la    lb   lc    ld      2 hosts each: la1 .. ld2
REAL_PODS = CloudKind(
    "real pods",
    {
        "core": {
            "pod1": {"la": ["la1", "la2"], "lb": ["lb1", "lb2"]},
            "pod2": {"lc": ["lc1", "lc2"], "ld": ["ld1", "ld2"]},
        }
    },
    is_real=True,
)

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
