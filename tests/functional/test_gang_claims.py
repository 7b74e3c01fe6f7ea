"""Gang claims on Nova's services: quiet, with places taken meanwhile, with faults at each step."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import nova.conf
import pytest
from keystoneauth1 import exceptions as ksa_exceptions
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report
from nova.scheduler.filters import compute_filter
from oslo_utils import uuidutils

from hpc_sched import exceptions
from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.claim import claim_followup, gang_claiming
from hpc_sched.nova_glue.claim.transaction import gang_claim
from hpc_sched.nova_glue.io import allocations
from tests.functional import faults
from tests.functional.cloud_kinds import FOUR_BY_EIGHT
from tests.functional.clouds import four_by_eight, leaves_used
from tests.functional.faults import wait_until
from tests.functional.placement_state import held
from tests.functional.shared_clouds import cloud_mark
from tests.functional.tested_cloud import TestedCloud
from tests.turned_clock import StandingClock, installed

CONF = nova.conf.CONF

LEAVES = four_by_eight()
HOSTS = [host for hosts in LEAVES.values() for host in hosts]


# That nothing is allocated after the servers' deletion is checked with the shared cloud.
pytestmark = cloud_mark(FOUR_BY_EIGHT)


@pytest.fixture
def cloud(shared_cloud: TestedCloud) -> TestedCloud:
    shared_cloud.flavor("node", vcpus=16, memory_mb=1024)
    shared_cloud.flavor("half", vcpus=8, memory_mb=1024)
    shared_cloud.flavor("leaf", vcpus=16, memory_mb=1024, extra_specs={"hpc:require": "leaf"})
    return shared_cloud


@pytest.fixture
def sent(monkeypatch) -> list[tuple[int, str]]:
    """Return the transactions that are sent, as numbers of consumers and answers."""
    found = []
    real = allocations.write

    def write(owner, consumers):
        written = real(owner, consumers)
        found.append((len(consumers), written.answer.value))
        return written

    monkeypatch.setattr(allocations, "write", write)
    return found


def expect_exact(cloud: NovaCloud, hosts: dict[str, str]) -> None:
    """Check that each server has one allocation, on its host, and nothing else has any."""
    wait_until(lambda: not claim_followup._followed)
    assert held(cloud) == {server: [host] for server, host in hosts.items()}


@contextmanager
def before_post(monkeypatch, action: Callable[[int], object]) -> Iterator[None]:
    """Call a function with the number of the transaction before each is sent."""
    real, number = report.SchedulerReportClient.post, iter(range(1000))

    def post(self, url, data, **kwargs):
        if url == "/allocations":
            action(next(number))
        return real(self, url, data, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(report.SchedulerReportClient, "post", post)
        yield


def take(cloud: NovaCloud, host: str, vcpus: int = 16, consumer: str | None = None) -> str:
    """Claim a host as another scheduler does; return the consumer."""
    found = cloud.placement.get(f"/resource_providers?name={host}", version="1.14").body
    uuid = found["resource_providers"][0]["uuid"]
    consumer = consumer or uuidutils.generate_uuid()
    answer = cloud.placement.put(
        f"/allocations/{consumer}",
        version="1.28",
        body={
            "allocations": {uuid: {"resources": {"VCPU": vcpus, "MEMORY_MB": 64}}},
            "project_id": "other",
            "user_id": "other",
            "consumer_generation": None,
        },
    )
    assert answer.status == 204, answer.body
    return consumer


@pytest.fixture
def others(cloud: NovaCloud) -> Iterator[Callable[..., str]]:
    """Return :func:`take`, undone at the end."""
    consumers: list[str] = []

    def take_(*args) -> str:
        consumers.append(take(cloud, *args))
        return consumers[-1]

    yield take_
    for consumer in consumers:
        cloud.placement.delete(f"/allocations/{consumer}", version="1.28")


@pytest.mark.default
def test_a_group_is_claimed_in_one_transaction_before_its_first_vm(cloud, boot, sent):
    group = cloud.server_group("quiet", "anti-affinity")
    hosts = cloud.hosts_of(boot("node", count=6, group=group))
    assert sent == [(6, "done")]
    assert list(leaves_used(LEAVES, hosts.values()).values()) == [6]
    expect_exact(cloud, hosts)
    # Nothing is removed from a request that went well.
    assert sent == [(6, "done")]


@pytest.mark.parametrize(
    "fault", [faults.api_database_gone_for_us, faults.api_database_hangs_for_us]
)
def test_without_the_api_database_a_whole_group_is_claimed_too(cloud, boot, sent, fault):
    groups = [cloud.server_group(f"whole {number}", "anti-affinity") for number in range(2)]
    with fault():
        found = [cloud.hosts_of(boot("leaf", count=5, group=group)) for group in groups]
        grown = cloud.wait(boot("leaf", group=groups[0]))
    assert sent == [(5, "done"), (5, "done")]
    for hosts in found:
        assert list(leaves_used(LEAVES, hosts.values()).values()) == [5]
    # It alone does not prove where the others are.
    assert {server["status"] for server in grown.values()} == {"ERROR"}
    expect_exact(cloud, found[0] | found[1])


def test_several_vms_on_a_host_and_a_single_vm_are_claimed(cloud, boot, sent):
    group = cloud.server_group("packed", "soft-affinity")
    hosts = cloud.hosts_of(boot("half", count=6, group=group))
    assert sorted(Counter(hosts.values()).values()) == [2, 2, 2]
    hosts |= cloud.hosts_of(boot("half", group=group))
    assert sent == [(6, "done"), (1, "done")]
    expect_exact(cloud, hosts)


def test_a_multi_create_without_a_server_group_is_claimed(cloud, boot, sent):
    flavor = cloud.flavor("classed", vcpus=16, extra_specs={"hpc:app_class": "sync"})
    hosts = cloud.hosts_of(boot(flavor, count=8))
    assert sent == [(8, "done")]
    assert list(leaves_used(LEAVES, hosts.values()).values()) == [8]
    expect_exact(cloud, hosts)


def test_places_taken_meanwhile_are_planned_around(cloud, boot, sent, monkeypatch, others):
    # Another scheduler takes a host of whatever is planned first.
    def steal(number):
        if number == 0:
            for leaf in ("leaf1", "leaf2", "leaf3"):
                others(LEAVES[leaf][0])

    group = cloud.server_group("late", "anti-affinity")
    with before_post(monkeypatch, steal):
        hosts = cloud.hosts_of(boot("leaf", count=8, group=group))
    assert leaves_used(LEAVES, hosts.values()) == {"leaf4": 8}
    assert sent[-1] == (8, "done")
    assert {answer for _, answer in sent[:-1]} <= {"no room"}


@pytest.mark.parametrize("wish", ["node", "leaf"])
def test_after_a_bounded_number_of_plans_nova_claims_vm_by_vm(
    cloud, boot, sent, monkeypatch, others, wish
):
    """Others take a host of each plan just before it is claimed."""
    real = report.SchedulerReportClient.post
    names = {found["uuid"]: found["name"] for found in cloud._get_all_providers()}

    def post(self, url, data, **kwargs):
        if url == "/allocations":
            [provider] = next(iter(data.values()))["allocations"]
            others(names[provider])
        return real(self, url, data, **kwargs)

    group = cloud.server_group(f"bounded {wish}", "anti-affinity")
    with monkeypatch.context() as patch:
        patch.setattr(report.SchedulerReportClient, "post", post)
        patch.setattr(gang_claiming, "MAX_PLANS", 3)
        hosts = cloud.hosts_of(boot(wish, count=2, group=group))
    assert sent == [(2, "no room")] * 3
    assert len(leaves_used(LEAVES, hosts.values())) == 1
    wait_until(lambda: not claim_followup._followed)
    found = held(cloud)
    assert {uuid: found[uuid] for uuid in hosts} == {u: [host] for u, host in hosts.items()}


def test_a_group_without_room_any_more_is_refused_with_the_true_reason(
    cloud, boot, sent, monkeypatch, others
):
    def steal(number):
        if number == 0:
            for hosts in LEAVES.values():
                others(hosts[0])

    group = cloud.server_group("none", "anti-affinity")
    with before_post(monkeypatch, steal):
        servers = boot("leaf", count=8, group=group)
        shown = cloud.wait(servers)
    assert {server["status"] for server in shown.values()} == {"ERROR"}
    fault = cloud.api.get_server(servers[0])["fault"]["message"]
    assert "needs one leaf: largest gang that fits under one leaf: 7" in fault
    assert all(answer == "no room" for _, answer in sent)
    assert len(held(cloud)) == 4


@pytest.mark.parametrize("gang_claims", [True, False])
def test_a_group_takes_other_processors_where_the_preferred_ones_are_taken_meanwhile(
    cloud, boot, sent, monkeypatch, others, gang_claims
):
    """Eight hosts are of the better type; another scheduler takes one of them after the plan."""
    metadata = {"hpc:processor": "new"}
    aggregate = cloud.api.post_aggregate({"aggregate": {"name": "new"}})["id"]
    for host in LEAVES["leaf2"]:
        cloud.api.add_host_to_aggregate(aggregate, host)
    cloud.api.post_aggregate_action(aggregate, {"set_metadata": {"metadata": metadata}})
    CONF.set_override("processor_order", ["new"], "hpc_sched")
    CONF.set_override("gang_claims", gang_claims, "hpc_sched")
    real = scheduler_utils.claim_resources
    taken = []

    def steal(*_args):
        if not taken:
            taken.append(others(LEAVES["leaf2"][5]))

    def claim(*args, **kwargs):
        steal()
        return real(*args, **kwargs)

    group = cloud.server_group("two types", "anti-affinity")
    try:
        with monkeypatch.context() as patch, before_post(monkeypatch, steal):
            patch.setattr(scheduler_utils, "claim_resources", claim)
            hosts = cloud.hosts_of(boot("node", count=8, group=group))
    finally:
        CONF.clear_override("gang_claims", "hpc_sched")
        CONF.clear_override("processor_order", "hpc_sched")
        for host in LEAVES["leaf2"]:
            cloud.api.api_post(
                f"/os-aggregates/{aggregate}/action", {"remove_host": {"host": host}}
            )
        cloud.api.delete_aggregate(aggregate)
    assert len(set(hosts.values())) == 8
    assert LEAVES["leaf2"][5] not in hosts.values()
    if gang_claims:
        # Planned again as a whole.
        assert len(leaves_used(LEAVES, hosts.values())) == 1


@pytest.mark.default
@pytest.mark.parametrize("is_made", [True, False], ids=["made", "not made"])
def test_a_lost_answer_is_read_back(cloud, boot, sent, monkeypatch, caplog, is_made):
    real = report.SchedulerReportClient.post

    def post(self, url, data, **kwargs):
        if url != "/allocations":
            return real(self, url, data, **kwargs)
        if is_made:
            real(self, url, data, **kwargs)
        raise ksa_exceptions.ConnectFailure("reset by peer")

    group = cloud.server_group("lost", "anti-affinity")
    with monkeypatch.context() as patch:
        patch.setattr(report.SchedulerReportClient, "post", post)
        patch.setattr(claim_followup, "LATE", 0.5)
        patch.setattr(gang_claim, "UNKNOWN_RETRIES", 2)
        hosts = cloud.hosts_of(boot("node", count=4, group=group))
        assert len(hosts) == 4
        expect_exact(cloud, hosts)
    logged = [one for one in caplog.messages if "is not claimed at once" in one]
    assert len(logged) == (0 if is_made else 1)


def test_a_transaction_that_comes_late_is_refused(cloud, boot, sent, monkeypatch):
    """The answer is lost, and it comes when Nova claims the first VM: another one was made."""
    real_post, real_claim = report.SchedulerReportClient.post, scheduler_utils.claim_resources
    late = []

    def post(self, url, data, **kwargs):
        if url == "/allocations" and not late:
            late.append(lambda: real_post(self, url, data, **kwargs))
            raise ksa_exceptions.ConnectTimeout("no answer")
        return real_post(self, url, data, **kwargs)

    def claim(*args, **kwargs):
        if len(late) == 1:
            late.append(late[0]())
            assert late[1].status_code == 409
        return real_claim(*args, **kwargs)

    group = cloud.server_group("too late", "anti-affinity")
    with monkeypatch.context() as patch:
        patch.setattr(report.SchedulerReportClient, "post", post)
        patch.setattr(scheduler_utils, "claim_resources", claim)
        patch.setattr(claim_followup, "LATE", 0.5)
        hosts = cloud.hosts_of(boot("node", count=4, group=group))
        assert len(late) == 2
        assert len(hosts) == 4
        expect_exact(cloud, hosts)


def test_a_request_that_dies_at_a_later_vm_holds_nothing(cloud, boot, sent, monkeypatch):
    """Nova's filters leave no host for the third VM: it cleans up the first two, we the rest."""
    seen = set()

    def passes(self, state, spec):
        seen.add(spec.instance_uuid)
        return len(seen) < 3

    group = cloud.server_group("dies", "anti-affinity")
    # At once: no time passes after which ended requests would be searched for.
    with monkeypatch.context() as patch, installed(StandingClock()):
        patch.setattr(compute_filter.ComputeFilter, "host_passes", passes)
        patch.setattr(compute_filter.ComputeFilter, "run_filter_once_per_request", False)
        shown = cloud.wait(boot("node", count=6, group=group))
        assert {server["status"] for server in shown.values()} == {"ERROR"}
        wait_until(lambda: not claim_followup._followed)
    assert held(cloud) == {}
    assert sent == [(6, "done"), (4, "done")]


