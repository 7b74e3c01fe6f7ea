"""The phases of a request, and what a call of Nova brings and each phase keeps."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from nova import objects
from nova.scheduler import host_manager

from hpc_sched import clock
from hpc_sched.core.arrays import Array
from hpc_sched.nova_glue.claim import claim_conditions, follower_holds, group_turns
from hpc_sched.nova_glue.claim.doubt import Doubt
from hpc_sched.nova_glue.claim.request_claims import RequestClaims
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io.fabric import Fabric
from hpc_sched.nova_glue.read import input_reader, request_spec
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.read.instances.group_members import LookUp
from hpc_sched.nova_glue.read.room.allocation_candidates import CandidateOrder
from hpc_sched.nova_glue.record.request_record import RequestRecord

States = list[host_manager.HostState]


class Phase(enum.Enum):
    """Where a request is on its way."""

    NEW = "new"
    READ = "read"
    DECIDED = "decided"
    CLAIMED = "claimed"
    ANSWERED = "answered"
    RECORDED = "recorded"


# Phase to those that may follow it within a call of Nova. A call begins with READ.
TRANSITIONS: Mapping[Phase, frozenset[Phase]] = {
    Phase.NEW: frozenset({Phase.READ}),
    Phase.READ: frozenset({Phase.DECIDED, Phase.ANSWERED}),
    Phase.DECIDED: frozenset({Phase.CLAIMED, Phase.ANSWERED}),
    Phase.CLAIMED: frozenset({Phase.READ, Phase.ANSWERED}),
    Phase.ANSWERED: frozenset({Phase.RECORDED}),
    Phase.RECORDED: frozenset(),
}


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of Nova."""

    plugin: str  # class of the filter or weigher
    spec: objects.RequestSpec
    states: States
    began: float = field(default_factory=lambda: clock.current.monotonic())


@dataclass(frozen=True, slots=True, eq=False)
class ServedGroup:
    """The group of a request, with what each phase keeps of it."""

    group: GroupPlacement
    claims: RequestClaims
    order: CandidateOrder
    record: RequestRecord

    @classmethod
    def read(
        cls, call: Call, fabric: Fabric, colocated: Callable[[], ColocatedInstances]
    ) -> Self | None:
        """Return the group of a request that is first seen, as :func:`input_reader.read` does."""
        turns = []

        def look_up(
            request: request_spec.RequestedGroup, in_flight: Mapping[str, tuple[str, str | None]]
        ) -> LookUp:
            turns.append(turn := group_turns.turn_of(request.group_uuid))
            # Without a claim nothing is looked at again.
            anew = claim_conditions.obstacle() is not None
            return partial(turn.look_up, known=in_flight, anew=anew)

        found = input_reader.read(
            call.spec, call.states, fabric, colocated, look_up, follower_holds.read
        )
        if found is None:
            return None
        claims = RequestClaims(GroupPlacement(found), turns[0])
        order = CandidateOrder(found.rooms.candidates, found.rooms.arrange)
        return cls(claims.group, claims, order, RequestRecord(claims))

    def read_again(self, doubt: Doubt) -> bool:
        """Read what a claim has put in doubt; False if that would change nothing."""
        group, turn = self.group, self.claims.turn
        found = input_reader.read_again(
            group.inputs,
            doubt.hosts,
            partial(turn.look_up, anew=doubt.anew) if doubt.members else None,
            group.held_places(),
            follower_holds.read if doubt.holds else None,
            needs_members=doubt.needs_members,
        )
        if found is not None and found is not group.inputs:
            group.use(found.with_members(turn.with_claims(found.membership)))
        return found is not None

    def arrange(self, positions: Array) -> None:
        """Put first the allocation candidate that the next VM shall claim on each host."""
        self.order.arrange(self.group.event.instance, positions, self.claims.place)

    def positions(self, states: States) -> Array:
        """Return the positions of HostStates."""
        return self.group.nova.hosts.positions(states)

    def states(self, positions: Array) -> States:
        """Return HostStates by their positions."""
        return [self.group.inputs.states[i] for i in positions.tolist()]
