"""The thread that follows requests, when something fails that should not."""

from unittest import mock

from hpc_sched.nova_glue.request import claim_followup
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
