"""Cases of messages as texts: what is read, what is refused, and the reference times."""

import gzip
from pathlib import Path

import pytest

from hpc_sched import exceptions
from hpc_sched.sim.network.link_bytes import LinkBytes, LinkLoad
from hpc_sched.sim.network.messages import case_file, program
from hpc_sched.sim.network.messages.iteration import computation
from hpc_sched.sim.network.placed_steps import PlacedSteps
from hpc_sched.sim.network.replay import replay
from tests import sample_data

FABRIC = "agg 10 0.5 0.25 2 2 4 2"
# Seconds by SimGrid 3.32 with equal shares: column "equal" of the samples' README.
EQUAL = {
    "bt_16_8_random": 0.76082,
    "bt_16_8_exact": 0.61763,
    "ring_64_8_random": 1.09501,
    "ring_64_8_exact": 0.77501,
    "rd_64_4_listing1": 0.76057,
    "a2a_64_2_exact": 0.62941,
    "halo2_128_4_exact": 0.67335,
}


def test_a_case_has_a_fabric_ranks_and_flows_of_others():
    text = f"{FABRIC}\nbg 0 15\n\nrank 0 c 1.5 s 1 0 20 w\nrank 9 r 0 0 w\n"
    case = case_file.parse(text, "case")
    network = case.network
    assert len(network.topology.hosts) == 16
    leaf, pod = (network.topology.switch_index(name) for name in ("leaf1-1", "pod1"))
    # 4 hosts at 10 bytes/s, 2 : 1; the pod has both its leaves' rates.
    assert network.capacity[[network.uplinks + leaf, network.uplinks + pod]].tolist() == [20, 40]
    assert case.hosts.tolist() == [0, 9]
    assert len(case.others.links) == 1
    # 1.5, the latency of two hosts and four uplinks, and 20 bytes at half of 10 bytes/s.
    assert replay(network, case.ranks, case.others).tolist() == pytest.approx([7.5, 7.5])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected a line agg RATE .*, and a line rank HOST"),
        (f"{FABRIC}\n", "and a line rank HOST ... for each rank"),
        ("rank 0 w\n", ":1: expected agg RATE LATENCY"),
        ("agg 10 0 0 2 2 4\n", ":1: expected agg RATE LATENCY"),
        ("agg 10 0 0 2 2.5 4 1\n", "whole numbers of at least 1"),
        ("agg 0 0 0 2 2 4 1\n", "rates above 0"),
        ("agg 1 0 0 1000 1000 4 1\n", "at most 100000 hosts"),
        (f"{FABRIC}\nbg 0 16\n", ":2: expected a host from 0 to 15, found 'bg 0 16'"),
        (f"{FABRIC}\nbg 0\n", ":2: expected bg A B"),
        (f"{FABRIC}\nbg 3 3\n", ":2: expected two hosts"),
        (f"{FABRIC}\nrank\n", ":2: expected a host from 0 to 15"),
        (f"{FABRIC}\nrank 0 s 1 0\n", ":2: expected s RANK TAG BYTES with numbers"),
        (f"{FABRIC}\nrank 0 s 1.5 0 8 w\n", ":2: expected s RANK TAG BYTES with whole numbers of"),
        (f"{FABRIC}\nrank 0 r 1 0.5 w\n", ":2: expected r RANK TAG with whole numbers of rank"),
        ("agg 1e308 0 0 2 2 4 1\n", ":1: .* rates above 0, at most 1e\\+100"),
        ("agg 10 0 0 2 2 4 1e-320\n", ":1: .* rates above 0, at most 1e\\+100"),
        (f"{FABRIC}\nrank 0 c -1\n", ":2: expected c SECONDS with numbers of at least 0"),
        (f"{FABRIC}\nrank 0 x\n", ":2: expected one of c SECONDS, s RANK TAG BYTES"),
        (f"{FABRIC}\n{FABRIC}\n", ":2: expected bg A B, or rank HOST"),
    ],
)
def test_what_is_no_case_is_refused_with_the_line(text: str, expected: str):
    with pytest.raises(exceptions.SimulationError, match=expected):
        case_file.parse(text, "case")


def test_a_message_whose_ends_a_barrier_parts_is_named():
    """Rank 0 waits for its first message; rank 1 posts both before its only wait."""
    text = f"{FABRIC}\nrank 0 s 1 0 8 w s 1 0 8 w\nrank 1 r 0 0 r 0 0 w\n"
    with pytest.raises(ValueError, match="one of its ends: that from rank 0 to rank 1"):
        program.steps(case_file.parse(text, "case").ranks)


def test_a_case_may_be_compressed(tmp_path: Path):
    path = tmp_path / "case.gz"
    path.write_bytes(gzip.compress(f"{FABRIC}\nrank 0 c 2\n".encode()))
    case = case_file.read(path)
    assert replay(case.network, case.ranks).tolist() == [2.0]


def test_a_case_that_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(exceptions.SimulationError, match="missing: cannot be read"):
        case_file.read(tmp_path / "missing")


@pytest.mark.parametrize("name", EQUAL)
def test_all_levels_of_detail_agree_with_the_reference(name: str):
    """Replay within 0.1 %, steps within 3 %; links are as near on these."""
    case = case_file.read(sample_data.path(f"network/{name}.case.gz"))
    capacity = case.network.capacity
    assert replay(case.network, case.ranks, case.others).max() == pytest.approx(
        EQUAL[name], rel=1e-3
    )
    iteration = program.steps(case.ranks)
    placed = PlacedSteps.of(case.network, iteration, case.hosts)
    of_ranks = computation(iteration)
    with_barriers = of_ranks + placed.seconds(capacity, case.others)
    assert with_barriers == pytest.approx(EQUAL[name], rel=0.03)
    load = LinkLoad.of(capacity, case.others)
    by_links = of_ranks + LinkBytes.of(case.network, placed).seconds(capacity, load)
    assert by_links == pytest.approx(EQUAL[name], rel=0.03)
