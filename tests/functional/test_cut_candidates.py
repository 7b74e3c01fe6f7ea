"""Groups with devices where Placement offers a part of the candidates alone.

``[placement] max_allocation_candidates`` cuts its list, and nothing in the answer says so.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpc_sched.nova_glue.io import loaded_topology
from tests.functional.claims import hosts_of
from tests.functional.cloud_kinds import EMPTY
from tests.functional.device_hosts import (
    DeviceHosts,
    Host,
    counted_claims,
    device_hosts_on,
    device_request,
)
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud

#         core
#       /      \
#   leaf-a    leaf-b
#   a1  a2    b1  b2
LEAVES = {"leaf-a": ["a1", "a2"], "leaf-b": ["b1", "b2"]}
# Four devices a host, two a VM: 12 candidates, of which 6 differ.
FOUR_DEVICES = Host(children={f"gpu{number}": {"CUSTOM_GPU": 1} for number in range(4)})
TWO_DEVICES = {"resources1:CUSTOM_GPU": "1", "resources2:CUSTOM_GPU": "1", "group_policy": "none"}

pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def hosts(cloud: TestedCloud, tmp_path: Path) -> Iterator[DeviceHosts]:
    with device_hosts_on(cloud, tmp_path, LEAVES) as hosts:
        yield hosts


@pytest.fixture
def cut(hosts: DeviceHosts) -> Iterator[Callable[[int, str], None]]:
    """Have Placement offer a number of candidates at most, in one of its two orders."""
    config = hosts.cloud.placement_fixture.conf_fixture.conf
    names = ("max_allocation_candidates", "allocation_candidates_generation_strategy")

    def cut(most: int, strategy: str) -> None:
        for name, value in zip(names, (most, strategy), strict=True):
            config.set_override(name, value, "placement")

    yield cut
    for name in names:
        config.clear_override(name, "placement")


@pytest.mark.parametrize(
    ("count", "specs", "expected"),
    [
        pytest.param(4, {"hpc:require": "leaf"}, [4], id="4 under one leaf, as they must be"),
        pytest.param(8, {}, [4, 4], id="8 on all hosts"),
        pytest.param(4, {}, [4], id="4 under one leaf, as they may be"),
    ],
)
def test_a_group_has_the_room_of_the_hosts_though_candidates_were_cut(
    hosts: DeviceHosts, cut, monkeypatch, count: int, specs: dict[str, str], expected: list[int]
):
    cut(8, "breadth-first")
    hosts.build({name: FOUR_DEVICES for below in LEAVES.values() for name in below})
    spec = device_request(count=count, extra_specs=TWO_DEVICES | specs)
    with counted_claims(monkeypatch) as claims:
        placed = hosts_of(hosts.place(spec, hosts.scheduler))
    topology = loaded_topology.current().topology
    leaves = Counter(topology.leaf_of(host) for host in placed)
    assert sorted(leaves.values()) == expected
    assert claims == {True: count}
