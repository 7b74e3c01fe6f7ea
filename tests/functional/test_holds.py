"""The store of holds on the real Placement."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from keystoneauth1 import exceptions as ksa_exceptions
from nova.cmd import manage
from nova.scheduler.client import report
from oslo_utils.fixture import uuidsentinel
from placement.handlers import allocation as allocation_handler

from hpc_sched import clock, exceptions
from hpc_sched.nova_glue.claim.holds import (
    hold_ends,
    hold_provider,
    hold_transaction,
    hold_turn,
    store,
)
from hpc_sched.nova_glue.io.allocations import Answer
from hpc_sched.nova_glue.read.hold import Hold, Holds
from tests.functional import faults, hold_rows, provider_rows
from tests.functional.cloud_kinds import EMPTY
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import BUSY_MACHINE, TestedCloud

pytestmark = [cloud_mark(EMPTY), pytest.mark.ci]

A, B, C = uuidsentinel.a, uuidsentinel.b, uuidsentinel.c
NOW = 1_800_000_000
AMOUNTS = {"VCPU": 16, "MEMORY_MB": 65536, "CUSTOM_GPU": 4}


@dataclass
class Calls:
    """The calls to Placement, and what becomes of the next POSTs of allocations."""

    made: list[str] = field(default_factory=list)  # method and path
    # "lost": not made; "made": without an answer
    fates: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)  # of POSTs of allocations
    is_broken: bool = False

    def count(self, function: Callable[[], Any]) -> tuple[Any, list[str]]:
        """Return what a function returns, and the methods of its calls."""
        self.made.clear()
        found = function()
        return found, [call.split()[0] for call in self.made]


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> Iterator[TestedCloud]:
    hold_rows.remove()
    shared_cloud.flags(cell_timeout=BUSY_MACHINE, group="hpc_sched")
    yield shared_cloud
    hold_rows.remove()


@pytest.fixture
def calls(cloud: TestedCloud, monkeypatch: pytest.MonkeyPatch) -> Calls:
    found = Calls()

    def watched(method: str) -> None:
        real = getattr(report.SchedulerReportClient, method)

        def call(client: Any, url: str, *args: Any, **kwargs: Any) -> Any:
            found.made.append(f"{method.upper()} {url}")
            if found.is_broken:
                raise ksa_exceptions.ConnectFailure("the connection is broken")
            is_claim = method == "post" and url == "/allocations"
            if is_claim:
                found.bodies.append(args[0])
            fate = found.fates.pop(0) if is_claim and found.fates else None
            answer = real(client, url, *args, **kwargs) if fate != "lost" else None
            if fate is not None:
                raise ksa_exceptions.ConnectFailure("the connection is broken")
            return answer

        monkeypatch.setattr(report.SchedulerReportClient, method, call)

    for method in ("get", "post", "put"):
        watched(method)
    return found


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time by the wall clock, to be changed."""
    found = [float(NOW)]
    monkeypatch.setattr(clock.current, "unix_time", lambda: found[0])
    return found


def hold(instance: str, node: str = "n1", **said: Any) -> Hold:
    return Hold(instance, node, said.pop("amounts", AMOUNTS), said.pop("until", NOW + 300), **said)


def write(*holds: Hold, remove: tuple[str, ...] = ()) -> Holds:
    """Write holds and return all of them."""
    assert store.write(store.read(), holds, remove).answer is Answer.DONE
    return store.read()


def expire() -> int:
    """Remove what has ended; return how many."""
    return hold_ends.expire(store.read())


def cloud_class(name: str) -> None:
    """Make a resource class, as a site does for its devices."""
    report.report_client_singleton().put(f"/resource_classes/{name}", None, version="1.36")


def before_step(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, other: Callable[[], Any]
) -> list[Any]:
    """Let another request be made as a whole before the next call of a function of Placement.

    :returns: a list that gets what it returned
    """
    real, found = getattr(owner, name), list[Any]()

    def call(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(owner, name, real)
        found.append(other())
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)
    return found


