"""Table I of Gupta2013: what a host earns, as hpc-sched cost reads it from Nova's APIs.

EC2 compute units as vcpus: hosts of 88 and 60.5 GB. A Cluster Compute instance has a host of its
own, or 13 units less and beside it a High-Memory instance in the memory that it leaves::

                rack3
     /    /     |     |    \\    \\
    T1   T2    T3    T4   T5    T6
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.cli import main
from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional import cloud_file
from tests.functional.cloud_kinds import SHARING, TABLE_1
from tests.functional.clouds import SAMPLE_CONF
from tests.functional.shared_clouds import cloud_mark
from tests.functional.thin_cloud import ThinCloud

UNITS, GB = 88, 1024
# Flavor: units, MB, class. The plain one is what stock Nova places.
FLAVORS = {
    "cluster-compute": (88, 26 * GB, "extreme"),
    "cluster-compute-less-13": (75, 26 * GB, "sync"),
    "high-memory": (13, 35020, "async"),
    "high-memory-plain": (13, 35020, None),
}
PRICES = f"extreme={2.4 / 88},sync={2.4 / 88},async={0.9 / 13},none={0.9 / 13}"

Boot = Callable[..., list[str]]


pytestmark = cloud_mark(SHARING)


@pytest.fixture
def cloud(shared_cloud: ThinCloud, tmp_path: Path) -> Iterator[ThinCloud]:
    for name, (vcpus, memory_mb, app_class) in FLAVORS.items():
        specs = {"hpc:app_class": app_class} if app_class else None
        shared_cloud.flavor(name, vcpus=vcpus, memory_mb=memory_mb, extra_specs=specs)
    named = cloud_file.written(shared_cloud, tmp_path / "clouds.yaml")
    with shared_cloud.only(TABLE_1), named:
        yield shared_cloud


@pytest.fixture
def cost(cloud: NovaCloud, capsys) -> Callable[[], dict[str, Any]]:
    """Return the rows of hpc-sched cost by class, read from the cloud."""

    def cost_() -> dict[str, Any]:
        command = ["cost", "--cloud", "test", "--config-file", str(SAMPLE_CONF)]
        handlers = list(logging.root.handlers)
        capsys.readouterr()
        try:
            assert main.main([*command, "--price", PRICES, "-f", "json"]) == 0
        finally:
            logging.root.handlers[:] = handlers
        return {row.pop("Class"): row for row in json.loads(capsys.readouterr().out)}

    return cost_


def hosts(cloud: NovaCloud, servers: list[str]) -> Counter[str]:
    placed = cloud.hosts_of(servers)
    assert len(placed) == len(servers)
    return Counter(placed.values())


def test_hosts_that_mdobp_fills_earn_23_percent_more_than_dedicated_ones(cloud, boot: Boot, cost):
    whole = hosts(cloud, boot("cluster-compute", count=2))
    dedicated = cost()
    assert dedicated["all"]["Hosts"] == dedicated["extreme"]["Hosts"] == len(whole) == 2
    assert dedicated["all"]["Host cores"] == 2 * UNITS
    assert dedicated["all"]["Per host-hour"] == pytest.approx(2.4)

    large = hosts(cloud, boot("cluster-compute-less-13", count=2))
    small = hosts(cloud, boot("high-memory", count=2))
    assert small == large
    found = cost()
    # The dedicated hosts are still there: those of sync are the shared ones.
    shared = found["all"]["Revenue/h"] - dedicated["all"]["Revenue/h"]
    assert found["all"]["Hosts"] == 4
    assert found["sync"]["Hosts"] == found["async"]["Hosts"] == 2
    assert shared / 2 == pytest.approx(2.4 - 2.4 / (88 / 13) + 0.9)
    assert shared / 2 / dedicated["all"]["Per host-hour"] == pytest.approx(1.2273, abs=1e-4)


def test_the_same_vms_on_hosts_of_their_own_earn_less_than_dedicated_hosts(cloud, boot: Boot, cost):
    large = hosts(cloud, boot("cluster-compute-less-13", count=2))
    # Without a class MDOBPWeigher gives no weights, and Nova's weighers take empty hosts.
    small = hosts(cloud, boot("high-memory-plain", count=2))
    assert not large & small
    found = cost()
    assert found["none"]["VMs"] == found["none"]["Hosts"] == 2
    assert found["all"]["Hosts"] == 4
    assert found["all"]["Per host-hour"] == pytest.approx((75 / 88 * 2.4 + 0.9) / 2)
    assert found["all"]["Per host-hour"] < 2.4
