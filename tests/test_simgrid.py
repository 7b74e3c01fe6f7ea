"""The real SimGrid as a reference: the times of the sample cases, and cases to check by hand."""

import gzip
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests import sample_data
from tests.simgrid import witness
from tests.simgrid.case_text import (
    Barrier,
    Case,
    CaseError,
    Compute,
    FatTree,
    Operation,
    Rank,
    Receive,
    Send,
    Wait,
    read,
)
from tests.simgrid.witness import ReplayError, replayed

# Two pods of two leaves of four hosts, uplinks half as fast as the hosts' links together:
#
#              core
#           /        \             pod uplinks   4 GB/s
#        pod          pod
#       /   \        /   \         leaf uplinks  2 GB/s
#    0..3   4..7  8..11  12..15    host links    1 GB/s
US = 1e-6
TREE = FatTree(1e9, US, 0.0, pods=2, leaves=2, hosts=4, ratio=2)
GB = 10**9
# name -> seconds, equal and by SimGrid's defaults: README.md of the sample data
SAMPLES = {
    "bt_16_8_random": (0.76082, 0.79886),
    "bt_16_8_exact": (0.61763, 0.64423),
    "ring_64_8_random": (1.09501, 1.17821),
    "ring_64_8_exact": (0.77501, 0.78826),
    "rd_64_4_listing1": (0.76057, 0.79249),
    "a2a_64_2_exact": (0.62941, 0.65551),
    "halo2_128_4_exact": (0.67335, 0.69814),
}
DRAWN = range(20)
simgrid = pytest.mark.usefixtures("needs_simgrid")


def sample(name: str) -> str:
    return gzip.decompress(sample_data.path(f"network/{name}.case.gz").read_bytes()).decode()


def ends(*ranks: Rank, fabric: FatTree = TREE, background: tuple[tuple[int, int], ...] = ()):
    """Return when the ranks end, s, to compare with what is expected."""
    found = replayed(Case(fabric, ranks, background).text())
    assert found.seconds == max(found.ends)
    return pytest.approx(found.ends, rel=1e-9, abs=1e-12)


def sends(host: int, *messages: tuple[int, int], after: float = 0.0) -> Rank:
    """Return a rank that sends messages (rank, bytes) at once, and waits for them."""
    posted = [Send(rank, 0, size) for rank, size in messages]
    return Rank(host, (Compute(after), *posted, Wait()))


def receives(host: int, *ranks: int) -> Rank:
    return Rank(host, (*(Receive(rank, 0) for rank in ranks), Wait()))


@simgrid
@pytest.mark.ci
@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_cases_take_the_times_of_their_description(name: str):
    text = sample(name)
    equal, defaults = SAMPLES[name]
    assert replayed(text).seconds == pytest.approx(equal, rel=1e-4)
    assert replayed(text, "defaults").seconds == pytest.approx(defaults, rel=1e-4)


@simgrid
@pytest.mark.parametrize(
    ("target", "latency"), [(1, 2 * US), (4, 8 * US), (8, 14 * US)], ids=["leaf", "pod", "core"]
)
def test_a_flow_alone_takes_the_latency_of_its_path_once_and_then_its_bytes(
    target: int, latency: float
):
    fabric = replace(TREE, uplink_latency=3 * US)
    assert ends(sends(0, (1, GB)), receives(target, 0), fabric=fabric) == (1 + latency,) * 2


