"""The HostStates of one request as they were when it was first seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from nova.scheduler import host_manager
from numpy.typing import NDArray

Array = NDArray[np.int64]


class ClaimObserver:
    """Tells HostStates by their positions, and how many VMs each has taken since.

    What a request itself has placed shows reliably in HostState.num_instances against its value
    at first sight.
    """

    def __init__(self, states: Sequence[host_manager.HostState]) -> None:
        self.states = list(states)
        self.index = {id(state): i for i, state in enumerate(self.states)}
        self._num_instances = self._count()

    def knows(self, states: Sequence[host_manager.HostState]) -> bool:
        """Tell whether all these HostStates are the ones of first sight."""
        return all(id(state) in self.index for state in states)

    def positions(self, states: Sequence[host_manager.HostState]) -> Array:
        """Return the position of each HostState in the order of first sight."""
        return np.array([self.index[id(state)] for state in states], dtype=np.int64)

    def placed(self) -> Array:
        """Return how many VMs each HostState has taken since."""
        return self._count() - self._num_instances

    def _count(self) -> Array:
        return np.fromiter(
            (state.num_instances for state in self.states), np.int64, len(self.states)
        )
