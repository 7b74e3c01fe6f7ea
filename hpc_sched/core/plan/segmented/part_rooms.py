"""How many parts of a group fit below switches, in closed form.

A group of N VMs, members included, has ``N // size`` full parts, and a last one of the rest. So a
switch below which the last part is not has full parts alone: their number is between what its
members need and what its room holds. The same holds for the switch with the last part, without
the VMs of that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.core.constraints.parts.group_parts import Parts


@dataclass(frozen=True, slots=True)
class Division:
    """How the VMs of a group, members included, are divided into parts."""

    size: int  # VMs of a part
    vms: int  # of the group
    # Of a balanced group: parts below each used switch, or one more. None: any numbers.
    each: int | None = None

    @property
    def full(self) -> int:
        """Full parts."""
        return self.vms // self.size

    @property
    def rest(self) -> int:
        """VMs of the last part; 0: all parts are full."""
        return self.vms % self.size

    def full_parts(self, members: Array, room: Array, *, last: bool) -> tuple[Array, Array]:
        """Return the fewest and most full parts below used switches. Shape (switches,) each.

        If the most are fewer than the fewest the switch cannot be used so.

        :param last: whether the last part is below the switch too
        """
        more = self.rest if last else 0
        low = np.maximum(-((more - members) // self.size), 0)
        high = (members + room - more) // self.size
        if self.each is not None:
            # The last part is one of those that are counted.
            each = self.each - (1 if last else 0)
            low, high = np.maximum(low, each), np.minimum(high, each + 1)
        return low, high

    def most_new(self, members: Array, room: Array) -> Array:
        """Return the most new VMs below each switch; negative: none. Shape (switches,)."""
        _, high = self.full_parts(members, room, last=False)
        most = high * self.size
        if self.rest:
            # By members and room alone: with more parts below each switch it is no fewer VMs.
            low, _ = replace(self, each=None).full_parts(members, room, last=True)
            _, high = self.full_parts(members, room, last=True)
            most = np.where(low <= high, np.maximum(most, high * self.size + self.rest), most)
        new: Array = most - members
        return new


@dataclass(frozen=True, slots=True, eq=False)
class PartRooms:
    """The switches of parts below one switch: those with room or members. Shape (switches,)."""

    switches: Array  # indices in topology.switches, sorted
    members: Array
    room: Array
    most_new: int | None = None  # switches without members that may be used; None: any number

    def divisions(self, parts: Parts, vms: int) -> Iterator[Division]:
        """Yield the divisions of a group that fit, those with most parts below a switch first.

        O(switches log switches) each.

        :param vms: of the group, members included
        """
        for division in self._possible(parts, vms):
            if self.most_full(division, division.full) == division.full:
                yield division

    def most(self, parts: Parts, members: int, most: int) -> int:
        """Return the most new VMs, up to a number, that fit in parts.

        :param members: of the group
        """
        best = 0
        # Once for each size of the last part.
        for new in range(most, max(most - parts.size, 0), -1):
            if new <= best:
                break
            for division in self._possible(parts, members + new):
                full = self.most_full(division, division.full)
                best = max(best, full * parts.size + division.rest - members)
        return best

    def _possible(self, parts: Parts, vms: int) -> Iterator[Division]:
        """Yield the divisions that switches of any room may have."""
        if not parts.is_balanced:
            yield Division(parts.size, vms)
            return
        number = -(-vms // parts.size)
        largest = -(-int((self.members + self.room).max(initial=0)) // parts.size)
        least = -(-int(self.members.max(initial=0)) // parts.size)
        for each in range(min(number, largest), max(least - 1, 1) - 1, -1):
            yield Division(parts.size, vms, each)

    def most_full(self, division: Division, most: int) -> int:
        """Return the most full parts, up to a number, that fit with the last part; -1: none do."""
        sums = self._sums(division)
        if not division.rest:
            return sums.most(most)
        # Switches that are alike hold the last part alike.
        return max(
            (sums.with_last(*kind).most(most) for kind in set(self._with_last(division))),
            default=-1,
        )

    def last_part(self, division: Division) -> int | None:
        """Return the first switch, as an index, that may have the last part of a division.

        None if all parts are full. Switches with members come first.

        :param division: one that fits
        """
        if not division.rest:
            return None
        sums, kinds = self._sums(division), [*self._with_last(division)]
        order: list[int] = np.argsort(self.members == 0, kind="stable").tolist()
        full = division.full
        return next(i for i in order if sums.with_last(*kinds[i]).most(full) == full)

    def _with_last(self, division: Division) -> Iterator[tuple[bool, int, int, int, int]]:
        """Yield for each switch what :meth:`_Sums.with_last` reads."""
        low, high = division.full_parts(self.members, self.room, last=False)
        low_last, high_last = division.full_parts(self.members, self.room, last=True)
        numbers = (self.members > 0, low, high, low_last, high_last)
        yield from zip(*(each.tolist() for each in numbers), strict=True)

    def _sums(self, division: Division) -> "_Sums":
        """Return the sums of full parts without a last one."""
        low, high = division.full_parts(self.members, self.room, last=False)
        is_fixed, is_bad = self.members > 0, low > high
        fixed = is_fixed & ~is_bad
        least = 1 if division.each is None else division.each
        rooms = -np.sort(-high[~is_fixed & (high >= least)])
        return _Sums(
            low=int(low[fixed].sum()),
            high=int(high[fixed].sum()),
            unfit=int((is_fixed & is_bad).sum()),
            least=least,
            rooms=rooms,
            most_new=len(self.switches) if self.most_new is None else self.most_new,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Which numbers of full parts switches can have together."""

    low: int  # at least, below switches that have members or the last part
    high: int  # at most
    unfit: int  # switches with members below which no number of full parts fits
    least: int  # full parts below another used switch
    rooms: Array  # the most below each of the others, largest first
    most_new: int  # of the others that may be used

    def with_last(
        self, has_members: bool, low: int, high: int, low_last: int, high_last: int
    ) -> "_Sums":
        """Return the same where one of the switches has the last part.

        :param low: full parts below it without the last part, at least
        :param low_last: with it; more than ``high_last`` if it cannot have it
        """
        is_unfit, rooms = low > high, self.rooms
        if not has_members and high >= self.least:
            rooms = np.delete(rooms, np.searchsorted(-rooms, -high))
        is_summed = has_members and not is_unfit
        return _Sums(
            self.low + low_last - (low if is_summed else 0),
            self.high + high_last - (high if is_summed else 0),
            self.unfit - (has_members and is_unfit) + (low_last > high_last),
            self.least,
            rooms,
            self.most_new - (0 if has_members else 1),
        )

    def most(self, most: int) -> int:
        """Return the largest sum up to a number; -1: there is none."""
        if self.unfit or self.low > most or self.most_new < 0:
            return -1
        # With more of the others the sums are larger, and there are more of them.
        used = min(len(self.rooms), self.most_new, (most - self.low) // self.least)
        return min(most, self.high + int(self.rooms[:used].sum()))
