"""The worked example of Gupta2013, Figure 1, through Nova's API.

Two hosts of 4 cores and 4 GB: four VMs of 1 core and 512 MB, then two of 1 core and 3 GB. Two
small ones on each host leave room for a large one beside them, four on one host do not::

        rack2
        /   \\
      F1     F2
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional.cloud_kinds import FIGURE_1, SHARING
from tests.functional.shared_clouds import cloud_mark
from tests.functional.thin_cloud import ThinCloud

pytestmark = cloud_mark(SHARING)


def ask(cloud: NovaCloud, small: str) -> tuple[Counter[str], Counter[str]]:
    """Send both requests; return the VMs of each per host."""
    first = cloud.boot(small, count=4, name="small")
    placed = cloud.hosts_of(first)
    assert len(placed) == 4
    second = cloud.boot("large", count=2, name="large")
    then = cloud.hosts_of(second)
    cloud.remove([*first, *second])
    return Counter(placed.values()), Counter(then.values())


@pytest.fixture
def cloud(shared_cloud: ThinCloud) -> Iterator[ThinCloud]:
    for app_class in ("async", "extreme"):
        said = {"hpc:app_class": app_class}
        shared_cloud.flavor(f"small-{app_class}", memory_mb=512, extra_specs=said)
    shared_cloud.flavor("large", memory_mb=3072, extra_specs={"hpc:app_class": "async"})
    with shared_cloud.only(FIGURE_1):
        yield shared_cloud


@pytest.mark.default
def test_mdobp_leaves_room_for_the_second_request(cloud: NovaCloud):
    first, second = ask(cloud, "small-async")
    assert first == {"F1": 2, "F2": 2}
    assert second == {"F1": 1, "F2": 1}


def test_packed_on_one_host_the_second_request_fails(cloud: NovaCloud):
    first, second = ask(cloud, "small-extreme")
    assert first == {"F1": 4}
    assert not second
