"""Quantiles of Student's t: those of SciPy, and of the printed tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hpc_sched.sim.statistics.estimate import student_t_quantile


@pytest.mark.parametrize(
    ("freedom", "printed"), [(1, 12.706), (2, 4.303), (9, 2.262), (10, 2.228), (29, 2.045)]
)
def test_quantiles_of_95_percent_are_those_of_the_tables(freedom, printed):
    assert round(student_t_quantile(0.95, freedom), 3) == printed


@given(st.floats(0.01, 0.999), st.integers(1, 3000))
def test_quantiles_are_those_of_scipy(confidence, freedom):
    expected = stats.t.ppf((1 + confidence) / 2, freedom)
    assert student_t_quantile(confidence, freedom) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("confidence", "freedom"), [(0, 5), (1, 5), (1.5, 5), (0.95, 0)])
def test_what_has_no_quantile_is_refused(confidence, freedom):
    with pytest.raises(ValueError, match="no quantile for"):
        student_t_quantile(confidence, freedom)