def test_a_cloud_that_never_held_anything_is_read_in_one_call(calls):
    found, made = calls.count(store.read)
    assert (found.turn, found.held, found.taken_by_others(()), made) == (None, {}, {}, ["GET"])
    assert not hold_ends._is_held


def test_all_that_is_held_is_read_back_in_one_call(calls):
    held = [
        hold(A),
        hold(B, "N2 with ünusual letters"),
        hold(C, uuidsentinel.node, amounts={"VCPU": 1}, is_moving=True),
    ]
    write(*held)
    found, made = calls.count(store.read)
    assert [found.held[uuid] for uuid in (A, B, C)] == held
    assert found.taken_by_others(())["n1"] == AMOUNTS
    assert found.taken_by_others({A, B}) == {uuidsentinel.node: {"VCPU": 1}}
    assert made == ["GET"]


def test_what_several_hold_on_a_host_is_added_up(cloud):
    assert write(hold(A), hold(B, amounts={"VCPU": 2})).taken_by_others(()) == {
        "n1": {"VCPU": 18, "MEMORY_MB": 65536, "CUSTOM_GPU": 4}
    }


def test_a_write_is_one_call_and_a_release_two_once_all_was_held_before(calls):
    write(hold(A))
    holds = store.read()
    assert calls.count(lambda: store.write(holds, [hold(A, "n2"), hold(B)]))[1] == ["POST"]
    assert calls.count(lambda: store.release([A, B]))[1] == ["GET", "POST"]
    assert calls.count(lambda: store.release([A, B]))[1] == ["GET"]
    assert calls.count(store.read)[1] == ["GET"]
    assert calls.count(expire)[1] == ["GET"]


def test_a_hold_moves_to_another_host_and_another_one_ends_in_one_transaction(cloud):
    write(hold(A), hold(B))
    found = write(hold(A, "n2"), remove=(B, C))
    assert found.held == {A: hold(A, "n2")}
    assert hold_rows.count() == (1, 1)


def test_of_two_that_have_read_the_same_the_second_writes_nothing(cloud):
    first = second = write(hold(C))
    assert store.write(first, [hold(A)]).answer is Answer.DONE
    written = store.write(second, [hold(B, "n2"), hold(C, "n3")])
    assert written.answer is Answer.CONSUMER_CHANGED
    assert store.read().held == {A: hold(A), C: hold(C)}
    # Nor did the second leave a record, which would stay for ever.
    assert hold_rows.count() == (2, 2)
    assert store.write(store.read(), [hold(B, "n2")]).answer is Answer.DONE