def test_a_release_that_placement_does_not_answer_is_repeated(cloud, boot, sent, monkeypatch):
    real = report.SchedulerReportClient.post
    seen, lost = set(), []

    def passes(self, state, spec):
        seen.add(spec.instance_uuid)
        return len(seen) < 3

    def post(self, url, data, **kwargs):
        is_release = not all(consumer["allocations"] for consumer in data.values())
        if url == "/allocations" and is_release and len(lost) < 6:
            lost.append(len(data))
            raise ksa_exceptions.ConnectFailure("reset by peer")
        return real(self, url, data, **kwargs)

    group = cloud.server_group("unanswered", "anti-affinity")
    with monkeypatch.context() as patch:
        patch.setattr(report.SchedulerReportClient, "post", post)
        patch.setattr(compute_filter.ComputeFilter, "host_passes", passes)
        patch.setattr(compute_filter.ComputeFilter, "run_filter_once_per_request", False)
        cloud.wait(boot("node", count=6, group=group))
        wait_until(lambda: not claim_followup._followed)
    # All four together each time.
    assert lost == [4] * 6
    assert held(cloud) == {}


@contextmanager
def forgotten_tracebacks() -> Iterator[None]:
    """Have pytest keep the texts of tracebacks, not all their frames until the test ends."""

    def forget(record: logging.LogRecord) -> bool:
        if record.exc_info:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        # The exception itself may be among these.
        record.msg, record.args = record.getMessage(), None
        return True

    keeping = [one for one in logging.getLogger().handlers if hasattr(one, "records")]
    assert keeping
    for handler in keeping:
        handler.addFilter(forget)
    yield
    for handler in keeping:
        handler.removeFilter(forget)


