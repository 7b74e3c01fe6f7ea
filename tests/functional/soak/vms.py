"""VMs, server groups and requests as the test knows them."""

from dataclasses import dataclass

from nova import objects

from tests.functional.soak.events import Event

# The task of a VM that moves, by the kind of its move.
TASK_OF = {
    "cold migrate": "resize_prep",
    "resize": "resize_prep",
    "live migrate": "migrating",
    "evacuate": "rebuilding",
    "unshelve": "unshelving",
}
# The type of the move's record, where it has one.
TYPE_OF = {
    "cold migrate": "migration",
    "resize": "resize",
    "live migrate": "live-migration",
    "evacuate": "evacuation",
}


@dataclass(frozen=True, slots=True)
class Size:
    """What a VM takes."""

    vcpus: int
    memory_mb: int
    type_id: int = 1


@dataclass
class VM:
    """A VM as the test knows it."""

    uuid: str
    job: str  # reservation id
    siblings: int
    group: str | None
    said: dict[str, str]
    size: Size
    host: str | None = None  # of its own record
    place: str | None = None  # claimed, and not there yet
    new: Size | None = None  # at that place
    moves: str | None = None  # the kind of its move
    migration: str = ""  # holds its place at the source
    left_on: str | None = None  # it was evacuated from there, and nobody has cleaned up

    @property
    def is_shelved(self) -> bool:
        """Tell whether it has no place and wants none."""
        return self.host is None and self.place is None

    @property
    def sides(self) -> list[str]:
        """Where it holds room that neighbours must mind."""
        return [host for host in (self.host, self.place) if host]

    @property
    def goal(self) -> str | None:
        """Where it is, or will be."""
        return self.place or self.host

    def allocations(self) -> dict[str, dict[str, Size]]:
        """Return what Placement must hold for it, by consumer and host."""
        own: dict[str, Size] = {}
        found = {self.uuid: own}
        if self.place:
            own[self.place] = self.new or self.size
        if self.host:
            if self.moves in (None, "evacuate") or not self.place:
                own[self.host] = self.size
            else:
                found[self.migration] = {self.host: self.size}
        if self.left_on:
            own[self.left_on] = self.size
        return {consumer: places for consumer, places in found.items() if places}


@dataclass
class Group:
    """A server group."""

    uuid: str
    policy: str
    said: dict[str, str]
    size: Size


@dataclass
class Attempt:
    """A request to the scheduler, and what became of it."""

    event: Event
    vms: list[VM]
    spec: objects.RequestSpec
    hosts: list[str] | None = None
    error: BaseException | None = None

    @property
    def uuids(self) -> list[str]:
        """Its VMs."""
        return [vm.uuid for vm in self.vms]
