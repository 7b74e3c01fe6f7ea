"""The report on shadow mode against Nova's API: costs recomputed pair by pair.

::

                   core
             /              \\
           pod1            pod2
          /    \\          /    \\
      leaf1   leaf2   leaf3   leaf4
      n01-03  n04-06  n07-09  n10-12
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hpc_sched.cli import main
from tests.functional.shared_clouds import CloudKind, cloud_mark
from tests.functional.states import read_decisions, read_landings
from tests.functional.tested_cloud import TestedCloud

PODS = {
    "pod1": {"leaf1": ["n01", "n02", "n03"], "leaf2": ["n04", "n05", "n06"]},
    "pod2": {"leaf3": ["n07", "n08", "n09"], "leaf4": ["n10", "n11", "n12"]},
}
PLACE = {
    host: (pod, leaf) for pod, below in PODS.items() for leaf, own in below.items() for host in own
}


def hops(one: str, other: str) -> int:
    """Return the switches between two hosts, as the drawing has them."""
    if one == other:
        return 0
    (pod, leaf), (other_pod, other_leaf) = PLACE[one], PLACE[other]
    if leaf == other_leaf:
        return 1
    return 3 if pod == other_pod else 5


def cost(hosts: Sequence[str]) -> int:
    """Return the Hop-Byte of VMs, pair by pair."""
    return sum(hops(one, other) for one, other in itertools.combinations(hosts, 2))


def leaves(hosts: Sequence[str]) -> int:
    return len({PLACE[host][1] for host in hosts})


def each(counts: Mapping[str, int]) -> list[str]:
    """Return the hosts of a plan, one entry a VM."""
    return [host for host, number in counts.items() for _ in range(number)]


pytestmark = cloud_mark(
    CloudKind(
        "two pods in shadow mode",
        {"core": PODS},
        options=lambda _: {("hpc_sched", "mode"): "shadow"},
        attributes={"vcpus": 4},
    )
)


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flavor("rank", vcpus=2)
    shared_cloud.flavor("leaf", vcpus=2, extra_specs={"hpc:require": "leaf"})
    return shared_cloud


@pytest.fixture
def log(cloud: TestedCloud, tmp_path: Path) -> Path:
    """Return the path of the decision log."""
    cloud.flags(decision_log=str(tmp_path / "decisions"), group="hpc_sched")
    return tmp_path / "decisions"


@pytest.fixture
def servers(cloud: TestedCloud) -> Iterator[list[str]]:
    made: list[str] = []
    yield made
    cloud.remove(made)


def rows_of(log: Path, capsys: pytest.CaptureFixture[str]) -> dict[tuple[str, str], Any]:
    capsys.readouterr()
    assert main.main(["report", "shadow", str(log), "-f", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return {(row["Project"], row["VMs"]): row for row in found}


def test_the_numbers_of_the_report_are_those_of_novas_api(cloud, log, servers, capsys):
    plans: list[tuple[str, list[str]]] = []  # hosts of members, of the plan
    stock: list[list[str]] = []
    members: dict[str, list[str]] = {}

    def boot(count: int, group: str, flavor: str = "rank") -> None:
        made = cloud.boot(flavor, count=count, group=group)
        servers.extend(made)
        hosts = list(cloud.hosts_of(made).values())
        decision = read_decisions(log)[-1]
        assert decision["project"] == cloud.api.get_server(made[0])["tenant_id"]
        before = members.setdefault(group, [])
        if decision["decision"] == "planned" and hosts:
            plan = decision.get("own_plan") or decision["plan"]
            plans.append((before[:], each(plan["hosts"])))
            assert plan["hop_bytes"] == cost([*before, *each(plan["hosts"])])
            stock.append([*before, *hosts])
            assert len(plans[-1][1]) == len(hosts) == count
        before.extend(hosts)

    groups = [cloud.server_group(f"g{n}", "soft-anti-affinity") for n in range(3)]
    boot(3, groups[0])
    boot(4, groups[1])
    boot(1, groups[0])  # one more, beside three members
    boot(2, groups[2], "leaf")
    spread = cloud.server_group("spread", "anti-affinity")
    boot(4, spread, "leaf")  # hosts of a leaf: 3. Stock Nova places them all the same
    crowd = cloud.server_group("crowd", "anti-affinity")
    boot(13, crowd)  # hosts: 12. Both refuse

    kinds = [one["decision"] for one in read_decisions(log)]
    assert kinds == ["planned"] * 4 + ["refused"] * 2
    assert [len(read_landings(log, 6))] == [6]
    rows = rows_of(log, capsys)
    found = rows["all", "all"]
    assert found["Requests"] == 6
    assert found["Compared"] == len(plans) == 4
    assert found["Plan"] == sum(cost([*before, *planned]) for before, planned in plans)
    assert found["Stock"] == sum(map(cost, stock))
    assert found["Stock"] > found["Plan"]
    assert found["Plan leaves"] == sum(leaves(planned) for _, planned in plans)
    new = [hosts[len(before) :] for hosts, (before, _) in zip(stock, plans, strict=True)]
    assert found["Stock leaves"] == sum(map(leaves, new))
    assert (found["Refused, placed"], found["Refused by both"]) == (1, 1)
    assert rows["all", "1"]["Plan"] == cost([*plans[2][0], *plans[2][1]])
    assert rows["all", "2-4"]["Stock"] == found["Stock"] - rows["all", "1"]["Stock"]


def test_explain_shows_what_would_have_been_and_what_stock_nova_did(cloud, log, servers, capsys):
    group = cloud.server_group("explained", "soft-anti-affinity")
    servers.extend(cloud.boot("rank", count=3, group=group))
    cloud.wait(servers)
    [first] = read_decisions(log)
    [landing] = [one for one in read_landings(log) if one["instance"] == first["instance"]]
    capsys.readouterr()
    assert main.main(["explain", "--decision-log", str(log), first["instance"]]) == 0
    shown = capsys.readouterr().out
    assert "shadow mode, would have planned: server group" in shown
    assert f"Hop-Byte {first['plan']['hop_bytes']:.0f}" in shown
    [stock] = [line for line in shown.splitlines() if line.startswith("  stock Nova")]
    assert "3 in leaf" in stock
    costs = [line.strip() for line in shown.splitlines() if line.strip().startswith("Hop-Byte")]
    assert costs == [f"Hop-Byte {landing['landed']['hop_bytes']:.0f}"]