def test_a_request_that_ends_with_an_exception_releases_what_nova_has_not_claimed(
    cloud, boot, sent, monkeypatch
):
    claimed = []
    real = scheduler_utils.claim_resources

    def claim(ctx, client, spec, uuid, *args, **kwargs):
        if len(claimed) == 2:
            raise ksa_exceptions.ConnectTimeout("no answer")
        claimed.append(uuid)
        return real(ctx, client, spec, uuid, *args, **kwargs)

    # A cycle that is not young any more is found by a search of all objects, which is due.
    monkeypatch.setattr(claim_followup, "_all_at", -claim_followup.ALL_EVERY)
    group = cloud.server_group("exception", "anti-affinity")
    clock = StandingClock()
    with installed(clock):
        with monkeypatch.context() as patch, forgotten_tracebacks():
            patch.setattr(scheduler_utils, "claim_resources", claim)
            shown = cloud.wait(boot("node", count=6, group=group))
        assert {server["status"] for server in shown.values()} == {"ERROR"}
        clock.now += claim_followup.ALL_AFTER
        wait_until(lambda: not claim_followup._followed)
    # As in stock Nova, what it has claimed itself stays until the servers are deleted.
    assert held(cloud).keys() == set(claimed)


def test_a_conductor_that_waits_no_longer_leaves_only_what_deletions_remove(
    cloud, boot, sent, monkeypatch
):
    """The scheduler goes on for servers that are in error: Nova holds what it claims, as ever."""
    is_reached, is_noticed = threading.Event(), threading.Event()
    claimed = []
    real = scheduler_utils.claim_resources

    def claim(ctx, client, spec, uuid, *args, **kwargs):
        if len(claimed) == 2:
            is_reached.set()
            assert is_noticed.wait(60)
        claimed.append(uuid)
        return real(ctx, client, spec, uuid, *args, **kwargs)

    group = cloud.server_group("timeout", "anti-affinity")
    with monkeypatch.context() as patch:
        patch.setattr(scheduler_utils, "claim_resources", claim)
        # On a busy machine the scheduler needs more than one to claim the group.
        CONF.set_override("long_rpc_timeout", 3)
        try:
            shown = cloud.wait(boot("node", count=6, group=group))
            assert is_reached.wait(60)
        finally:
            CONF.clear_override("long_rpc_timeout")
            is_noticed.set()
        assert {server["status"] for server in shown.values()} == {"ERROR"}
        wait_until(lambda: not claim_followup._followed)
    assert sorted(held(cloud)) == sorted(claimed) == sorted(shown)
    assert sent == [(6, "done")]


