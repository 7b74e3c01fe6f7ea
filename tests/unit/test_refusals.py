"""Refusals of small random groups: what their tenant reads, and the largest gang by brute force."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hpc_sched.core import extra_specs
from hpc_sched.core.constraints import Bounds
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Gang, Refusal, Rejection
from hpc_sched.core.processor_choice import choose_processor
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.core.processors.processor_ranking import UNRANKED
from hpc_sched.topology import Topology
from tests.unit import fabrics
from tests.unit.plan_oracle import Oracle

# Part of each name that an operator has given to a switch, host, service or processor type.
SECRET = "Zz"
REQUIRED = [*(["leaf"] * 3), "pod", "core", None]


@dataclass(frozen=True)
class Asked:
    """A group, and the largest number that its request states or that are VMs of the group."""

    group: GroupRequest
    largest: int
    is_apart: bool  # whether its members break a constraint


@st.composite
def cases(draw: st.DrawFn) -> fabrics.Case:
    """Draw a group on a small fabric with its constraints; its members are on few hosts."""
    group = draw(fabrics.groups(fabrics.trees(max_hosts=9), max_members=0))
    fabric = group.topology
    at = st.sampled_from(fabric.hosts)
    return fabrics.Case(
        tree=group.tree,
        capacity=group.capacity,
        members=dict(Counter(draw(st.lists(at, max_size=3)))),
        count=draw(st.integers(1, 9)),
        require=draw(st.sampled_from([level for level in REQUIRED if level in fabric.levels])),
        max_leaves=draw(st.none() | st.integers(1, 3)),
    )


def are_apart(case: fabrics.Case) -> bool:
    """True if the constraints cannot be kept even without any more VM."""
    return not len(Oracle(replace(case, count=0)).feasible())


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    """Draw the request of a group, as the scheduler builds it; names are secret."""
    case = draw(cases())

    def secret(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {SECRET + name: secret(below) for name, below in tree.items()}
        return [SECRET + name for name in tree]

    topology = Topology.from_tree(secret(case.tree))
    hosts = topology.hosts
    services = draw(st.integers(1, len(hosts)))
    places = [(f"{SECRET}service{i % services}", host) for i, host in enumerate(hosts)]
    service_of = {host: service for service, host in places}
    policy = draw(st.sampled_from([None, None, "affinity", "anti-affinity", "soft-anti-affinity"]))
    size = draw(st.none() | st.integers(1, 12))
    homogeneous = draw(st.sampled_from(["false", "prefer", "true"]))
    specs = extra_specs.read(
        {
            extra_specs.HOMOGENEOUS: homogeneous,
            **({"hpc:require": case.require} if case.require else {}),
            **({"hpc:max_leaves": case.max_leaves} if case.max_leaves else {}),
            **({"hpc:group_size": size} if size else {}),
        },
        {},
        topology.levels,
        extra_specs.Defaults(),
    )
    assert not specs.faults
    types = draw(st.lists(st.sampled_from("AB"), min_size=len(hosts), max_size=len(hosts)))
    names = [f"{SECRET}type{name}" for name in types]
    members = {SECRET + host: number for host, number in case.members.items()}
    of_members = Counter[str | None]()
    for host, number in members.items():
        of_members[names[topology.index_of(host)]] += number
    everything = np.ones(len(hosts), dtype=np.bool_)
    group = GroupRequest.of(
        topology,
        specs,
        group_id="",
        policy=policy,
        max_per_host=draw(st.sampled_from([1, 2])) if policy == "anti-affinity" else None,
        places=places,
        names=hosts,
        room=np.array([case.capacity.get(host.removeprefix(SECRET), 0) for host in hosts]),
        members={(service_of[host], host): number for host, number in members.items()},
        left=case.count,
        awaiting=case.count + draw(st.integers(0, 9)),
        processors=HostProcessors.of(
            names, [None] * len(hosts), [8] * len(hosts), everything, of_members, UNRANKED
        ),
    )
    full = {f"{SECRET}reason": 50} if draw(st.booleans()) else {}
    numbers = (case.count, sum(members.values()), size or 0, case.max_leaves or 0)
    return Asked(replace(group, full_hosts=full), max(numbers), are_apart(case))


def refusal_of(group: GroupRequest) -> Refusal | None:
    """Return why HPCHomogeneityFilter or HPCGroupFilter refuses a group, or None."""
    choice = choose_processor(group, GroupRequest.decide, lambda plan: plan.count)
    if choice is not None:
        return choice if isinstance(choice, Refusal) else None
    answer = group.decide()
    return group.refusal(answer) if isinstance(answer, Rejection) else None


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(asked())
def test_a_tenant_reads_no_name_and_no_number_above_those_of_the_request(asked: Asked):
    refusal = refusal_of(asked.group)
    assume(refusal is not None)
    assert refusal is not None
    assert SECRET not in refusal.tenant
    numbers = [int(found) for found in re.findall(r"\b\d+\b", refusal.tenant)]
    assert max(numbers, default=0) <= asked.largest, refusal.tenant
    # VMs of the final size cost nothing before they are requested.
    for most in re.findall(r"largest gang[^:]*: (\d+)", refusal.tenant):
        assert int(most) < asked.group.left, refusal.tenant


@given(asked())
def test_members_that_break_a_constraint_leave_no_gang_and_are_the_reason(asked: Asked):
    answer = asked.group.decide()
    assert asked.is_apart <= isinstance(answer, Rejection)
    if isinstance(answer, Rejection):
        assert (answer.best is None) == (answer.conflict is not None) == asked.is_apart
    if asked.is_apart:
        assert asked.group.conflict is not None
        refusal = asked.group.refusal(answer)
        assert asked.group.conflict in refusal.tenant
        assert "left out" not in refusal.tenant


@given(cases())
def test_the_largest_gang_is_the_largest_that_has_any_places(case: fabrics.Case):
    room = sum(case.capacity.values())
    answer = replace(case, count=room + 1).answer()
    assert isinstance(answer, Rejection)
    most = -1 if answer.best is None else answer.best.vms
    has_places = [len(Oracle(replace(case, count=n)).feasible()) > 0 for n in range(room + 2)]
    assert has_places == [n <= most for n in range(room + 2)]


@pytest.mark.parametrize(
    ("count", "tenant"),
    [
        pytest.param(
            5,
            "group of 5 needs one leaf: largest gang that fits under one leaf: 4",
            id="fewer than requested fit",
        ),
        # Another reason than room, such as a policy.
        pytest.param(4, "group of 4 needs one leaf", id="as many as requested fit"),
        pytest.param(3, "group of 3 needs one leaf", id="more than requested fit"),
    ],
)
def test_a_tenant_reads_what_fits_only_if_it_is_less_than_requested(count: int, tenant: str):
    gang = Gang("leaf", 4, "sw1")
    answer = Rejection(count=count, members=0, bounds=Bounds("leaf"), gangs=(gang,), best=gang)
    assert answer.tenant == tenant
    assert answer.operator.endswith("largest gang that fits under one leaf: 4 on sw1")


def test_a_type_that_holds_more_than_requested_has_no_number_for_the_tenant():
    processors = HostProcessors({"new": np.array([True])}, {"new": 8}, {})
    assert processors.refusal(4, 3, 4).tenant.endswith("largest gang that fits on one type: 3")
    unproven = processors.refusal(4, None, 4)
    assert unproven.tenant.endswith("largest gang that fits on one type: not proven")
    assert unproven.operator.endswith("fits on one type: not proven (types: new)")
    assert processors.refusal(4, 6, 4).tenant == "no single processor type holds 4 VMs"
    assert processors.refusal(4, 6, 4).operator.endswith("fits on one type: 6 (types: new)")
