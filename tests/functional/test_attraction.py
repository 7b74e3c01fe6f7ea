"""Applications that gain attract each other, inside the leaf alone.

::

              core
          /          \\
       leaf1        leaf2
     a1 a2 a3     a4 a5 a6      4 cores and 8 GB each
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.nova_glue.io import scheduler_digests
from hpc_sched.snapshot.log.record_text import text_of
from tests.functional.cloud_kinds import ATTRACTING, SHARING
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import read_decisions
from tests.functional.thin_cloud import ThinCloud
from tests.functional.trees import hosts_below

# Gupta2013: LU.C is almost 120 % better beside ChaNGa, which keeps its performance.
INDEX = """\
# application, application, the first beside the second, the second beside the first
LU.C, ChaNGa, 2.2, 1.0
LU.C, EP.B, 1.0, 1.0
LU.C, IS.B, 0.6, 0.9
"""


pytestmark = cloud_mark(SHARING)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Return the file with the index."""
    path = tmp_path / "index.csv"
    path.write_text(INDEX)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the decision log."""
    return tmp_path / "decisions.json"


@pytest.fixture
def cloud(shared_cloud: ThinCloud, index: Path, log: Path) -> Iterator[ThinCloud]:
    shared_cloud.flags(interference_file=str(index), decision_log=str(log), group="hpc_sched")
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
        shared_cloud.flavor(name, memory_mb=2048, extra_specs=specs)
    with shared_cloud.only(hosts_below(ATTRACTING)):
        yield shared_cloud


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


def test_a_group_is_placed_beside_those_that_it_gains_from(cloud, boot, log):
    """By the angle a1 is first, the fuller host of the leaf with least room."""
    taken(cloud, boot, a1="ep ep", a2="changa", a4="changa")
    servers = boot("lu", count=2)
    assert hosts(cloud, servers) == {"a2": 2}
    record = read_decisions(log)[-1]
    assert record["plan"]["leaves"] == {"leaf1": 2}
    assert record["attraction"] == {"a2": 1.2}
    assert "applications there gain by sharing a host: a2" in text_of(record)
    cloud.remove(servers)
    cloud.flags(interference_file=None, group="hpc_sched")
    assert hosts(cloud, boot("lu", count=2)) == {"a1": 2}
    assert "attraction" not in read_decisions(log)[-1]


def test_no_attraction_outweighs_the_leaf(cloud, boot):
    """All of ChaNGa is under leaf2, and the plan under leaf1, where least room is left."""
    taken(cloud, boot, a1="ep ep ep", a4="changa", a5="changa")
    assert hosts(cloud, boot("lu", count=4)).keys() <= set(ATTRACTING["leaf1"])
    # Without a leaf of a plan it decides among all hosts.
    assert hosts(cloud, boot("lu-async", count=2)) == {"a4": 2}


@pytest.mark.default
def test_it_never_overrides_what_is_kept_apart(cloud, boot):
    taken(cloud, boot, a2="changa is")
    assert "a2" not in hosts(cloud, boot("lu", count=2))
    assert "a2" not in hosts(cloud, boot("lu-async"))


@pytest.mark.default
def test_dedicated_hosts_have_no_neighbours_to_gain_from(cloud, boot):
    taken(cloud, boot, a1="ep", a2="changa")
    assert not {"a1", "a2"} & hosts(cloud, boot("lu-extreme", count=2)).keys()


def test_single_vms_and_class_none_are_attracted_where_mdobp_places_them(cloud, boot):
    taken(cloud, boot, a1="ep ep", a5="changa")
    assert hosts(cloud, boot("lu-async")) == {"a5": 1}
    assert hosts(cloud, boot("lu-none")).keys() - {"a5"}
    cloud.flags(mdobp_classes=["none"], group="hpc_sched")
    assert hosts(cloud, boot("lu-none")) == {"a5": 1}


def test_an_index_that_changes_counts_for_the_next_request(cloud, boot, index):
    taken(cloud, boot, a1="ep ep", a2="changa")
    before = scheduler_digests.record("").interference
    index.write_text(INDEX.replace("2.2, 1.0", "1.05, 1.0"))
    # 5 % is less than interference_tolerance.
    assert hosts(cloud, boot("lu")) == {"a1": 1}
    assert scheduler_digests.record("").interference != before
