"""The store of holds on a Placement in memory; ``functional/test_holds.py`` has all of it."""

from collections.abc import Iterator

import nova.conf
import pytest
from oslo_utils.fixture import uuidsentinel

from hpc_sched import conf
from hpc_sched.nova_glue.claim.holds import store
from hpc_sched.nova_glue.io.allocations import Answer
from hpc_sched.nova_glue.read.hold import Hold, Holds
from tests.protocol.direct import DirectAdapter, connected
from tests.protocol.placement_model import PlacementModel, Provider
from tests.turned_clock import TurnedClock

pytestmark = pytest.mark.usefixtures("turned_clock")

A, B = uuidsentinel.a, uuidsentinel.b
# An hour after the turned clock begins.
LATE = int(TurnedClock().unix_time()) + 3600


def hold(instance: str, node: str = "n1") -> Hold:
    return Hold(instance, node, {"VCPU": 16}, LATE)


@pytest.fixture
def adapter() -> Iterator[DirectAdapter]:
    conf.register_opts(nova.conf.CONF)
    hosts = {name: Provider(name, {"VCPU": 16}) for name in ("n1", "n2")}
    with connected(PlacementModel(hosts)) as adapter:
        yield adapter


def test_what_is_held_is_read_in_one_call_and_takes_nothing_of_a_host(adapter):
    assert store.read() == Holds()
    assert store.write(store.read(), [hold(A), hold(B)]).answer is Answer.DONE
    adapter.calls.clear()
    holds = store.read()
    assert holds.held == {A: hold(A), B: hold(B)}
    assert holds.taken_by_others([B]) == {"n1": {"VCPU": 16}}
    assert len(adapter.calls) == 1
    assert adapter.placement.used("n1", "VCPU") == 0


def test_a_write_by_what_was_read_before_others_have_written_is_refused(adapter):
    first = store.read()
    assert store.write(first, [hold(A)]).answer is Answer.DONE
    assert store.write(first, [hold(B)]).answer is Answer.CONSUMER_CHANGED
    second = store.read()
    assert store.write(second, [hold(A, "n2")]).answer is Answer.DONE
    assert store.write(second, [hold(B)]).answer is Answer.CONSUMER_CHANGED
    assert store.read().held == {A: hold(A, "n2")}


@pytest.mark.parametrize("fate", ["lost", "made", "conflict"])
def test_a_write_that_has_no_answer_or_meets_a_conflict_is_made_once(adapter, fate):
    assert store.write(store.read(), [hold(A)]).answer is Answer.DONE
    adapter.fates = [fate]
    assert store.write(store.read(), [hold(B)], [A]).answer is Answer.DONE
    assert store.read().held == {B: hold(B)}
    assert store.release([A, B]).answer is Answer.DONE
    assert store.read().held == {}
