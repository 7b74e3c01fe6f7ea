"""What a tenant reads of a refusal: its own counts and levels, and never the name of anything.

Whatever the operator has given a name is called Secret-something here::

                     SecretSpine
                /                    \\
          SecretPod1               SecretPod2
         /          \\             /          \\
   SecretLeaf1  SecretLeaf2  SecretLeaf3  SecretLeaf4
   SecretH01-04 SecretH05-08 SecretH09-12 SecretH13-16      hosts of one VM each
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import nova.conf
import pytest
from nova import exception, objects
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched import exceptions
from hpc_sched.core import group_request
from hpc_sched.core.constraints import group_size, max_leaves
from hpc_sched.core.constraints.extra_spec import MAX_VALUE
from hpc_sched.core.extra_spec_names import MAX_SHOWN
from hpc_sched.core.plan.result import Refusal
from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.filters.dedicated_host import HPCDedicatedHostFilter
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.filters.interference import HPCInterferenceFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue import phases
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import colocated_instances, group_members
from hpc_sched.nova_glue.read.instances.host_instances import HostInstances
from hpc_sched.nova_glue.read.room import host_state_room
from tests.functional.clouds import ROOT
from tests.functional.states import (
    States,
    as_hints,
    claims_succeed,
    configured,
    databases_say,
    host_state,
    hosts_have,
    offered,
    ours,
    queue_of,
    read_decisions,
    run,
    spec,
    wishing,
)
from tests.functional.trees import write_tree

CONF = nova.conf.CONF

SECRET = "Secret"
LEAVES = {
    f"SecretLeaf{leaf}": [f"SecretH{4 * leaf - 4 + host:02}" for host in range(1, 5)]
    for leaf in range(1, 5)
}
TREE = {
    "SecretSpine": {
        f"SecretPod{pod}": {f"SecretLeaf{leaf}": LEAVES[f"SecretLeaf{leaf}"] for leaf in below}
        for pod, below in {1: (1, 2), 2: (3, 4)}.items()
    }
}
HOSTS = [host for hosts in LEAVES.values() for host in hosts]

CHAIN = (
    HPCDedicatedHostFilter,
    HPCInterferenceFilter,
    HPCHomogeneityFilter,
    HPCGroupFilter,
    HPCRackCapacityFilter,
)
ENABLED = ["ComputeFilter", *(made.__name__ for made in CHAIN)]

Asking = tuple[States, objects.RequestSpec]


@pytest.fixture(autouse=True)
def decisions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Path]:
    """Use the fabric, all our filters and a decision log, which is returned."""
    caplog.set_level("INFO")
    with configured(write_tree(tmp_path / "topology.yaml", TREE)):
        CONF.set_override("enabled_filters", ENABLED, "filter_scheduler")
        CONF.set_override("decision_log", str(tmp_path / "decisions"), "hpc_sched")
        yield tmp_path / "decisions"


def at(counts: Mapping[str, int]) -> dict[tuple[str, str | None], int]:
    return {(host, host): count for host, count in counts.items()}


def group_of(
    monkeypatch: pytest.MonkeyPatch,
    count: int = 1,
    members: Mapping[str, int] | None = None,
    said: Mapping[str, Any] | None = None,
    constraints: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Asking:
    """Return all hosts and a request for VMs of a group, of which the databases say this."""
    known = {"members": at(members or {}), "queue": queue_of(count), "left": count, **(said or {})}
    databases_say(monkeypatch, **known)
    request = spec(
        count=count, extra_specs=wishing(**(constraints or {})), uuid=uuids.vm000, **fields
    )
    return [host_state(host) for host in HOSTS], request


def no_room(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 17)


def no_leaf(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 5, constraints={"require": "leaf"})


def no_leaves(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 9, constraints={"max_leaves": 2, "require": "core"})


def too_few_leaves(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 8, constraints={"min_leaves": 7})


def fewest_leaves_above_the_most(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 2, constraints={"min_leaves": 3, "max_leaves": 2})


def fewest_leaves_with_affinity(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 2, constraints={"min_leaves": 2}, group_policy="affinity")


def no_parts(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 10, constraints={"segment": 5})


def no_parts_of_a_level(patch: pytest.MonkeyPatch) -> Asking:
    constraints = {"segment": 9, "segment_level": "pod"}
    return group_of(patch, 9, constraints=constraints)


def no_more_parts(patch: pytest.MonkeyPatch) -> Asking:
    members = {"SecretH01": 1, "SecretH05": 1, "SecretH09": 1}
    return group_of(patch, 1, members, constraints={"segment": 3})


def parts_not_even(patch: pytest.MonkeyPatch) -> Asking:
    """One leaf has room for 4 VMs, the others for 1 each."""
    asking = group_of(patch, 7, constraints={"balance": "true"})
    kept = [state for i, state in enumerate(asking[0]) if i < 4 or i % 4 == 0]
    return kept, asking[1]


def parts_on_leaves_of_their_own(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 4, constraints={"segment": 2, "min_leaves": 2})


def parts_with_an_objective(patch: pytest.MonkeyPatch) -> Asking:
    hosts_have(patch, {}, HostInstances(at={}))
    return group_of(patch, 4, constraints={"segment": 2, "objective": "isolated"})


def not_beside_members(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 8, {"SecretH01": 1}, constraints={"require": "pod", "max_leaves": 1})


def members_apart(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 1, {"SecretH01": 1, "SecretH09": 1}, constraints={"require": "pod"})


def members_on_many_leaves(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 1, {"SecretH01": 1, "SecretH09": 1}, constraints={"max_leaves": 1})


def too_large_to_become(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, constraints={"require": "pod", "group_size": 9})


def contradicting(patch: pytest.MonkeyPatch) -> Asking:
    patch.setattr(
        host_state_room, "empty_capacities", lambda _demand: {(host, host): 1 for host in HOSTS}
    )
    return group_of(patch, constraints={"max_leaves": 1, "group_size": 5})


def no_one_host(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 2, group_policy="affinity")


def members_host_full(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 2, {"SecretH01": 1}, group_policy="affinity")


def members_unread(patch: pytest.MonkeyPatch) -> Asking:
    trouble = {"problems": ["cell SecretCell: no answer of SecretDb"], "is_partial": True}
    return group_of(patch, said=trouble, constraints={"require": "pod"})


def unread_and_alike(patch: pytest.MonkeyPatch) -> Asking:
    trouble = {"problems": ["Placement: SecretUrl does not answer"], "is_partial": True}
    return group_of(patch, said=trouble, constraints={"homogeneous": "true"})


def typed(asking: Asking, *types: str) -> Asking:
    """Return the same with processors that aggregates name, dealt out host by host."""
    for i, state in enumerate(asking[0]):
        metadata = {"hpc:processor": types[i % len(types)]}
        state.aggregates = [objects.Aggregate(name="SecretAggregate", metadata=metadata)]
    return asking


def no_type(patch: pytest.MonkeyPatch) -> Asking:
    asking = group_of(patch, 9, constraints={"homogeneous": "true"})
    return typed(asking, "SecretNew", "SecretOld")


def no_more_of_the_members_type(patch: pytest.MonkeyPatch) -> Asking:
    asking = group_of(patch, 9, {"SecretH01": 1}, constraints={"homogeneous": "true"})
    return typed(asking, "SecretNew", "SecretOld")


def members_of_two_types(patch: pytest.MonkeyPatch) -> Asking:
    two = {"SecretH01": 1, "SecretH02": 1}
    return typed(
        group_of(patch, 1, two, constraints={"homogeneous": "true"}), "SecretNew", "SecretOld"
    )


def members_of_no_known_type(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, 1, {"SecretH01": 1}, constraints={"homogeneous": "true"})


def extreme_among_others(patch: pytest.MonkeyPatch) -> Asking:
    asking = group_of(patch, constraints={"app_class": "extreme"})
    hosts_have(patch, {host: [Application("none")] for host in HOSTS})
    return asking


def among_extremes(patch: pytest.MonkeyPatch) -> Asking:
    asking = group_of(patch)
    hosts_have(patch, {host: [Application("extreme", group=uuids.other)] for host in HOSTS})
    return asking


def extreme_without_proof(patch: pytest.MonkeyPatch) -> Asking:
    asking = group_of(patch, constraints={"app_class": "extreme"})
    hosts_have(
        patch, {}, HostInstances(at={}, in_flight_unknown="Placement at SecretUrl is silent")
    )
    return asking


def too_hot(patch: pytest.MonkeyPatch) -> Asking:
    asking = group_of(patch, constraints={"app_class": "sync", "cache_score": 50})
    hosts_have(patch, {host: [Application("sync", "SecretApp", 50)] for host in HOSTS})
    return asking


def beside_others(patch: pytest.MonkeyPatch) -> Asking:
    asking = group_of(patch, 16, constraints={"cache_score": 50})
    hosts_have(patch, {"SecretH01": [Application("sync", "SecretApp", 50)]})
    return asking


def bad_hints(patch: pytest.MonkeyPatch) -> Asking:
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    said = as_hints(require="rack\n\x1b[2J", max_leaves="9" * 5000, prefer="x" * 200)
    return group_of(patch, 2, hints=said)


def bad_application(patch: pytest.MonkeyPatch) -> Asking:
    return group_of(patch, constraints={"app_name": "a b\r\nforged", "cache_score": "nan"})


def no_group(patch: pytest.MonkeyPatch) -> Asking:
    patch.setattr(group_members, "is_placed", lambda _uuid: False)
    return group_of(patch, constraints={"require": "pod"}, group=None)


def no_group_and_bad(patch: pytest.MonkeyPatch) -> Asking:
    patch.setattr(group_members, "is_placed", lambda _uuid: False)
    return group_of(patch, constraints={"require": "rack"}, group=None)


def no_class(patch: pytest.MonkeyPatch) -> Asking:
    CONF.set_override("default_app_class", "none", "hpc_sched")
    patch.setattr(group_members, "is_placed", lambda _uuid: False)
    return group_of(patch, 2, constraints={"require": "pod"})


def never_alone(patch: pytest.MonkeyPatch) -> Asking:
    """Whatever is claimed, VMs of the group are claimed elsewhere at the same moment."""
    hosts, request = group_of(patch, 2, constraints={"require": "leaf"})
    claims_succeed(patch, queue_of(2))
    # One of another leaf each time.
    found = iter([*at({host: 1 for i in range(4) for host in HOSTS[i::4]})] * 5)

    def read(*_: object, **_said: object) -> group_members.GroupMembership:
        place = next(found)
        return group_members.GroupMembership(
            Counter([place]), tuple(queue_of(2)), 2, is_move=False, in_flight={"0": place}
        )

    patch.setattr(group_members, "read", read)
    return offered(hosts), request


def others_not_looked_up(patch: pytest.MonkeyPatch) -> Asking:
    """Whatever is claimed, where VMs that are claimed at the same moment are is not known."""
    hosts, request = group_of(patch, 2, constraints={"require": "leaf"})
    claims_succeed(patch, queue_of(2))
    found = group_members.GroupMembership(
        Counter(),
        tuple(queue_of(2)),
        2,
        is_move=False,
        problems=("Placement at SecretUrl is silent",),
        unknown=frozenset("0"),
    )
    patch.setattr(group_members, "read", lambda *_, **_said: found)
    return offered(hosts), request


def isolated_others_unread(patch: pytest.MonkeyPatch) -> Asking:
    asking = group_of(patch, 5, constraints={"objective": "isolated"})
    hosts_have(
        patch, {}, HostInstances(at={}, in_flight_unknown="Placement at SecretUrl is silent")
    )
    return asking


def isolated_without_a_claim(patch: pytest.MonkeyPatch) -> Asking:
    """Nothing can be claimed on these hosts, and no leaf holds the group."""
    asking = group_of(patch, 5, constraints={"objective": "isolated"})
    hosts_have(patch, {}, HostInstances(at={}))
    return asking


# Whether the operator's text has names, of switches, hosts, types, cells or applications.
WITH_NAMES = [
    no_room,
    no_leaf,
    no_leaves,
    too_few_leaves,
    no_parts,
    no_parts_of_a_level,
    parts_not_even,
    not_beside_members,
    too_large_to_become,
    members_unread,
    unread_and_alike,
    no_type,
    no_more_of_the_members_type,
    members_of_two_types,
    extreme_without_proof,
    others_not_looked_up,
    beside_others,
    isolated_others_unread,
]
WITHOUT_NAMES = [
    members_apart,
    members_on_many_leaves,
    contradicting,
    fewest_leaves_above_the_most,
    fewest_leaves_with_affinity,
    no_more_parts,
    parts_on_leaves_of_their_own,
    parts_with_an_objective,
    no_one_host,
    members_host_full,
    members_of_no_known_type,
    never_alone,
    extreme_among_others,
    among_extremes,
    too_hot,
    bad_hints,
    bad_application,
    no_group,
    no_group_and_bad,
    no_class,
    isolated_without_a_claim,
]


def refusal(asking: Asking) -> str:
    """Return what the tenant reads, as Nova's scheduler gets it from the filters."""
    with pytest.raises(exception.NoValidHost) as refused:
        run(*asking, *(made() for made in CHAIN))
    return str(refused.value)


