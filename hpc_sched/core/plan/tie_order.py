"""The order in which a group takes equal switches."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpc_sched.core.arrays import Array
from hpc_sched.topology.model import Topology

_MANY = 8  # all switches are hashed, once, for more than one of this number


@dataclass(frozen=True, eq=False)
class TieOrder:
    """The order of a group's switches: by (blake2b of group id and switch name, name).

    Always the same for one group, but different for two, so that groups scheduled at the same time
    start in different leaves.
    """

    topology: Topology
    group_id: str

    @cached_property
    def ranks(self) -> Array:
        """The rank of each switch. Shape (switches,). O(switches) hashes, once."""
        return self._ranks([switch.name for switch in self.topology.switches])

    def among(self, switches: Array) -> Array:
        """Return the ranks of some switches among each other, in the shape of ``switches``.

        Of few of them these alone are hashed: hardly any plan depends on the names of all.
        """
        if "ranks" in self.__dict__ or _MANY * len(switches) > len(self.topology.switches):
            return self.ranks[switches]
        found, index = np.unique(switches, return_inverse=True)
        if len(found) == 1:
            return np.zeros_like(switches)
        names = [self.topology.switches[switch].name for switch in found.tolist()]
        return self._ranks(names)[index]

    def _ranks(self, names: Sequence[str]) -> Array:
        salt = self.group_id.encode() + b"\0"
        digests = (hashlib.blake2b(salt + name.encode(), digest_size=8).digest() for name in names)
        keys = np.frombuffer(b"".join(digests), dtype=">u8")
        order = np.argsort(keys, kind="stable")
        if (keys[order][1:] == keys[order][:-1]).any():
            order = np.array(sorted(range(len(names)), key=lambda s: (int(keys[s]), names[s])))
        return np.argsort(order)