@pytest.mark.parametrize(
    ("count", "number", "attempts", "refuse_alternates"),
    [
        pytest.param(6, 2, 3, False, id="the second one"),
        pytest.param(6, 6, 3, False, id="the last one"),
        pytest.param(6, 6, 3, True, id="the last one, and its alternates are refused"),
        pytest.param(6, 6, 1, False, id="the last one, without alternates"),
        pytest.param(1, 1, 3, False, id="a single one"),
    ],
)
def test_a_vm_that_nova_places_elsewhere_has_one_allocation(
    cloud, boot, sent, monkeypatch, count, number, attempts, refuse_alternates
):
    """Nova's claims on the claimed host of a VM fail: it takes the next one.

    Not one that is claimed for another VM of the group, where its claim would fail.
    """
    real = scheduler_utils.claim_resources
    first = {}
    tried = []

    def claim(ctx, client, spec, uuid, alloc_req, **kwargs):
        [provider] = alloc_req["allocations"]
        first.setdefault(uuid, provider)
        tried.append(provider)
        if len(first) == number and first[uuid] == provider:
            refused.append(provider)
            return False
        return real(ctx, client, spec, uuid, alloc_req, **kwargs)

    refused: list[str] = []
    keep = HPCGroupFilter.keep

    def keep_unless_refused(self, session, call):
        if refuse_alternates and len(tried) > count:
            raise exceptions.RefusedError("no alternates")
        return keep(self, session, call)

    group = cloud.server_group("elsewhere", "anti-affinity")
    CONF.set_override("max_attempts", attempts, "scheduler")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(scheduler_utils, "claim_resources", claim)
            patch.setattr(HPCGroupFilter, "keep", keep_unless_refused)
            hosts = cloud.hosts_of(boot("node", count=count, group=group))
    finally:
        CONF.clear_override("max_attempts", "scheduler")
    assert len(refused) == 1
    assert len(set(hosts.values())) == count
    # As many as VMs, and what was refused; alternates are not claimed.
    assert len(set(tried)) == len(tried) == count + 1
    expect_exact(cloud, hosts)


