"""Which hosts the other weighers of nova.conf put behind all others, on real HostStates."""

import nova.conf
import pytest
from nova import objects
from nova.scheduler import weights
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.nova_glue.read.room import shunned_hosts
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.pods import states_of
from tests.functional.states import FILTERS, States, ours, queue_of, schedule, spec

CONF = nova.conf.CONF

NOVAS = "nova.scheduler.weights.all_weighers"
HOP_BYTE = "hpc_sched.weighers.hop_byte.HopByteWeigher"
FAILED = "failed builds (BuildFailureWeigher)"

pytestmark = pytest.mark.usefixtures("two_pods")


class SiteWeigher(weights.BaseHostWeigher):
    """A site's own weigher, which keeps VMs off the first host."""

    def weight_multiplier(self, host_state):
        return 3e6

    def _weigh_object(self, host_state, weight_properties):
        return 0 if host_state.host == "n01" else 7


class WholeWeigher(SiteWeigher):
    """The same of all hosts at once, within bounds."""

    minval, maxval = 0.0, 10.0

    def weigh_objects(self, weighed_obj_list, weight_properties):
        return [self._weigh_object(host.obj, weight_properties) for host in weighed_obj_list]


class SilentWeigher(SiteWeigher):
    def weigh_objects(self, weighed_obj_list, weight_properties):
        return []


class BrokenWeigher(SiteWeigher):
    def _weigh_object(self, host_state, weight_properties):
        raise LookupError("no such rack")


class UnbuiltWeigher(SiteWeigher):
    def __init__(self):
        raise LookupError("no credentials")


@pytest.fixture(autouse=True)
def enabled(two_pods):
    """Return how to enable weighers of this module with those of the sample."""

    def enable(*classes: type) -> None:
        own = [f"{cls.__module__}.{cls.__qualname__}" for cls in classes]
        CONF.set_override("weight_classes", [NOVAS, HOP_BYTE, *own], "filter_scheduler")

    enable()
    CONF.set_override("build_failure_weight_multiplier", 1000000.0, "filter_scheduler")
    yield enable
    CONF.clear_override("build_failure_weight_multiplier", "filter_scheduler")
    CONF.clear_override("ram_weight_multiplier", "filter_scheduler")
    shunned_hosts._failed.clear()


def found(states: States, request: objects.RequestSpec | None = None) -> dict[str, list[str]]:
    answer = shunned_hosts.find(states, request or spec())
    return {
        why: [state.host for state, is_shunned in zip(states, mask, strict=True) if is_shunned]
        for why, mask in answer.items()
    }


def in_aggregate(states: States, **metadata: str) -> None:
    aggregate = objects.Aggregate(id=1, metadata=metadata)
    for state in states:
        state.aggregates = [aggregate]


def test_hosts_with_failed_builds_are_shunned_however_many_have_failed_elsewhere():
    states = states_of("pod1")
    states[2].failed_builds, states[5].failed_builds = 1, 40
    assert found(states) == {FAILED: ["n03", "n06"]}


def test_no_host_is_shunned_where_all_have_failed_alike():
    assert found(states_of("leaf1", failed_builds=2)) == {}
    assert found(states_of("leaf1")[:1]) == {}


def test_a_weigher_below_those_of_hpc_sched_shuns_no_host():
    states = states_of("leaf1")
    states[0].failed_builds = 1
    for multiplier in (0.0, 99000.0):
        CONF.set_override("build_failure_weight_multiplier", multiplier, "filter_scheduler")
        assert found(states) == {}


def test_without_a_weigher_of_hpc_sched_there_is_nothing_to_outvote():
    CONF.set_override("weight_classes", [NOVAS], "filter_scheduler")
    states = states_of("leaf1")
    states[0].failed_builds = 1
    assert found(states) == {}


def test_an_aggregate_may_give_a_weigher_its_weight_or_take_it():
    states = states_of("leaf1", "leaf2", failed_builds=0)
    states[0].failed_builds = states[4].failed_builds = 1
    in_aggregate(states[:4], build_failure_weight_multiplier="0")
    assert found(states) == {FAILED: ["n05"]}
    states = states_of("leaf1", "leaf2")
    in_aggregate(states[:4], ram_weight_multiplier="1000000")
    assert found(states) == {"RAMWeigher": ["n05", "n06", "n07", "n08"]}


def test_a_move_between_cells_shuns_the_other_cells():
    states = states_of("leaf1")
    for state in states[2:]:
        state.cell_uuid = uuids.cell2
    request = spec()
    request.requested_destination = objects.Destination(
        cell=objects.CellMapping(uuid=uuids.cell1), allow_cross_cell_move=True
    )
    assert found(states, request) == {"another cell (CrossCellWeigher)": ["n03", "n04"]}
    request.requested_destination.allow_cross_cell_move = False
    assert found(states, request) == {}


@pytest.mark.parametrize("cls", [SiteWeigher, WholeWeigher])
def test_a_sites_own_weigher_shuns_hosts_too(enabled, cls):
    enabled(cls)
    assert found(states_of("leaf1")) == {cls.__name__: ["n01"]}


def test_a_weigher_that_does_not_apply_shuns_no_host(enabled):
    enabled(SilentWeigher)
    assert found(states_of("leaf1")) == {}


@pytest.mark.parametrize("cls", [BrokenWeigher, UnbuiltWeigher])
def test_a_weigher_that_fails_is_left_out_with_one_warning(enabled, cls, caplog):
    enabled(cls)
    states = states_of("leaf1")
    states[0].failed_builds = 1
    assert [found(states), found(states)] == [{FAILED: ["n01"]}] * 2
    [said] = [text for text in ours(caplog) if cls.__name__ in text]
    assert "LookupError: no " in said


def test_a_weigher_that_cannot_be_imported_is_left_out_with_one_warning(caplog):
    """Nova's scheduler does not start with it; it may be edited while the scheduler runs."""
    CONF.set_override("weight_classes", [HOP_BYTE, "no.such.Weigher"], "filter_scheduler")
    assert found(states_of("leaf1")) == {}
    assert len([text for text in ours(caplog) if "no.such.Weigher" in text]) == 1


@pytest.mark.parametrize("policy", ["anti-affinity", "soft-anti-affinity", "soft-affinity"])
def test_a_group_is_placed_without_them_vm_by_vm(group, policy, caplog):
    """One host of each leaf of pod1 has failed: the leaves of pod2 hold the group."""
    caplog.set_level("INFO", "hpc_sched")
    states = states_of()
    for host in ("n01", "n05", "n09", "n13", "n17"):
        states[int(host[1:]) - 1].failed_builds = 1
    queue = queue_of(4)
    group(queue=queue, left=4)
    request = spec(count=4, uuid=queue[0], group_policy=policy)
    placed, _ = schedule(states, request, queue, HopByteWeigher(), [made() for made in FILTERS])
    [line] = [text for text in ours(caplog) if "planned 4" in text]
    assert f"; hosts shunned: 5 for {FAILED}; " in line
    leaves = {(int(host[1:]) - 1) // 4 for host in placed}
    assert len(leaves) == 1
    assert leaves < {5, 6, 7}