def check_tenant(text: str) -> None:
    assert SECRET.lower() not in text.lower()
    assert text.isprintable(), repr(text)
    # Three values that cannot be read, told back with what was expected of each.
    assert len(text) < 3 * (MAX_SHOWN + 150)


# Numbers that no request has to state: limits of values, and members of any group here.
ALWAYS = {MAX_VALUE, group_size.MOST, max_leaves.MOST, 1, 2}


def check_numbers(text: str, request: objects.RequestSpec) -> None:
    """Check that a text has no whole number above those that the request states."""
    said = f"{request.num_instances} {request.flavor.extra_specs} {request.scheduler_hints}"
    whole_number = re.compile(r"(?<![\w.])\d{1,9}\b(?!\.\d)")
    stated, shown = (set(map(int, whole_number.findall(each))) for each in (said, text))
    assert max(shown - ALWAYS, default=0) <= max(stated), text


@pytest.mark.parametrize("case", [*WITH_NAMES, *WITHOUT_NAMES], ids=lambda case: case.__name__)
def test_no_refusal_tells_a_tenant_a_name_or_a_large_number_and_its_operator_reads_names(
    monkeypatch, caplog, decisions, case: Callable[..., Asking]
):
    asking = case(monkeypatch)
    text = refusal(asking)
    check_tenant(text)
    check_numbers(text, asking[1])
    # Nor does any text say what others run.
    assert "dedicated" not in text
    [logged] = [text for text in ours(caplog) if "refused: " in text]
    [told] = read_decisions(decisions)
    for reason in (logged.partition("refused: ")[2], told["reason"]):
        assert reason.isprintable(), repr(reason)
        assert (SECRET in reason) == (case in WITH_NAMES)
    # One record is one line, whatever was said.
    assert decisions.read_bytes().count(b"\n") == 1


