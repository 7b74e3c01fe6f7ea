"""Which hosts have changed since a moment, for what is kept per host and corrected when read."""

import numpy as np

from hpc_sched.core.arrays import Array

_MOST = 256  # changes that are remembered
_DEAR = 8  # times as dear as computing all hosts anew is the correction of one


class ChangedHosts:
    """Journal of the latest changes. What is kept per host remembers the moment of its values."""

    def __init__(self, hosts: int) -> None:
        """Start without any change.

        :param hosts: their number
        """
        self._hosts = hosts
        self.now = 0  # the moment: the number of changes
        self._changes: list[Array] = []  # the latest of them

    def note(self, hosts: Array) -> None:
        """Note a change of some hosts, each named once. O(1)."""
        self.now += 1
        self._changes.append(hosts)
        if len(self._changes) > _MOST:
            del self._changes[: _MOST // 2]

    def since(self, moment: int) -> Array | None:
        """Return the hosts that have changed since a moment, each once.

        None if they are not known, or so large a part of all that these are computed anew sooner.
        """
        number = self.now - moment
        if number > len(self._changes):
            return None
        found = self._changes[len(self._changes) - number :]
        if len(found) == 1:
            return found[0]
        if sum(map(len, found)) * _DEAR > self._hosts:
            return None
        hosts = {host for each in found for host in each.tolist()}
        return np.array(sorted(hosts), dtype=np.int64)
