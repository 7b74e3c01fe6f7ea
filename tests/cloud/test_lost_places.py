"""The groups that lose their leaf, and the room that is drawn for them."""

import itertools
import random

import pytest

from hpc_sched.demo import nova_cloud  # noqa: F401 - first of all Nova: it chooses native threads
from tests.cloud import lost_places
from tests.cloud.deployment import LEAVES
from tests.contention import fabric
from tests.contention.verification import has_room

pytestmark = pytest.mark.ci
SEEDS = 60


@pytest.mark.parametrize(
    ("sizes", "room", "places", "expected"),
    [
        pytest.param([2, 4], [(4, 0), (2, 0)], 1, True, id="the tighter leaf is taken first"),
        pytest.param([3, 3, 2], [(5, 0), (3, 0)], 1, False, id="2 on the tighter leaf, then 3 + 3"),
        pytest.param([2, 3], [(4, 0), (1, 0)], 1, False, id="no leaf has room for both or for 3"),
        pytest.param([5, 5], [(0, 5)], 2, True, id="two groups share five hosts"),
        pytest.param([4, 4, 4], [(0, 6)], 2, False, id="4 + 4 on the same hosts leave two"),
        pytest.param([6], [(2, 4)], 2, True, id="a host with a place for one is enough"),
    ],
)
def test_groups_fit_if_they_do_in_any_order_and_on_any_hosts(sizes, room, places, expected):
    assert lost_places.fit_in_any_order(sizes, room, places) is expected


@pytest.mark.parametrize("is_dead", [True, False])
def test_each_loss_has_two_to_four_groups_and_room_for_them_in_every_order(is_dead):
    counts, vcpus, spare = set(), set(), []
    for seed in range(SEEDS):
        loss = lost_places.draw(random.Random(seed), is_dead)
        counts.add(len(loss.groups))
        assert all(2 <= len(request.vms) <= 8 for request in loss.groups)
        vcpus.add(loss.groups[0].vcpus)
        assert sorted(loss.order) == fabric.LEAVES[loss.home]
        used = {host: 0 if fabric.LEAF_OF[host] in LEAVES else 16 for host in fabric.HOSTS}
        used |= dict.fromkeys(fabric.LEAVES[loss.home], 16 if is_dead else 0)
        used |= loss.others
        room = {host: fabric.VCPUS - used[host] for host in used}
        spare.append(sum(room.values()) - sum(len(r.vms) * r.vcpus for r in loss.groups))
        for order in itertools.permutations(loss.groups):
            left = dict(room)
            for request in order:
                assert has_room(request, left)
                for host in _tightest(request, left):
                    left[host] -= request.vcpus
    assert counts == {2, 3, 4}
    assert vcpus == {8, 16}
    # It is tight: there is no place for one VM more in some, and seldom for a group more.
    assert min(spare) == 0
    assert sorted(spare)[SEEDS // 2] <= 4 * fabric.VCPUS


def _tightest(request, room):
    """Return hosts of the leaf with the least room that has enough."""
    leaves = [[h for h in fabric.LEAVES[x] if room[h] >= request.vcpus] for x in LEAVES]
    fitting = [hosts for hosts in leaves if len(hosts) >= len(request.vms)]
    return min(fitting, key=lambda hosts: sum(room[host] for host in hosts))[: len(request.vms)]
