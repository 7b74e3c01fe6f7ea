"""The numbers of new VMs that may be below each switch within a bottleneck, as bits of integers.

A switch below which n_s of n VMs are carries n_s * (n - n_s) of uniform traffic in each direction.
That falls again beyond n / 2: within a bottleneck are 0 .. m and n - m .. n VMs, and what the
children of a switch permit together is the set of sums of what each of them does. Caps on switches
alone say less: between the two ranges no count is within the bottleneck.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from hpc_sched.core.arrays import Mask
from hpc_sched.core.plan.bottleneck.counts.group_fabric import GroupFabric, HostKind, Kind


def most_apart(everyone: int, bottleneck: Fraction, capacity: int) -> int:
    """Return the most of some VMs, up to a half, whose traffic with the others a link carries.

    The largest k with k * (everyone - k) <= bottleneck * capacity.
    """
    carried = bottleneck.numerator * capacity // bottleneck.denominator
    rest = everyone * everyone - 4 * carried
    if rest <= 0:
        return everyone // 2
    root = math.isqrt(rest)
    return (everyone - root - (root * root < rest)) // 2


class AchievableCounts:
    """The counts of new VMs below each kind of switch, and on each kind of host.

    Bit k of a set is k VMs. ``own`` has what the links above a switch permit, ``below`` what its
    children or hosts do together, within ``own``.
    """

    def __init__(self, fabric: GroupFabric, bottleneck: Fraction) -> None:
        """Make the sets. O(kinds * children) operations on integers of as many bits as VMs."""
        self.fabric, self.bottleneck = fabric, bottleneck
        self._all = (2 << fabric.count) - 1
        self._most: dict[int, int] = {0: fabric.everyone // 2}
        self._hosts: dict[HostKind, int] = {}
        self.below: list[int] = []
        for kind in fabric.kinds:
            self.below.append(self._within(kind))

    def tops(self) -> list[int]:
        """Return the tops below which all VMs have places, in ``topology.switches``."""
        fabric = self.fabric
        return [top for top in fabric.tops if self.of_switch(top) >> fabric.count & 1]

    def of_switch(self, switch: int) -> int:
        """Return the counts below a switch with room or members, in ``topology.switches``."""
        return self.below[self.fabric.kind_of[switch]]

    def permitted(self, kind: int) -> Mask:
        """Return which of 0, 1, 2 .. VMs may be below a kind, up to the most that may.

        Shape (VMs + 1,); empty if no number may.
        """
        found = self.below[kind]
        size = found.bit_length()
        octets = np.frombuffer(found.to_bytes((size + 7) // 8, "little"), dtype=np.uint8)
        return np.unpackbits(octets, count=size, bitorder="little").astype(np.bool_)

    def own(self, members: int, capacity: int) -> int:
        """Return the counts that links of a capacity permit above some members."""
        most = self._most.get(capacity)
        if most is None:
            most = most_apart(self.fabric.everyone, self.bottleneck, capacity)
            self._most[capacity] = most
        everyone = self.fabric.everyone
        few = (2 << most) - 1
        return ((few | few << everyone - most) >> members) & self._all

    def of_host(self, host: HostKind) -> int:
        """Return the counts on a host."""
        found = self._hosts.get(host)
        if found is None:
            found = self.own(host.members, host.capacity) & ((2 << host.room) - 1)
            self._hosts[host] = found
        return found

    def _within(self, kind: Kind) -> int:
        parts = [(self.of_host(host), number) for host, number in kind.hosts]
        parts += [(self.below[child], number) for child, number in kind.children]
        return self._sums(parts) & self.own(kind.members, kind.capacity)

    def _sums(self, parts: Iterable[tuple[int, int]]) -> int:
        """Return the counts of several sets together, each as often as its number says."""
        most = 0
        others = []
        for counts, number in parts:
            if counts & (counts + 1) or not counts:
                others.append((counts, number))
            else:
                most += number * (counts.bit_length() - 1)
        found = (2 << min(most, self.fabric.count)) - 1
        for counts, number in others:
            found = sums(found, self._copies(counts, number)) & self._all
        return found

    def _copies(self, counts: int, number: int) -> int:
        """Return the counts of a set of which there are several."""
        found = 1
        while number:
            if number & 1:
                found = sums(found, counts) & self._all
            number >>= 1
            if number:
                counts = sums(counts, counts) & self._all
        return found


def sums(one: int, other: int) -> int:
    """Return the set of all sums of a number of each of two sets."""
    found = 0
    for low, length in _runs(other):
        found |= _spread(one, length) << low
    return found


def _runs(counts: int) -> Iterator[tuple[int, int]]:
    """Yield the first number and the length of each run of numbers in a set."""
    low = 0
    while counts:
        gap = (counts & -counts).bit_length() - 1
        counts >>= gap
        low += gap
        length = (~counts & (counts + 1)).bit_length() - 1
        yield low, length
        counts >>= length
        low += length


def _spread(counts: int, length: int) -> int:
    """Return the set of all sums of a number of a set and one of 0 .. ``length`` - 1."""
    done = 1
    while 2 * done <= length:
        counts |= counts << done
        done *= 2
    return counts | counts << (length - done)
