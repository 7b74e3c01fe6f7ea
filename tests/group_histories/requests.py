"""A request that is served: what was true all the time that it was, and where its group is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nova.compute import vm_states

from tests.group_histories import holds
from tests.group_histories.oracle import Bound
from tests.group_histories.seen_cloud import SeenCloud
from tests.group_histories.servers import Group, Server
from tests.protocol.actors import Actor


@dataclass(frozen=True)
class View:
    """A group at one moment, without the VMs of the request."""

    members: Mapping[str, str]  # VM to node: those that guarantees hold with
    awaiting: frozenset[str]  # VMs that steer the choice alone
    taken: frozenset[str]  # nodes that a hard policy forbids


@dataclass(eq=False)
class Request:
    """A request for VMs of one group, and what was true while it was served."""

    name: str
    kind: str
    servers: Sequence[Server]
    ignored: str | None = None  # node
    actor: Actor | None = None
    # Node to the VMs that it took at the worst moment; None before candidates were read.
    rooms: dict[str, int] | None = None
    views: list[View] = field(default_factory=list)
    is_disturbed: bool = False  # whether rooms changed meanwhile
    # Whether requests ran meanwhile that write no holds: creates, and moves without guarantees.
    is_beside_unheld: bool = False

    @property
    def group(self) -> Group:
        """The group of its VMs."""
        return self.servers[0].group

    @property
    def is_move(self) -> bool:
        """True if it moves a VM."""
        return self.kind != "create"

    @property
    def is_unheld(self) -> bool:
        """True if its place shows in Placement alone, and takes what is held at that moment."""
        return not (self.is_move and self.group.wish.is_guarantee)

    def observe(self, cloud: SeenCloud) -> None:
        """Note what is true now."""
        found, view = rooms(cloud, self), view_of(cloud, self)
        if self.rooms is None:
            self.rooms = dict(found)
        self.is_disturbed |= found != self.rooms
        self.rooms = {node: min(room, found[node]) for node, room in self.rooms.items()}
        if view not in self.views:
            self.views.append(view)

    def bound(self, cloud: SeenCloud, view: View) -> Bound:
        """Return where its VMs may be, next to members."""
        fabric, wish = cloud.fabric, self.group.wish
        roots = {fabric.switch(None, node[0]) for node in view.members.values()}
        # Without a guarantee a move may leave the island, and who is on several may use any.
        one_root = wish.is_guarantee or not (self.is_move or len(roots) > 1)
        return Bound.of(wish, one_root=one_root)


def rooms(cloud: SeenCloud, request: Request) -> dict[str, int]:
    """Return how many VMs of a request each node takes now."""
    own = {server.uuid for server in request.servers}
    held = holds.taken(cloud, _free_holds(cloud, request))
    found = {}
    for node, size in cloud.sizes.items():
        name = next(iter(cloud.demand))
        key = (cloud.provider(node), name)
        others = (rows for uuid, rows in cloud.allocations.items() if uuid not in own)
        used = sum(rows.get(key, 0) for rows in others)
        is_left_out = request.ignored is not None and (
            cloud.fabric.service(request.ignored) == cloud.fabric.service(node)
        )
        is_offered = cloud.is_up(node) and not is_left_out
        total = 1 if cloud.fabric.is_metal else size
        found[node] = max(total - used - held.get(node, 0), 0) if is_offered else 0
    return found


def _free_holds(cloud: SeenCloud, request: Request) -> set[str]:
    """Return the VMs whose holds are free for a request, or are claimed there by now."""
    found, held = {server.name for server in request.servers}, holds.of(cloud)
    for server in relatives(cloud, request):
        hold = held.get(server.name)
        is_moving = hold is not None and hold.is_moving
        if not (is_moving and cloud.node_called(hold.node) not in cloud.held(server.uuid)):
            found.add(server.name)
    return found


def view_of(cloud: SeenCloud, request: Request) -> View:
    """Return the group of a request now."""
    members, awaiting, taken = {}, set(), set()
    moving = {name: hold for name, hold in holds.of(cloud).items() if hold.is_moving}
    for server in relatives(cloud, request):
        place = _place(cloud, server)
        if server.name in moving:
            place = cloud.node_called(moving[server.name].node)
        if place is not None and holds_others(cloud, place, is_move=request.is_move):
            members[server.name] = place
        elif _awaits(server, place):
            awaiting.add(server.name)
        taken.update(filter(None, (place, server.node)))
    is_hard = request.group.policy == "anti-affinity" and not request.group.is_deleted
    return View(members, frozenset(awaiting), frozenset(taken if is_hard else ()))


def relatives(cloud: SeenCloud, request: Request) -> list[Server]:
    """Return the other VMs of the group of a request.

    Those of its reservation if there is no server group, where the flavor has a constraint or a
    class; the VMs of a new request are no group of others then.
    """
    group, first = request.group, request.servers[0]
    others = [server for server in cloud.servers.values() if server not in request.servers]
    if not group.is_deleted:
        return [server for server in others if server.group is group]
    if group.wish.extra_specs:
        return [server for server in others if server.reservation == first.reservation]
    return []


def followers(cloud: SeenCloud, request: Request, view: View) -> int:
    """Return how many VMs have their places held by a request, as they are to move now too."""
    servers = [cloud.servers[name] for name in view.awaiting]
    if request.kind == "unshelve":
        return sum(server.node is None for server in servers)
    if request.kind == "evacuate":
        return sum(server.node is not None for server in servers)
    return 0


def holds_others(cloud: SeenCloud, node: str, *, is_move: bool) -> bool:
    """True if guarantees hold with a VM on a node: its host is up, or disabled for creates."""
    how = cloud.out.get(cloud.fabric.service(node))
    return how is None or (how == "disabled" and not is_move)


def _place(cloud: SeenCloud, server: Server) -> str | None:
    """Return the node where a VM is, or will be."""
    if server.state in ("failed", "deleted", vm_states.SOFT_DELETED):
        return None
    claimed = [
        node for node in cloud.held(server.uuid) if node not in (server.node, *server.left_on)
    ]
    return claimed[0] if claimed else server.node


def _awaits(server: Server, place: str | None) -> bool:
    if server.state in ("failed", "deleted", vm_states.SOFT_DELETED):
        return False
    return place is not None or server.state in (
        "scheduling",
        vm_states.BUILDING,
        vm_states.SHELVED_OFFLOADED,
    )
