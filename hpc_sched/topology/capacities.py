"""The capacities of links in one direction: of the uplinks of switches, and of hosts' links."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Capacities:
    """Data rates in Mb/s, whole numbers from 1 on."""

    switches: NDArray[np.int64]  # of all uplinks of a switch; 0 at roots. Shape (switches,)
    hosts: NDArray[np.int64]  # of a host's own links. Shape (hosts,)
