"""Groups and VMs, as their users see them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.group_histories.oracle import Wish
from tests.protocol.nova_model import uuid_of


@dataclass(eq=False)
class Group:
    """A server group; all its VMs have one flavor."""

    name: str
    policy: str
    wish: Wish
    is_deleted: bool = False

    @property
    def uuid(self) -> str:
        """Its uuid."""
        return uuid_of(self.name)


@dataclass(eq=False)
class Server:
    """An instance. States: scheduling, failed (in cell0), deleted, or Nova's vm_state."""

    name: str
    group: Group
    reservation: str
    number: int  # of VMs that its request was made for
    state: str = "scheduling"
    task: str | None = None
    node: str | None = None
    source: str | None = None  # node that it migrates from
    moved: list[str] = field(default_factory=list)  # nodes that its migration holds
    left_on: list[str] = field(default_factory=list)  # nodes that it was evacuated from

    @property
    def uuid(self) -> str:
        """Its uuid."""
        return uuid_of(self.name)

    @property
    def migration(self) -> str:
        """The uuid of its migration."""
        return uuid_of(f"m{self.name}")

    @property
    def is_there(self) -> bool:
        """True if its user sees it somewhere, in ERROR or not."""
        return self.state not in ("failed", "deleted", "scheduling")
