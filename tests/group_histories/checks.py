"""What must hold after each request, and once all of a command are over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from nova import exception

from tests.group_histories import holds
from tests.group_histories.fabrics import LEAVES
from tests.group_histories.oracle import Bound, most
from tests.group_histories.requests import Request, View, followers, rooms, view_of
from tests.group_histories.seen_cloud import SeenCloud

#: What Nova says where no host is left; and what a history says without candidates.
OF_NOVA = ("There are not enough hosts available", "no allocation candidates")


class BrokenError(AssertionError):
    """Something does not hold that must."""


def check_refusal(cloud: SeenCloud, request: Request, error: BaseException) -> None:
    """Check that no place kept the constraints all the time, and that the reason says so."""
    if not isinstance(error, exception.NoValidHost):
        raise BrokenError(f"{request.name} dies: {error!r}")
    if request.rooms is None:
        raise BrokenError(f"{request.name} is refused before it has read candidates: {error}")
    fits = [_fits(cloud, request, view) for view in request.views]
    if all(fits) and not _contradicts_size(cloud, request):
        raise BrokenError(
            f"{request.name} is refused ({error}), and fits: room on {_text(request.rooms)}, "
            f"{_view_text(request.views[-1])}"
        )
    is_novas = any(text in str(error) for text in OF_NOVA)
    needed = len(request.servers)
    has_room = all(sum(_rooms(request, view).values()) >= needed for view in request.views)
    if is_novas and has_room:
        raise BrokenError(
            f"{request.name} is refused without a reason ({error}): room on {_text(request.rooms)}"
        )


def check_choice(cloud: SeenCloud, request: Request, places: Mapping[str, str]) -> None:
    """Check that the rest of the group can follow where a place for all existed.

    The group keeps its guarantees then, and is under one leaf or root if that was possible.

    :param places: the nodes of the request's VMs
    """
    known = min(len(request.servers) + len(view.awaiting) for view in request.views)
    before = min(_whole(cloud, request, view) for view in request.views)
    if request.is_disturbed:
        # What is not held may be lost to others.
        held = min(followers(cloud, request, view) for view in request.views)
        known, before = len(places) + held, len(places) + held
    if request.is_beside_unheld or before <= len(places):
        # Where members are is not certain before all are over, or there is nobody to follow.
        return
    now = view_of(cloud, request)
    members = [*now.members.values(), *places.values()]
    used = Counter(places.values())
    # A VM that has come counts twice until its hold is removed.
    room = {node: max(room - used[node], 0) for node, room in rooms(cloud, request).items()}
    left = _hard(request, room, {*now.taken, *places.values()})
    goals = _goals(request.bound(cloud, request.views[-1]))
    if request.group.policy == "soft-anti-affinity" or _may_stay_near(cloud, request):
        # Few VMs on a host come before few leaves, and so does where dead members are.
        goals = goals[:1]
    below = _required_leaves(cloud, request, places)
    _check_fullest(cloud, request, before, below)
    for what, bound in goals:
        leaves = below if what == "one leaf" else LEAVES
        could = min(_most(cloud, request, view, bound, leaves) for view in request.views)
        # Without a place for all, guarantees alone say how many of those that exist can follow.
        some = min(could, known) if what == "guarantees" else 0
        wanted = before if could >= before else some
        can = most(cloud.fabric, bound, members, left)
        have = 0 if can is None else len(places) + can
        if have < wanted:
            raise BrokenError(
                f"{request.name} goes to {', '.join(places.values())}: {wanted} of the group could "
                f"be placed before ({what}), {have} can now; room was on {_text(request.rooms)}, "
                f"{_view_text(request.views[-1])}"
            )


def check_ranks(cloud: SeenCloud, request: Request, places: Mapping[str, str]) -> None:
    """Check that VMs that one request creates are in the order of the fabric.

    Leaves are in the order of their letters below any switch; so are nodes, but for their uuids.

    :param places: the nodes of the request's VMs, in the order of their launch
    """
    if request.is_move:
        return
    nodes = [node[0] if cloud.fabric.is_metal else node for node in places.values()]
    if nodes != sorted(nodes):
        raise BrokenError(f"{request.name} is on {', '.join(places.values())}, which is no order")


def check_constraints(
    cloud: SeenCloud, request: Request, view: View, places: Mapping[str, str]
) -> None:
    """Check that VMs that were placed keep the group's guarantees with its members."""
    bound = request.bound(cloud, view)
    members = view.members
    leaves = {node[0] for node in (*members.values(), *places.values())}
    if not bound.keeps(cloud.fabric, sorted(leaves)):
        raise BrokenError(
            f"{request.name} breaks {request.group.wish.extra_specs or 'the island'}: "
            f"it is on {', '.join(places.values())}, {_view_text(view)}"
        )


def check_holds(cloud: SeenCloud) -> None:
    """Check that nothing is held for VMs that have come, and that nothing moves any more."""
    for name, hold in holds.of(cloud).items():
        if hold.is_moving:
            raise BrokenError(f"{name} has a hold as if it moved")
        node = cloud.servers[name].node
        if node is not None and cloud.is_up(node) and node == cloud.node_called(hold.node):
            raise BrokenError(f"{name} has come to {node}, which has a hold for it still")


