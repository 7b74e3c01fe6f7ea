"""Hosts grouped by the leaf switches that they are connected to.

Hosts with several rails, or bonds over an MLAG pair, form a leaf if they are connected to the same
switches. A host that has lost a cable is connected to fewer of them, and is still at home there.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hpc_sched import exceptions
from hpc_sched.topology import hostlist, plurals
from hpc_sched.topology.grouping import by_key
from hpc_sched.topology.hierarchy import name_of

# The masks of more leaves would take gigabytes; a leaf has some 20 hosts.
MAX_LEAVES = 10_000
# Pairs of sets with a switch in common that are compared: some seconds.
MAX_PAIRS = 5_000_000
_MANY = 3  # hosts that have not lost the same cables by chance
_MAX_LISTED = 200  # hosts in a remark


@dataclass(slots=True)
class _Leaf:
    """A leaf under construction."""

    hosts: list[str] = field(default_factory=list)
    switches: set[str] = field(default_factory=set)  # of all its hosts
    common: int = 0  # number of switches that several hosts have
    sets: list[frozenset[str]] = field(default_factory=list)
    # One of its sets, if hosts on a few of these switches belong to it.
    takes_few: frozenset[str] = frozenset()


class LeafSets:
    """The leaves of hosts, given the switches above each, sorted by their switches.

    Hosts on the same switches are a leaf. So are all hosts that switches connect directly, if each
    is on most of these switches: each has lost some rails, and any two share one. Not if some are
    racks with common switches, for management or storage, see :func:`_are_racks`. Else hosts on
    other switches join a larger leaf

    * if it has all their switches, and most hosts on no others are on all of them: they have lost
      a link of two, or seven rails of eight. Where most are on one of them only, the hosts on
      all are different ones: storage servers on two leaves, not a pair of switches. Unless its
      other switches carry only hosts that are on all of theirs, too.
    * if it has most of their switches, they have most of its switches, no other host is on those
      that they do not share, and they are no racks with common switches. Switches of one host, such
      as its own adapter, do not count.

    Of several such leaves it is the one with most of their switches, then most hosts, then the
    first by name, and a remark says so. The order of the hosts is irrelevant. Linear in hosts and
    switches where few different sets share a switch.

    :raises exceptions.TopologyError: for more than ``MAX_LEAVES`` leaves, or too many different
        sets with switches in common
    """

    def __init__(self, switches: Mapping[str, Collection[str]]) -> None:
        connected = sorted(host for host in switches if switches[host])
        self.sets = by_key((frozenset(switches[host]), host) for host in connected)
        self.on_switch = by_key((switch, each) for each in self.sets for switch in each)
        # Switches of one host only.
        self.own = {
            switch
            for switch, found in self.on_switch.items()
            if len(found) == 1 and len(self.sets[found[0]]) == 1
        }
        self._leaves: list[_Leaf] = []
        self.leaves_on: dict[str, set[int]] = {}  # by switch
        self.remarks: list[str] = []  # on what is doubtful
        self.pairs = 0
        self._group()
        if len(self._leaves) > MAX_LEAVES:
            raise exceptions.TopologyError(
                f"expected hosts on at most {MAX_LEAVES} leaf switches or sets of them, found "
                f"{len(self._leaves)}"
            )
        named = ((tuple(sorted(leaf.switches)), leaf.hosts) for leaf in self._leaves)
        found = by_key((names, host) for names, hosts in named for host in hosts)
        # Switches of each leaf, sorted, and its hosts, sorted.
        self.leaves = {names: sorted(found[names]) for names in sorted(found)}
        self.remarks = [*self._lost(), *self.remarks]

    def _group(self) -> None:
        order = sorted(self.sets, key=lambda one: (-len(one), -len(self.sets[one]), sorted(one)))
        for each in self._with_most_rails(order):
            fitting = sorted(self._fitting(each))
            if not fitting:
                self._begin([each])
                continue
            if len(fitting) > 1:
                names = " and ".join(name_of(sorted(one)) for _, _, one, _ in fitting[:2])
                self.remarks.append(
                    f"{hostlist.first(self.sets[each], _MAX_LISTED)}: connected to "
                    f"{name_of(sorted(each))}, which could be part of {len(fitting)} leaves, such "
                    f"as {names}: the first is chosen"
                )
            self._join(fitting[0][-1], each)

    def _with_most_rails(self, order: Sequence[frozenset[str]]) -> list[frozenset[str]]:
        """Join sets that are connected and have most switches each; return all others."""
        joined: set[frozenset[str]] = set()
        seen: set[str] = set()
        for start in order:
            if seen.isdisjoint(start):
                part, switches = self._connected(start)
                seen |= switches
                if all(2 * len(each) > len(switches) for each in part) and not self._has_racks(
                    part
                ):
                    joined |= part
                    self._begin(part)
        return [each for each in order if each not in joined]

    def _connected(self, start: frozenset[str]) -> tuple[set[frozenset[str]], set[str]]:
        """Return the sets that have switches in common, directly or by others, and the switches."""
        part, switches, queue = {start}, set(start), list(start)
        for switch in queue:
            for each in self.on_switch[switch]:
                if each not in part:
                    part.add(each)
                    queue += each - switches
                    switches |= each
        return part, switches

    def _fitting(self, each: frozenset[str]) -> Iterator[tuple[int, int, list[str], int]]:
        """Yield the leaves that a set belongs to, each after its rank."""
        for i in set().union(*(self.leaves_on.get(switch, ()) for switch in each)):
            self._count()
            leaf = self._leaves[i]
            shared = len(each & leaf.switches)
            has_all = shared == len(each)
            is_part = each <= leaf.takes_few or (has_all and self._are_all_with(each, leaf))
            if is_part or (
                2 * shared > max(len(each - self.own), leaf.common)
                and self._is_private(each, leaf)
                and not self._has_racks([*leaf.sets, each])
            ):
                yield -shared, -len(leaf.hosts), sorted(leaf.switches), i

    def _are_all_with(self, each: frozenset[str], leaf: _Leaf) -> bool:
        """True if all hosts on the other switches of a leaf are on those of a set."""
        for switch in leaf.switches - each:
            self._count(len(self.on_switch[switch]))
            if not all(each <= other for other in self.on_switch[switch]):
                return False
        return True

    def _is_private(self, each: frozenset[str], leaf: _Leaf) -> bool:
        """True if the switches that set and leaf do not share carry hosts of these two alone.

        Hosts that have all switches of both and more, such as gateways, are no others.
        """
        both = each | leaf.switches
        for switch in each ^ leaf.switches:
            for other in self.on_switch[switch]:
                self._count()
                if not (other <= both or both <= other):
                    return False
        return True

    def _has_racks(self, sets: Collection[frozenset[str]]) -> bool:
        """True if two of some sets are those of racks, see :func:`_are_racks`."""
        pairs = itertools.combinations(sets if len(sets) == 2 else (), 2)
        if any(_are_racks(one, other, are_many=False) for one, other in pairs):
            return True
        many = [each for each in sets if len(self.sets[each]) >= _MANY]
        self._count(len(many) ** 2)
        return any(
            _are_racks(one, other, are_many=True)
            for one, other in itertools.combinations(many, 2)
            if not (one <= other or other <= one)
        )

    def _begin(self, sets: Iterable[frozenset[str]]) -> None:
        self._leaves.append(_Leaf())
        for each in sets:
            self._join(len(self._leaves) - 1, each)

    def _takes_few(self, each: frozenset[str]) -> bool:
        """True if more hosts are on all switches of a set than on some of these alone."""
        parts = {other for switch in each for other in self.on_switch[switch] if other < each}
        self._count(sum(len(self.on_switch[switch]) for switch in each))
        return sum(len(self.sets[part]) for part in parts) < len(self.sets[each])

    def _join(self, i: int, each: frozenset[str]) -> None:
        leaf = self._leaves[i]
        if not leaf.takes_few and self._takes_few(each):
            leaf.takes_few = each
        leaf.hosts += self.sets[each]
        leaf.sets.append(each)
        leaf.common += len(each - leaf.switches - self.own)
        for switch in each - leaf.switches:
            self.leaves_on.setdefault(switch, set()).add(i)
        leaf.switches |= each

    def _lost(self) -> Iterator[str]:
        """Yield a remark on the hosts that are not connected to all switches of their leaf."""
        lost = []
        for leaf in self._leaves:
            count = Counter(
                switch for each in leaf.sets for switch in each for _ in self.sets[each]
            )
            # Not what gateways have in addition.
            usual = {switch for switch in count if 4 * count[switch] > len(leaf.hosts)}
            lost += [host for each in leaf.sets if not usual <= each for host in self.sets[each]]
        if lost:
            verb = "is" if len(lost) == 1 else "are"
            number = plurals.text(len(lost), "host")
            shown = hostlist.first(sorted(lost), _MAX_LISTED)
            yield f"{number} {verb} not connected to all switches of the leaf: {shown}"

    def _count(self, pairs: int = 1) -> None:
        self.pairs += pairs
        if self.pairs > MAX_PAIRS:
            raise exceptions.TopologyError(
                f"{len(self.sets)} different sets of leaf switches above hosts: too many to compare"
            )


def _are_racks(one: frozenset[str], other: frozenset[str], are_many: bool) -> bool:
    """True for sets of racks that have some switches in common, for management or storage.

    That is half of their switches; or three quarters, if many hosts are on each of the two sets:
    cables are lost one by one, and not by many hosts in two different ways.
    """
    shared, least = len(one & other), min(len(one), len(other))
    return 4 * shared <= 3 * least if are_many else 2 * shared <= least
