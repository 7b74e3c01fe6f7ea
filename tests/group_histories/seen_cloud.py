"""What drawing, requests and checks see of a cloud, in memory or a whole Nova."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from tests.group_histories.fabrics import Fabric
from tests.group_histories.servers import Group, Server

#: What a consumer has in Placement: provider and resource class to an amount.
Rows = Mapping[tuple[str, str], int]


class SeenCloud(ABC):
    """A cloud with a fabric, nodes, groups and VMs; what Placement holds of it."""

    fabric: Fabric
    sizes: Mapping[str, int]  # node to the VMs that it takes
    demand: Mapping[str, int]  # what a VM takes, by resource class
    groups: dict[str, Group]
    servers: dict[str, Server]
    out: dict[str, str]  # service to how: forced, dead, gone or disabled

    @property
    @abstractmethod
    def now(self) -> float:
        """The time of the plugin's clock, in seconds since 1970."""

    @property
    @abstractmethod
    def allocations(self) -> Mapping[str, Rows]:
        """What each consumer has in Placement, by its uuid."""

    @abstractmethod
    def begin(self, fabric: Fabric, sizes: Mapping[str, int]) -> None:
        """Begin a history with nodes that take some VMs each."""

    @abstractmethod
    def pass_time(self, seconds: float) -> None:
        """Let time pass."""

    @abstractmethod
    def provider(self, node: str) -> str:
        """Return what a node is called as a provider in ``allocations``."""

    @abstractmethod
    def name_of(self, uuid: str) -> str:
        """Return the name of a VM."""

    def new_server(self, name: str, group: Group, reservation: str, number: int) -> Server:
        """Return a VM that is to be scheduled; ``number`` VMs are in its request."""
        return Server(name, group, reservation, number)

    def node_called(self, nodename: str) -> str:
        """Return the node that Nova calls so."""
        return nodename

    def is_up(self, node: str) -> bool:
        """True if Nova's filters pass a node."""
        return self.fabric.service(node) not in self.out

    def held(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return what a consumer has in Placement, by node."""
        names = {self.provider(node): node for node in self.sizes}
        found: dict[str, dict[str, int]] = {}
        for (at, name), amount in self.allocations.get(consumer, {}).items():
            found.setdefault(names.get(at, at), {})[name] = amount
        return found