def check_placement(cloud: SeenCloud) -> None:
    """Check that Placement holds what VMs and their migrations use, and holds of the plugin."""
    wanted: dict[str, set[str]] = {}
    for server in cloud.servers.values():
        if server.is_there and server.node is not None:
            wanted[server.uuid] = {server.node, *server.left_on}
        if server.moved:
            wanted[server.migration] = set(server.moved)
    for consumer in sorted(wanted.keys() | cloud.allocations.keys()):
        found = cloud.held(consumer)
        if holds.is_hold(cloud, consumer):
            continue
        nodes = wanted.get(consumer, set())
        if found != dict.fromkeys(nodes, cloud.demand):
            raise BrokenError(f"{consumer} holds {found}, and uses {sorted(nodes)}")


def _fits(cloud: SeenCloud, request: Request, view: View) -> bool:
    """True if the VMs of a request had a place, next to the members of a view."""
    wish, needed = request.group.wish, len(request.servers)
    if wish.require is not None and not request.is_move:
        # The final size must fit too.
        needed = max(needed, (wish.group_size or 0) - len(view.members))
    found = _most(cloud, request, view, request.bound(cloud, view))
    return found >= needed


def _whole(cloud: SeenCloud, request: Request, view: View) -> int:
    """Return how many VMs of a group have no place: of the request, awaiting, and missing."""
    size = request.group.wish.group_size or 0
    # Without its server group the last VM that lives is no group.
    is_alone = request.group.is_deleted and not (view.members or view.awaiting)
    if is_alone or _may_stay_near(cloud, request):
        size = 0
    return max(len(request.servers) + len(view.awaiting), size - len(view.members))


def _may_stay_near(cloud: SeenCloud, request: Request) -> bool:
    """True if the group may be placed near members on dead hosts, if all that exist fit there."""
    awaiting = {name for view in request.views for name in view.awaiting}
    is_dead = any(cloud.servers[name].node is not None for name in awaiting) or (
        request.kind == "evacuate"
    )
    return is_dead and (request.group.wish.is_guarantee or not request.is_move)


def _required_leaves(cloud: SeenCloud, request: Request, places: Mapping[str, str]) -> str:
    """Return the leaves below the switch that the group requires and has taken; or all.

    A pod is chosen by its room, and the leaves below it by the Hop-Byte.
    """
    level = request.group.wish.require
    if level != "pod":
        return LEAVES
    taken = {cloud.fabric.switch(level, node[0]) for node in places.values()}
    return "".join(leaf for leaf in LEAVES if cloud.fabric.switch(level, leaf) in taken)


def _check_fullest(cloud: SeenCloud, request: Request, needed: int, below: str) -> None:
    """Check that no pod that holds a new group has less room than the one that it requires."""
    members = [view.members or view.awaiting for view in request.views]
    if below == LEAVES or any(members) or max(cloud.sizes.values()) > 1:
        # Where members are the others must be, and pods are free if a host takes several VMs.
        return
    room: Counter[str] = Counter()
    for node, number in _rooms(request, request.views[-1]).items():
        room[cloud.fabric.switch("pod", node[0])] += number
    taken = room[cloud.fabric.switch("pod", below[0])]
    fuller = [pod for pod, number in sorted(room.items()) if needed <= number < taken]
    if fuller:
        raise BrokenError(
            f"{request.name} goes below {below}, and {needed} fit below {fuller[0]}, which is "
            f"fuller; room was on {_text(request.rooms)}"
        )


def _most(
    cloud: SeenCloud, request: Request, view: View, bound: Bound, leaves: str = LEAVES
) -> int:
    room = {node: room for node, room in _rooms(request, view).items() if node[0] in leaves}
    found = most(cloud.fabric, bound, view.members.values(), room)
    return -1 if found is None else found


def _rooms(request: Request, view: View) -> Mapping[str, int]:
    return _hard(request, request.rooms or {}, view.taken)


def _hard(request: Request, rooms: Mapping[str, int], taken: object) -> Mapping[str, int]:
    """Return rooms within the group's policy."""
    if request.group.policy != "anti-affinity" or request.group.is_deleted:
        return rooms
    return {node: 0 if node in taken else min(room, 1) for node, room in rooms.items()}


def _goals(bound: Bound) -> list[tuple[str, Bound]]:
    """Return what a place for the whole group may be, with a name."""
    return [
        ("guarantees", bound),
        ("one root", bound.on_one(None)),
        ("one leaf", bound.on_one("leaf")),
    ]


def _contradicts_size(cloud: SeenCloud, request: Request) -> bool:
    """True if the final size cannot fit on the empty cloud."""
    wish = request.group.wish
    if request.is_move or wish.group_size is None or wish.max_leaves is None:
        return False
    sizes = _hard(request, cloud.sizes, ())
    found = most(cloud.fabric, Bound(most_leaves=wish.max_leaves), (), sizes)
    return wish.group_size > (found or 0)


def _text(rooms: Mapping[str, int] | None) -> str:
    found = [f"{node}*{room}" for node, room in sorted((rooms or {}).items()) if room]
    return ", ".join(found) or "none"


def _view_text(view: View) -> str:
    members = ", ".join(f"{name} {node}" for name, node in sorted(view.members.items())) or "none"
    return f"members {members}, awaiting {', '.join(sorted(view.awaiting)) or 'none'}"
