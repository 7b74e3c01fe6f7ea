"""benchmarks/whole_leaves.py on a small fabric, and its interval.

::

               core
          /            \\
        pod1          pod2
      /      \\      /      \\
    leaf1  leaf2  leaf3  leaf4      two hosts each
"""

import sys
from pathlib import Path

import pytest

from hpc_sched.topology import Topology

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are in a checkout only")
sys.path.append(str(BENCHMARKS))

import whole_leaves  # noqa: E402 - found there
from whole_leaves import Outcome, Task  # noqa: E402 - likewise

FABRIC = Topology.from_tree(
    {
        "core": {
            f"pod{pod}": {f"leaf{2 * pod + n}": [f"n{pod}{n}{h}" for h in (1, 2)] for n in (0, 1)}
            for pod in (1, 2)
        }
    }
)


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs a workload of a seed on the small fabric."""
    monkeypatch.setattr(whole_leaves.churn_cloud, "fabric", lambda: FABRIC)

    def call(seed: int, multiplier: float, sizes: str = "one slot") -> Outcome:
        return whole_leaves.run(Task(sizes, "exponential", 0.4, seed, multiplier))

    return call


@pytest.mark.parametrize("seed", range(1, 4))
def test_at_equal_use_larger_groups_fit_with_the_weigher(run, seed):
    stock, found = run(seed, 0.0), run(seed, 100000.0)
    assert stock.refused == found.refused == 0
    assert found.use == stock.use
    assert set(found.gangs) == {(vm, level) for vm in ("slot", "host") for level in ("leaf", "pod")}
    assert found.gangs["slot", "leaf"] > 1.3 * stock.gangs["slot", "leaf"]
    assert found.gangs["host", "pod"] > stock.gangs["host", "pod"]
    # A leaf has two hosts of eight slots, a pod four.
    assert found.gangs["slot", "leaf"] <= 16
    assert found.gangs["host", "pod"] <= 4


def test_the_same_seed_has_the_same_outcome(run):
    assert run(5, 100000.0, "mixed") == run(5, 100000.0, "mixed")


def test_the_ratio_of_sides_that_differ_by_a_factor_is_that_factor():
    stock = [10.0, 12.0, 9.0, 11.0]
    assert whole_leaves.ratio([3 * one for one in stock], stock) == pytest.approx((3, 3, 3))


def test_the_interval_of_a_ratio_holds_it_and_grows_with_the_scatter():
    stock = [10.0, 12.0, 9.0, 11.0]
    near = whole_leaves.ratio([20.0, 25.0, 18.0, 22.0], stock)
    far = whole_leaves.ratio([20.0, 35.0, 8.0, 22.0], stock)
    assert near[1] < near[0] < near[2]
    assert far[1] < near[1] < near[2] < far[2]


def test_there_is_no_ratio_to_nothing():
    assert whole_leaves.ratio([1.0, 2.0], [0.0, 0.0])[2] == float("inf")