def remove_claimed_host(patch, number: int) -> list[str]:
    """Have a filter of Nova's remove the claimed host of the VM of this number, from 1.

    Returns the list that will hold it.
    """
    removed: list[str] = []
    seen: list[str] = []

    def passes(self, state, spec):
        if spec.instance_uuid not in seen:
            seen.append(spec.instance_uuid)
        claims = claim_followup._followed
        if not removed and len(seen) == number and claims:
            place = claims[-1].gang.places.get(spec.instance_uuid)
            if place is not None:
                states = claims[-1].claims.group.inputs.states
                removed.append(states[place.position].host)
        return state.host not in removed

    patch.setattr(compute_filter.ComputeFilter, "host_passes", passes)
    patch.setattr(compute_filter.ComputeFilter, "run_filter_once_per_request", False)
    return removed


@pytest.mark.parametrize("position", [0, 2, 5], ids=["first", "third", "last"])
def test_a_claimed_host_that_a_filter_removes_later_is_replaced(
    cloud, boot, sent, monkeypatch, position
):
    """A filter of Nova's passes every host for the plan, then one of them no more."""
    group = cloud.server_group("removed", "anti-affinity")
    with monkeypatch.context() as patch:
        removed = remove_claimed_host(patch, position + 1)
        hosts = cloud.hosts_of(boot("node", count=6, group=group))
    assert len(set(hosts.values())) == 6
    # The first filter run of a request comes before its claim.
    assert bool(removed) == (position > 0)
    assert not set(removed) & set(hosts.values())
    expect_exact(cloud, hosts)


