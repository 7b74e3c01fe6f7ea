"""The peers' rules: Slurm's topology/tree and Kueue's Topology Aware Scheduling."""

import itertools

import pytest
from hypothesis import given

from hpc_sched.core.constraints import Constraints
from hpc_sched.core.plan.result import Rejection
from hpc_sched.sim.policies import kueue, slurm_tree
from hpc_sched.topology import Topology
from hpc_sched.topology.tree import Details
from tests.unit import fabrics
from tests.unit.naive_slurm import NaiveSlurm
from tests.unit.placing import per_host, per_leaf, placed, request

SLURM = slurm_tree.POLICY
BEST_FIT, LEAST_FREE = kueue.BEST_FIT, kueue.LEAST_FREE


def rack() -> Topology:
    """Return the rack of the example in Kueue's KEP 2724, with what its hosts take.

    ::

              rack
         /    |   |   \\
        a:3  b:3 c:2  d:1
    """
    return Topology.from_tree({"rack": ["a", "b", "c", "d"]})


RACK = {"a": 3, "b": 3, "c": 2, "d": 1}


def three_leaves() -> Topology:
    """Return leaves of different size in one pod.

    ::

                     pod
             /        |        \\
          leaf1     leaf2     leaf3
         a1 .. a5  b1 .. b3  c1 .. c4
    """
    return Topology.from_tree(
        {
            "pod": {
                "leaf1": ["a1", "a2", "a3", "a4", "a5"],
                "leaf2": ["b1", "b2", "b3"],
                "leaf3": ["c1", "c2", "c3", "c4"],
            }
        }
    )


def pods() -> Topology:
    """Return a wide pod of small leaves between two narrow pods.

    ::

                              core
               /               |                 \\
             pod1             pod2              pod3
            /    \\         /   |    \\          /    \\
        leaf1  leaf2   leaf3 leaf4 leaf5    leaf6  leaf7
        a1-4    b1      c1-3  d1-2  e1-2    f1-3   g1-3
    """
    sizes = {
        "pod1": {"leaf1": 4, "leaf2": 1},
        "pod2": {"leaf3": 3, "leaf4": 2, "leaf5": 2},
        "pod3": {"leaf6": 3, "leaf7": 3},
    }
    letters = iter("abcdefg")
    return Topology.from_tree(
        {
            "core": {
                pod: {
                    leaf: [f"{letter}{i + 1}" for i in range(count)]
                    for (leaf, count), letter in zip(leaves.items(), letters, strict=False)
                }
                for pod, leaves in sizes.items()
            }
        }
    )


def one_each(topology: Topology, *without: str) -> dict[str, int]:
    return {host: 1 for host in topology.hosts if host not in without}


def leaves_of_slurm(topology: Topology, room: dict[str, int], awaiting: int) -> dict[str, int]:
    return per_leaf(topology, placed(SLURM, topology, room, awaiting))


def test_best_fit_takes_the_most_free_hosts_and_then_the_one_that_just_holds_the_rest():
    assert placed(BEST_FIT, rack(), RACK, 7) == {"a": 3, "b": 3, "d": 1}


def test_least_free_capacity_begins_at_the_other_end():
    assert placed(LEAST_FREE, rack(), RACK, 7) == {"d": 1, "c": 2, "a": 3, "b": 1}


@pytest.mark.parametrize(
    ("wanted", "best_fit", "least_free"),
    [
        pytest.param(1, {"d": 1}, {"d": 1}, id="one VM goes where it leaves nothing over"),
        pytest.param(2, {"c": 2}, {"c": 2}, id="the host that just holds all"),
        pytest.param(3, {"a": 3}, {"a": 3}, id="of equal hosts the first by name"),
        pytest.param(5, {"a": 3, "c": 2}, {"d": 1, "c": 2, "a": 2}, id="the rest is 2"),
        pytest.param(6, {"a": 3, "b": 3}, {"d": 1, "c": 2, "a": 3}, id="two full hosts"),
        pytest.param(
            9, {"a": 3, "b": 3, "c": 2, "d": 1}, {"d": 1, "c": 2, "a": 3, "b": 3}, id="all"
        ),
    ],
)
def test_kueue_on_the_hosts_of_one_rack(
    wanted: int, best_fit: dict[str, int], least_free: dict[str, int]
):
    assert placed(BEST_FIT, rack(), RACK, wanted) == best_fit
    assert placed(LEAST_FREE, rack(), RACK, wanted) == least_free


