"""Which VMs are members of a group, and which may be in flight and are looked up in Placement."""

from collections import Counter
from collections.abc import Collection, Sequence

import pytest

from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import (
    group_members,
    in_flight_instances,
    member_records,
    request_instances,
)
from hpc_sched.nova_glue.read.instances.group_members import GroupMembership
from hpc_sched.nova_glue.read.instances.in_flight_instances import LookupResult
from hpc_sched.nova_glue.read.instances.member_records import ApiMember, CellMember
from tests.functional.states import spec

pytestmark = pytest.mark.usefixtures("two_pods")


def read(
    look_up: group_members.LookUp = lambda *_: LookupResult({}), count: int = 1
) -> GroupMembership:
    """Return what is read for a request of some VMs, of which ``own`` is the first."""
    request = request_spec.from_spec(spec(count=count, uuid="own"), ["leaf"])
    assert request is not None
    return group_members.read(request, (), look_up)


def looked_up(monkeypatch: pytest.MonkeyPatch, uuids: Sequence[str], count: int) -> set[str]:
    """Return what is looked up for a new request.

    :param uuids: VMs with build requests, oldest first; ``own`` is the first of the request
    :param count: VMs of the request
    """
    found: set[str] = set()

    def look_up(
        _context: object, consumers: Collection[str], _states: object, _changing: Collection[str]
    ) -> LookupResult:
        found.update(consumers)
        return LookupResult({})

    members = [ApiMember(uuid, None, number) for number, uuid in enumerate(uuids, start=1)]
    monkeypatch.setattr(member_records, "api_members", lambda *_: members)
    monkeypatch.setattr(member_records, "cell_members", lambda *_: databases.CellAnswers())
    monkeypatch.setattr(request_instances, "in_launch_order", lambda _, uuids: uuids)
    assert not read(look_up, count).problems
    return found


@pytest.mark.parametrize(
    ("uuids", "expected"),
    [
        pytest.param(["own", "a", "b"], set(), id="the request's own hold nothing yet"),
        pytest.param(["x", "own", "a", "b"], {"x"}, id="older ones are another request's"),
        pytest.param(
            ["x", "own", "a", "b", "y"], {"x", "a", "b", "y"}, id="one of three younger ones too"
        ),
    ],
)
def test_vms_that_may_be_of_another_request_are_looked_up(
    monkeypatch, uuids: list[str], expected: set[str]
):
    assert looked_up(monkeypatch, uuids, count=3) == expected


def test_members_that_leave_a_dead_host_hold_the_one_that_moves_where_they_are_claimed(monkeypatch):
    """``b`` is claimed on a host that is down as well: it follows the one that moves."""
    members = [ApiMember(uuid, 1, None) for uuid in ("a", "b", "own")]
    leaving = [CellMember(uuid, "n01", "n01", False, True, is_moving=True) for uuid in ("a", "b")]
    claimed = {"a": ("n05", "n05"), "b": ("n06", "n06")}
    monkeypatch.setattr(member_records, "api_members", lambda *_: members)
    monkeypatch.setattr(member_records, "cell_members", lambda *_: databases.CellAnswers(leaving))
    monkeypatch.setattr(in_flight_instances, "places_of", lambda *_: LookupResult(claimed))
    monkeypatch.setattr(
        member_records, "down_hosts", lambda *_, **__: databases.CellAnswers(["n06"])
    )
    found = read()
    assert found.is_move
    assert found.members == Counter({("n05", "n05"): 1})
    assert found.queue == ("b", "own")
    assert found.leaving == Counter({("n01", "n01"): 1})


def test_a_vm_alone_in_its_cell_moves_with_the_others_of_its_group(monkeypatch):
    """All are shelved: the others follow the one that is unshelved."""
    cells = {"own": 1, "a": 2, "b": 2}

    def in_cells(_: object, uuids_by_cell: dict[int, list[str]]) -> databases.CellAnswers:
        uuids = [uuid for uuids in uuids_by_cell.values() for uuid in uuids]
        return databases.CellAnswers(
            [CellMember(uuid, None, None, False, is_shelved=True) for uuid in uuids]
        )

    members = [ApiMember(uuid, cell, None) for uuid, cell in cells.items()]
    monkeypatch.setattr(member_records, "api_members", lambda *_: members)
    monkeypatch.setattr(member_records, "cell_members", in_cells)
    found = read()
    assert (found.queue, found.moving) == (("a", "b", "own"), {"a", "b"})
    assert found.is_urgent
    members[1:] = []
    assert read().queue == ("own",)


def test_without_the_api_database_members_are_those_that_the_known_cells_have(monkeypatch):
    def fail(*_args: object) -> None:
        raise OSError("no route to host")

    there = [CellMember("a", "n05", "n05", False)]
    monkeypatch.setattr(member_records, "api_members", fail)
    monkeypatch.setattr(member_records, "in_known_cells", lambda *_: databases.CellAnswers(there))
    found = read()
    assert found.is_partial
    assert found.members == Counter({("n05", "n05"): 1})
    assert "no route to host" in found.problems[0]


@pytest.mark.parametrize(
    ("created", "in_flight", "expected"),
    [
        (["2026-01-02", "2026-01-01"], {}, ("n01", "n01")),
        (["2026-01-01", "2026-01-02"], {}, ("n02", "n02")),
        # Within a second: in the order in which they were written.
        (["2026-01-01", "2026-01-01"], {}, ("n02", "n02")),
        (["2026-01-02", "2026-01-01"], {"x": ("n05", "n05")}, ("n05", "n05")),
        (["2026-01-02"], {"x": ("n05", None), "y": ("n06", None)}, ("n06", None)),
        ([], {}, None),
    ],
)
def test_the_youngest_member_is_the_last_in_flight_or_the_last_created(
    monkeypatch, created: list[str], in_flight: dict, expected: tuple[str, str | None] | None
):
    hosts = [f"n{number:02}" for number in range(1, len(created) + 1)]
    there = [
        CellMember(host, host, host, False, created=(time, number))
        for number, (host, time) in enumerate(zip(hosts, created, strict=True))
    ]
    members = [ApiMember(uuid, None, number) for number, uuid in enumerate(("x", "y", "own"), 1)]
    members += [ApiMember(host, 1, None) for host in hosts]
    monkeypatch.setattr(member_records, "api_members", lambda *_: members)
    monkeypatch.setattr(member_records, "cell_members", lambda *_: databases.CellAnswers(there))
    monkeypatch.setattr(request_instances, "in_launch_order", lambda _, uuids: uuids)
    assert read(lambda *_: LookupResult(in_flight)).youngest == expected
