"""The thread that follows requests, when something fails that should not."""

import threading
from types import SimpleNamespace
from unittest import mock

from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.claim import claim_conflict, claim_followup
from hpc_sched.nova_glue.session import PlacementSession
from tests.protocol.world import World, watched


def test_a_request_is_looked_at_again_after_a_failure(begin, caplog):
    with watched(World(begin())) as world:
        world.do("hosts 1 1 1 1")
        world.do("group g")
        world.do("create a1 s1 group=g")
        world.do("claim a")
        world.do("step a")
        # Nova places it elsewhere: what was claimed first is left.
        world.do("step a lost")
        world.do("run a")
        with mock.patch.object(claim_followup, "_is_done", side_effect=RuntimeError("a bug")):
            world.do("look s1")
            world.do("look s1")
        assert caplog.text.count("The claims of a request cannot be followed") == 1
        world.do("end")
        assert "  Placement: a1 h4 (3)" in world.lines


def test_a_request_that_is_over_stays_over_when_another_thread_begins_one():
    sessions = [PlacementSession() for _ in range(3)]
    claims = SimpleNamespace(is_over=False)
    sessions[0].served = SimpleNamespace(claims=claims)
    served_requests._end_before(sessions[0])
    other = threading.Thread(target=served_requests._end_before, args=(sessions[1],))
    other.start()
    other.join()
    assert not claims.is_over
    served_requests._end_before(sessions[2])
    assert claims.is_over


def test_after_a_failure_of_the_plugin_nothing_late_comes_between_novas_calls(begin, caplog):
    with watched(World(begin())) as world:
        for command in ("hosts 2 2 2 2", "group g", "create a1,a2 s1 group=g", "claim a"):
            world.do(command)
        world.do("step a late")
        world.do("claim a")
        with mock.patch.object(claim_conflict, "resolve", side_effect=RuntimeError("a bug")):
            world.do("claim a")
            world.do("step a")
            world.do("step a")
        while getattr(world.actors["a"].waits_for, "method", "") != "PUT":
            world.do("step a")
        world.do("deliver t1")
        world.do("run a")
        world.do("end")
    assert "a bug" in caplog.text
    assert "  a is over: a1 h3, a2 h3" in world.lines