STEPS = {
    "before its consumers are looked for": (allocation_handler, "inspect_consumers"),
    "before its allocations are looked for": (allocation_handler, "create_allocation_list"),
    "before its providers are looked for": (allocation_handler, "_resource_providers_by_uuid"),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("instance", [A, B], ids=["for another instance", "for the same one"])
def test_of_writes_that_overlap_within_placement_one_is_made_as_a_whole(
    cloud, monkeypatch, step, instance
):
    before = write(hold(C))
    mine, others = [hold(B), hold(C, "n3")], [hold(instance, "n2")]
    other = before_step(monkeypatch, *step, lambda: store.write(before, others))
    written = store.write(before, mine)
    is_done = [answer is Answer.DONE for answer in (written.answer, other[0].answer)]
    assert sorted(is_done) == [False, True]
    made = mine if is_done[0] else others
    found = store.read()
    assert found.held == {C: hold(C)} | {one.instance: one for one in made}
    assert hold_rows.count() == (len(found.held),) * 2


PATHS = {
    "as the provider is made": "POST /resource_providers",
    "as the last class is made": "PUT /resource_classes/CUSTOM_HPC_SCHED_VCPU",
    "as the inventories are made": "PUT /resource_providers",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_of_two_that_hold_the_first_places_of_a_cloud_one_does(cloud, monkeypatch, path):
    method, _, url = path.partition(" ")
    real = getattr(report.SchedulerReportClient, method.lower())
    answers = []

    def call(client: Any, sent: str, *args: Any, **kwargs: Any) -> Any:
        if sent.startswith(url) and not answers:
            answers.append(None)
            answers[:] = [store.write(Holds(), [hold(A)]).answer]
        return real(client, sent, *args, **kwargs)

    monkeypatch.setattr(report.SchedulerReportClient, method.lower(), call)
    written = store.write(Holds(), [hold(B)])
    assert (answers, written.answer) == ([Answer.DONE], Answer.CONSUMER_CHANGED)
    assert store.read().held == {A: hold(A)}
    assert store.write(store.read(), [hold(B)]).answer is Answer.DONE


def test_the_turn_is_made_by_the_one_that_has_added_its_class_whatever_the_other_finds(
    calls, monkeypatch
):
    other = before_step(
        monkeypatch,
        allocation_handler,
        "create_allocation_list",
        lambda: store.write(Holds(), [hold(A)]),
    )
    assert store.write(Holds(), [hold(B)]).answer is Answer.DONE
    assert other[0].answer is Answer.FAILED
    assert store.read().held == {B: hold(B)}
    assert len(calls.bodies) == 2  # the turn, and the hold


def test_another_one_makes_the_turn_where_its_maker_has_died(cloud, monkeypatch):
    hold_provider.prepare([hold_provider.TURN_CLASS])
    monkeypatch.setattr(hold_turn, "_missing", hold_turn.MissingTurn())
    assert store.write(Holds(), [hold(A)]).answer is Answer.FAILED
    monkeypatch.setattr(hold_turn, "LEFT_AFTER", 0)
    assert store.write(Holds(), [hold(A)]).answer is Answer.DONE


def test_of_two_that_find_that_the_maker_of_the_turn_has_died_one_makes_it(cloud, monkeypatch):
    hold_provider.prepare([hold_provider.TURN_CLASS])
    monkeypatch.setattr(hold_turn, "LEFT_AFTER", 0)
    prepared = hold_provider.prepare([hold_provider.TURN_CLASS])
    found = [hold_turn.MissingTurn().is_mine(prepared) for _ in range(2)]
    assert found == [True, False]


@pytest.mark.parametrize("fate", ["lost", "made"])
def test_a_write_whose_answer_is_lost_is_made_once(calls, fate):
    holds = write(hold(A))
    calls.fates = [fate]
    assert store.write(holds, [hold(A, "n2"), hold(B)]).answer is Answer.DONE
    found = store.read()
    assert found.held == {A: hold(A, "n2"), B: hold(B)}
    # The network may carry it once more.
    late = report.report_client_singleton().post("/allocations", calls.bodies[-1], version="1.36")
    assert late.status_code == 409
    assert store.read() == found


def test_a_write_without_any_answer_is_fenced_by_the_next_one(calls):
    holds = write(hold(A))
    calls.fates = ["lost"] * 99
    assert store.write(holds, [hold(B)]).answer is Answer.UNKNOWN
    late, calls.fates = calls.bodies[-1], []
    assert store.write(store.read(), ()).answer is Answer.DONE
    answer = report.report_client_singleton().post("/allocations", late, version="1.36")
    assert answer.status_code == 409
    assert store.read().held == {A: hold(A)}


def test_a_lost_answer_is_not_taken_for_that_of_another_one(calls, monkeypatch):
    holds = write(hold(A))
    calls.fates = ["lost"]
    before_step(monkeypatch, hold_transaction, "_pause", lambda: store.write(holds, [hold(C)]))
    assert store.write(holds, [hold(B)]).answer is Answer.CONSUMER_CHANGED
    assert store.read().held == {A: hold(A), C: hold(C)}


@pytest.mark.parametrize("others", [(), (C,)])
def test_a_lost_removal_is_not_taken_for_that_of_another_one(calls, monkeypatch, others):
    """Both remove A: that it is gone does not show whose turn it was."""
    holds = write(hold(A), hold(B))
    calls.fates = ["lost"]
    new = [hold(one) for one in others]
    before_step(monkeypatch, hold_transaction, "_pause", lambda: store.write(holds, new, [A]))
    assert store.write(holds, (), [A]).answer is Answer.CONSUMER_CHANGED
    assert store.read().held.keys() == {B, *others}


def test_what_has_ended_is_no_hold_and_goes_with_the_next_write(cloud, now):
    write(hold(A), hold(B, until=NOW + 10), hold(C, until=NOW + 10))
    now[0] += 11
    holds = store.read()
    assert (list(holds.held), len(holds.ended)) == ([A], 2)
    assert store.write(holds, [hold(C, "n2")]).answer is Answer.DONE
    assert hold_rows.count() == (2, 2)


def test_what_a_clock_that_is_years_ahead_has_held_is_no_hold(cloud):
    assert write(hold(A, until=NOW + 90_000), hold(B, until=NOW + 10**7)).held.keys() == {A}
    assert len(write(hold(C)).consumers) == 2


def test_what_has_ended_is_removed_at_once_and_nothing_else(calls, now):
    write(hold(A), hold(B, until=NOW + 10), hold(C, until=NOW + 10))
    now[0] += 11
    assert calls.count(expire) == (2, ["GET", "POST"])
    assert hold_rows.count() == (1, 1)
    assert expire() == 0


def test_what_is_no_hold_keeps_all_that_it_has(cloud, now):
    """A removal takes what the consumer has on other providers, too."""
    provider_rows.write(
        [provider_rows.Provider(uuidsentinel.host, inventories={"VCPU": {"total": 8}})]
    )
    write(hold(A, until=NOW + 10))
    client = report.report_client_singleton()
    resources = {uuidsentinel.host: {"VCPU": 4}, hold_provider.UUID: {"CUSTOM_HPC_SCHED_VCPU": 1}}
    body = {
        "allocations": {uuid: {"resources": held} for uuid, held in resources.items()},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
    }
    assert client.put(f"/allocations/{B}", body, version="1.28").status_code == 204
    now[0] += 11
    holds = store.read()
    assert (len(holds.held), len(holds.ended)) == (0, 1)
    assert store.write(holds, [hold(C)]).answer is Answer.DONE
    assert client.get(f"/allocations/{B}", version="1.28").json()["allocations"].keys() == {
        uuidsentinel.host,
        hold_provider.UUID,
    }
    provider_rows.release([B])
    provider_rows.remove([uuidsentinel.host])


def test_an_end_is_not_the_end_of_a_hold_that_was_renewed_meanwhile(cloud, now, monkeypatch):
    holds = write(hold(A, until=NOW + 10))
    now[0] += 11
    before_step(
        monkeypatch,
        hold_transaction.allocations,
        "write",
        lambda: store.write(holds, [hold(A, "n2")]),
    )
    assert expire() == 0
    assert store.read().held == {A: hold(A, "n2")}


def test_a_worker_looks_for_ends_only_where_something_is_held(calls, now, monkeypatch):
    monotonic = [0.0]
    monkeypatch.setattr(clock.current, "monotonic", lambda: monotonic[0])
    monkeypatch.setattr(hold_ends._thread, "start", lambda: None)
    store.read()
    assert hold_ends._interval() == 0
    write(hold(A, until=NOW + 10))
    assert hold_ends._interval() == hold_ends.INTERVAL
    now[0] += 11
    # Not at once: a request has just looked.
    assert calls.count(hold_ends.look)[1] == []
    monotonic[0] += hold_ends.INTERVAL
    assert calls.count(hold_ends.look)[1] == ["GET", "POST"]
    assert hold_rows.count() == (0, 0)
    assert calls.count(hold_ends.look)[1] == ["GET"]
    assert hold_ends._interval() == 0


def test_a_release_is_made_whatever_others_write_at_the_same_moment(cloud, monkeypatch):
    write(hold(A), hold(B))
    for number in range(3):
        before_step(
            monkeypatch,
            hold_transaction.allocations,
            "write",
            lambda number=number: store.write(store.read(), [hold(C, f"n{number}")]),
        )
    assert store.release([A]).answer is Answer.DONE
    assert store.read().held.keys() == {B, C}


def test_what_placement_does_not_answer_is_not_known_and_nothing_is_raised_by_a_write(calls):
    holds = write(hold(A))
    calls.is_broken = True
    with pytest.raises(exceptions.UnansweredError):
        store.read()
    assert store.write(holds, [hold(B)]).answer in (Answer.FAILED, Answer.UNKNOWN)
    assert store.write(Holds(), [hold(B)]).answer is Answer.FAILED
    assert store.release([A]).answer is Answer.FAILED
    hold_ends.look()
    calls.is_broken = False
    faults.start_afresh()
    assert store.read() == holds


def test_more_is_held_than_any_host_has(cloud):
    largest = 2**31 - 1
    held = [hold(getattr(uuidsentinel, f"i{i}"), amounts={"VCPU": largest}) for i in range(5)]
    assert write(*held).taken_by_others(()) == {"n1": {"VCPU": 5 * largest}}


def test_a_class_whose_name_is_as_long_as_a_name_may_be_is_held(calls):
    longest = f"CUSTOM_{'X' * 248}"
    assert calls.count(lambda: cloud_class(longest))[1] == ["PUT"]
    assert write(hold(A, amounts={longest: 3})).taken_by_others(()) == {"n1": {longest: 3}}
    assert calls.count(store.read)[1] == ["GET", "GET"]


def test_a_record_that_a_dead_placement_has_left_is_no_obstacle(cloud, monkeypatch):
    hold_provider.prepare([hold_provider.TURN_CLASS])
    monkeypatch.setattr(
        allocation_handler, "create_allocation_list", lambda *_: sys.exit("the process is killed")
    )
    body: Any = {"allocations": {}, "project_id": "p", "user_id": "u", "consumer_generation": None}
    with contextlib.suppress(BaseException):
        report.report_client_singleton().post(
            "/allocations", {hold_provider.TURN: body}, version="1.36"
        )
    monkeypatch.undo()
    assert hold_rows.records() == {hold_provider.TURN}
    monkeypatch.setattr(hold_turn, "LEFT_AFTER", 0)
    until = int(clock.current.unix_time()) + 300  # the clock is this machine's again
    assert store.write(store.read(), [hold(A, until=until)]).answer is Answer.DONE
    assert A in store.read().held


def test_no_server_is_offered_what_holds_are_made_of(cloud):
    """Nor is there a tree of providers, which Placement would look for in all its answers."""
    host = provider_rows.Provider(
        uuidsentinel.host, inventories={"VCPU": {"total": 64}, "CUSTOM_GPU": {"total": 8}}
    )
    provider_rows.write([host])
    url = "/allocation_candidates?resources=VCPU:1,CUSTOM_GPU:1"
    before = cloud.placement.get(url, version="1.36").body
    write(hold(A), hold(B))
    assert cloud.placement.get(url, version="1.36").body == before
    assert before["provider_summaries"].keys() == {uuidsentinel.host}
    everything = cloud.placement.get("/resource_providers", version="1.36").body
    own = {one["uuid"]: one for one in everything["resource_providers"]}[hold_provider.UUID]
    assert (own["name"], own["parent_provider_uuid"]) == ("hpc_sched holds", None)
    provider_rows.remove([uuidsentinel.host])


def test_the_audit_of_placement_removes_no_hold(cloud, capsys):
    """It looks at consumers of Nova's resource classes alone."""
    holds = write(hold(A), hold(B))
    assert manage.PlacementCommands().audit(verbose=True, delete=True) == 0
    assert store.read() == holds
    print(capsys.readouterr().out)
