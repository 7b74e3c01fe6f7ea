"""``hpc:segment``, ``hpc:segment_level`` and ``hpc:balance`` from the flavor to the hosts.

Fabric and flavors of :mod:`tests.functional.test_wishes`: three leaves a pod, four hosts each, of
which lb, lc and ld have three with room for a VM. Moves are in
:mod:`tests.functional.test_moves_and_segments`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import nova.conf
import pytest
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from hpc_sched.demo.nova_cloud import NovaCloud
from hpc_sched.filters.group import HPCGroupFilter
from hpc_sched.nova_glue.claim import claim_conditions
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.cloud_kinds import PODS
from tests.functional.pods import FABRIC as EIGHT_LEAVES
from tests.functional.pods import names, states_of
from tests.functional.shared_clouds import cloud_mark
from tests.functional.states import (
    as_hints,
    claims_succeed,
    known,
    offered,
    ours,
    place,
    queue_of,
    read_decisions,
    run,
    spec,
    weigh,
    why_refused,
    wishing,
)
from tests.functional.test_gang_claims import before_post, others, sent
from tests.functional.test_wishes import FABRIC, cloud, fault_of, flavor, pods

__all__ = ["cloud", "flavor", "others", "sent"]

CONF = nova.conf.CONF

through_nova = cloud_mark(PODS)
MORE = pytest.mark.nightly("planner", "other requests of the kinds that the rest has")
on_host_states = pytest.mark.usefixtures("two_pods")


def ranks(cloud: NovaCloud, *requests: Sequence[str]) -> list[str]:
    """Return the hosts of the VMs of some requests, those of each by their launch index."""
    found = []
    for servers in requests:
        shown = cloud.wait(servers).values()
        assert {server["status"] for server in shown} == {"ACTIVE"}
        in_order = sorted(shown, key=lambda server: server["OS-EXT-SRV-ATTR:launch_index"])
        found += [server["OS-EXT-SRV-ATTR:hypervisor_hostname"] for server in in_order]
    return found


def vms_by_leaf(hosts: Iterable[str]) -> Counter[str]:
    return Counter(map(FABRIC.leaf_of, hosts))


def sizes(hosts: Iterable[str]) -> list[int]:
    """Return the numbers of VMs of the used leaves, largest first."""
    return sorted(vms_by_leaf(hosts).values(), reverse=True)


def parts_in_order(hosts: Sequence[str], size: int) -> list[str]:
    """Return the leaf of each part by the ranks of VMs, each part below one leaf."""
    parts = [hosts[begin : begin + size] for begin in range(0, len(hosts), size)]
    found = []
    for part in parts:
        [leaf] = {FABRIC.leaf_of(host) for host in part}
        found.append(leaf)
    return found


# Requests of several VMs


@through_nova
@pytest.mark.parametrize(
    ("segment", "count", "leaves"),
    [
        pytest.param(4, 8, [4, 4], id="two parts that fill a leaf each"),
        pytest.param(3, 12, [3, 3, 3, 3], id="parts smaller than leaves", marks=MORE),
        pytest.param(2, 8, [4, 4], id="two parts a leaf", marks=MORE),
        pytest.param(3, 8, [3, 3, 2], id="a smaller part that is the last one"),
        pytest.param(4, 10, [4, 4, 2], id="a smaller last part on a leaf of its own", marks=MORE),
        pytest.param(4, 3, [3], id="the last part alone", marks=MORE),
    ],
)
def test_each_part_of_a_group_is_below_one_leaf_and_its_vms_follow_each_other(
    cloud, boot, flavor, segment, count, leaves
):
    group = cloud.server_group("parts", "anti-affinity")
    hosts = ranks(cloud, boot(flavor(segment=str(segment)), count=count, group=group))
    assert len(set(hosts)) == count
    assert sizes(hosts) == leaves
    parts_in_order(hosts, segment)


@through_nova
def test_parts_of_a_group_with_several_vms_on_a_host_are_below_one_leaf_each(cloud, boot):
    half = cloud.flavor("half-segments", vcpus=8, extra_specs={"hpc:segment": "6"})
    group = cloud.server_group("several on a host", "soft-affinity")
    hosts = ranks(cloud, boot(half, count=15, group=group))
    assert sizes(hosts) == [6, 6, 3]
    parts_in_order(hosts, 6)


@MORE
@through_nova
def test_a_group_without_a_server_group_is_in_parts_too(cloud, boot, flavor):
    hosts = ranks(cloud, boot(flavor(segment="4", app_class="sync"), count=8))
    assert sizes(hosts) == [4, 4]
    parts_in_order(hosts, 4)


@through_nova
@pytest.mark.parametrize(
    ("constraints", "count", "needs"),
    [
        pytest.param({"segment": "5"}, 5, "parts of 5 under one leaf switch each", id="segment"),
        pytest.param(
            {"segment": "4"}, 16, "parts of 4 under one leaf switch each: largest", id="count"
        ),
        pytest.param(
            {"segment": "11", "segment_level": "pod"},
            22,
            "parts of 11 under one pod each",
            id="a level",
        ),
        pytest.param(
            {"segment": "3", "require": "pod"},
            11,
            "one pod and parts of 3 under one leaf switch each",
            id="under one switch",
        ),
    ],
)
def test_a_group_whose_parts_do_not_fit_is_refused_with_what_it_needs(
    cloud, boot, flavor, constraints, count, needs
):
    group = cloud.server_group("refused", "anti-affinity")
    message = fault_of(cloud, boot(flavor(**constraints), count=count, group=group))
    assert f"group of {count} needs {needs}" in message


@through_nova
def test_the_refusal_says_how_many_would_fit_in_parts(cloud, boot, flavor):
    # la, le and lf hold a part of 4, and one of the others the last part.
    group = cloud.server_group("sixteen", "anti-affinity")
    message = fault_of(cloud, boot(flavor(segment="4"), count=16, group=group))
    assert message.endswith("largest gang that fits: 15")
    servers = boot(flavor(segment="4"), count=15, group=group)
    assert sizes(ranks(cloud, servers)) == [4, 4, 4, 3]


@through_nova
def test_a_preferred_segment_gives_way_where_the_group_does_not_fit_with_it(cloud, boot, flavor):
    group = cloud.server_group("prefers", "anti-affinity")
    hosts = ranks(cloud, boot(flavor(segment="prefer:5"), count=5, group=group))
    assert len(set(hosts)) == 5
    group = cloud.server_group("prefers and gets", "anti-affinity")
    hosts = ranks(cloud, boot(flavor(segment="prefer:3"), count=9, group=group))
    assert sizes(hosts) == [3, 3, 3]
    parts_in_order(hosts, 3)


# Balance


@through_nova
def test_a_balanced_group_is_spread_evenly_over_the_leaves_that_it_uses(cloud, boot, flavor):
    nearest = cloud.server_group("nearest", "anti-affinity")
    servers = boot(flavor(), count=6, group=nearest)
    assert sizes(ranks(cloud, servers)) == [4, 2]
    cloud.remove(servers)
    group = cloud.server_group("even", "anti-affinity")
    assert sizes(ranks(cloud, boot(flavor(balance="true"), count=6, group=group))) == [3, 3]


@through_nova
@pytest.mark.parametrize(
    ("choice", "leaves"), [("true", None), ("prefer", [4, 4, 1])], ids=["refused", "placed anyway"]
)
def test_a_group_that_cannot_be_balanced_is_refused_unless_it_only_prefers_that(
    cloud, boot, flavor, choice, leaves
):
    for host in ("ld1", "ld2"):
        boot(flavor(), host=host)
    group = cloud.server_group("uneven", "anti-affinity")
    with cloud.only(FABRIC.hosts_of("pod2")):
        # One host of ld is free: there fit 9 VMs, 4 and 4 and 1.
        servers = boot(flavor(balance=choice, require="pod"), count=9, group=group)
    if leaves is not None:
        assert sizes(ranks(cloud, servers)) == leaves
        return
    assert (
        "group of 9 needs one pod and as many VMs, or one more, under each leaf switch that it "
        "uses: largest gang that fits under one pod: 8"
    ) in fault_of(cloud, servers)


@MORE
@through_nova
def test_a_balanced_group_in_parts_has_as_many_parts_below_each_leaf(cloud, boot, flavor):
    group = cloud.server_group("even parts", "anti-affinity")
    constraints = flavor(segment="2", balance="true", require="pod")
    hosts = ranks(cloud, boot(constraints, count=6, group=group))
    # 2 and 1 parts differ by 1.
    assert sizes(hosts) in ([4, 2], [2, 2, 2])
    parts_in_order(hosts, 2)


# Levels


@through_nova
def test_parts_below_switches_of_a_level_are_spread_over_its_leaves(cloud, boot, flavor):
    group = cloud.server_group("below pods", "anti-affinity")
    constraints = flavor(segment="8", segment_level="pod")
    hosts = ranks(cloud, boot(constraints, count=16, group=group))
    assert [len(pods(hosts[:8])), len(pods(hosts[8:])), len(pods(hosts))] == [1, 1, 2]


@MORE
@through_nova
def test_a_group_is_balanced_over_the_switches_of_a_level(cloud, boot, flavor):
    group = cloud.server_group("even pods", "anti-affinity")
    constraints = flavor(balance="true", segment_level="pod")
    hosts = ranks(cloud, boot(constraints, count=12, group=group))
    assert Counter(FABRIC.ancestors(host)[1] for host in hosts) == {"pod1": 6, "pod2": 6}


@MORE
@through_nova
def test_a_level_that_the_fabric_does_not_have_is_refused(cloud, boot, flavor):
    group = cloud.server_group("rows", "anti-affinity")
    message = fault_of(cloud, boot(flavor(segment="2", segment_level="row"), count=4, group=group))
    assert "hpc:segment_level='row': expected one of the levels leaf, pod, core" in message


# Several requests


@through_nova
@pytest.mark.parametrize(
    "counts",
    [
        pytest.param([1] * 8, id="one by one", marks=MORE),
        pytest.param([2, 3, 3], id="several at a time"),
        pytest.param([4, 4], id="part by part", marks=MORE),
    ],
)
@pytest.mark.parametrize(
    "policy", ["anti-affinity", pytest.param("soft-anti-affinity", marks=MORE)]
)
def test_requests_of_a_group_that_states_its_size_keep_its_parts(
    cloud, boot, flavor, counts, policy
):
    group = cloud.server_group("parts by size", policy)
    constraints = flavor(segment="4", group_size="8")
    requests = [boot(constraints, count=count, group=group) for count in counts]
    hosts = ranks(cloud, *requests)
    assert len(set(hosts)) == 8
    assert sizes(hosts) == [4, 4]
    parts_in_order(hosts, 4)


@MORE
@through_nova
def test_a_group_is_balanced_at_its_final_size_though_it_comes_one_by_one(cloud, boot, flavor):
    group = cloud.server_group("even one by one", "anti-affinity")
    constraints = flavor(balance="true", group_size="6")
    hosts = ranks(cloud, *[boot(constraints, group=group) for _ in range(6)])
    assert sizes(hosts) == [3, 3]


@MORE
@through_nova
def test_full_parts_that_come_one_after_the_other_need_no_size(cloud, boot, flavor):
    group = cloud.server_group("part by part", "anti-affinity")
    hosts = ranks(cloud, *[boot(flavor(segment="3"), count=3, group=group) for _ in range(3)])
    assert sizes(hosts) == [3, 3, 3]
    parts_in_order(hosts, 3)


@MORE
@through_nova
def test_a_group_whose_last_part_cannot_be_completed_takes_another_full_part_alone(
    cloud, boot, flavor
):
    """Three VMs fill lb, lc or ld, where no fourth one fits."""
    group = cloud.server_group("no second last part", "anti-affinity")
    first = ranks(cloud, boot(flavor(segment="4"), count=3, group=group))
    assert vms_by_leaf(first).keys() <= {"lb", "lc", "ld"}
    message = fault_of(cloud, boot(flavor(segment="4"), count=2, group=group))
    assert "2 more of a group with 3 members needs parts of 4 under one leaf switch" in message
    more = ranks(cloud, boot(flavor(segment="4"), count=4, group=group))
    assert sizes(more) == [4]


@through_nova
@pytest.mark.parametrize(
    "constraints",
    [{}, pytest.param({"group_size": "8"}, marks=MORE)],
    ids=["no size", "its size"],
)
def test_a_vm_that_replaces_a_deleted_one_completes_its_part(cloud, boot, flavor, constraints):
    group = cloud.server_group("replaced", "anti-affinity")
    kind = flavor(segment="4", **constraints)
    servers = boot(kind, count=8, group=group)
    before = cloud.hosts_of(servers)
    for gone in (servers[1], servers[6]):
        cloud.remove([gone])
        [host] = cloud.hosts_of(boot(kind, group=group)).values()
        assert FABRIC.leaf_of(host) == FABRIC.leaf_of(before[gone])


@MORE
@through_nova
def test_two_vms_that_replace_deleted_ones_of_two_parts_complete_both(cloud, boot, flavor):
    group = cloud.server_group("two replaced", "anti-affinity")
    kind = flavor(segment="4", group_size="8")
    servers = boot(kind, count=8, group=group)
    before = cloud.hosts_of(servers)
    first = servers[0]
    leaf = FABRIC.leaf_of(before[first])
    other = next(vm for vm in servers if FABRIC.leaf_of(before[vm]) != leaf)
    cloud.remove([first, other])
    left = [before[vm] for vm in servers if vm not in (first, other)]
    now = [*cloud.hosts_of(boot(kind, count=2, group=group)).values()]
    assert sizes([*left, *now]) == [4, 4]


@through_nova
@pytest.mark.parametrize(
    "counts", [(3, 5), *(pytest.param(one, marks=MORE) for one in ((4, 4), (1,) * 8))], ids=str
)
def test_requests_at_the_same_moment_keep_the_parts_of_their_group(cloud, boot, flavor, counts):
    group = cloud.server_group("at once", "anti-affinity")
    kind = flavor(segment="4", group_size="8")
    with ThreadPoolExecutor(len(counts)) as threads:
        requests = list(threads.map(lambda count: boot(kind, count=count, group=group), counts))
    hosts = ranks(cloud, *requests)
    assert len(set(hosts)) == 8
    assert sizes(hosts) == [4, 4]


@through_nova
@pytest.mark.parametrize(
    "policy", ["anti-affinity", pytest.param("soft-anti-affinity", marks=MORE)]
)
def test_a_second_request_that_is_claimed_before_the_first_keeps_the_parts_with_it(
    cloud, boot, flavor, monkeypatch, policy
):
    group = cloud.server_group("overtaken", policy)
    kind = flavor(segment="4")
    real, second = claim_conditions.obstacle, list[list[str]]()

    def obstacle() -> str | None:
        # The first request has planned, and waits for no other of its group yet.
        if not second:
            second.append([])
            with ThreadPoolExecutor(1) as threads:
                second[0] += threads.submit(boot, kind, count=4, group=group).result()
        return real()

    monkeypatch.setattr(claim_conditions, "obstacle", obstacle)
    first = boot(kind, count=4, group=group)
    assert sizes(ranks(cloud, first, *second)) == [4, 4]


@through_nova
def test_places_taken_between_plan_and_claim_are_planned_around_in_parts(
    cloud, boot, flavor, monkeypatch, sent, others
):
    """Others take a host of both leaves that are planned, which three VMs would fill each."""
    taken = ["lb1", "lc1"]

    def steal(number: int) -> None:
        if number == 0:
            for host in taken:
                others(host)

    group = cloud.server_group("late", "anti-affinity")
    with before_post(monkeypatch, steal):
        hosts = ranks(cloud, boot(flavor(segment="3"), count=6, group=group))
    assert sent == [(6, "no room"), (6, "done")]
    assert not set(taken) & set(hosts)
    assert sizes(hosts) == [3, 3]
    parts_in_order(hosts, 3)


@through_nova
def test_a_group_whose_parts_do_not_fit_any_more_when_it_is_claimed_is_refused(
    cloud, boot, flavor, monkeypatch, sent, others
):
    def steal(number: int) -> None:
        if number == 0:
            for host in ("la1", "le1", "lf1"):
                others(host)

    group = cloud.server_group("late and refused", "anti-affinity")
    with before_post(monkeypatch, steal):
        message = fault_of(cloud, boot(flavor(segment="4"), count=8, group=group))
    assert "group of 8 needs parts of 4 under one leaf switch each" in message
    assert {answer for _, answer in sent} == {"no room"}


@through_nova
def test_without_gang_claims_a_group_is_in_parts_as_well(cloud, boot, flavor):
    cloud.flags(gang_claims=False, group="hpc_sched")
    group = cloud.server_group("vm by vm", "anti-affinity")
    hosts = ranks(cloud, boot(flavor(segment="3"), count=8, group=group))
    assert sizes(hosts) == [3, 3, 2]
    parts_in_order(hosts, 3)


# On HostStates: the fabric of tests.functional.pods, eight leaves of four hosts


@on_host_states
@pytest.mark.parametrize("losing", [(), (0,), (1,), (2,), (3,), (4, 5), (6, 7)], ids=str)
def test_vms_that_lose_their_host_to_others_keep_the_parts(group, losing):
    """Nova claims VM by VM, and others take the best host of some VMs just before."""
    queue = queue_of(8)
    group(left=8, queue=queue)
    request = spec(count=8, extra_specs=wishing(segment=3))
    kept, placed, lost = states_of(), [], []
    for number, uuid in enumerate(queue):
        request.instance_uuid = uuid
        kept = run(kept, request, HPCGroupFilter(), index=number)
        order = weigh(HopByteWeigher(), kept, request)
        if number in losing:
            lost.append(order[0])
        placed.append(place(kept, order, request, lose=lost))
    assert not set(lost) & set(placed)
    assert sorted(Counter(map(EIGHT_LEAVES.leaf_of, placed)).values()) == [2, 3, 3]
    if not losing:
        parts = [placed[:3], placed[3:6], placed[6:]]
        assert [len(set(map(EIGHT_LEAVES.leaf_of, part))) for part in parts] == [1, 1, 1]


@on_host_states
def test_a_later_vm_whose_part_has_no_host_left_is_refused_once_with_the_reason(
    group, caplog, tmp_path
):
    caplog.set_level("INFO", "hpc_sched")
    log = tmp_path / "decisions"
    CONF.set_override("decision_log", str(log), "hpc_sched")
    queue = queue_of(8)
    group(left=8, queue=queue)
    request = spec(count=8, uuid=queue[0], extra_specs=wishing(segment=4))
    states = run(states_of(), request, HPCGroupFilter())
    order = weigh(HopByteWeigher(), states, request)
    first = place(states, order, request)
    elsewhere = [
        one for one in states if EIGHT_LEAVES.leaf_of(one.host) != EIGHT_LEAVES.leaf_of(first)
    ]
    request.instance_uuid = queue[1]
    for _ in range(2):
        # It does not raise: a VM of the request is placed.
        assert run(elsewhere, request, HPCGroupFilter(), index=1) == []
    why = (
        "7 more of a group with 1 member needs parts of 4 under one leaf switch each: largest gang "
        "that fits beside its members: 4"
    )
    planned, refused = read_decisions(log)
    assert planned["decision"] == "planned"
    assert refused["decision"] == "refused"
    assert refused["reason"].startswith(why)
    assert len([line for line in ours(caplog) if f"refused: {why}" in line]) == 1


@on_host_states
def test_a_single_vm_that_completes_a_part_is_offered_its_leaf_alone(group, tmp_path):
    log = tmp_path / "decisions"
    CONF.set_override("decision_log", str(log), "hpc_sched")
    group({"n01": 1, "n05": 1, "n06": 1, "n07": 1}, left=1, queue=queue_of(1))
    request = spec(extra_specs=wishing(segment=3))
    # One VM more is no full part yet, wherever it is: the leaf of n01 has the last part.
    states = run(states_of(), request, HPCGroupFilter())
    assert {EIGHT_LEAVES.leaf_of(host) for host in names(states)} == {"leaf1"}
    weigh(HopByteWeigher(), states, request)
    [record] = read_decisions(log)
    assert record["removed"] == {
        "outside the required switch, the leaves allowed or the island": 28
    }


@on_host_states
def test_members_that_are_no_parts_refuse_a_guarantee_and_no_preference(group):
    group({"n01": 1, "n05": 1, "n09": 1}, left=1, queue=queue_of(1))
    told = why_refused(states_of(), spec(extra_specs=wishing(segment=3)))
    assert "1 more of a group with 3 members needs parts of 3 under one leaf switch" in told
    group({"n01": 1, "n05": 1, "n09": 1}, left=1, queue=queue_of(1))
    request = spec(extra_specs=wishing(segment="prefer:3"))
    assert len(run(states_of(), request, HPCGroupFilter())) == len(EIGHT_LEAVES.hosts)


@on_host_states
@pytest.mark.parametrize(
    ("constraints", "text"),
    [
        (
            {"segment": 4, "min_leaves": 2},
            "hpc:segment=4 and hpc:min_leaves=2 contradict each other",
        ),
        (
            {"segment": "prefer:4", "min_leaves": 2},
            "hpc:segment=prefer:4 and hpc:min_leaves=2 contradict each other",
        ),
        (
            {"balance": "true", "min_leaves": 2},
            "hpc:balance=true and hpc:min_leaves=2 contradict each other",
        ),
        (
            {"segment_level": "pod", "segment": 4, "max_leaves": 2},
            "hpc:segment_level=pod and hpc:max_leaves=2 contradict each other",
        ),
        (
            {"segment": 4, "objective": "isolated"},
            "hpc:segment and an objective other than hops contradict each other",
        ),
        (
            {"balance": "true", "objective": "bottleneck"},
            "hpc:balance and an objective other than hops contradict each other",
        ),
        ({"segment": 0}, "hpc:segment='0': expected N or prefer:N, N a whole"),
        ({"segment": "prefer:"}, "hpc:segment='prefer:': expected N or prefer:N, N a whole"),
        ({"balance": "even"}, "hpc:balance='even': expected one of true, prefer, false"),
        ({"segments": 2}, "unknown extra spec hpc:segments; did you mean hpc:segment?"),
    ],
    ids=str,
)
def test_constraints_that_exclude_parts_or_cannot_be_read_are_refused(group, constraints, text):
    group(left=2, queue=queue_of(2))
    assert text in why_refused(states_of(), spec(count=2, extra_specs=wishing(**constraints)))


@on_host_states
@pytest.mark.parametrize("objective", ["isolated", "bottleneck"])
def test_a_preferred_segment_gives_way_to_an_objective(group, objective):
    group(left=4, queue=queue_of(4))
    request = spec(count=4, extra_specs=wishing(segment="prefer:2", objective=objective))
    assert run(states_of(), request, HPCGroupFilter())


@on_host_states
def test_parts_that_a_hint_states_count_where_allowed_and_the_flavor_beats_it(group):
    group(left=5, queue=queue_of(5))
    hint = as_hints(segment=5)
    assert len(run(states_of(), spec(count=5, hints=hint), HPCGroupFilter())) == 32
    CONF.set_override("allow_user_hints", True, "hpc_sched")
    told = why_refused(states_of(), spec(count=5, hints=hint))
    assert "group of 5 needs parts of 5 under one leaf switch each" in told
    request = spec(count=5, hints=hint, extra_specs=wishing(segment=3))
    assert run(states_of(), request, HPCGroupFilter())


def any_host() -> objects.Destination:
    """Return the destination of a migration without a host."""
    return objects.Destination(cell=objects.CellMapping(uuid=uuids.cell1))


@on_host_states
@pytest.mark.parametrize(
    ("constraints", "members", "leaves"),
    [
        pytest.param(
            {"segment": 2}, {"n01": 1, "n05": 1, "n06": 1}, {"leaf1"}, id="back to its part"
        ),
        pytest.param(
            {"segment": 2, "group_size": 4},
            {"n01": 1, "n05": 1, "n06": 1},
            {"leaf1"},
            id="a group that states its size",
        ),
        pytest.param(
            {"segment": 4, "segment_level": "pod"},
            {"n01": 1, "n05": 1, "n09": 1, "n17": 1, "n21": 1, "n25": 1, "n29": 1},
            {"leaf1", "leaf2", "leaf3", "leaf4"},
            id="below its pod",
        ),
        pytest.param(
            {"balance": "true"},
            {"n01": 1, "n02": 1, "n05": 1},
            {"leaf2"},
            id="where the others are fewer",
        ),
    ],
)
def test_a_vm_that_moves_is_offered_the_switches_that_keep_the_parts(
    group, constraints, members, leaves
):
    group(members, left=1, is_move=True)
    kept = run(states_of(), spec(extra_specs=wishing(**constraints)), HPCGroupFilter())
    assert {EIGHT_LEAVES.leaf_of(host) for host in names(kept)} == leaves


@on_host_states
@pytest.mark.parametrize("relaxed", [False, True], ids=["guaranteed", "relaxed"])
def test_a_move_that_breaks_the_parts_is_refused_unless_moves_are_relaxed(group, relaxed):
    members = {"n01": 1, "n05": 1, "n06": 1}
    group(members, left=1, is_move=True)
    request = spec(extra_specs=wishing(segment=2))
    elsewhere = [one for one in states_of() if EIGHT_LEAVES.leaf_of(one.host) != "leaf1"]
    if relaxed:
        CONF.set_override("relax_moves", "always", "hpc_sched")
        request.requested_destination = any_host()
        assert run(elsewhere, request, HPCGroupFilter()) == elsewhere
        return
    told = why_refused(elsewhere, request)
    assert "1 more of a group with 3 members needs parts of 2 under one leaf switch each" in told


@on_host_states
def test_a_relaxed_move_prefers_the_leaf_that_keeps_the_parts(group):
    CONF.set_override("relax_moves", "always", "hpc_sched")
    members = {"n01": 1, "n05": 1, "n06": 1, "n07": 1}
    group(members, left=1, is_move=True)
    request = spec(extra_specs=wishing(segment=2))
    request.requested_destination = any_host()
    states = run(states_of(), request, HPCGroupFilter())
    best, *_ = weigh(HopByteWeigher(), states, request)
    assert EIGHT_LEAVES.leaf_of(best) in ("leaf1", "leaf2")


@on_host_states
@pytest.mark.parametrize("numbers", [range(4), range(4, 8), range(2, 6)], ids=str)
def test_the_vms_of_a_request_are_claimed_in_parts_whatever_slots_they_have(
    group, monkeypatch, numbers
):
    queue = queue_of(8)
    own = {i: queue[number] for i, number in enumerate(numbers)}
    group(left=4, queue=queue)
    claims_succeed(monkeypatch, list(own.values()))
    request = spec(count=4, uuid=own[0], extra_specs=wishing(segment=4))
    states = offered(states_of())
    run(states, request, HPCGroupFilter())
    places = known(request).group.held_places()
    held = {uuid: states[place.position].host for uuid, place in places.items()}
    assert held.keys() == set(own.values())
    # Parts of the whole group: those of this request are its places in that.
    counts = Counter(EIGHT_LEAVES.leaf_of(host) for host in held.values())
    assert sorted(counts.values()) == ([2, 2] if numbers.start == 2 else [4])
