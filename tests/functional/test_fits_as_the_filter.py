"""hpc-sched fits refuses requests without a group as HPCGroupFilter does, with the same text."""

import itertools
import re

import nova.conf
import pytest
from nova import exception

from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.snapshot import group_fit, request_builder
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.request_builder import GroupQuery
from tests.functional.pods import FABRIC, states_of
from tests.functional.states import read_decisions, run, spec, wishing
from tests.snapshots import flavor, snapshot

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")

FLAVORS = (
    {},
    {"require": "leaf"},
    {"prefer": "pod"},
    {"max_leaves": "1"},
    {"min_leaves": "3"},
    {"min_leaves": "3", "max_leaves": "2"},
    {"segment": "3"},
    {"segment": "prefer:5"},
    {"segment": "5", "segment_level": "pod"},
    {"segment": "2", "min_leaves": "2"},
    {"segment": "2", "objective": "isolated"},
    {"segment": "few"},
    {"balance": "true"},
    {"balance": "true", "segment": "2"},
    {"balance": "prefer"},
    {"balance": "true", "min_leaves": "2"},
    {"balance": "even"},
    {"segment_level": "pod", "max_leaves": "1"},
    {"segment_level": "row", "segment": "2"},
    {"segment": "2", "app_class": "sync"},
    {"group_size": "2"},
    {"group_size": "30", "min_size": "25"},
    {"require": "leaf", "group_size": "5", "min_size": "4"},
    {"homogeneous": "true"},
    {"homogeneous": "prefer"},
    {"require": "leaf", "app_class": "sync"},
    {"homogeneous": "true", "max_leaves": "2", "app_class": "async"},
    {"require": "leaf", "app_class": "none"},
    {"require": "rack"},
)
FILTERS = ("HPCGroupFilter",)


def refusal_of_filter(specs: dict[str, str], count: int, policy: str | None) -> str | None:
    """Return why HPCGroupFilter refuses a new request on an empty cloud, or None."""
    request = spec(
        group="group" if policy else None,
        group_policy=policy or "",
        count=count,
        extra_specs=wishing(**specs),
    )
    try:
        run(states_of(), request, HPCGroupFilter())
    except exception.NoValidHost as refused:
        return str(refused).removeprefix("No valid host was found. ")
    return None


def refusal_of_fits(
    specs: dict[str, str], count: int, policy: str | None, filters=FILTERS, **options: bool
) -> str | None:
    """Return why the same request does not fit on a snapshot of the same cloud, or None."""
    kind = flavor("kind", 16, **specs)
    found = snapshot(
        flavors=[kind], hosts=FABRIC.hosts, topology=None, filters=filters, options=options
    )
    query = GroupQuery(kind, count, policy=policy)
    return group_fit.fit(request_builder.of(Cloud.of(found, FABRIC), query)).reason


@pytest.mark.parametrize("specs", FLAVORS, ids=str)
@pytest.mark.parametrize("implicit_groups", [False, True], ids=["", "implicit groups"])
def test_what_the_filter_refuses_does_not_fit_and_what_it_accepts_does(
    group, monkeypatch, specs, implicit_groups
):
    monkeypatch.setattr(group_members, "is_placed", lambda _uuid: False)
    CONF.set_override("implicit_groups", implicit_groups, "hpc_sched")
    for count, policy in itertools.product((1, 2, 4), (None, "soft-affinity")):
        group(left=count)
        said = refusal_of_filter(specs, count, policy)
        request = (specs, count, policy)
        assert refusal_of_fits(*request, implicit_groups=implicit_groups) == said, request


@pytest.mark.parametrize(
    ("specs", "count"),
    [
        ({"segment": "5"}, 5),
        ({"segment": "5"}, 12),
        ({"segment": "4"}, 33),
        ({"segment": "3"}, 27),
        ({"segment": "3", "require": "pod"}, 14),
        ({"segment": "3", "max_leaves": "2"}, 8),
        ({"segment": "17", "segment_level": "pod"}, 17),
        ({"segment": "5", "group_size": "8"}, 1),
        ({"segment": "2", "balance": "true", "require": "pod"}, 17),
        ({"balance": "true", "max_leaves": "2"}, 9),
        ({"balance": "prefer", "require": "leaf"}, 5),
        ({"segment": "prefer:4", "require": "leaf"}, 5),
    ],
    ids=str,
)
def test_both_refuse_parts_that_do_not_fit_with_the_same_numbers(group, tmp_path, specs, count):
    log = tmp_path / "decisions"
    CONF.set_override("decision_log", str(log), "hpc_sched")
    group(left=count)
    assert refusal_of_filter(specs, count, "soft-anti-affinity")
    [record] = read_decisions(log)
    reasons = record["reason"], refusal_of_fits(specs, count, "soft-anti-affinity") or ""
    # Of equal switches the one that is named depends on the id of the group.
    one, other = (re.sub(r"(leaf|pod)\d", r"\1", reason) for reason in reasons)
    assert one == other


@pytest.mark.parametrize("count", [1, 2])
def test_both_refuse_a_bound_that_the_policy_excludes(group, count):
    group(left=count)
    request = ({"min_leaves": "2"}, count, "affinity")
    assert "contradict each other: all VMs" in (refusal_of_filter(*request) or "")
    assert refusal_of_fits(*request) == refusal_of_filter(*request)


def test_the_rule_holds_where_the_filters_are_not_known_and_not_without_the_filter():
    request = ({"require": "leaf"}, 2, None)
    assert "only a group can have that" in (refusal_of_fits(*request, filters=None) or "")
    assert refusal_of_fits(*request, filters=("ComputeFilter",)) is None


def test_a_constraint_that_is_assumed_for_a_group_needs_no_group_of_its_own():
    kind = flavor("kind", 16)
    found = snapshot(flavors=[kind], hosts=FABRIC.hosts, topology=None, filters=FILTERS)
    query = GroupQuery(kind, 5, constraints={"hpc:require": "leaf"})
    fit = group_fit.fit(request_builder.of(Cloud.of(found, FABRIC), query))
    assert (fit.reason or "").startswith("group of 5 needs one leaf: ")
