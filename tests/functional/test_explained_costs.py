"""From a request to what ``hpc-sched explain`` says of its constraints.

::

                         core2
              /                       \\
            pod3                      pod4
       /     |     \\               /       \\
    leaf1  leaf2  leaf3         leaf4     leaf5
    n1 n2  n3 n4  n5 n6         n7-n10    n11        a VM fills a host
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpc_sched.cli import main
from tests.functional.cloud_kinds import PODS, UNEVEN_PODS
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import read_decisions
from tests.functional.thin_cloud import ThinCloud
from tests.functional.trees import hosts_below

pytestmark = cloud_mark(PODS)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "decisions.json"


@pytest.fixture
def cloud(shared_cloud: ThinCloud, log: Path) -> Iterator[ThinCloud]:
    shared_cloud.flags(decision_log=str(log), group="hpc_sched")
    shared_cloud.flavor("node", vcpus=16, extra_specs={"hpc:max_leaves": "2"})
    shared_cloud.flavor("leaf", vcpus=16, extra_specs={"hpc:require": "leaf"})
    with shared_cloud.only(hosts_below(UNEVEN_PODS)):
        yield shared_cloud


@pytest.fixture
def explain(cloud: ThinCloud, log: Path, capsys) -> Callable[..., str]:
    """Return what the command says of a group."""

    def explain_(*arguments: str) -> str:
        topology = str(cloud.folder / "topology.yaml")
        read = ["--decision-log", str(log), "--topology", topology]
        assert main.main(["explain", *read, *arguments]) == 0
        return capsys.readouterr().out

    return explain_


def lines(text: str) -> list[str]:
    """Return the part of a text on what constraints cost."""
    found = text.splitlines()
    first = next(i for i, line in enumerate(found) if line.startswith("  without"))
    last = next(i for i, line in enumerate(found) if line.startswith("  took"))
    return found[first:last]


def test_a_group_is_explained_with_what_its_wish_costs_and_why_it_is_not_elsewhere(
    cloud, boot, log, explain
):
    """6 VMs in 2 leaves cost 6 + 1 + 8 * 5 hops, in the 3 leaves of pod3 3 + 12 * 3."""
    group = cloud.server_group("job", "anti-affinity")
    cloud.hosts_of(boot("node", count=6, group=group))
    [record] = read_decisions(log)
    assert record["plan"]["hop_bytes"] == 47
    assert record["input"]["tree"]["core2"]["pod4"] == {"leaf4": "4*1", "leaf5": "1*1"}
    [used] = set(record["plan"]["leaves"]) - {"leaf4"}
    other = "leaf1" if used == "leaf2" else "leaf2"
    names = ("leaf5", other, "n11", "leaf4", "n7", "pod9")
    text = explain(group, *(f"--why-not={name}" for name in names))
    of_leaf5 = (
        "a plan with it needs more leaves than allowed (hpc:max_leaves=2); it has room for 1 of "
        "6 VMs"
    )
    assert lines(text) == [
        "  without     hpc:max_leaves=2: Hop-Byte 39 (8 less), 3 leaves",
        "              cost nothing: policy anti-affinity, fragmentation_price=0.1,0.2",
        f"  why not     leaf5: {of_leaf5}",
        "              a VM there without hpc:max_leaves=2: Hop-Byte 43 (4 less), 3 leaves",
        f"              {other}: a plan with it costs the same, but comes later in the group's tie "
        "order",
        f"              n11, under leaf5: {of_leaf5}",
        "              a VM there without hpc:max_leaves=2: Hop-Byte 43 (4 less), 3 leaves",
        "              leaf4: it is used: 4 of 6 planned VMs are there",
        "              n7: it is used: 1 planned VM",
        "              pod9: it is not in the fabric",
    ]
    found = json.loads(explain(group, "--json").splitlines()[0])
    first, second = found["counterfactual"]["without"][:2]
    assert (first["without"], first["hop_bytes"], first["less"]) == ("hpc:max_leaves=2", 39, 8)
    assert (second["without"], second["less"]) == ("policy anti-affinity", 0)


@pytest.mark.default
def test_a_refusal_is_explained_by_the_one_wish_without_which_there_was_a_plan(
    cloud, boot, explain
):
    group = cloud.server_group("large", "anti-affinity")
    cloud.wait(boot("leaf", count=5, group=group))
    text = explain(group, "--why-not", "leaf3")
    assert lines(text) == [
        "  without     hpc:require=leaf: 5 VMs in 2 leaves, Hop-Byte 18",
        "              no plan either: policy anti-affinity",
        "  why not     leaf3: there is no plan: it has room for 2 of 5 VMs",
    ]
