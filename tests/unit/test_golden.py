"""The commands answer as the golden set has it, see :mod:`tests.golden`.

A fixed part of its cases; ``python -m tests.golden --compare`` takes them all.
"""

from collections import Counter

import pytest

from tests.golden import explained, fits, record, simulated
from tests.golden.record import Case

SLOW = pytest.mark.nightly("planner", "thousands of snapshots and simulations")
# Of how many snapshots, or simulations, of a kind there are at least so many.
LEAST_FITS = {
    "fits": 200,
    "does not fit": 200,
    "failed": 20,
    "largest groups": 100,
    "several leaves": 50,
    "growth": 80,
    "bare metal": 100,
    "group with VMs": 500,
    "no nova.conf": 100,
    "interference": 300,
    "fabric islands": 60,
    "fabric deep": 60,
    **dict.fromkeys(("--drain", "--add", "--property"), 100),
    **dict.fromkeys(("--group", "--policy"), 250),
    **dict.fromkeys(("--level", "--max-leaves", "--volume"), 60),
}
LEAST_SIMULATED = {
    **{f"policy {name}": 8 for name in simulated.POLICIES},
    **dict.fromkeys(("queue easy", "queue fcfs"), 15),
    **dict.fromkeys(("--mtbf", "--classes", "--scores", "--vm-memory"), 8),
    **dict.fromkeys(("--require", "--max-leaves", "--homogeneous", "--speeds"), 5),
    **dict.fromkeys(("refused jobs", "restarts", "lost jobs"), 3),
}
# What lines on costs and unused switches are about.
COSTS = (
    *("hpc:require=", "hpc:max_leaves=", "hpc:homogeneous=", "policy ", "shunned hosts: "),
    *("filter: dedicated hosts", "filter: the VMs of others", "all of these", "no plan either"),
    *("cost nothing", "it is used", "costs the same, but", "there costs", "there is no plan"),
    *("none of its hosts", "needs more leaves than allowed", "or all of them: ", "VMs on one host"),
)


@pytest.mark.parametrize(
    ("part", "first", "every"),
    [
        pytest.param(fits, 0, 20, id="fits"),
        pytest.param(simulated, 0, 28, id="simulated", marks=pytest.mark.ci),
        pytest.param(fits, 5, 5, id="more fits", marks=SLOW),
        pytest.param(simulated, 7, 7, id="more simulated", marks=SLOW),
    ],
)
def test_commands_say_what_is_recorded(part, first, every, tmp_path):
    """The name of a part, the first of its cases to take, and how far it is to the next."""
    name = part.__name__.rpartition(".")[2]
    seeds = range(first, part.CASES, every)
    recorded = [record.read(name)[seed] for seed in seeds]
    for before, now in zip(recorded, part.cases(tmp_path, seeds), strict=True):
        different = record.report(name, before, now)
        assert different is None, different


def test_recorded_decisions_are_explained_as_recorded(tmp_path):
    recorded = record.read("explained")
    assert len(recorded) > 150
    assert len({before["kinds"][0] for before in recorded}) > 1
    for before, now in zip(recorded, explained.cases(tmp_path), strict=True):
        different = record.report("explained", before, now)
        assert different is None, different


def test_the_recorded_explanations_have_costs_of_all_kinds():
    said = [line for case in record.read("explained") for line in case.get("costs", ())]
    few = {text for text in COSTS if sum(text in line for line in said) < 5}
    assert few == set()


def test_the_recorded_snapshots_are_of_all_kinds():
    recorded = record.read("fits")
    assert len(recorded) == fits.CASES
    assert _too_few(recorded, LEAST_FITS) == {}


def test_the_recorded_simulations_are_of_all_kinds():
    recorded = record.read("simulated")
    assert len(recorded) == simulated.CASES
    assert _too_few(recorded, LEAST_SIMULATED) == {}
    assert sum(bool(case["runs"]) for case in recorded) > 0.9 * len(recorded)


def _too_few(recorded: list[Case], least: dict[str, int]) -> dict[str, int]:
    found = Counter(kind for case in recorded for kind in case["kinds"])
    return {kind: found[kind] for kind, count in least.items() if found[kind] < count}
