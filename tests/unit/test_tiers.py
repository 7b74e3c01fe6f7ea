"""The tier of each test, from its marks."""

from types import SimpleNamespace

import pytest

from tests import conftest, tiers


@pytest.mark.default
@pytest.mark.parametrize(
    "tier", ["default", pytest.param("ci", marks=pytest.mark.ci)], ids=["of the test", "its own"]
)
def test_the_mark_of_a_parameter_counts_before_that_of_its_test(
    request: pytest.FixtureRequest, tier: str
) -> None:
    assert tiers.tier_of(request.node) == tier


@pytest.mark.parametrize("tier", ["default", "ci", "ci-only"])
def test_a_part_of_the_nightly_tests_is_refused_where_none_of_them_runs(tier: str) -> None:
    option = SimpleNamespace(part="moves", tier=tier, order_seed=None)
    with pytest.raises(pytest.UsageError, match="--tier nightly"):
        conftest.pytest_configure(SimpleNamespace(option=option))  # type: ignore[arg-type]
