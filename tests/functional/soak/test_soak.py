"""A cloud that lives for an hour: nothing breaks, nothing leaks, nothing is left behind."""

import os

import pytest

from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.read.instances import colocated_instances
from tests.functional.cloud_kinds import EMPTY
from tests.functional.shared_clouds import cloud_mark
from tests.functional.soak import events
from tests.functional.soak.marks import LONG
from tests.functional.soak.run import leaks, table

pytestmark = cloud_mark(EMPTY)

EVENTS = int(os.environ.get("HPC_SCHED_SOAK", "300"))
SEED = int(os.environ.get("HPC_SCHED_SOAK_SEED", "1"))
# By how much they may grow with a request. A list of the names of all hosts is 25 blocks, their
# HostStates are some 200 KiB. What the allocator of the C library does weighs less in a long run.
BLOCKS = "blocks of memory"
BOUNDS = {BLOCKS: 15.0, "live objects": 0.5, "RSS, KiB": max(10.0, 30000 / EVENTS)}


@pytest.mark.nightly("streams", "300 events, everything checked after each")
def test_nothing_breaks_or_leaks_whatever_happens(live):
    soak = live(EVENTS, SEED)
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
    real = GroupPlacement.observe

    def observe(state, uuid, states):
        kept.append(state)
        real(state, uuid, states)

    monkeypatch.setattr(GroupPlacement, "observe", observe)
    assert any("GroupPlacement" in what for what in live(40).wrong)


@pytest.mark.parametrize(
    ("number", "lists"),
    [
        # Of so few requests, while the VMs become more, less would be lost in the noise.
        pytest.param(100, 10, id="ten in a short life"),
        pytest.param(1000, 1, id="one in a long life", marks=LONG),
    ],
)
def test_lists_of_names_that_each_request_leaves_are_found(live, monkeypatch, number, lists):
    kept = []
    real = colocated_instances.read

    def read(spec, states):
        kept.append([f"name of {state.host}" for state in states for _ in range(lists)])
        return real(spec, states)

    monkeypatch.setattr(colocated_instances, "read", read)
    soak = live(number)
    assert not soak.wrong, "\n".join(soak.wrong)
    assert any(BLOCKS in what for what in leaks(soak, BOUNDS))