def test_a_last_vm_whose_host_is_gone_takes_the_only_one_left(
    cloud, boot, sent, monkeypatch, others
):
    """Nova calls no weigher for one host, and nothing of hpc_sched after its claim."""
    for name in ("leaf2", "leaf3", "leaf4"):
        others(LEAVES[name][0])
        others(LEAVES[name][1])
    group = cloud.server_group("spare", "anti-affinity")
    with monkeypatch.context() as patch:
        removed = remove_claimed_host(patch, 7)
        hosts = cloud.hosts_of(boot("leaf", count=7, group=group))
    assert removed
    assert not set(removed) & set(hosts.values())
    assert leaves_used(LEAVES, hosts.values()) == {"leaf1": 7}
    wait_until(lambda: not claim_followup._followed)
    found = held(cloud)
    assert {uuid: found.get(uuid) for uuid in hosts} == {u: [h] for u, h in hosts.items()}


@pytest.mark.parametrize(
    ("section", "option", "value"),
    [
        ("filter_scheduler", "host_subset_size", 2),
        ("filter_scheduler", "shuffle_best_same_weighed_hosts", True),
        ("hpc_sched", "hop_byte_weight_multiplier", 0.0),
        ("hpc_sched", "gang_claims", False),
    ],
)
def test_nothing_is_claimed_where_nova_may_choose_other_hosts(
    cloud, boot, sent, section, option, value
):
    CONF.set_override(option, value, section)
    try:
        group = cloud.server_group("unsafe", "anti-affinity")
        hosts = cloud.hosts_of(boot("node", count=6, group=group))
    finally:
        CONF.clear_override(option, section)
    assert len(hosts) == 6
    assert sent == []
    expect_exact(cloud, hosts)


def test_an_aggregate_that_ignores_the_topology_has_no_claims(cloud, boot, sent):
    metadata = {"hop_byte_weight_multiplier": "0"}
    aggregate = cloud.api.post_aggregate({"aggregate": {"name": "flat"}})["id"]
    cloud.api.add_host_to_aggregate(aggregate, HOSTS[0])
    cloud.api.post_aggregate_action(aggregate, {"set_metadata": {"metadata": metadata}})
    try:
        hosts = cloud.hosts_of(boot("node", group=cloud.server_group("flat", "anti-affinity")))
    finally:
        cloud.api.api_post(
            f"/os-aggregates/{aggregate}/action", {"remove_host": {"host": HOSTS[0]}}
        )
        cloud.api.delete_aggregate(aggregate)
    assert len(hosts) == 1
    assert sent == []


def test_a_claimed_host_wins_against_every_weigher(cloud, boot, sent, monkeypatch):
    """BuildFailureWeigher puts a claimed host behind all others after the plan was made."""
    weighers = cloud.scheduler.manager.host_manager.weighers
    [failures] = [one for one in weighers if type(one).__name__ == "BuildFailureWeigher"]
    CONF.set_override("build_failure_weight_multiplier", 1e6, "filter_scheduler")

    def weigh(state, spec):
        claims = claim_followup._followed
        claimed = {place.position for one in claims for place in one.gang.places.values()}
        found = [one.claims.group.inputs.states[i] for one in claims for i in claimed]
        return float(any(one is state for one in found))

    group = cloud.server_group("pushed", "anti-affinity")
    with monkeypatch.context() as patch:
        patch.setattr(failures, "_weigh_object", weigh)
        try:
            hosts = cloud.hosts_of(boot("node", count=6, group=group))
        finally:
            CONF.clear_override("build_failure_weight_multiplier", "filter_scheduler")
    assert list(leaves_used(LEAVES, hosts.values()).values()) == [6]
    assert sent == [(6, "done")]
    expect_exact(cloud, hosts)


def test_a_consumer_that_others_have_changed_is_left_alone(cloud, boot, sent, monkeypatch):
    """A VM of the group gets an allocation from elsewhere before the claim: Nova adds to it."""
    foreign = {}

    def interfere(number):
        if not foreign:
            gang = claim_followup._followed[-1]
            spec = gang.spec()
            foreign[spec.instance_uuid] = take(cloud, HOSTS[-1], 1, spec.instance_uuid)

    group = cloud.server_group("consumer", "anti-affinity")
    with before_post(monkeypatch, interfere):
        hosts = cloud.hosts_of(boot("node", count=2, group=group))
    assert sent == [(2, "consumer changed")]
    wait_until(lambda: not claim_followup._followed)
    [changed] = foreign
    found = held(cloud)
    assert {uuid: set(on) for uuid, on in found.items()} == {
        uuid: {host} | ({HOSTS[-1]} if uuid == changed else set()) for uuid, host in hosts.items()
    }
