"""Applications that gain attract each other on a real Nova, inside the leaf alone.

::

              core
          /          \\
       leaf1        leaf2
     n1 n2 n3     n4 n5 n6      4 cores and 8 GB each
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.io import scheduler_digests
from hpc_sched.snapshot.log.record_text import text_of
from tests.functional.clouds import sharing_options, write_topology
from tests.functional.states import read_decisions

LEAVES = {"leaf1": ["n1", "n2", "n3"], "leaf2": ["n4", "n5", "n6"]}
HOSTS = [host for below in LEAVES.values() for host in below]
# Gupta2013: LU.C is almost 120 % better beside ChaNGa, which keeps its performance.
INDEX = """\
# application, application, the first beside the second, the second beside the first
LU.C, ChaNGa, 2.2, 1.0
LU.C, EP.B, 1.0, 1.0
LU.C, IS.B, 0.6, 0.9
"""


@pytest.fixture(scope="module")
def cloud(
    start_cloud: Callable[..., NovaCloud], tmp_path_factory: pytest.TempPathFactory
) -> NovaCloud:
    folder = tmp_path_factory.mktemp("conf")
    (folder / "index.csv").write_text(INDEX)
    options = sharing_options(
        folder,
        interference_file=str(folder / "index.csv"),
        decision_log=str(folder / "decisions.json"),
    )
    cloud = start_cloud(write_topology(folder, LEAVES), options, vcpus=4, memory_mb=8192)
    cloud.start_computes(HOSTS)
    for name, app_class, application in (
        ("changa", "async", "ChaNGa"),
        ("ep", "async", "EP.B"),
        ("is", "async", "IS.B"),
        ("lu", "sync", "LU.C"),
        ("lu-async", "async", "LU.C"),
        ("lu-none", "none", "LU.C"),
        ("lu-extreme", "extreme", "LU.C"),
    ):
        specs = {"hpc:app_class": app_class, "hpc:app_name": application}
        cloud.flavor(name, memory_mb=2048, extra_specs=specs)
    cloud.folder = folder
    return cloud


@pytest.fixture
def without_index(cloud: NovaCloud) -> Iterator[Callable[[], None]]:
    """Take the index out of nova.conf for the rest of a test."""
    yield lambda: cloud.flags(interference_file=None, group="hpc_sched")
    cloud.flags(interference_file=str(cloud.folder / "index.csv"), group="hpc_sched")


def hosts(cloud: NovaCloud, servers: list[str]) -> dict[str, int]:
    return dict(sorted(Counter(cloud.hosts_of(servers).values()).items()))


def taken(cloud: NovaCloud, boot: Callable[..., list[str]], **on: str) -> None:
    """Have single VMs of flavors on hosts, by name of the host, past the scheduler."""
    servers = [
        vm
        for host, flavors in on.items()
        for kind in flavors.split()
        for vm in boot(kind, host=host)
    ]
    cloud.wait(servers)


def test_a_group_is_placed_beside_those_that_it_gains_from(cloud, boot, without_index):
    """By the angle n1 is first, the fuller host of the leaf with least room."""
    taken(cloud, boot, n1="ep ep", n2="changa", n4="changa")
    servers = boot("lu", count=2)
    assert hosts(cloud, servers) == {"n2": 2}
    record = read_decisions(cloud.folder / "decisions.json")[-1]
    assert record["plan"]["leaves"] == {"leaf1": 2}
    assert record["attraction"] == {"n2": 1.2}
    assert "applications there gain by sharing a host: n2" in text_of(record)
    cloud.remove(servers)
    without_index()
    assert hosts(cloud, boot("lu", count=2)) == {"n1": 2}
    assert "attraction" not in read_decisions(cloud.folder / "decisions.json")[-1]


def test_no_attraction_outweighs_the_leaf(cloud, boot):
    """All of ChaNGa is under leaf2, and the plan under leaf1, where least room is left."""
    taken(cloud, boot, n1="ep ep ep", n4="changa", n5="changa")
    assert hosts(cloud, boot("lu", count=4)).keys() <= set(LEAVES["leaf1"])
    # Without a leaf of a plan it decides among all hosts.
    assert hosts(cloud, boot("lu-async", count=2)) == {"n4": 2}


def test_it_never_overrides_what_is_kept_apart(cloud, boot):
    taken(cloud, boot, n2="changa is")
    assert "n2" not in hosts(cloud, boot("lu", count=2))
    assert "n2" not in hosts(cloud, boot("lu-async"))


def test_dedicated_hosts_have_no_neighbours_to_gain_from(cloud, boot):
    taken(cloud, boot, n1="ep", n2="changa")
    assert not {"n1", "n2"} & hosts(cloud, boot("lu-extreme", count=2)).keys()


def test_single_vms_and_class_none_are_attracted_where_mdobp_places_them(cloud, boot):
    taken(cloud, boot, n1="ep ep", n5="changa")
    assert hosts(cloud, boot("lu-async")) == {"n5": 1}
    assert hosts(cloud, boot("lu-none")).keys() - {"n5"}
    cloud.flags(mdobp_classes=["none"], group="hpc_sched")
    try:
        assert hosts(cloud, boot("lu-none")) == {"n5": 1}
    finally:
        cloud.flags(mdobp_classes=["sync", "async"], group="hpc_sched")


def test_an_index_that_changes_counts_for_the_next_request(cloud, boot):
    path: Path = cloud.folder / "index.csv"
    taken(cloud, boot, n1="ep ep", n2="changa")
    before = scheduler_digests.record("").interference
    try:
        path.write_text(INDEX.replace("2.2, 1.0", "1.05, 1.0"))
        # 5 % is less than interference_tolerance.
        assert hosts(cloud, boot("lu")) == {"n1": 1}
        assert scheduler_digests.record("").interference != before
    finally:
        path.write_text(INDEX)
