"""A cloud that lives for an hour: nothing breaks, nothing leaks, nothing is left behind."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpc_sched.demo.cloud import NovaCloud
from hpc_sched.nova_glue import neighbours, registry
from tests.functional import rows
from tests.functional.claims import STAYS_UP, ClaimsOnly
from tests.functional.clouds import sharing_options
from tests.functional.soak import checks, events, fabrics
from tests.functional.soak.life import Life
from tests.functional.soak.run import Soak, leaks, run, table

EVENTS = int(os.environ.get("HPC_SCHED_SOAK", "300"))
SEED = int(os.environ.get("HPC_SCHED_SOAK_SEED", "1"))
# By how much they may grow with a request. A list of the names of all hosts is 25 blocks, their
# HostStates are some 200 KiB. What the allocator of the C library does weighs less in a long run.
BLOCKS = "blocks of memory"
BOUNDS = {BLOCKS: 15.0, "live objects": 0.5, "RSS, KiB": max(10.0, 30000 / EVENTS)}


@pytest.fixture(scope="module")
def nova(
    start_cloud: Callable[..., NovaCloud], tmp_path_factory: pytest.TempPathFactory
) -> ClaimsOnly:
    folder = tmp_path_factory.mktemp("soak")
    index, topology = folder / "index.csv", folder / "topology.yaml"
    index.write_text(checks.INDEX)
    fabrics.write(topology, fabrics.BASE)
    ours = {
        "cache_score_limit": checks.ALPHA,
        "sync_cache_score_limit": checks.BETA,
        "interference_file": str(index),
        # A machine that stalls must not make a cell one that does not answer.
        "cell_timeout": 600,
        "in_flight_lookups": 1000,
        "topology_reload_interval": 1,
        "decision_log": str(folder / "decisions.json"),
    }
    cloud = start_cloud(topology, sharing_options(folder, **ours) | STAYS_UP)
    claims = ClaimsOnly(cloud)
    claims.add_hosts(dict.fromkeys(fabrics.HOSTS, 0))
    return claims


@pytest.fixture
def live(nova: ClaimsOnly) -> Iterator[Callable[[int], Soak]]:
    """Return what lives through a number of events in an empty cloud."""
    path = Path(nova.cloud.options["hpc_sched", "topology_file"])
    lives: list[Life] = []

    def live_(number: int) -> Soak:
        # Begun here: pytest keeps the records of loggers that are set apart before the test is.
        with checks.listening() as listener:
            lives.append(Life(nova, path))
            return run(lives[-1], listener, SEED, number, progress=say)

    yield live_
    for life in lives:
        life.delete(life.vms.copy().values())
        life.clean()
        for host in life.down:
            rows.set_down(nova.cloud, host, False)
    fabrics.write(path, fabrics.BASE)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def test_nothing_breaks_or_leaks_whatever_happens(live):
    soak = live(EVENTS)
    print("\n".join(table(soak)))
    assert not soak.wrong, "\n".join(soak.wrong)
    assert leaks(soak, BOUNDS) == []
    # It was a life in which something could have broken.
    counts = soak.life.counts
    assert all(counts[kind, "placed"] + counts[kind, "done"] for kind in events.KINDS)
    assert soak.life.requests > EVENTS / 4
    assert counts["create", "refused"] > EVENTS / 100
    assert sum(n for (_, what), n in counts.items() if what == "raced") < soak.life.requests / 10
    # At most as many as there were: one may be mended before the background looks.
    assert soak.listener.mistakes <= soak.life.mistakes


def test_a_group_state_that_is_kept_is_found(live, monkeypatch):
    kept = []
    real = registry.GroupState.observe

    def observe(state, uuid):
        kept.append(state)
        real(state, uuid)

    monkeypatch.setattr(registry.GroupState, "observe", observe)
    assert any("GroupState" in what for what in live(60).wrong)


def test_a_list_of_names_that_is_kept_is_found(live, monkeypatch):
    kept = []
    real = neighbours.read

    def read(spec, states):
        kept.append(["name of " + state.host for state in states])
        return real(spec, states)

    monkeypatch.setattr(neighbours, "read", read)
    soak = live(120)
    assert not soak.wrong, "\n".join(soak.wrong)
    assert any(BLOCKS in what for what in leaks(soak, BOUNDS))
