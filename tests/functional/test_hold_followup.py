"""How often the holds of moves that are over are removed."""

import weakref

import pytest

from hpc_sched import clock
from hpc_sched.nova_glue.claim import hold_followup
from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.io.allocations import Answer, Written


class Claims:
    """Those of a request that has ended."""


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the monotonic time, to be changed; the request of a move has ended."""
    found = [1000.0]
    ended = hold_followup._Followed(weakref.ref(Claims()), "a", found[0])
    monkeypatch.setattr(clock.current, "monotonic", lambda: found[0])
    monkeypatch.setattr(hold_followup, "_followed", [ended])
    monkeypatch.setattr(hold_followup, "_look_at", 0.0)
    return found


def test_a_placement_that_fails_is_not_asked_at_each_look(monkeypatch, now):
    answers, asked = [Answer.FAILED, Answer.CONSUMER_CHANGED, Answer.DONE], list[float]()

    def release(_: object) -> Written:
        asked.append(now[0])
        return Written(answers.pop(0))

    monkeypatch.setattr(store, "release", release)
    for _ in range(50):
        hold_followup.look()
        now[0] += hold_followup.INTERVAL
    assert [round(at, 1) for at in asked] == [1000.0, 1003.0, 1006.0]
    assert not hold_followup._followed