def test_a_job_that_fits_below_one_leaf_takes_the_tightest_one():
    fabric = three_leaves()
    room = one_each(fabric)
    assert per_leaf(fabric, placed(BEST_FIT, fabric, room, 3)) == {"leaf2": 3}
    assert per_leaf(fabric, placed(BEST_FIT, fabric, room, 4)) == {"leaf3": 4}


def test_a_job_that_fits_below_no_leaf_climbs_to_the_tightest_pod():
    fabric = pods()
    # Pods take 5, 7 and 6.
    found = per_leaf(fabric, placed(BEST_FIT, fabric, one_each(fabric), 6))
    assert found == {"leaf6": 3, "leaf7": 3}


def test_on_the_way_down_kueue_takes_as_few_leaves_as_possible():
    fabric = pods()
    found = per_leaf(fabric, placed(BEST_FIT, fabric, one_each(fabric, "f1", "g1"), 7))
    assert found == {"leaf3": 3, "leaf4": 2, "leaf5": 2}
    # Below the root: pod2 with 7, then the pod that just holds the other 5; of their leaves the
    # largest, of both pods together.
    found = per_leaf(fabric, placed(BEST_FIT, fabric, one_each(fabric, "g1"), 12))
    assert found == {"leaf1": 4, "leaf3": 3, "leaf4": 2, "leaf5": 2, "leaf2": 1}


def test_below_the_chosen_leaves_kueue_takes_the_roomiest_hosts_of_all_of_them():
    fabric = fabrics.two_leaves()
    room = {"a1": 3, "a2": 3, "b1": 2, "b2": 1, "b3": 1}
    # leaf1 takes 6, leaf2 4; 9 VMs leave one place free, on the last of the hosts.
    found = placed(BEST_FIT, fabric, room, 9)
    assert found == {"a1": 3, "a2": 3, "b1": 2, "b2": 1}


def test_a_group_that_requires_a_level_waits_where_no_switch_of_it_holds_all():
    fabric = pods()
    room = one_each(fabric)
    for policy in (BEST_FIT, LEAST_FREE):
        found = placed(policy, fabric, room, 6, constraints=Constraints(require="pod"))
        assert per_leaf(fabric, found) == {"leaf6": 3, "leaf7": 3}
        made = request(fabric, room, 6, constraints=Constraints(require="leaf"))
        refusal = policy.place(made)
        assert str(refusal).startswith("group of 6 needs one leaf: largest gang that fits")


def test_a_group_that_prefers_a_level_is_first_looked_for_there():
    fabric = pods()
    room = one_each(fabric)
    # One leaf would hold it; the tightest pod is asked first.
    found = placed(BEST_FIT, fabric, room, 3, constraints=Constraints(prefer="pod"))
    assert per_leaf(fabric, found) == {"leaf1": 3}
    assert per_leaf(fabric, placed(BEST_FIT, fabric, room, 3)) == {"leaf3": 3}


def test_islands_are_domains_like_others_to_kueue_unless_a_level_is_required():
    fabric = fabrics.islands()
    room = one_each(fabric)
    assert len(placed(BEST_FIT, fabric, room, 6)) == 6
    assert len(placed(LEAST_FREE, fabric, room, 6)) == 6
    made = request(fabric, room, 6, constraints=Constraints(require="pod"))
    assert isinstance(BEST_FIT.place(made), Rejection)


