"""HPCHomogeneityFilter: all VMs of a group on one processor type (Gupta2012)."""

from __future__ import annotations

import nova.conf
import numpy as np
from nova import objects
from numpy.typing import NDArray

from hpc_sched import exceptions
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.processors import best_first
from hpc_sched.filters.base import GroupFilter, States, check_members, select
from hpc_sched.nova_glue.request import served_requests
from hpc_sched.nova_glue.room import host_processors

CONF = nova.conf.CONF


class HPCHomogeneityFilter(GroupFilter):
    """Keeps the hosts of one processor type.

    The type that the group's members run on; where there are none, the best of the types that
    hold most of the group: this request's VMs at least, and where one can, those of other
    requests and of ``hpc:group_size``. Where no single type can, all hosts pass with
    ``hpc:homogeneous=prefer``; with ``true`` the request is refused, as it is where the type
    of a member is not known. HPCGroupFilter, where it is enabled behind this one, tells the
    user why.
    """

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        state = served_requests.state_of(spec, states)
        if state is None or state.request.hpc_specs.homogeneous == "false":
            return states
        must = state.request.hpc_specs.homogeneous == "true"
        types = host_processors.types_of(state)
        positions = state.positions(states)
        here = [types.candidates[i] for i in positions.tolist()]
        if not must and len(set(here)) == 1 and not set(types.members) - set(here):
            return states
        known = {name: types.cores[name] for name in set(here) if name is not None}
        running = {name: count for name, count in types.members.items() if name is not None}
        if must:
            check_members(state)
            _check_types(types.members)
        if running:
            known = {name: cores for name, cores in known.items() if name in running}
        most = 0
        best: tuple[Plan, str, NDArray[np.bool_]] | None = None
        for name in best_first(known, CONF.hpc_sched.processor_order, running):
            keep = np.array([found == name for found in here])
            answer = state.planning.plan(positions[keep])
            if not isinstance(answer, Plan):
                most = max(most, answer.best.vms if answer.best is not None else 0)
            elif best is None or answer.count > best[0].count:
                best = answer, name, keep
                if answer.count == state.sizes[0]:
                    break
        if best is not None:
            _, name, keep = best
            removed = len(states) - int(keep.sum())
            state.record.count_removed(f"processor type other than {name}", removed)
            return select(states, keep)
        if not must:
            return states
        anywhere = state.planning.plan(positions)
        if isinstance(anywhere, Rejection):
            # Processors are not what it lacks.
            raise state.rejection(anywhere, positions)
        raise exceptions.RefusedError(
            f"no single processor type holds {state.sizes[-1]} VMs"
            f"{_of_members(running)}: largest gang that fits on "
            f"{'it' if running else 'one type'}: {most}"
            f" (types: {', '.join(sorted(known)) or 'none is known'})",
            f"no single processor type holds {state.sizes[-1]} VMs: largest gang that fits on "
            f"{'the type of the members' if running else 'one type'}: {most}",
        )


def _check_types(members: dict[str | None, int]) -> None:
    """Check that the members themselves are on one type.

    :raises exceptions.RefusedError: where they are not, or nobody knows
    """
    if members.get(None):
        raise exceptions.RefusedError(
            f"the processor type of {members[None]} members of the group is not known"
        )
    if len(members) > 1:
        names = ", ".join(sorted(name for name in members if name is not None))
        raise exceptions.RefusedError(
            f"members of the group run on {len(members)} processor types: {names}",
            f"members of the group run on {len(members)} processor types",
        )


def _of_members(running: dict[str, int]) -> str:
    return f" on {', '.join(sorted(running))}, where its members run" if running else ""
