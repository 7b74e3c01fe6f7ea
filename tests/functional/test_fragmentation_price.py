"""The fragmentation price on a running Nova: a group takes the pod that it fills.

Fabric and flavors of :mod:`tests.functional.test_wishes`: pod1 has room for 4 + 3 + 3 VMs, pod2 for
3 + 4 + 4; a host that is taken counts as one that is free.
"""

import json
from pathlib import Path

import pytest

from hpc_sched.cli import main
from tests.functional.cloud_kinds import PODS
from tests.functional.shared_clouds import cloud_mark
from tests.functional.test_wishes import cloud, flavor, pods

__all__ = ["cloud", "flavor"]

pytestmark = cloud_mark(PODS)


@pytest.mark.parametrize(
    ("price", "pod"), [("0.1,0.2", "pod1"), ("0", "pod2")], ids=["as delivered", "without a price"]
)
def test_a_group_takes_the_pod_that_it_fills_unless_it_pays_nothing(
    cloud, boot, flavor, tmp_path: Path, capsys, price, pod
):
    # 10 VMs cost 12 + 33 * 3 hops in pod1; 13 + 32 * 3 in pod2, where one slot stays free.
    log = tmp_path / "decisions"
    cloud.flags(fragmentation_price=price, decision_log=str(log), group="hpc_sched")
    group = cloud.server_group(f"ten in {pod}", "anti-affinity")
    hosts = cloud.hosts_of(boot(flavor(), count=10, group=group)).values()
    assert pods(hosts) == {pod}
    [record] = [one for one in map(json.loads, log.read_text().splitlines()) if "input" in one]
    assert main.main(["explain", group, "--decision-log", str(log)]) == 0
    shown = capsys.readouterr().out
    if pod == "pod2":
        assert record["input"]["price"] is None
        assert "fragmentation_price" not in shown
        return
    assert record["input"]["price"] == {"leaf": 0.1, "pod": 0.2, "leaf_slots": 4, "pod_slots": 12}
    assert "Hop-Byte 111, least possible without wishes 109 (2 more)" in shown
    assert (
        "fragmentation_price=0.1,0.2: Hop-Byte 109 (2 less), 3 leaves; leaves free 1 slots of its "
        "leaves and 1 of their pods, this plan 0 and 0"
    ) in shown
