"""Dudina2013, section 4: Block Tridiagonal on 16 VMs, at random and under few leaf switches.

Published: of 11 benchmarks one changed, Block Tridiagonal. Bunch-aware placement took 14 % off
the mean of its run times and 40 % off the maximum, and the difference of maximum and minimum
fell from 42 % to 3 %. The class of the benchmark, the cluster's size and links, and its other
jobs are not published.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hpc_sched.experiments.dudina2013.level_of_detail import differences
from hpc_sched.experiments.dudina2013.npb_programs import POINTS, RANKS, block_tridiagonal_steps
from hpc_sched.experiments.dudina2013.placements import (
    BUNCH,
    RANDOM,
    SETUP,
    of_placement,
    place,
    saved,
)
from hpc_sched.experiments.experiment_table import Cell, Setting, Table, Verdict, gain, percent
from hpc_sched.experiments.shared_cluster import (
    NetworkSetup,
    PlacementRun,
    compute_time,
    measured,
)

COLUMNS = (
    *("numbers", "communication, %", "neighbours talk, %", "iterations of a run"),
    *("hosts a leaf", "leaves bunch-aware"),
    *("mean less by, %", "±", "maximum less by, %", "spread random, %", "spread bunch-aware, %"),
    *("Hop-Byte random", "Hop-Byte bunch-aware"),
)
PUBLISHED: tuple[Cell, ...] = (
    *("published", *[None] * 4, 1),
    *(14.0, None, 40.0, 42.0, 3.0, None, None),
)
_ALIKE = 3.0  # percent: published and simulated numbers that differ by less agree


@dataclass(frozen=True, slots=True)
class PlacementTimes:
    """The numbers that the paper states for a placement."""

    mean: float
    maximum: float
    spread: float  # (maximum - minimum) / maximum
    leaves: float  # mean
    hop_bytes: float  # mean

    @classmethod
    def of(
        cls, rows: Sequence[PlacementRun], placement: str, computation: float
    ) -> "PlacementTimes":
        """Return the numbers of one placement's runs.

        Of the possible references for maximum minus minimum, only the maximum agrees with the
        paper's other numbers: by the others, the random runs' mean is below their minimum.

        :param computation: s an iteration
        """
        chosen = of_placement(rows, placement)
        times = [computation + row.communication for row in chosen]
        return cls(
            mean=statistics.fmean(times),
            maximum=max(times),
            spread=(max(times) - min(times)) / max(times),
            leaves=statistics.fmean(row.leaves for row in chosen),
            hop_bytes=statistics.fmean(row.hop_bytes for row in chosen),
        )


def run(seed: int, runs: int = 10, setup: NetworkSetup = SETUP) -> tuple[PlacementRun, ...]:
    """Return two rows a run, random placement and bunch-aware placement."""
    return tuple(measured(setup, {"BT": block_tridiagonal_steps()}, seed, runs, place, RANKS))


def table(seed: int, runs: int = 10, setup: NetworkSetup = SETUP) -> Table:
    """Return the published numbers, the simulated ones, and those with varied guesses."""
    rows = run(seed, runs, setup)
    simulated = _line("simulated", setup, rows)
    varied = [
        *(replace(setup, talking=talking) for talking in (0.0, 0.6, 1.0)),
        replace(setup, iterations=1),
        # As many hosts in all, on leaves with less room than 16 VMs need.
        *(
            replace(setup, leaves=leaves, hosts_a_leaf=setup.leaves * setup.hosts_a_leaf // leaves)
            for leaves in (8, 16)
        ),
    ]
    return Table(
        source="Dudina2013, section 4",
        title="Block Tridiagonal on 16 VMs, random against bunch-aware",
        columns=COLUMNS,
        rows=(
            PUBLISHED,
            simulated,
            # Communication does not depend on how long the job computes between messages.
            *(_line("varied", replace(setup, share=share), rows) for share in (0.1, 0.2, 0.5)),
            *(_line("varied", each, run(seed, runs, each)) for each in varied),
        ),
        settings=_settings(setup, runs),
        verdict=_verdict(simulated),
        notes=(*_NOTES, _agreement(tuple(differences(setup, seed, runs)))),
    )


def _line(numbers: str, setup: NetworkSetup, rows: Sequence[PlacementRun]) -> tuple[Cell, ...]:
    computation = compute_time(setup, block_tridiagonal_steps())
    before, after = (PlacementTimes.of(rows, each, computation) for each in (RANDOM, BUNCH))
    width = saved(rows, computation).half_width
    return (
        *(numbers, percent(setup.share), percent(setup.talking), setup.iterations),
        *(setup.hosts_a_leaf, round(after.leaves, 1)),
        percent(gain(before.mean, after.mean)),
        None if width is None else percent(width),
        percent(gain(before.maximum, after.maximum)),
        *(percent(before.spread), percent(after.spread)),
        *(round(before.hop_bytes, 1), round(after.hop_bytes, 1)),
    )


def _verdict(simulated: Sequence[Cell]) -> Verdict:
    mean, _, most, before, after = simulated[6:11]
    assert isinstance(mean, float)
    agrees = abs(mean - 14.0) <= _ALIKE
    return Verdict(
        "explained in part" if agrees else "not reproduced",
        f"The mean is {mean} % less and the maximum {most} % (published 14 and 40); the spread "
        f"falls from {before} % to {after} % (published 42 and 3). How much the mean falls depends "
        "on guesses: the further rows vary them. The stages of a sweep wait for each other, so "
        "that one slow message delays all ranks. Maximum and spread come nearest to the published "
        "ones where the same neighbours communicate throughout a run: the row with one iteration.",
    )


def _agreement(found: Sequence[float]) -> str:
    low, high = (round(100 * each, 1) + 0.0 for each in (min(found), max(found)))
    return (
        f"Ranks wait for each other after every step. In {len(found)} iterations, the first of "
        f"each run in both placements, this takes {low:g} to {high:g} % longer than a replay of "
        "all messages, in which a rank waits for its own."
    )


def _settings(setup: NetworkSetup, runs: int) -> tuple[Setting, ...]:
    return (
        Setting("VMs of the job", str(RANKS), "4"),
        Setting("VMs on a host", "1", "2.1"),
        Setting("runs", str(runs), "4: 10"),
        Setting("random placement", "over all leaf switches", "4"),
        Setting("bunch-aware placement", "on one leaf switch", "4; chosen by Listing 1"),
        Setting("benchmark", "NPB's Block Tridiagonal", "4"),
        Setting("class of the benchmark", f"C, {POINTS} points an edge", "guessed"),
        Setting("messages", "as in NPB 3.3, in dependent stages", "inferred: its source"),
        Setting("network", "fat tree", "3, of InfiniBand"),
        Setting(
            "leaf switches", f"{setup.leaves} of {setup.hosts_a_leaf} hosts", "guessed: varied"
        ),
        Setting("link of a host", f"{setup.host_rate * 8 / 1e9:g} Gb/s", "guessed"),
        Setting(
            "oversubscription",
            f"{setup.oversubscription:g}:1",
            "guessed: the end of 2.5 to 8 (Al-Fares et al. 2008); varied in the third table",
        ),
        Setting(
            "communication",
            f"{100 * setup.share:g} % of an iteration, alone on a leaf",
            "guessed: varied",
        ),
        Setting("hosts of other jobs", f"{100 * setup.taken:g} %, at random", "guessed"),
        Setting("other jobs", f"rings of {setup.neighbour_vms} VMs", "guessed"),
        Setting(
            "other jobs communicate",
            f"in {100 * setup.talking:g} % of the iterations",
            "guessed: varied",
        ),
        Setting("iterations of a run", str(setup.iterations), "guessed: varied"),
    )


_NOTES = (
    "The settings of row 'simulated' were chosen for a former model, which had all messages of an "
    "iteration at once and gave 4.5 %. They are not fitted. The rows with one iteration, and with "
    "16 and 8 hosts a leaf, were added after these results were seen.",
    "The paper had 16 VMs under one switch. Where no leaf has room for them, few leaves join them "
    "by fewer uplinks than random placement uses, and may be slower.",
    "The link of a host changes no number: computation is given by the share of communication.",
    "± is the 95 % interval, by Student's t, of what is saved in a run: both placements have the "
    "same other jobs.",
    "Spread is (maximum - minimum) / maximum, the only reading of the paper's that agrees with "
    "its mean and maximum.",
    "Under one leaf nothing slows the job down in this model, so that the 3 % of a real cluster "
    "are 0 here; where uplinks are not full, random placement costs nothing.",
    "A link upward is for all that a switch has, with traffic spread evenly: no routes collide.",
)
