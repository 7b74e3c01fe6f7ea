"""Gains of plans of least bottleneck against the real SimGrid: the same places and neighbours.

``python -m tests.simgrid.objective_gains`` prints more cells, on more seeds.
"""

import pytest

from hpc_sched.experiments.objectives.drawn_neighbours import PACKED, SCATTERED
from tests.simgrid.objective_gains import Cell, Gains, gains, sign

pytestmark = pytest.mark.usefixtures("needs_simgrid")
FASTER = Cell(16, 1.0, 8.0, SCATTERED, "halo3")
SLOWER = Cell(16, 1.0, 8.0, PACKED, "halo2")


def test_the_gain_among_scattered_neighbours_is_simgrids_of_each_seed():
    """SimGrid gains some percent more: phases of the neighbours are drawn, and it has no mean."""
    found = gains(FASTER, range(301, 304))
    assert len(found.simgrid) == 3
    for mine, its in zip(found.model, found.simgrid, strict=True):
        assert mine < 0.9
        assert its < 0.9
        assert mine == pytest.approx(its, rel=0.2)


def test_packed_neighbours_that_share_no_link_give_simgrids_time():
    found = gains(SLOWER, (301,))
    assert found.model == pytest.approx(found.simgrid, rel=1e-3)
    assert found.simgrid[0] > 1.1


@pytest.mark.ci
@pytest.mark.parametrize("cell", [FASTER, SLOWER], ids=lambda cell: cell.pattern)
def test_a_gain_has_simgrids_sign_where_its_interval_excludes_none(cell: Cell):
    assert sign(gains(cell, range(301, 311))) == "same"


@pytest.mark.parametrize(
    ("model", "simgrid", "expected"),
    [
        ((0.9,) * 10, (0.8,) * 10, "same"),
        ((1.1,) * 10, (0.8,) * 10, "OTHER"),
        ((1.1,) * 10, (0.8, 1.2) * 5, "open"),
    ],
)
def test_a_sign_is_compared_where_simgrids_interval_excludes_no_gain(
    model: tuple[float, ...], simgrid: tuple[float, ...], expected: str
):
    assert sign(Gains(FASTER, model, simgrid)) == expected
