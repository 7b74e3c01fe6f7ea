"""Files that start the processes of an MPI program on VMs in the order in which they are given.

``hostfile``     of Open MPI: ``vm-1 slots=4``
``machinefile``  of MPICH, Intel MPI and MVAPICH: ``vm-1:4``
``rankfile``     of Open MPI, with the cores of each process: ``rank 0=vm-1 slot=0``
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from hpc_sched import exceptions
from hpc_sched.snapshot.snapshot_model import Server
from hpc_sched.topology import hostlist

Write = Callable[[Sequence[Server], int | None], Iterator[str]]


def lines(kind: str, servers: Sequence[Server], slots: int | None) -> list[str]:
    """Return the lines of a file of a kind, a key of :data:`KINDS`.

    :param servers: VMs that have names of their own
    :param slots: processes on each VM; None: one for each VCPU
    :raises exceptions.HPCSchedError: for a VM whose name cannot be in such a file, or is another's
        too, and in a rankfile for one with fewer VCPUs than processes
    """
    number = Counter(server.name for server in servers)
    for server in servers:
        which = f"VM {server.name!r} ({server.uuid})"
        if not hostlist.PLAIN.match(server.name):
            raise exceptions.HPCSchedError(
                f"{which}: its name cannot be in a {kind}: expected letters, digits and . _ -"
            )
        if number[server.name] > 1:
            raise exceptions.HPCSchedError(
                f"{which}: {number[server.name]} VMs of the group have this name: expected one in "
                f"a {kind}"
            )
    return list(KINDS[kind](servers, slots))


def _hostfile(servers: Sequence[Server], slots: int | None) -> Iterator[str]:
    for server in servers:
        yield f"{server.name} slots={slots or server.flavor.vcpus}"


def _machinefile(servers: Sequence[Server], slots: int | None) -> Iterator[str]:
    for server in servers:
        yield f"{server.name}:{slots or server.flavor.vcpus}"


def _rankfile(servers: Sequence[Server], slots: int | None) -> Iterator[str]:
    rank = 0
    for server in servers:
        vcpus = server.flavor.vcpus
        if slots and slots > vcpus:
            raise exceptions.HPCSchedError(
                f"VM {server.name!r} ({server.uuid}): {slots} processes for {vcpus} VCPUs: "
                "expected a VCPU or more for each in a rankfile"
            )
        each = vcpus // slots if slots else 1
        for first in range(0, vcpus - each + 1, each)[:slots]:
            last = first + each - 1
            yield f"rank {rank}={server.name} slot={first}" + (f"-{last}" if each > 1 else "")
            rank += 1


KINDS: Mapping[str, Write] = {
    "hostfile": _hostfile,
    "machinefile": _machinefile,
    "rankfile": _rankfile,
}
