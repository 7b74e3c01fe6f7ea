"""Anti-affinity on bare metal: no group is refused that fits, and no answer depends on the clock.

The clouds of :mod:`tests.unit.bare_metal_clouds`; all of them by
``pytest --tier nightly --part planner tests/unit/test_bare_metal_clouds.py``.
"""

from dataclasses import replace

import pytest

from hpc_sched.core import largest_gangs
from hpc_sched.core.by_service import service_rooms
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan, Rejection, UnprovenGang
from hpc_sched.core.plan.time_limit import NO_LIMIT, TimeLimit
from tests.unit.bare_metal_clouds import cloud

# Of the first 60 those that were refused until 2026-11-29, and some others.
SEEDS = {2_000: (7, 23, 33, 36, 53, 55, *range(6)), 10_000: range(2)}
ALL_SEEDS = {2_000: range(400), 10_000: range(40)}


def answers(request: GroupRequest) -> tuple[Plan | Rejection, Plan | Rejection]:
    """Return what is decided with a planning_timeout of 0.05 s, and without any."""
    return request.decide(TimeLimit.after(0.05)), request.decide(NO_LIMIT)


def check(seed: int, nodes: int) -> bool:
    """Check the decisions on one cloud; return whether its refusal has a number."""
    fits = cloud(seed, nodes)
    group, request = fits.group, fits.group.request()
    plan, late = answers(request)
    assert isinstance(plan, Plan), (seed, plan)
    assert plan == late, seed
    assert plan.count == group.left, seed
    assert request.broken_by(request.per_hypervisor(plan)) is None, seed
    vms = group.left + 1 + seed % 40
    larger = replace(group, left=vms, awaiting=vms).request()
    early, late = answers(larger)
    assert early == late, seed
    if isinstance(late, Plan):
        assert larger.broken_by(larger.per_hypervisor(late)) is None, seed
        return True
    if late.best is not None:
        assert group.left <= late.best.vms < vms, seed
        return True
    assert late.at_most is not None
    assert late.at_most >= group.left
    for text in (late.operator, late.tenant):
        said, _, _ = text.partition(" (without")
        assert "not proven" in said
        assert f" {late.at_most}" not in said.partition(" needs ")[2].partition(":")[2], seed
    return False


@pytest.mark.parametrize(
    ("nodes", "seeds"), [pytest.param(n, s, id=f"{n} nodes") for n, s in SEEDS.items()]
)
def test_a_group_that_fits_is_never_refused(nodes, seeds):
    for seed in seeds:
        check(seed, nodes)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (8, "no room was found, not proven that there is none"),
        (200, "largest gang that fits in 6 leaf switches: not proven"),
    ],
)
def test_a_refusal_without_a_proof_has_no_number(monkeypatch, more, said):
    monkeypatch.setattr(service_rooms, "SUMS", 0)
    fits = cloud(7, 2_000)
    vms = fits.group.left + more
    request = replace(fits.group, left=vms, awaiting=vms).request()
    answer = request.decide()
    assert isinstance(answer, Rejection)
    why = f"group of {vms} needs at most 6 leaf switches: {said}"
    assert answer.tenant == why
    assert answer.operator.startswith(f"{why} (without these wishes: ")
    assert request.refusal(answer).tenant == why
    gangs = largest_gangs.gangs(request)
    assert [isinstance(gang, UnprovenGang) for gang in gangs] == [False, True, True]


@pytest.mark.nightly("planner", "440 clouds of 2,000 and 10,000 nodes")
@pytest.mark.parametrize(
    ("nodes", "seeds"), [pytest.param(n, s, id=f"{n} nodes") for n, s in ALL_SEEDS.items()]
)
def test_no_group_that_fits_is_refused_on_any_cloud(nodes, seeds):
    proven = [check(seed, nodes) for seed in seeds]
    assert proven.count(False) < len(proven) / 50