def test_slurm_takes_the_leaf_with_the_fewest_sufficient_free_hosts():
    fabric = three_leaves()
    assert leaves_of_slurm(fabric, one_each(fabric), 3) == {"leaf2": 3}
    assert leaves_of_slurm(fabric, one_each(fabric), 4) == {"leaf3": 4}
    assert leaves_of_slurm(fabric, one_each(fabric, "a1", "a2", "a3"), 2) == {"leaf1": 2}


def test_where_no_leaf_holds_the_job_slurm_begins_with_the_one_with_most_free_hosts():
    fabric = three_leaves()
    # After 5 hosts of leaf1 the rest is 2, which leaf2 holds as well as leaf3, but tighter.
    assert leaves_of_slurm(fabric, one_each(fabric), 7) == {"leaf1": 5, "leaf2": 2}
    assert leaves_of_slurm(fabric, one_each(fabric), 9) == {"leaf1": 5, "leaf3": 4}


def test_slurm_begins_below_the_lowest_switch_that_satisfies_the_job():
    fabric = pods()
    # Pods have 5, 7 and 6 free hosts: pod3 is the tightest that holds 6.
    assert leaves_of_slurm(fabric, one_each(fabric), 6) == {"leaf6": 3, "leaf7": 3}
    assert leaves_of_slurm(fabric, one_each(fabric), 5) == {"leaf1": 4, "leaf2": 1}
    without = one_each(fabric, "a4")
    assert leaves_of_slurm(fabric, without, 7) == {"leaf3": 3, "leaf4": 2, "leaf5": 2}


def test_where_no_pod_holds_the_job_slurm_begins_in_the_pod_with_most_free_hosts():
    fabric = pods()
    assert next(iter(leaves_of_slurm(fabric, one_each(fabric), 8))) == "leaf3"


def test_slurm_may_leave_the_lowest_switch_for_a_leaf_that_holds_the_whole_rest():
    """Compare leaves in the order of the description: the first to be looked at has an advantage.

    ::

                       core
               /                 \\
             pod1                pod2
           /      \\           /   |    \\
        leaf1   leaf2     leaf3 leaf4 leaf5      6 VMs: pod2 holds them exactly
        a1 a2     b1 ..b5  c1 c2 d1 d2 e1 e2
    """
    leaves = {"leaf1": ["a1", "a2"], "leaf2": [f"b{i}" for i in range(1, 6)]}
    others = {"leaf3": ["c1", "c2"], "leaf4": ["d1", "d2"], "leaf5": ["e1", "e2"]}
    first = Topology.from_tree({"core": {"pod1": leaves, "pod2": others}})
    # Rest after leaf3: 4. leaf1 is looked at first, and leaf2, as far away, holds the rest. Of
    # the nearer leaves neither does, and the walk from them is longer.
    assert leaves_of_slurm(first, one_each(first), 6) == {"leaf3": 2, "leaf2": 4}
    turned = Topology.from_tree({"core": {"pod2": others, "pod1": leaves}})
    assert leaves_of_slurm(turned, one_each(turned), 6) == {"leaf3": 2, "leaf4": 2, "leaf5": 2}
    # The same pods in a description that has leaf1 and leaf2 between leaf3 and leaf4.
    places = ["leaf3", "leaf1", "leaf2", "leaf4", "leaf5", "pod1", "pod2", "core"]
    details = Details(order={name: place for place, name in enumerate(places)})
    mixed = Topology.from_tree({"core": {"pod2": others, "pod1": leaves}}, details=details)
    assert leaves_of_slurm(mixed, one_each(mixed), 6) == {"leaf3": 2, "leaf2": 4}


def test_hosts_that_share_count_by_what_they_take_and_leaves_by_their_free_hosts():
    fabric = fabrics.two_leaves()
    room = {"a1": 4, "a2": 4, "b1": 1, "b2": 2, "b3": 3}
    # Both leaves hold 6 VMs: leaf1 on two free hosts, leaf2 on three.
    assert placed(SLURM, fabric, room, 6) == {"a1": 4, "a2": 2}
    assert placed(SLURM, fabric, room, 9) == {"b1": 1, "b2": 2, "b3": 3, "a1": 3}


