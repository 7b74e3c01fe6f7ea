"""A request drawn from a seed, and all that is known of its group and its cloud."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.golden import clouds, trees, wanting
from tests.golden.clouds import Host, Vm
from tests.golden.wanting import Setup, Wanted


@dataclass(frozen=True)
class Scene:
    """One request as it comes."""

    seed: int
    fabric: trees.Fabric
    hosts: Mapping[str, Host]  # by node
    setup: Setup
    wanted: Wanted
    own: tuple[str, ...]  # uuids of its VMs
    group: str | None  # uuid of the server group
    queue: tuple[str, ...]  # VMs of the group that await a place
    orphans: int = 0  # of them, those at its end that nobody works on
    members: Mapping[tuple[str, str | None], int] = field(default_factory=dict)
    is_move: bool = False
    problems: tuple[str, ...] = ()
    is_partial: bool = False
    silent_cells: frozenset[str] = frozenset()
    in_flight_unknown: str | None = None
    losing: Mapping[int, int] = field(default_factory=dict)  # number of the VM to claims it loses
    with_full: bool = False  # hosts are candidates that have no room by what HostState says

    @property
    def count(self) -> int:
        """The VMs that the request places."""
        return 1 if self.is_move else self.wanted.count

    @property
    def group_id(self) -> str:
        """What its VMs are known by: the server group, or what they were made with."""
        return self.group or f"reservation-{self.seed}"


def uuid_of(seed: int, number: int) -> str:
    """Return the uuid of a VM of a case, or of its group."""
    return f"00000000-0000-4000-8000-{seed:06}{number:06}"


def draw(seed: int) -> Scene:
    """Return the scene of a seed; each part has dice of its own."""
    fabric = trees.draw(_dice(seed, "fabric"))
    hosts = clouds.draw(_dice(seed, "cloud"), fabric)
    setup = wanting.draw_setup(_dice(seed, "setup"))
    dice = _dice(seed, "request")
    is_metal = any(not host.vcpus for host in hosts.values())
    wanted = wanting.draw_wanted(dice, fabric, is_metal=is_metal)
    in_group = dice.random() < 0.86
    if not in_group:
        count = 1 if dice.random() < 0.35 else wanted.count
        wanted = replace(wanted, count=count, policy=None, max_per_host=None)
    own = tuple(uuid_of(seed, number) for number in range(1, wanted.count + 1))
    scene = Scene(
        seed=seed,
        fabric=fabric,
        hosts=hosts,
        setup=setup,
        wanted=wanted,
        own=own,
        group=uuid_of(seed, 999_999) if in_group else None,
        queue=own,
    )
    scene = _in_trouble(_dice(seed, "trouble"), scene)
    if dice.random() < 0.4:
        scene = _grown(_dice(seed, "members"), scene)
    if dice.random() < 0.14:
        return _moved(_dice(seed, "move"), scene)
    return _awaited(_dice(seed, "queue"), scene)


def _dice(seed: int, part: str) -> random.Random:
    return random.Random(f"golden {part} {seed}")


def _grown(dice: random.Random, scene: Scene) -> Scene:
    """Return the scene with VMs of the group on hosts already."""
    hosts, members = dict(scene.hosts), dict[tuple[str, str | None], int]()
    wanted = scene.wanted
    vm = Vm(*wanted.size, wanted.app_class or "sync", wanted.app_name, wanted.score, scene.group_id)
    nodes = sorted(hosts)
    few = dice.sample(nodes, min(len(nodes), dice.choice((1, 1, 2, 3))))
    alone = wanted.policy == "anti-affinity" and dice.random() < 0.8
    for _ in range(dice.choice((1, 1, 2, 3, 5, 8))):
        node = dice.choice(few if dice.random() < 0.7 else nodes)
        if dice.random() < 0.05:
            # Gone from the fabric, and from what Nova offers.
            members["gone1", "gone1"] = members.get(("gone1", "gone1"), 0) + 1
            continue
        place = hosts[node].place
        if alone and place in members:
            continue
        members[place] = members.get(place, 0) + 1
        hosts[node] = hosts[node].joined_by(vm)
    if dice.random() < 0.1:
        # Of some only the service host is known.
        members = {
            ((host, None) if dice.random() < 0.5 else (host, node)): count
            for (host, node), count in members.items()
        }
    for _, node in members:
        if node in hosts and dice.random() < 0.25:
            hosts[node] = replace(hosts[node], offered=False)
    return replace(scene, hosts=hosts, members=members)


def _moved(dice: random.Random, scene: Scene) -> Scene:
    """Return the scene in which the request moves one VM that there is."""
    source = dice.choice(sorted(scene.hosts))
    hosts = dict(scene.hosts)
    if dice.random() < 0.7:
        hosts[source] = replace(hosts[source], offered=False)
    return replace(scene, hosts=hosts, is_move=True, queue=scene.own[:1], own=scene.own[:1])


def _awaited(dice: random.Random, scene: Scene) -> Scene:
    """Return the scene with other VMs of the group that await a place, and claims that are lost."""
    others = [uuid_of(scene.seed, 500_000 + i) for i in range(dice.choice((0, 0, 0, 1, 2, 5, 9)))]
    orphans = dice.randint(0, min(3, len(others))) if dice.random() < 0.4 else 0
    queue = list(scene.own)
    if scene.group is not None:
        waiting, left = others[: len(others) - orphans], others[len(others) - orphans :]
        at = dice.randint(0, len(waiting))
        queue = [*waiting[:at], *scene.own, *waiting[at:], *left]
    losing = {}
    if dice.random() < 0.25:
        numbers = range(len(scene.own))
        losing = {number: dice.choice((1, 1, 2)) for number in numbers if dice.random() < 0.25}
    orphans = orphans if scene.group is not None else 0
    return replace(scene, queue=tuple(queue), orphans=orphans, losing=losing)


def _in_trouble(dice: random.Random, scene: Scene) -> Scene:
    """Return the scene, of some with databases that have not told everything."""
    trouble = dice.random()
    if trouble < 0.06:
        return replace(scene, problems=("cell 3: no answer within 5 s",), is_partial=True)
    if trouble < 0.10:
        return replace(
            scene,
            problems=("cell 2: no answer within 5 s",),
            is_partial=dice.random() < 0.5,
            silent_cells=frozenset({clouds.CELLS[-1], clouds.CELLS[dice.randint(0, 1)]}),
        )
    if trouble < 0.13:
        return replace(scene, in_flight_unknown="Placement: no answer")
    return replace(scene, with_full=trouble > 0.92)