def is_refusal(call: ast.Call) -> bool:
    """True if a call makes a RefusedError, or the Refusal that becomes one."""
    name = ast.unparse(call.func)
    return name.rpartition(".")[2] == "RefusedError" or name in ("Refusal", "Refusal.alike")


# They repeat what another place has refused.
REPEATED = {"_refused", "refusal_of", "refused"}


def places_that_refuse() -> dict[tuple[str, int], range]:
    """Return the lines of each call that refuses, by file and first line."""
    return {
        (str(path), call.lineno): range(call.lineno, (call.end_lineno or call.lineno) + 1)
        for path in (ROOT / "hpc_sched").rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and function.name not in REPEATED
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and is_refusal(call)
    }


def test_every_place_that_refuses_is_among_these(monkeypatch):
    """Each call of RefusedError or Refusal in the package is reached by one of the cases."""
    sites = places_that_refuse()
    assert len(sites) >= 14
    reached = set()

    def note(frame: FrameType | None) -> None:
        # Refusal.alike makes it for its caller.
        for _ in range(2):
            assert frame is not None
            file, line = frame.f_code.co_filename, frame.f_lineno
            reached.update(site for site, at in sites.items() if site[0] == file and line in at)
            frame = frame.f_back

    for made in (exceptions.RefusedError, Refusal):

        def noting(self: object, *args: Any, _real: Any = made.__init__) -> None:
            note(sys._getframe(1))
            _real(self, *args)

        monkeypatch.setattr(made, "__init__", noting)
    for case in (*WITH_NAMES, *WITHOUT_NAMES):
        CONF.set_override("default_app_class", "sync", "hpc_sched")
        with monkeypatch.context() as patch:
            refusal(case(patch))
    assert reached == set(sites)


BROKEN = {
    "the wishes": (request_spec, "hpc_specs_of"),
    "the request": (request_spec, "from_spec"),
    "the neighbours": (colocated_instances, "read"),
    "the members": (group_members, "read"),
    "the state": (phases, "GroupPlacement"),
    "the planner": (group_request, "solve_sizes"),
}


@pytest.mark.parametrize("where", BROKEN)
@pytest.mark.parametrize("constraints", [{}, {"require": "pod"}], ids=["no wish", "a guarantee"])
def test_an_error_of_our_own_is_the_operators_alone(monkeypatch, caplog, where, constraints):
    asking = group_of(monkeypatch, 2, constraints=constraints)

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("SecretH01 is on fire")

    module, name = BROKEN[where]
    monkeypatch.setattr(module, name, broken)
    try:
        kept = run(*asking, *(made() for made in CHAIN))
    except exception.NoValidHost as refused:
        check_tenant(str(refused))
        kept = []
    # Without a host Nova itself says that there are not enough.
    assert bool(kept) == (not constraints and where != "the wishes")
    logged = [found for found in caplog.records if found.exc_info]
    assert logged
    assert all("SecretH01" in str(found.exc_info[1]) for found in logged)
