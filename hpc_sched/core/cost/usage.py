"""Core-hours of VMs, hours of the hosts that run them, and the revenue of both.

Gupta2013 has both ways to save: a placement that makes a job of N cores shorter by a fifth saves a
fifth of its time times N core-hours (section VI-A), and VMs packed on fewer hosts earn more an
hour of each host (section II, Table I).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hpc_sched.core.cost.prices import Prices


@dataclass(frozen=True, slots=True)
class Usage:
    """What VMs have used in some time, and the hosts that ran them.

    A host is in use while it has at least one VM, whatever the VM's size. Its cores are the vcpus
    that it offers to VMs, allocation ratio included.
    """

    core_hours: Mapping[str, float]  # application class to vcpus of its VMs times hours
    host_hours: float  # of the hosts in use
    host_core_hours: float  # of all cores of these hosts, with and without a VM

    @property
    def all_core_hours(self) -> float:
        """Core-hours of VMs of all classes."""
        return math.fsum(self.core_hours.values())

    def revenue(self, prices: Prices) -> float:
        """Return what users pay for the core-hours of their VMs.

        A VM pays for its own vcpus, also one of class ``extreme``, which keeps the rest of its
        hosts empty: where users pay for that, the price of the class says so.
        """
        return math.fsum(hours * prices.of(name) for name, hours in self.core_hours.items())

    def revenue_per_host_hour(self, prices: Prices) -> float | None:
        """Return the revenue of one host in use in one hour; None without a host in use."""
        return self.revenue(prices) / self.host_hours if self.host_hours else None

    def revenue_per_host_core_hour(self, prices: Prices) -> float | None:
        """Return the revenue of one core of a host in use in one hour; None without a core."""
        return self.revenue(prices) / self.host_core_hours if self.host_core_hours else None
