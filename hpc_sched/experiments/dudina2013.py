"""Dudina2013, section 4: NPB's BT on 16 VMs, placed at random and under few leaf switches.

Published: of 11 benchmarks one changed, Block Tridiagonal. Bunch-aware placement took 14 % off
the mean of its run times and 40 % off the maximum, and the difference of maximum and minimum
fell from 42 % to 3 %. The class of the benchmark, the cluster's size and links, and its other
jobs are not published.
"""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hpc_sched.core.classic.listing_1 import group_places
from hpc_sched.core.plan.problem import Problem
from hpc_sched.experiments.experiment_table import Cell, Setting, Table, Verdict, gain, percent
from hpc_sched.experiments.shared_cluster import (
    NetworkSetup,
    PlacementRun,
    compute_time,
    measured,
    random_places,
)
from hpc_sched.sim.runtime import traffic

RANDOM, BUNCH = "random", "bunch-aware"

COLUMNS = (
    *("numbers", "communication, %", "oversubscription", "neighbours talk, %"),
    *("mean less by, %", "maximum less by, %", "spread random, %", "spread bunch-aware, %"),
    *("Hop-Byte random", "Hop-Byte bunch-aware"),
)
PUBLISHED: tuple[Cell, ...] = ("published", *[None] * 3, 14.0, 40.0, 42.0, 3.0, None, None)

SETUP = NetworkSetup(share=0.3)  # class C has 200 iterations
POINTS = 162  # class C
SENT = traffic.block_tridiagonal(4, POINTS)  # 4 * 4 processes, one per VM


@dataclass(frozen=True, slots=True)
class PlacementTimes:
    """The numbers that the paper states for a placement."""

    mean: float
    maximum: float
    spread: float  # (maximum - minimum) / maximum
    hop_bytes: float  # mean

    @classmethod
    def of(cls, rows: Sequence[PlacementRun], placement: str) -> "PlacementTimes":
        """Return the numbers of one placement's runs.

        Of the possible references for maximum minus minimum, only the maximum agrees with the
        paper's other numbers: by the others, the random runs' mean is below their minimum.
        """
        chosen = [row for row in rows if row.placement == placement]
        times = [row.time for row in chosen]
        return cls(
            mean=statistics.fmean(times),
            maximum=max(times),
            spread=(max(times) - min(times)) / max(times),
            hop_bytes=statistics.fmean(row.hop_bytes for row in chosen),
        )


def run(seed: int, runs: int = 10, setup: NetworkSetup = SETUP) -> tuple[PlacementRun, ...]:
    """Return two rows a run, random placement and bunch-aware placement."""

    def place(problem: Problem, draw: random.Random) -> dict[str, Sequence[int]]:
        return {RANDOM: random_places(problem, draw), BUNCH: group_places(problem)}

    return tuple(measured(setup, SENT, seed, runs, place))


def tables(seed: int, runs: int = 10, setup: NetworkSetup = SETUP) -> tuple[Table]:
    """Return the published numbers, the simulated ones, and those with varied guesses."""
    simulated = _line("simulated", setup, run(seed, runs, setup))
    rows = [PUBLISHED, simulated]
    # Varied, to show how much depends on a guess.
    for ratio in (1.0, 2.0, 4.0, 8.0, 16.0):
        varied = replace(setup, oversubscription=ratio)
        # Communication does not depend on how long the job computes between messages.
        placed = run(seed, runs, varied)
        for share in (0.1, 0.2, 0.3, 0.4, 0.5):
            shared = replace(varied, share=share)
            computed = compute_time(shared, SENT)
            rows.append(
                _line("varied", shared, [replace(row, computation=computed) for row in placed])
            )
    others = [replace(setup, talking=talking) for talking in (0.0, 0.6, 1.0)]
    rows += [_line("varied", varied, run(seed, runs, varied)) for varied in others]
    return (
        Table(
            source="Dudina2013, section 4",
            title="Block Tridiagonal on 16 VMs, random against bunch-aware",
            columns=COLUMNS,
            rows=tuple(rows),
            settings=_settings(setup, runs),
            verdict=_verdict(simulated),
            notes=_NOTES,
        ),
    )


def _line(numbers: str, setup: NetworkSetup, rows: Sequence[PlacementRun]) -> tuple[Cell, ...]:
    before, after = PlacementTimes.of(rows, RANDOM), PlacementTimes.of(rows, BUNCH)
    return (
        numbers,
        percent(setup.share),
        setup.oversubscription,
        percent(setup.talking),
        *(percent(gain(before.mean, after.mean)), percent(gain(before.maximum, after.maximum))),
        *(percent(before.spread), percent(after.spread)),
        *(round(before.hop_bytes, 1), round(after.hop_bytes, 1)),
    )


def _verdict(simulated: Sequence[Cell]) -> Verdict:
    mean, most, before, after = simulated[4:8]
    return Verdict(
        "not reproduced",
        f"The mean is {mean} % less and the maximum {most} % (published 14 and 40); the spread "
        f"falls from {before} % to {after} % (published 42 and 3). Only bandwidth is modelled, and "
        "the uplinks of such a cluster are rarely full. Routes that collide, and what disturbs a "
        "run outside of the network, make a real cluster slower for random placement.",
    )


def _settings(setup: NetworkSetup, runs: int) -> tuple[Setting, ...]:
    return (
        Setting("VMs of the job", "16", "4"),
        Setting("VMs on a host", "1", "2.1"),
        Setting("runs", str(runs), "4: 10"),
        Setting("random placement", "over all leaf switches", "4"),
        Setting("bunch-aware placement", "on one leaf switch", "4; chosen by Listing 1"),
        Setting("benchmark", "NPB's Block Tridiagonal", "4; the other 10 benchmarks: no change"),
        Setting("class of the benchmark", f"C, {POINTS} points an edge", "guessed"),
        Setting("messages", "as in NPB 3.3, a step's at once", "inferred: its source"),
        Setting("network", "fat tree", "3, of InfiniBand"),
        Setting("leaf switches", f"{setup.leaves} of {setup.hosts_a_leaf} hosts", "guessed"),
        Setting("link of a host", f"{setup.host_rate * 8 / 1e9:g} Gb/s", "guessed"),
        Setting(
            "oversubscription",
            f"{setup.oversubscription:g}:1",
            "guessed: the end of 2.5 to 8 (Al-Fares et al. 2008); varied",
        ),
        Setting(
            "communication",
            f"{100 * setup.share:g} % of an iteration, alone on a leaf",
            "guessed: varied",
        ),
        Setting("hosts of other jobs", f"{100 * setup.taken:g} %, at random", "guessed"),
        Setting("other jobs", f"rings of {setup.neighbour_vms} VMs", "guessed"),
        Setting(
            "other jobs communicate", f"{100 * setup.talking:g} % of the time", "guessed: varied"
        ),
        Setting("iterations of a run", str(setup.iterations), "guessed"),
    )


_NOTES = (
    "Row 'simulated' was chosen before any result was seen and is not fitted. That uplinks at 4:1 "
    "would not be filled was known; the rows where neighbours talk more or less were added "
    "afterwards.",
    "Spread is (maximum - minimum) / maximum, the only reading of the paper's that agrees with "
    "its mean and maximum.",
    "Under one leaf nothing slows the job down in this model, so that the 3 % of a real cluster "
    "are 0 here; where uplinks are not full, random placement costs nothing.",
    "A link upward is for all that a switch has, with traffic spread evenly.",
)
