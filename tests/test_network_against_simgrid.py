"""The network model against the real SimGrid: drawn jobs next to flows, jobs next to each other.

Every message of SimGrid gets max-min fair shares, each flow of a link alike. That is what the level
of detail replay is to compute, by an implementation that shares no code with it.
``python -m tests.simgrid.agreement`` prints how near all levels are.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from tests.simgrid.drawn_cases import GROUPS, DrawnCase, drawn_case, with_barriers
from tests.simgrid.four_jobs import four_jobs
from tests.simgrid.levels import Errors, Levels, errors, levels
from tests.simgrid.witness import Replayed, all_replayed, replayed

pytestmark = pytest.mark.usefixtures("needs_simgrid")
REPLAY, STEPS = 1e-3, 0.03
each_group = pytest.mark.parametrize(
    "seeds",
    [GROUPS[0], *(pytest.param(seeds, marks=pytest.mark.ci) for seeds in GROUPS[1:])],
    ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}",
)


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A case by the product and by SimGrid."""

    drawn: DrawnCase
    found: Levels
    expected: Replayed

    @property
    def errors(self) -> Errors:
        return errors(self.found, self.expected)


@cache
def compared(seeds: range) -> tuple[Compared, ...]:
    drawn = [drawn_case(seed) for seed in seeds]
    expected = all_replayed([one.case.text() for one in drawn])
    return tuple(
        Compared(one, levels(one), of_simgrid)
        for one, of_simgrid in zip(drawn, expected, strict=True)
    )


@each_group
def test_replay_ends_each_rank_when_simgrid_does(seeds: range):
    found = {one.drawn.seed: one.errors.replay for one in compared(seeds)}
    assert {seed: error for seed, error in found.items() if error > REPLAY} == {}


@each_group
def test_steps_are_near_simgrid_unless_their_barriers_matter(seeds: range):
    """Within 3 %, or as near SimGrid with a barrier behind each step as latencies let them be.

    Ranks without barriers drift apart. Those that have no message in a step go ahead (a broadcast,
    doubling with ranks beyond a power of two), and so do those with a faster path next to other
    flows or other ranks of their host. Steps begin all messages at once and add the latency of each
    behind it; SimGrid lets a message flow when its own latency is over.
    """
    far = [one for one in compared(seeds) if abs(one.errors.steps) > STEPS]
    barriers = all_replayed([with_barriers(one.drawn).text() for one in far])
    for one, expected in zip(far, barriers, strict=True):
        latencies = one.drawn.messages_after_each_other * one.drawn.longest_latency
        near = pytest.approx(expected.seconds, rel=REPLAY, abs=latencies)
        assert one.found.steps == near, one.drawn.seed


@each_group
def test_links_are_as_near_as_steps(seeds: range):
    """Within 1 % of steps: the slowest link of a step is nearly always that of its last message."""
    for one in compared(seeds):
        assert one.found.links == pytest.approx(one.found.steps, rel=0.01), one.drawn.seed


@each_group
@pytest.mark.parametrize("pattern", ["ring", "halo1", "halo2", "halo3"])
def test_steps_and_links_are_near_simgrid_where_all_ranks_wait_for_neighbours(
    pattern: str, seeds: range
):
    every = [one.errors for one in compared(seeds) if one.drawn.pattern == pattern]
    assert max(max(abs(one.steps), abs(one.links)) for one in every) < STEPS


@pytest.mark.ci
def test_most_cases_have_no_barrier_that_matters():
    """At least 85 % of all are within 3 % by steps and by links, and none is off by half."""
    every = [one.errors for seeds in GROUPS for one in compared(seeds)]
    for level in ("steps", "links"):
        off = np.abs([getattr(one, level) for one in every])
        assert np.quantile(off, 0.85) < STEPS
        assert off.max() < 0.5


@pytest.mark.ci
@pytest.mark.parametrize(("ratio", "of_a_job"), [(4.0, 0.1), (8.0, 0.15)])
def test_jobs_next_to_each_other_take_the_time_of_simgrid(ratio: float, of_a_job: float):
    """Replay within 0.1 %; the fixed point within what tests/unit/test_sim_contention.py allows."""
    four = four_jobs(0, ratio)
    expected = replayed(four.case.text())
    assert four.replayed() == pytest.approx(np.array(expected.ends), rel=REPLAY)
    iterations = four.iterations(expected)
    found = four.fixed_point()
    assert found == pytest.approx(iterations, rel=of_a_job)
    assert found.sum() == pytest.approx(iterations.sum(), rel=0.05)
