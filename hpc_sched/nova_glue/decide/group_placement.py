"""One group while its request is served: its inputs, what Nova did since, the decision."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import nova.conf
import numpy as np
from nova.scheduler import host_manager

from hpc_sched import conf
from hpc_sched.core.arrays import Array
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.objective import LeastBottleneck
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue import failures
from hpc_sched.nova_glue.decide.decisions import Decisions
from hpc_sched.nova_glue.read.inputs import Inputs
from hpc_sched.nova_glue.read.nova_claims import Event, NovaClaims
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace

CONF = nova.conf.CONF


class GroupPlacement:
    """A group during one request.

    Used by the thread that serves the request; :mod:`claim_followup` and :mod:`landed_record` read
    it from theirs. Arrays over HostStates are in the order of the first call.
    """

    def __init__(self, inputs: Inputs) -> None:
        timeout = conf.number(CONF, "planning_timeout")
        self.decisions = Decisions(timeout, inputs.request.instance_uuid)
        # Returns what the request has claimed for VMs that Nova has not placed, by instance.
        self.held_places: Callable[[], Mapping[str, ClaimedPlace]] = dict
        self.removed = RemovalCounts()
        self.is_warned = False  # whether ignored constraints are logged
        # The group after an event, and what it was made of.
        self._now: tuple[Inputs, Event, GroupRequest] | None = None
        self._begin(inputs)

    def _begin(self, inputs: Inputs) -> None:
        # What the group is decided from; with the same members it may be set.
        self.inputs = inputs
        self.nova = NovaClaims(inputs.states, inputs.membership.queue)

    def use(self, inputs: Inputs) -> None:
        """Decide by members that were read again, during a call before Nova's first claim."""
        positions = self.event.candidates
        self._begin(inputs)
        states = [inputs.states[i] for i in positions]
        self.observe(inputs.request.instance_uuid, states)

    @property
    def event(self) -> Event:
        """What Nova has done for the request, as of its last call."""
        return self.nova.last

    def observe(self, instance: str, states: Sequence[host_manager.HostState]) -> None:
        """Take over what Nova has done up to a call.

        :param instance: uuid of the VM to place next
        :param states: the candidates of the call
        """
        event = self.nova.observe(instance, states)
        self.inputs.rooms.observe(event.placed, lost_hosts(self).tolist())

    def held(self, *, for_others: bool = False) -> Array:
        """Return the VMs of the request that are claimed on each HostState ahead of Nova.

        Shape (HostStates,).

        :param for_others: whether the current VM is left out
        """
        held = np.zeros(len(self.inputs.states), dtype=np.int64)
        left_out = self.event.instance if for_others else None
        places = self.held_places().items()
        np.add.at(held, [place.position for uuid, place in places if uuid != left_out], 1)
        return held

    def request(self, positions: Array | None = None) -> GroupRequest:
        """Return the group after the claims so far; built once a VM.

        Hosts that lost a claim have room for what the request holds there alone. O(hosts of the
        topology).

        :param positions: of the HostStates that are candidates; all by default
        """
        inputs, event = self.inputs, self.event
        if self._now is None or self._now[0] is not inputs or self._now[1] is not event:
            self._now = inputs, event, inputs.first.after(event.placed)
        room = inputs.room(event.placed)
        room[event.lost] = np.minimum(room, self.held())[event.lost]
        now = replace(self._now[2], room=room, full_hosts=inputs.full_hosts(event.placed))
        if positions is None:
            return now
        candidates = np.zeros(len(room), dtype=np.bool_)
        candidates[positions] = True
        return now.among(candidates)

    def answer(self, request: GroupRequest, *, anew: bool = False) -> Plan | Rejection:
        """Return the decision on the group: the rest of the last plan if that still holds.

        :param anew: whether the last plan is forgotten
        """
        if anew:
            self.decisions.forget()
        try:
            return self._answer(request)
        except Exception:
            if not isinstance(request.objective, LeastBottleneck):
                raise
            failures.log("hpc:objective=bottleneck failed: planned by hops", "hpc:objective")
        # For all VMs of the request, and plans that are made later.
        self.inputs = self.inputs.by_hops()
        return self._answer(replace(request, objective=None))

    def _answer(self, request: GroupRequest) -> Plan | Rejection:
        rooms, number = self.inputs.rooms, self.event.number
        before = rooms.room
        answer = self.decisions.current(request, placed=number)
        if (rooms.room > before).any():
            room = np.where(request.room > 0, self.request().room, 0)
            self.decisions.forget()
            answer = self.decisions.current(replace(request, room=room), placed=number)
        return answer


@dataclass
class RemovalCounts:
    """How many hosts the filters of hpc_sched have removed, and why."""

    by_reason: Counter[str] = field(default_factory=Counter)
    bounds_plan: bool = False  # whether the plan was made without any of them

    def count(self, why: str, number: int, *, bounds_plan: bool = True) -> None:
        """Count hosts.

        :param bounds_plan: whether the plan was made without them
        """
        if number:
            self.by_reason[why] += number
            self.bounds_plan |= bounds_plan


def lost_hosts(group: GroupPlacement) -> Array:
    """Return the positions of HostStates that lost a claim, and hold none. Shape (lost,)."""
    lost = group.event.lost
    without: Array = lost[group.held()[lost] == 0]
    return without


def finds_more_room(group: GroupPlacement, request: GroupRequest) -> bool:
    """True if hosts have more room than their HostStates say; asked before a refusal.

    One call to Placement for all hosts, once a request, where room bounds the group.
    """
    if not request.is_bounded_by_room or not group.inputs.rooms.read_all():
        return False
    group.decisions.forget()
    return True
