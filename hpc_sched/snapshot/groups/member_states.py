"""What the members of a group count as, by their states; as the scheduler reads them."""

from collections.abc import Iterable
from dataclasses import dataclass

from hpc_sched.snapshot.snapshot_model import Server, Snapshot

_GONE = ("DELETED", "SOFT_DELETED")  # deleted to the user
_SHELVED = "SHELVED_OFFLOADED"


@dataclass(frozen=True, slots=True)
class MemberStates:
    """The members of a group that is about to get more VMs."""

    placed: tuple[Server, ...]  # others are placed near them
    leaving: tuple[Server, ...]  # on hosts that are down
    shelved: int  # without a host

    @property
    def followers(self) -> int:
        """Members that await a place, and affect the choice alone."""
        return len(self.leaving) + self.shelved


def of(snapshot: Snapshot, members: Iterable[Server]) -> MemberStates:
    """Return the members of a group by state. O(hypervisors + members)."""
    down = {node.place for node in snapshot.hypervisors if not node.up}
    living = [server for server in members if server.status not in _GONE]
    return MemberStates(
        tuple(server for server in living if server.host and server.place not in down),
        tuple(server for server in living if server.host and server.place in down),
        sum(not server.host and server.status == _SHELVED for server in living),
    )
