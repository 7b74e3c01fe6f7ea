"""Which answers are kept from one VM of a request to the next, on plain group requests.

::

          core
         /    \\
      leaf1   leaf2
      a b c   d e
"""

from collections.abc import Mapping

import numpy as np

from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan
from hpc_sched.core.plan.tie_order import TieOrder
from hpc_sched.nova_glue.decide.decisions import Decisions
from hpc_sched.topology import Topology

FABRIC = Topology.from_tree({"core": {"leaf1": ["a", "b", "c"], "leaf2": ["d", "e"]}})
ROOM = dict.fromkeys(FABRIC.hosts, 1)


def request(left: int, room: Mapping[str, int], members: Mapping[str, int]) -> GroupRequest:
    def per_host(counts: Mapping[str, int]) -> np.ndarray:
        return np.array([counts.get(host, 0) for host in FABRIC.hosts], dtype=np.int64)

    return GroupRequest(
        topology=FABRIC,
        tie=TieOrder(FABRIC, ""),
        host_index=None,
        room=per_host(room),
        members=per_host(members),
        left=left,
        awaiting=left,
    )


def hosts_of(answer: object) -> dict[str, int]:
    assert isinstance(answer, Plan), answer
    return answer.hosts


def test_the_rest_of_a_plan_is_kept_while_vms_take_its_places():
    cache = Decisions()
    assert hosts_of(cache.current(request(3, ROOM, {}))) == {"a": 1, "b": 1, "c": 1}
    rest = request(2, ROOM | {"a": 0}, {"a": 1})
    assert hosts_of(cache.current(rest, placed=1)) == {"b": 1, "c": 1}
    assert not cache.revised


def test_a_planned_host_that_has_lost_its_room_is_planned_without():
    cache = Decisions()
    assert hosts_of(cache.current(request(3, ROOM, {}))) == {"a": 1, "b": 1, "c": 1}
    rest = request(2, ROOM | {"a": 0, "c": 0}, {"a": 1})
    found = hosts_of(cache.current(rest, placed=1))
    assert sum(found.values()) == 2
    assert found.keys() < {"b", "d", "e"}
    assert cache.revised


def test_a_rest_that_is_not_of_a_wanted_size_is_planned_anew():
    """A VM was placed, and another one of the group has come meanwhile."""
    cache = Decisions()
    assert hosts_of(cache.current(request(2, ROOM, {}))).keys() < {*"abcde"}
    [first, _] = cache.answer.places
    rest = request(2, ROOM | {first: 0}, {first: 1})
    assert sum(hosts_of(cache.current(rest, placed=1)).values()) == 2
    assert cache.revised