def test_slurm_never_spreads_a_job_over_islands():
    fabric = fabrics.islands()
    room = one_each(fabric)
    # The higher island is taken even where the other one is tighter.
    assert leaves_of_slurm(fabric, room, 2) == {"leaf1": 2}
    assert leaves_of_slurm(fabric, room, 4) == {"leaf1": 2, "leaf2": 2}
    assert isinstance(SLURM.place(request(fabric, room, 5)), Rejection)
    assert leaves_of_slurm(fabric, one_each(fabric, "a1", "b1", "b2"), 2) == {"east": 2}


@given(fabrics.groups(max_awaiting=16))
def test_slurm_takes_the_leaves_that_the_rule_takes_when_followed_leaf_by_leaf(
    group: fabrics.Group,
):
    fabric = group.topology
    made = request(fabric, group.capacity, group.awaiting)
    answer = SLURM.place(made)
    expected = NaiveSlurm(fabric, group.capacity, group.awaiting).leaves()
    if isinstance(answer, Rejection):
        assert expected is None
    else:
        hosts = [fabric.hosts[host] for host in answer]
        assert list(per_leaf(fabric, dict.fromkeys(hosts, 1))) == expected


def naive_best_fit(topology: Topology, room: dict[str, int], wanted: int) -> dict[str, int] | None:
    """Return the VMs per host by BestFit for a job that prefers a leaf, domain after domain.

    A domain is the path of names from the top level down to it.
    """
    paths = {
        host: (*(topology.switches[s].name for s in topology.groups[::-1, i]), host)
        for i, host in enumerate(topology.hosts)
        if room.get(host)
    }

    def rooms(length: int, inside: set[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
        found: dict[tuple[str, ...], int] = {}
        for host, path in sorted(paths.items(), key=lambda item: item[1]):
            if any(path[: len(above)] == above for above in inside):
                found[path[:length]] = found.get(path[:length], 0) + room[host]
        return found

    def chosen(free: dict[tuple[str, ...], int]) -> dict[tuple[str, ...], int]:
        left, free, taken = wanted, dict(free), {}
        while left:
            largest = max(free, key=lambda domain: free[domain])
            if free[largest] >= left:
                largest = min((d for d in free if free[d] >= left), key=lambda domain: free[domain])
            taken[largest] = min(left, free.pop(largest))
            left -= taken[largest]
        return taken

    if sum(room[host] for host in paths) < wanted:
        return None
    length = topology.depth
    while length > 1 and max(rooms(length, {()}).values(), default=0) < wanted:
        length -= 1
    taken = chosen(rooms(length, {()}))
    while length <= topology.depth:
        length += 1
        taken = chosen(rooms(length, set(taken)))
    return {path[-1]: count for path, count in taken.items()}


@given(fabrics.groups(max_awaiting=16))
def test_kueue_takes_the_hosts_that_the_rule_takes_when_followed_domain_by_domain(
    group: fabrics.Group,
):
    made = request(group.topology, group.capacity, group.awaiting)
    answer = BEST_FIT.place(made)
    expected = naive_best_fit(group.topology, group.capacity, group.awaiting)
    if isinstance(answer, Rejection):
        assert expected is None
    else:
        assert list(per_host(made, answer).items()) == list((expected or {}).items())


@given(fabrics.groups(max_awaiting=16))
def test_below_one_rack_best_fit_uses_no_more_hosts_than_any_rule_must(group: fabrics.Group):
    hosts = list(group.topology.hosts)
    fabric = Topology.from_tree({"rack": hosts})
    rooms = sorted((group.capacity.get(host, 0) for host in hosts), reverse=True)
    if not 0 < group.awaiting <= sum(rooms):
        return
    found = placed(BEST_FIT, fabric, group.capacity, group.awaiting)
    sums = list(itertools.accumulate(rooms))
    fewest = next(i for i, total in enumerate(sums, 1) if total >= group.awaiting)
    assert len(found) == fewest
