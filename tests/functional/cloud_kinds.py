"""The kinds of clouds that several modules share."""

from pathlib import Path

from tests.functional.clouds import four_by_eight, sharing_options
from tests.functional.shared_clouds import CloudKind, Options
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
