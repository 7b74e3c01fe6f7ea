"""What the VMs of one host run, summed up once for the rules of sharing it (Gupta2013)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.sharing.cache_interference import Application, Limits, dedicated_room, room


@dataclass(frozen=True, slots=True)
class HostApplications:
    """The applications of the known VMs on a host; kept as long as these VMs stay there."""

    each: tuple[Application, ...] = ()
    # Class, name and score of each, sorted: hosts of one profile have the same room. A text, whose
    # hash is computed once.
    profile: str = ""
    has_extreme: bool = False

    @classmethod
    def of(cls, applications: Sequence[Application]) -> Self:
        """Return the applications of the VMs on a host. O(VMs log VMs)."""
        kinds = sorted(f"{vm.app_class} {vm.score!r} {vm.name!r}" for vm in applications)
        return cls(
            tuple(applications),
            "\n".join(kinds),
            any(vm.app_class == "extreme" for vm in applications),
        )


NO_APPLICATIONS = HostApplications()


def dedicated_rooms(vm: Application, hosts: Sequence[HostApplications]) -> list[int]:
    """Return what :func:`dedicated_room` says of each host.

    O(hosts), and their VMs where one of them, or the new VM, is of class ``extreme``.
    """
    is_extreme = vm.app_class == "extreme"
    return [
        dedicated_room(vm, host.each) if is_extreme or host.has_extreme else UNBOUNDED
        for host in hosts
    ]


def rooms(
    vm: Application,
    hosts: Sequence[HostApplications],
    limits: Sequence[Limits],
    incompatible: Collection[str] = (),
) -> list[int]:
    """Return what :func:`room` says of each host. O(hosts + VMs of hosts that are unlike others).

    :param limits: of each host; hosts with the same limits share one object
    """
    known: dict[tuple[str, int], int] = {}
    found = []
    for host, limit in zip(hosts, limits, strict=True):
        key = host.profile, id(limit)
        left = known.get(key)
        if left is None:
            left = known[key] = room(vm, host.each, limit, incompatible)
        found.append(left)
    return found
