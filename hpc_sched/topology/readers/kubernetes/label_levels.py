"""Which labels of Kubernetes nodes name the switches of which level.

Topograph (NVIDIA) numbers its tiers from the node outwards, Amazon its layers from the core
inwards. Instance types of Amazon have three layers or four: of a node with three, the third is the
leaf, and stands for the fourth.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from hpc_sched.topology.tree import level_names

_TIER = re.compile(r"fabric\.topograph\.run/tier-(\d{1,2})\Z", re.ASCII)
_LAYER = re.compile(r"topology\.k8s\.aws/network-node-layer-(\d{1,2})\Z", re.ASCII)
_NVIDIA = "network.topology.nvidia.com/"
_GOOGLE = "cloud.google.com/gce-topology-"
_ORACLE = "oci.oraclecloud.com/"
_PROVIDER = "cloud.provider.com/topology-"

# Labels of one level are names of one thing: the first one that a node has counts.
_FAMILIES: tuple[tuple[tuple[str, ...], ...], ...] = (
    (
        (f"{_NVIDIA}leaf", f"{_NVIDIA}block"),
        (f"{_NVIDIA}spine",),
        (f"{_NVIDIA}core", f"{_NVIDIA}datacenter"),
    ),
    # Not the hosts that both clouds name too: they are no switches.
    ((f"{_GOOGLE}subblock",), (f"{_GOOGLE}block",)),
    (
        (f"{_ORACLE}rdma.local_block_id",),
        (f"{_ORACLE}rdma.network_block_id",),
        (f"{_ORACLE}rdma.hpc_island_id",),
    ),
    ((f"{_ORACLE}host.rack_id",), (f"{_ORACLE}host.network_block_id",)),
    # Of the examples in Kueue's documentation.
    ((f"{_PROVIDER}rack",), (f"{_PROVIDER}block",)),
)
ZONE = "topology.kubernetes.io/zone"
_REGION = "topology.kubernetes.io/region"
# NVLink and the like: below the leaf. Topograph leaves out its own label where a node has that of
# the GPU operator.
_DOMAIN = ("accelerator.topograph.run/domain", f"{_NVIDIA}accelerator", "nvidia.com/gpu.clique")
_SUB_DOMAIN = ("accelerator.topograph.run/sub-domain",)

KNOWN = (
    "fabric.topograph.run/tier-N",
    f"{_NVIDIA}leaf",
    "topology.k8s.aws/network-node-layer-N",
    f"{_GOOGLE}subblock",
    f"{_ORACLE}rdma.local_block_id",
    f"{_PROVIDER}rack",
    ZONE,
    _DOMAIN[0],
)
_EXACT = {
    *(label for family in _FAMILIES for level in family for label in level),
    *(ZONE, _REGION, *_DOMAIN, *_SUB_DOMAIN),
}


class LabelLevel(NamedTuple):
    """One level of the fabric."""

    name: str
    labels: tuple[str, ...]  # the first one that a node has names its switch

    def switch(self, labels: Mapping[str, str]) -> str | None:
        """Return the switch of a node, or None."""
        return next((value for key in self.labels if (value := labels.get(key))), None)


def is_known(label: str) -> bool:
    """True for a label that may name a switch."""
    return label in _EXACT or bool(_TIER.match(label) or _LAYER.match(label))


def fabric_levels(found: Collection[str]) -> list[LabelLevel]:
    """Return the levels of switches, bottom up, for the labels that some node has.

    They come from one family of labels, the first in the order of the fabric's detail.
    """
    tiers = _numbered(_TIER, found)
    layers = _numbered(_LAYER, found)[::-1]
    families: list[list[tuple[str, ...]]] = [
        [(tier,) for tier in tiers],
        [level for level in _FAMILIES[0] if any(label in found for label in level)],
        [tuple(layers[i:]) for i in range(len(layers))],
        *([level for level in family if level[0] in found] for family in _FAMILIES[1:]),
    ]
    family = next(filter(None, families), [])
    names = level_names(len(family))
    # A zone is no leaf switch: a request for one leaf must not be met by it.
    zones = (LabelLevel("zone", (ZONE,)), LabelLevel("region", (_REGION,)))
    return [LabelLevel(*level) for level in zip(names, family, strict=True)] or [
        level for level in zones if level.labels[0] in found
    ]


def domain_levels(found: Collection[str]) -> list[LabelLevel]:
    """Return the levels below the leaf, bottom up, for the labels that some node has."""
    levels = (LabelLevel("subdomain", _SUB_DOMAIN), LabelLevel("domain", _DOMAIN))
    return [level for level in levels if any(label in found for label in level.labels)]


def _numbered(pattern: re.Pattern[str], found: Collection[str]) -> list[str]:
    """Return the labels of a numbered family, sorted by number."""
    matches = [match for label in found if (match := pattern.match(label))]
    return [match[0] for match in sorted(matches, key=lambda match: (int(match[1]), match[0]))]
