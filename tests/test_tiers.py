"""The choice of tests and their processes, see :mod:`tests.tiers`."""

import os
from types import SimpleNamespace

import pytest

from tests import conftest, tiers


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process has one group")
def test_the_tests_of_a_file_run_in_one_process(request: pytest.FixtureRequest):
    assert request.node.nodeid.endswith("@tests/test_tiers.py"), "expected --dist loadgroup"


def test_a_test_without_a_cloud_is_of_the_default_tier(request: pytest.FixtureRequest):
    assert tiers.tier_of(request.node) == "default"


@pytest.mark.ci
def test_a_mark_counts_before_what_a_test_needs(request: pytest.FixtureRequest):
    assert tiers.tier_of(request.node) == "ci"


@pytest.mark.default
@pytest.mark.parametrize(
    "tier", ["default", pytest.param("ci", marks=pytest.mark.ci)], ids=["of the test", "its own"]
)
def test_the_mark_of_a_parameter_counts_before_that_of_its_test(
    request: pytest.FixtureRequest, tier: str
) -> None:
    assert tiers.tier_of(request.node) == tier


@pytest.mark.parametrize(
    ("selection", "runs"),
    [("default", False), ("ci", False), ("ci-only", False), ("nightly", True), ("all", True)],
)
def test_a_nightly_test_runs_where_it_is_asked_for(request, selection: str, runs: bool):
    request.node.add_marker(pytest.mark.nightly("moves", "for this test"), append=False)
    assert tiers.is_selected(request.node, selection, None) == runs
    assert tiers.is_selected(request.node, selection, "moves") == runs
    assert not tiers.is_selected(request.node, selection, "rooms")


def test_an_unknown_part_is_an_error_that_names_the_test_and_the_parts(request):
    request.node.add_marker(pytest.mark.nightly("move", "misspelt"), append=False)
    with pytest.raises(pytest.UsageError, match=r"test_tiers.*one of moves, lives, streams"):
        tiers.tier_of(request.node)


@pytest.mark.parametrize("tier", ["default", "ci", "ci-only"])
def test_a_part_of_the_nightly_tests_is_refused_where_none_of_them_runs(tier: str) -> None:
    option = SimpleNamespace(part="moves", tier=tier, order_seed=None)
    with pytest.raises(pytest.UsageError, match="--tier nightly"):
        conftest.pytest_configure(SimpleNamespace(option=option))  # type: ignore[arg-type]
