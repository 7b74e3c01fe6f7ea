"""A scheduler in shadow mode: Nova gives every request what it gives without hpc_sched."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.cloud_kinds import EMPTY
from tests.functional.clouds import four_by_eight, write_topology
from tests.functional.paired_schedulers import PairedSchedulers, drawn
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import read_decisions
from tests.functional.tested_cloud import TestedCloud

LEAVES = four_by_eight()
HOSTS = [host for below in LEAVES.values() for host in below]


pytestmark = cloud_mark(EMPTY)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "decisions"


@pytest.fixture
def pair(cloud: TestedCloud, tmp_path: Path, log: Path) -> Iterator[PairedSchedulers]:
    """Return 32 unevenly used hosts, stock Nova's scheduler, and one in shadow mode."""
    pair = PairedSchedulers(cloud, HOSTS)
    try:
        pair.start_own(
            tmp_path,
            mode="shadow",
            topology_file=str(write_topology(tmp_path, LEAVES)),
            topology_reload_interval=0,
            decision_log=str(log),
        )
        yield pair
    finally:
        pair.end()


@pytest.mark.parametrize(
    "requests",
    [
        30,
        pytest.param(
            300,
            marks=pytest.mark.nightly(
                "streams", "each request is served twice, and its VMs are written"
            ),
        ),
    ],
)
def test_requests_get_byte_for_byte_what_stock_nova_gives(
    pair: PairedSchedulers, log: Path, requests: int
):
    numbers = random.Random("shadow")
    outcomes = Counter[bool]()
    for number in range(requests):
        groups = [one for one in pair.placed if one.asked.group is not None]
        asked = drawn(numbers, groups)
        stock, ours = pair.both(asked, stock_first=number % 2 == 0)
        assert ours == stock, (number, asked)
        outcomes[bool(stock.hosts)] += 1
        while len(pair.placed) > 14 or (pair.placed and numbers.random() < 0.2):
            pair.delete(numbers.choice(pair.placed))
    # They are of all kinds, and hpc_sched would have done otherwise.
    assert outcomes[True] >= requests / 2
    assert outcomes[False] >= requests / 20
    decisions = read_decisions(log)
    found = Counter(record["decision"] for record in decisions)
    assert found["planned"] >= requests / 8
    assert found["refused"] >= requests / 12
    assert {record["mode"] for record in decisions} == {"shadow"}
    assert {record["project"] for record in decisions} == {"project"}
    assert not [record for record in decisions if record.get("claim")]
