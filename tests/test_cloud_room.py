"""Fragmentation: none in an empty cloud, whatever a flavor requires; otherwise that of the VMs.

The fabric is that of :mod:`tests.snapshots`: 4 leaves of 4 hosts, two leaves a pod.
"""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hpc_sched.core.processors.processor import METADATA
from hpc_sched.core.room.device_fitting import RecordedDevices
from hpc_sched.snapshot import cloud_room, what_if
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Aggregate, Flavor, Server
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.model import Topology
from hpc_sched.topology.tree import Details
from tests.snapshots import HOSTS, flavor, server, snapshot

LEVELS = ("leaf", "pod", "core")
FABRIC = Topology.from_tree(
    {
        "core1": {
            "pod1": {"leaf01": list(HOSTS[:4]), "leaf02": list(HOSTS[4:8])},
            "pod2": {"leaf03": list(HOSTS[8:12]), "leaf04": list(HOSTS[12:])},
        }
    },
    levels=LEVELS,
)
FULL = flavor("full", 16, app_class="sync")


def without(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}


flavors = st.builds(
    lambda vcpus, specs: flavor("wanted", vcpus, **without(specs)),
    st.integers(1, 16),
    st.fixed_dictionaries(
        {
            "app_class": st.sampled_from(["extreme", "sync", "async"]),
            "max_leaves": st.sampled_from([None, "1", "2", "3"]),
            "require": st.sampled_from([None, *LEVELS]),
            "homogeneous": st.sampled_from([None, "true", "prefer"]),
            "cache_score": st.sampled_from([None, "5", "30"]),
        }
    ),
)


@st.composite
def clouds(draw: st.DrawFn, *, with_vms: bool) -> Cloud:
    """Draw a cloud of unequal hosts, some of them disabled or down."""
    some = st.sets(st.sampled_from(HOSTS), max_size=6)
    vms: list[Server] = []
    if with_vms:
        vms = [server(f"vm{host}", host, draw(flavors)) for host in sorted(draw(some))]
    fast = sorted(draw(some))
    fields: dict[str, Any] = {
        "disabled": draw(some),
        "down": draw(some),
        "filters": draw(
            st.sets(st.sampled_from(["HPCHomogeneityFilter", "HPCInterferenceFilter"])).map(sorted)
        ),
        "aggregates": [Aggregate("fast", tuple(fast), {METADATA: "fast"})] if fast else [],
    }
    fields["filters"] = tuple(fields["filters"])
    found = snapshot(vms, **fields)
    small = draw(some)
    nodes = [
        structs.replace(node, capacity={**node.capacity, "VCPU": 8}) if node.host in small else node
        for node in found.hypervisors
    ]
    return Cloud.of(structs.replace(found, hypervisors=tuple(nodes)), FABRIC)


@given(clouds(with_vms=False), flavors)
def test_an_empty_cloud_is_not_fragmented_for_any_flavor_and_level(cloud: Cloud, wanted: Flavor):
    found = cloud_room.of(cloud, wanted)
    assert found.largest
    assert {level: found.fragmentation(level) for level in found.largest} == dict.fromkeys(
        found.largest, 0.0
    )


@given(clouds(with_vms=True), flavors)
def test_vms_fragment_a_cloud_and_change_nothing_of_what_it_takes_empty(
    cloud: Cloud, wanted: Flavor
):
    found, empty = cloud_room.of(cloud, wanted), cloud_room.of(what_if.emptied(cloud), wanted)
    assert found.empty == empty.empty == empty.largest
    for level in found.largest:
        assert found.largest[level] <= found.empty[level]
        assert 0 <= found.fragmentation(level) <= 1


def test_the_best_group_of_a_flavor_is_within_its_leaves():
    # One host of each leaf is left: four slots, and the flavor may use one leaf.
    vms = [server(f"vm{host}", host, FULL) for host in HOSTS if int(host[1:]) % 4]
    cloud = Cloud.of(snapshot(vms), FABRIC)
    tight = flavor("tight", 16, app_class="sync", max_leaves="1")
    found = cloud_room.of(cloud, tight)
    assert found.empty == dict.fromkeys(LEVELS, 4)
    assert {level: found.fragmentation(level) for level in LEVELS} == dict.fromkeys(LEVELS, 0.75)


def test_devices_of_hosts_without_vms_are_read_in_an_emptied_cloud_too():
    found = snapshot([server("vm", "n01", FULL)])
    nodes = [structs.replace(node, devices=RecordedDevices("{}")) for node in found.hypervisors]
    cloud = what_if.emptied(Cloud.of(structs.replace(found, hypervisors=tuple(nodes)), FABRIC))
    unread = [node.host for node in cloud.snapshot.hypervisors if node.devices is None]
    assert unread == ["n01"]
    assert not any(any(node.used.values()) for node in cloud.snapshot.hypervisors)


def test_hosts_that_are_added_have_the_links_of_those_that_they_are_like():
    links = {host: Cables.of([400] * (8 if host < "n05" else 1)) for host in HOSTS}
    uplinks = {leaf: Links(None, Cables.of([400] * 4)) for leaf in FABRIC.leaves}
    fabric = Topology.from_tree(
        FABRIC.to_tree(),
        LEVELS,
        details=Details(links=uplinks),
        host_links=links,
        oversubscription={"pod": 2},
    )
    more = [what_if.Addition("leaf02", ("x1",)), what_if.Addition("new", ("x2",), "pod1", "n01")]
    found = what_if.added(Cloud.of(snapshot([]), fabric), more).description
    assert found.host_links == links | {
        "x1": Cables.of([400]),
        "x2": Cables.of([400] * 8),
    }
    assert found.details().links == uplinks
    assert found.oversubscription == {"pod": 2}
