"""Rolling replacement by surge: one new VM before one old goes, through Nova's API.

::

         core
        /    \\
     leaf1  leaf2
     n1-n4  n5-n8      a VM fills a host; n4 and n8 are full
"""

import json

import pytest

from tests.functional.cloud_kinds import TWO_BY_FOUR
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import read_landings
from tests.functional.tested_cloud import TestedCloud

pytestmark = cloud_mark(TWO_BY_FOUR)

LEAF1 = {"n1", "n2", "n3"}
LEAF2 = {"n5", "n6", "n7"}


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flavor("whole", vcpus=16, memory_mb=1024)
    wishes = {"hpc:prefer": "leaf"}
    shared_cloud.flavor("prefers-leaf", vcpus=16, memory_mb=1024, extra_specs=wishes)
    return shared_cloud


def replaced(cloud: TestedCloud, boot) -> tuple[set[str], set[str]]:
    """Return the hosts of a group of three before, and after each VM was replaced by a new one."""
    for full in ("n4", "n8"):
        cloud.wait(boot("whole", host=full))
    group = cloud.server_group("rolling", "soft-anti-affinity")
    vms = boot("prefers-leaf", count=3, group=group)
    before = set(cloud.hosts_of(vms).values())
    for oldest in list(vms):
        vms += boot("prefers-leaf", group=group)
        cloud.wait(vms[-1:])
        cloud.remove([oldest])
        vms.remove(oldest)
    return before, set(cloud.hosts_of(vms).values())


def test_a_group_that_is_replaced_by_surge_ends_under_one_leaf(cloud, boot, tmp_path):
    log = tmp_path / "decisions"
    cloud.flags(gather_groups=True, decision_log=str(log), group="hpc_sched")
    before, after = replaced(cloud, boot)
    assert before in (LEAF1, LEAF2)
    assert after in (LEAF1, LEAF2)
    assert before != after
    assert all(landing["landed"]["as_planned"] for landing in read_landings(log, 4))
    # A plan that is not the one of least Hop-Byte is not to be explained as such.
    records = [json.loads(line) for line in log.read_text().splitlines()]
    planned = [record for record in records if record["decision"] == "planned"]
    assert ["input" in record for record in planned] == [True, False, False, False]


def test_without_the_option_it_ends_apart(cloud, boot):
    before, after = replaced(cloud, boot)
    assert before in (LEAF1, LEAF2)
    assert sorted((len(after & LEAF1), len(after & LEAF2))) == [1, 2]
