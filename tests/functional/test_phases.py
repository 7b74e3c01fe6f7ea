"""The phases of a request, followed by Python's profile hook while all filters run.

A phase is entered when a function of its package is called from outside the five packages: what
they call of each other is a part of the phase, and values have methods. The fabric is that of
:mod:`tests.functional.pods`.
"""

import ast
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import nova.conf
import pytest
from nova import objects

from hpc_sched.filters.dedicated_host import HPCDedicatedHostFilter
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.filters.group_filter import GroupFilter
from hpc_sched.filters.homogeneity import HPCHomogeneityFilter
from hpc_sched.filters.interference import HPCInterferenceFilter
from hpc_sched.filters.rack_capacity import HPCRackCapacityFilter
from hpc_sched.nova_glue import session
from hpc_sched.nova_glue.io import allocations
from hpc_sched.nova_glue.io.allocations import Answer, Written
from hpc_sched.nova_glue.phases import TRANSITIONS, Phase
from hpc_sched.nova_glue.session import PlacementSession
from tests.functional.pods import states_of
from tests.functional.states import (
    States,
    claims_succeed,
    known,
    offered,
    queue_of,
    run,
    spec,
    wishing,
)

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")

PHASES = ("read", "decide", "claim", "answer", "record")
CHAIN = (
    HPCDedicatedHostFilter,
    HPCInterferenceFilter,
    HPCHomogeneityFilter,
    HPCGroupFilter,
    HPCRackCapacityFilter,
)
_PACKAGE = re.compile(rf".*/hpc_sched/nova_glue/({'|'.join(PHASES)})/")


@contextmanager
def followed() -> Iterator[list[str]]:
    """Yield the list of phases that this thread enters; once for calls in a row."""
    entered: list[str] = []
    depth = 0  # frames since one of the packages was entered; 0 outside

    def note(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal depth
        if event == "call":
            found = _PACKAGE.match(frame.f_code.co_filename)
            if depth:
                depth += 1
            elif found:
                depth = 1
                if frame.f_code.co_qualname.isidentifier():
                    entered.append(found[1])
        elif event == "return" and depth:
            depth -= 1

    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(None)
        entered[:] = [phase for phase, _ in itertools.groupby(entered)]


def phases_of(
    states: States, request: objects.RequestSpec, index: int = 0
) -> dict[type[GroupFilter], list[str]]:
    """Return the phases that each filter enters for the VM of a number; hosts pass from one on."""
    found = {}
    for plugin in CHAIN:
        made = plugin()
        if index and plugin.run_filter_once_per_request:
            continue
        with followed() as entered:
            states = run(states, request, made, index=index)
        found[plugin] = entered
    return found


def are_in_order(entered: list[str]) -> bool:
    """True if each phase is entered once at most, and none before an earlier one."""
    numbers = [PHASES.index(phase) for phase in entered]
    return numbers == sorted(set(numbers))


@pytest.fixture(autouse=True)
def all_filters_enabled() -> None:
    names = [plugin.__name__ for plugin in CHAIN]
    CONF.set_override("enabled_filters", names, "filter_scheduler")


KINDS = {
    "a group": {"app_class": "sync"},
    "a class with dedicated hosts": {"app_class": "extreme"},
    "a class that is consolidated": {"app_class": "async"},
    "a class that is not placed": {"app_class": "none"},
    "a guarantee": {"app_class": "sync", "require": "pod", "max_leaves": 3},
    "one processor type": {"app_class": "sync", "homogeneous": "prefer"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_quiet_request_enters_each_phase_once_a_filter(group, monkeypatch, kind):
    queue = queue_of(4)
    group(queue=queue, left=4)
    claims_succeed(monkeypatch, queue)
    states, request = (
        offered(states_of()),
        spec(count=4, uuid=queue[0], extra_specs=wishing(**KINDS[kind])),
    )
    found = phases_of(states, request)
    assert all(map(are_in_order, found.values())), found
    if kind in ("a group", "a guarantee", "one processor type"):
        assert found[HPCHomogeneityFilter] == ["read", "decide"]
        assert found[HPCGroupFilter] == ["decide", "claim", "answer"]
        assert found[HPCRackCapacityFilter] == ["decide", "answer", "record"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_quiet_request_without_a_group_enters_each_phase_once_a_filter(group, count):
    group(left=count)
    request = spec(group=None, count=count, extra_specs={})
    found = phases_of(states_of(), request)
    assert all(map(are_in_order, found.values())), found
    assert not any("claim" in entered for entered in found.values())


def test_a_quiet_move_enters_each_phase_once_a_filter(group):
    group({"n01": 1}, left=1, is_move=True)
    found = phases_of(states_of(), spec(extra_specs=wishing(require="pod")))
    assert all(map(are_in_order, found.values())), found


def test_further_vms_of_a_quiet_request_are_not_claimed_again(group, monkeypatch):
    queue = queue_of(2)
    group(queue=queue, left=2)
    claims_succeed(monkeypatch, queue)
    states, request = offered(states_of()), spec(count=2, uuid=queue[0])
    phases_of(states, request)
    place = known(request).claims.place
    assert place is not None
    states[place.position].consume_from_request(request)
    request.instance_uuid = queue[1]
    assert not any(phases_of(states, request, index=1).values())


def test_a_plan_whose_places_are_taken_is_one_loop(group, monkeypatch):
    """The first claim has no room; hosts are read again, and the second plan is claimed."""
    queue = queue_of(4)
    group(queue=queue, left=4)
    claims_succeed(monkeypatch, queue)
    answers = iter([Answer.NO_ROOM, Answer.DONE])
    monkeypatch.setattr(allocations, "write", lambda *_: Written(next(answers)))
    found = phases_of(offered(states_of()), spec(count=4, uuid=queue[0]))
    once = ["decide", "claim"]
    assert found[HPCGroupFilter] == [*once, "read", *once, "answer"]


def test_the_table_in_the_docstring_is_that_of_the_transitions():
    rows = re.findall(
        r"^    (\w+) +\S.*?(?:  +(.*))?$", PlacementSession.__doc__ or "", re.MULTILINE
    )
    table = {phase: set((follow or "").split()) for phase, follow in rows if phase in PHASE_NAMES}
    assert table == {
        phase.value: {follow.value for follow in following}
        for phase, following in TRANSITIONS.items()
    }


PHASE_NAMES = {phase.value for phase in Phase}


def test_a_session_enters_phases_by_one_function():
    tree = ast.parse(Path(session.__file__).read_text())
    stores = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == "phase"
        and isinstance(node.ctx, ast.Store)
    ]
    # At first, at the begin of each call, and in _enter.
    assert len(stores) == 3


@pytest.mark.parametrize("phase", Phase)
def test_a_phase_that_may_not_follow_is_an_error(phase):
    for wrong in set(Phase) - TRANSITIONS[phase]:
        made = PlacementSession()
        made.phase = phase
        enter: Callable[[Phase], None] = made._enter
        with pytest.raises(AssertionError):
            enter(wrong)
