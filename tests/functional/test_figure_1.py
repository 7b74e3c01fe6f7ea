"""The worked example of Gupta2013, Figure 1, on a real Nova.

Two hosts of 4 cores and 4 GB: four VMs of 1 core and 512 MB, then two of 1 core and 3 GB. Two
small ones on each host leave room for a large one beside them, four on one host do not::

        rack1
        /   \\
      N1     N2
"""

from collections import Counter
from collections.abc import Callable

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional.clouds import sharing_options

HOSTS = ["N1", "N2"]


def ask(cloud: NovaCloud, small: str) -> tuple[Counter[str], Counter[str]]:
    """Send both requests; return the VMs of each per host."""
    first = cloud.boot(small, count=4, name="small")
    placed = cloud.hosts_of(first)
    assert len(placed) == 4
    second = cloud.boot("large", count=2, name="large")
    then = cloud.hosts_of(second)
    cloud.remove([*first, *second])
    return Counter(placed.values()), Counter(then.values())


@pytest.fixture(scope="module")
def cloud(
    start_cloud: Callable[..., NovaCloud], tmp_path_factory: pytest.TempPathFactory
) -> NovaCloud:
    options = sharing_options(tmp_path_factory.mktemp("conf"))
    cloud = start_cloud({"rack1": HOSTS}, options, vcpus=4, memory_mb=4096)
    cloud.start_computes(HOSTS)
    for app_class in ("async", "extreme"):
        said = {"hpc:app_class": app_class}
        cloud.flavor(f"small-{app_class}", memory_mb=512, extra_specs=said)
    cloud.flavor("large", memory_mb=3072, extra_specs={"hpc:app_class": "async"})
    return cloud


def test_mdobp_leaves_room_for_the_second_request(cloud: NovaCloud):
    first, second = ask(cloud, "small-async")
    assert first == {"N1": 2, "N2": 2}
    assert second == {"N1": 1, "N2": 1}


def test_packed_on_one_host_the_second_request_fails(cloud: NovaCloud):
    first, second = ask(cloud, "small-extreme")
    assert first == {"N1": 4}
    assert not second
