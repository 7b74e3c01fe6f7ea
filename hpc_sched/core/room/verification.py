"""The check of planned hypervisors that a plan asks for."""

from collections.abc import Mapping
from typing import Protocol

from hpc_sched.core.arrays import Array


class RoomCheck(Protocol):
    """Verifies rooms that are bounds only, where a plan uses them."""

    def verified(self, planned: Array) -> Array:
        """Return the VMs that each hypervisor takes at most, exact where some are planned.

        Later calls never return more for a hypervisor. Shape (hypervisors,).

        :param planned: VMs planned on each hypervisor, shape (hypervisors,)
        """

    def by_resource(self) -> Mapping[str, Array]:
        """Return the VMs that each hypervisor takes if one resource alone counted.

        By resource class, or another name of what is demanded; arrays of shape (hypervisors,).
        """
