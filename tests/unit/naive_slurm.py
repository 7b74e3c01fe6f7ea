"""Slurm's choice of leaves, restated step by step to compare the policy slurm-tree with."""

import itertools

from hpc_sched.topology import Topology


class NaiveSlurm:
    """Slurm's rule leaf by leaf on plain names, for trees of any shape.

    Slurm 22.05 differs in two points, which concern jobs on several leaves only:

    * A switch keeps its number of free hosts when a leaf below it is taken.
    * A nearer leaf replaces the best one if it does not lose the comparison; in 26.05 if its side
      had enough.
    """

    def __init__(
        self, topology: Topology, room: dict[str, int], wanted: int, *, old: bool = False
    ) -> None:
        self.topology = topology
        self.old = old
        self.room = {host: count for host, count in room.items() if count}
        self.left = wanted
        most = max(self.room.values(), default=0)
        self.left_hosts = wanted if most <= 1 else 1
        self.names = [switch.name for switch in topology.switches]
        self.vms = {name: self.below(name, self.room) for name in self.names}
        self.hosts = {name: self.below(name, dict.fromkeys(self.room, 1)) for name in self.names}

    def below(self, switch: str, counts: dict[str, int]) -> int:
        return sum(counts.get(host, 0) for host in self.topology.hosts_of(switch))

    def level(self, switch: str) -> int:
        return self.topology.switches[self.topology.switch_index(switch)].level

    def place(self, switch: str) -> tuple[int, int]:
        index = self.topology.switch_index(switch)
        return self.topology.switches[index].order, index

    def path(self, leaf: str) -> tuple[str, ...]:
        return self.topology.ancestors(self.topology.hosts_of(leaf)[0])

    def enough(self, switch: str) -> bool:
        return self.hosts[switch] >= self.left_hosts and self.vms[switch] >= self.left

    def compare(self, one: str, two: str) -> tuple[int, bool]:
        """Return 1 if the first leaf is better, -1 if worse, and whether its side had enough."""
        ways = [itertools.chain(self.path(leaf), itertools.repeat(None)) for leaf in (one, two)]
        steps = list(itertools.takewhile(lambda pair: pair != (None, None), zip(*ways)))  # noqa: B905
        for (a, b), above in itertools.zip_longest(steps, steps[1:]):
            # Roots have no switch above: the walk of a shorter branch stays there.
            a, b = a or self.path(one)[-1], b or self.path(two)[-1]
            fits = self.enough(a), self.enough(b)
            if fits == (True, True):
                return self.sign(b, a), True
            if any(fits):
                return (1, True) if fits[0] else (-1, False)
            if above is None or above[0] == above[1]:
                break
        more = self.hosts[a] - self.hosts[b]
        return (1 if more > 0 else -1) if more else self.sign(b, a), False

    def sign(self, one: str, two: str) -> int:
        """Return 1 if the first switch has more free hosts, or as many on a higher level."""
        left = (self.hosts[one], self.level(one))
        right = (self.hosts[two], self.level(two))
        return (left > right) - (left < right)

    def links(self, one: str, two: str) -> int:
        return len(set(self.path(one)) ^ set(self.path(two)))

    def leaves(self) -> list[str] | None:
        roots = [root for root in self.topology.roots if self.enough(root)]
        if not roots:
            return None
        root = max(roots, key=lambda name: (self.level(name), *self.place(name)))
        taken: list[str] = []
        while self.left > 0:
            best: str | None = None
            for leaf in sorted(self.topology.leaves, key=self.place):
                if self.path(leaf)[-1] != root or not self.hosts[leaf]:
                    continue
                if best is None:
                    best = leaf
                    continue
                far, far_best = (
                    sum(self.links(other, there) for there in taken) for other in (leaf, best)
                )
                order, had_enough = self.compare(leaf, best)
                suffices = order >= 0 if self.old else had_enough
                if (far < far_best and suffices) or (far == far_best and order > 0):
                    best = leaf
            assert best is not None
            taken.append(best)
            count = self.hosts[best]
            self.left -= self.vms[best]
            self.left_hosts -= count
            for switch in [best] if self.old else self.path(best):
                self.hosts[switch] -= count
        return taken
