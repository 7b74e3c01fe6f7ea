"""A scheduler in shadow mode: Nova gives every request what it gives without hpc_sched."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import nova.conf
import pytest

from hpc_sched.demo.nova_cloud import NovaCloud
from tests.functional.clouds import four_by_eight, write_topology
from tests.functional.paired_schedulers import PairedSchedulers, drawn
from tests.functional.states import read_decisions

CONF = nova.conf.CONF

LEAVES = four_by_eight()
HOSTS = [host for below in LEAVES.values() for host in below]


@pytest.fixture(scope="module")
def pair(
    start_cloud: Callable[..., NovaCloud], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PairedSchedulers]:
    """Return 32 unevenly used hosts, stock Nova's scheduler, and one in shadow mode."""
    folder = tmp_path_factory.mktemp("shadow")
    pair = PairedSchedulers(start_cloud(with_scheduler=False), HOSTS)
    pair.start_own(
        folder,
        mode="shadow",
        topology_file=str(write_topology(folder, LEAVES)),
        topology_reload_interval=0,
        decision_log=str(folder / "decisions"),
    )
    yield pair
    while pair.placed:
        pair.delete(pair.placed[0])


@pytest.fixture(scope="module")
def log() -> Path:
    return Path(CONF.hpc_sched.decision_log)


@pytest.mark.parametrize(
    "requests",
    [
        60,
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
    before = len(read_decisions(log)) if log.exists() else 0
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
    decisions = read_decisions(log)[before:]
    found = Counter(record["decision"] for record in decisions)
    assert found["planned"] >= requests / 8
    assert found["refused"] >= requests / 12
    assert {record["mode"] for record in decisions} == {"shadow"}
    assert {record["project"] for record in decisions} == {"project"}
    assert not [record for record in decisions if record.get("claim")]