@simgrid
def test_two_flows_of_a_link_get_half_of_it_until_one_ends():
    found = ends(sends(0, (2, GB)), sends(1, (2, GB // 2)), receives(2, 0, 1))
    assert found == (1.5 + 2 * US, 1 + 2 * US, 1.5 + 2 * US)


@simgrid
@pytest.mark.parametrize(
    ("latency", "uplink_latency"), [(US, 0.0), (US, 1e-3), (0.0, 1e-3), (0.0, 0.0), (0.01, 0.02)]
)
def test_flows_of_a_link_are_alike_whatever_their_latencies(latency: float, uplink_latency: float):
    fabric = replace(TREE, latency=latency, uplink_latency=uplink_latency)
    # Host 0 receives from its leaf and from the other pod.
    found = ends(sends(1, (2, GB)), sends(8, (2, GB)), receives(0, 0, 1), fabric=fabric)
    # The near flow is alone while the far one waits for the rest of its latency.
    alone = 4 * uplink_latency
    last = 2 + 2 * latency
    assert found == (last - alone, last, last)


@simgrid
def test_a_flow_gives_way_where_one_host_starts_two_at_once():
    # 0 sends to 1; later 2 sends to 3 and to 1: every flow has half of a link.
    found = ends(
        sends(0, (1, GB)),
        receives(1, 0, 2),
        sends(2, (3, GB), (1, GB), after=0.1),
        receives(3, 2),
    )
    assert found == (1.9 + 2 * US, 2.1 + 2 * US, 2.1 + 2 * US, 2.1 + 2 * US)


@simgrid
def test_uplinks_limit_flows_that_no_host_limits():
    # Four flows between two leaves share 2 GB/s.
    pairs = range(4)
    found = ends(
        *(sends(host, (host + 4, GB)) for host in pairs), *(receives(4 + h, h) for h in pairs)
    )
    assert found == (2 + 2 * US,) * 8


@simgrid
def test_the_directions_of_a_link_are_independent():
    both = [Rank(host, (Send(1 - host, 0, GB), Receive(1 - host, 0), Wait())) for host in (0, 1)]
    assert ends(*both) == (1 + 2 * US,) * 2


@simgrid
def test_a_flow_of_the_background_has_its_share_all_the_time():
    found = ends(sends(0, (1, GB)), receives(1, 0), background=((0, 2), (0, 8), (3, 2)))
    assert found == (3 + 2 * US,) * 2


@simgrid
@pytest.mark.parametrize("model", ["equal", "defaults"])
def test_a_message_within_a_host_takes_no_time(model: str):
    ranks = (sends(0, (1, 100 * GB), after=0.25), receives(0, 0))
    assert replayed(Case(TREE, ranks).text(), model).ends == (0.25, 0.25)


@simgrid
def test_a_message_starts_when_both_sides_have_posted_it():
    late = Rank(1, (Compute(0.5), *receives(1, 0).operations))
    assert ends(sends(0, (1, GB)), late) == (1.5 + 2 * US,) * 2


@simgrid
def test_messages_of_one_sender_and_tag_arrive_in_order():
    sender = Rank(0, (Send(1, 0, GB), Send(1, 0, 2 * GB), Wait()))
    receiver = Rank(1, (Receive(0, 0), Wait(), Compute(3), Receive(0, 0), Wait()))
    assert ends(sender, receiver) == (6 + 4 * US,) * 2


@simgrid
def test_ranks_of_one_host_compute_at_once():
    assert ends(*[Rank(0, (Compute(1.0),))] * 3) == (1.0,) * 3


@simgrid
def test_ranks_go_on_from_a_barrier_when_the_last_is_there():
    found = ends(*(Rank(0, (Compute(s), Barrier(), Compute(1), Barrier())) for s in (1.0, 3.0)))
    assert found == (4.0, 4.0)


@simgrid
def test_independent_jobs_of_one_case_meet_where_they_share_a_link():
    alone = [sends(0, (1, GB)), receives(4, 0)], [sends(2, (3, GB)), receives(3, 2)]
    crossing = [sends(1, (5, GB)), receives(4, 4)]
    found = ends(*alone[0], *alone[1], *crossing)
    # The first and the third job end on host 4; the second has a leaf for itself.
    assert found == (2 + 2 * US, 2 + 2 * US, 1 + 2 * US, 1 + 2 * US, 2 + 2 * US, 2 + 2 * US)


@simgrid
@pytest.mark.parametrize("background", [(), ((0, 8),)], ids=["idle", "background"])
def test_ranks_that_wait_for_each_other_for_ever_are_named(background):
    blocked = [Rank(host, (Receive(1 - host, 0), Wait(), Send(1 - host, 0, 1))) for host in (0, 1)]
    text = Case(TREE, (*blocked, Rank(2)), background).text()
    with pytest.raises(ReplayError, match="wait for ever: 0, 1\n"):
        replayed(text)


def drawn(seed: int) -> Case:
    """Return a small case without deadlocks: a rank posts all of a step before it waits."""
    draw = random.Random(seed)
    fabric = FatTree(
        rate=1e9,
        latency=draw.choice([0.0, US, 5 * US, 1e-3]),
        uplink_latency=draw.choice([0.0, US, 3 * US, 2e-3]),
        pods=draw.randint(1, 3),
        leaves=draw.randint(1, 3),
        hosts=draw.randint(2, 4),
        ratio=draw.choice([0.5, 1, 2, 3.3, 8]),
    )
    hosts = range(fabric.pods * fabric.leaves * fabric.hosts)
    steps = [list[Operation]() for _ in range(draw.randint(2, 6))]
    for _ in range(draw.randint(1, 4)):
        for operations in steps:
            operations.append(Compute(draw.uniform(0, 0.01)))
        for _ in range(draw.randint(1, 6)):
            source, target = draw.sample(range(len(steps)), 2)
            tag, size = draw.randrange(3), draw.choice([0, 1000, draw.randrange(10**8)])
            steps[source].append(Send(target, tag, size))
            steps[target].append(Receive(source, tag))
        for operations in steps:
            operations.append(Wait())
    ranks = tuple(Rank(draw.choice(hosts), tuple(operations)) for operations in steps)
    flows = tuple((a, b) for a, b in (draw.sample(hosts, 2) for _ in range(draw.randint(0, 4))))
    return Case(fabric, ranks, flows)


def reversed_ranks(case: Case) -> Case:
    """Return the case with its ranks and flows in reverse order."""
    last = len(case.ranks) - 1

    def renamed(operation: Operation) -> Operation:
        if isinstance(operation, Send | Receive):
            return replace(operation, rank=last - operation.rank)
        return operation

    ranks = [replace(one, operations=tuple(map(renamed, one.operations))) for one in case.ranks]
    return Case(case.fabric, tuple(reversed(ranks)), tuple(reversed(case.background)))


@simgrid
@pytest.mark.ci
@pytest.mark.parametrize("seed", DRAWN)
def test_the_order_of_ranks_changes_nothing(seed: int):
    case = drawn(seed)
    found = replayed(case.text()).ends
    again = replayed(reversed_ranks(case).text()).ends
    assert again == pytest.approx(tuple(reversed(found)), rel=1e-9)
    for rank, end in zip(case.ranks, found, strict=True):
        assert (
            end >= sum(one.seconds for one in rank.operations if isinstance(one, Compute)) - 1e-12
        )


@simgrid
@pytest.mark.ci
@pytest.mark.parametrize("seed", DRAWN[:8])
def test_without_latency_twice_the_rate_is_half_the_time(seed: int):
    case = drawn(seed)
    still = [
        replace(one, operations=tuple(o for o in one.operations if not isinstance(o, Compute)))
        for one in case.ranks
    ]
    fabric = replace(case.fabric, latency=0.0, uplink_latency=0.0)
    case = Case(fabric, tuple(still), case.background)
    fast = replace(case, fabric=replace(fabric, rate=2 * fabric.rate))
    halves = [end / 2 for end in replayed(case.text()).ends]
    assert replayed(fast.text()).ends == pytest.approx(halves, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", DRAWN)
def test_the_text_of_a_case_is_read_as_the_same_case(seed: int):
    case = drawn(seed)
    assert read(case.text()) == case


def test_the_text_of_a_sample_case_is_written_as_it_is_read():
    text = sample("bt_16_8_random")
    assert read(text).text() == text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("agg 1 1 1 1 1 2\nrank 0", "line 1: 'agg 1 1 1 1 1 2'"),
        ("agg 1 1 1 1 1 2 1\nbg 0", "line 2: 'bg 0'"),
        ("agg 1 1 1 1 1 2 1\nrank 0 s 0 1", "line 2: 'rank 0 s 0 1'"),
        ("agg 1 1 1 1 1 2 1\nrank 0 x", "line 2: .*'x', expected c, s, r, w or b"),
        ("agg 1 1 1 1 1 2 1\njob 0", "line 2: .*'job', expected agg, bg or rank"),
        ("agg 1 1 1 1 1 2 1", "expected a line agg and one or more lines rank"),
        ("rank 0", "expected a line agg and one or more lines rank"),
        ("agg 1 1 1 1 1 2 1\nrank 2", "host 2, expected one below 2"),
        ("agg 1 1 1 1 1 2 1\nrank 0\nbg 0 5", "host 5, expected one below 2"),
        ("agg 1 1 1 1 1 2 1\nrank 0 r 1 0 w", "rank 0: .*, expected a rank below 1"),
    ],
)
def test_a_text_that_is_no_case_is_an_error_with_the_line(text: str, error: str):
    with pytest.raises(CaseError, match=error):
        read(text)


@simgrid
def test_a_text_that_is_no_case_fails_the_replay_with_the_reason():
    with pytest.raises(ReplayError, match=r"exit code 1\n[^$]*expected agg, bg or rank"):
        replayed("job 0\n")


def test_a_machine_without_simgrid_skips_and_one_that_requires_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    interpreter = tmp_path / "python3"
    monkeypatch.setattr(witness, "PYTHON", str(interpreter))
    monkeypatch.delenv(witness.VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"No such file .*python3-simgrid"):
        replayed("")
    interpreter.write_text("#!/bin/sh\necho 'ModuleNotFoundError: no simgrid' >&2\nexit 1\n")
    interpreter.chmod(0o700)
    witness.missing.cache_clear()
    with pytest.raises(pytest.skip.Exception, match="ModuleNotFoundError: no simgrid"):
        replayed("")
    monkeypatch.setenv(witness.VARIABLE, "required")
    with pytest.raises(pytest.fail.Exception, match="HPC_SCHED_TEST_SIMGRID=required: no SimGrid"):
        replayed("")
