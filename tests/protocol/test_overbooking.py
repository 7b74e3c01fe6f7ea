"""Hosts that hold too much after claims at the same moment: what is recorded, and what is read."""

import json
from collections import Counter

import nova.conf
import pytest

from hpc_sched.core.room.resource_request import RequestGroup, ResourceRequest
from hpc_sched.nova_glue.claim import overbooking
from hpc_sched.nova_glue.io import placement
from hpc_sched.nova_glue.io.placement import ProviderStocks, Stock
from hpc_sched.nova_glue.read.room import compared_hosts
from hpc_sched.nova_glue.read.room.host_rooms import HostRooms
from hpc_sched.nova_glue.read.room.providers.nova_query import NovaQuery
from tests.functional import states
from tests.protocol.test_transcripts import TRANSCRIPTS
from tests.protocol.world import World, watched

CONF = nova.conf.CONF
OVERBOOKED = [path for path in TRANSCRIPTS if path.stem.startswith("overbooked")]


@pytest.mark.parametrize("path", OVERBOOKED, ids=lambda path: path.stem)
def test_the_record_of_a_request_has_the_hosts_that_its_vms_get(begin, path, tmp_path):
    log = tmp_path / "decisions"
    CONF.set_override("decision_log", str(log), "hpc_sched")
    try:
        with watched(World(begin())) as world:
            for line in path.read_text().splitlines():
                if line.startswith("> "):
                    world.do(line.removeprefix("> "))
    finally:
        CONF.clear_override("decision_log", "hpc_sched")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    recorded = {
        one["instance"]: one.get("plan", {}).get("hosts")
        for one in records
        if one["decision"] != "landed"
    }
    for request in (one for one in world.requests.values() if not one.is_move):
        landed = dict(Counter(vm.host for vm in request.vms if vm.host))
        assert recorded[request.vms[0].uuid] == (landed or None)


@pytest.mark.parametrize(("seconds", "looks"), [(0.2, 0), (0.3, 1)])
def test_others_that_come_during_a_claim_are_looked_for_if_that_takes_long(
    begin, monkeypatch, seconds, looks
):
    monkeypatch.setattr(overbooking, "SHORT", 0.25)
    with watched(World(begin())) as world:
        for command in ("hosts 2 2 2 2", "group g", "create a1,a2 s1 group=g", "claim a"):
            world.do(command)
        world.do("step a begun")
        world.do("create b1 s2 group=g")
        world.do(f"time {seconds}")
        del world.lines[:]
        world.do("step a")
        world.do("claim a")
        assert sum("GET usages" in line for line in world.lines) == looks
        world.do("end")


@pytest.fixture
def stocks(monkeypatch) -> dict[str, dict[str, Stock]]:
    """Return what Placement has of each provider."""
    found: dict[str, dict[str, Stock]] = {}

    def read(uuids, seconds=None):
        return ProviderStocks({uuid: found[uuid] for uuid in uuids})

    monkeypatch.setattr(placement, "read_providers", read)
    compared_hosts.forget_all()
    return found


def test_a_look_after_a_claim_is_not_a_comparison_with_what_nova_compute_reports(stocks):
    """What nova-compute reports lacks the claim, by which it may look right."""
    host = states.host_state("h1", vcpus_total=8, vcpus_used=0)
    host.allocation_candidates = [
        {"allocations": {host.uuid: {"resources": {"VCPU": 2}}}, "mappings": {"": [host.uuid]}}
    ]
    rooms = HostRooms([host], NovaQuery((ResourceRequest((RequestGroup("", {"VCPU": 2}),)),)), None)
    held = host.allocation_candidates[:1]
    rooms.hold(lambda: held)
    stocks[host.uuid] = {"VCPU": Stock(8, 2)}
    assert rooms.overbooked([0], 1.0) == {}
    assert compared_hosts.find(host) is None
    assert rooms.left.tolist() == [4]
    stocks[host.uuid] = {"VCPU": Stock(8, 11)}
    assert rooms.overbooked([0], 1.0) == {0: {(host.uuid, "VCPU"): 3}}
    assert rooms.left.tolist() == [0]
    # Others have moved: the room is that of now.
    stocks[host.uuid] = {"VCPU": Stock(8, 2)}
    assert rooms.overbooked([0], 1.0) == {}
    assert rooms.left.tolist() == [4]
