"""One RequestSpec while Nova serves it: the phases of its way, and the values so far."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial

from nova.scheduler import host_manager, weights

from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.nova_glue.answer import passing
from hpc_sched.nova_glue.claim import follower_holds, gang_claiming
from hpc_sched.nova_glue.claim.doubt import Rounds
from hpc_sched.nova_glue.decide import checks, plans, processor_type
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io import request_deadline
from hpc_sched.nova_glue.phases import TRANSITIONS, Call, Phase, ServedGroup, States
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.record import request_record
from hpc_sched.nova_glue.request_reads import RequestReads


class Plugin:
    """What a session asks of a filter."""

    #: whether it raises NoValidHost, so that the user reads the reason of a refusal
    reports_refusals = False

    def keep(self, session: PlacementSession, call: Call) -> States:
        """Return the hosts that pass.

        :raises exceptions.RefusedError: if a guarantee cannot be kept
        """
        raise NotImplementedError

    def needs_proof(self, session: PlacementSession, call: Call) -> bool:
        """True if the request has a guarantee that the filter checks."""
        return session.hpc_specs(call.spec).needs_proof


class Weigher:
    """What a session asks of a weigher."""

    #: whether a host on which the VM is claimed already comes first, whatever others weigh
    follows_claims = False

    def places(self, group: GroupPlacement) -> bool:
        """True if the weigher orders the hosts for a group."""
        raise NotImplementedError

    def group_weights(self, group: GroupPlacement) -> list[float]:
        """Return the weights of the candidates for a VM of a group."""
        raise NotImplementedError

    def prefer(self, state: host_manager.HostState, multiplier: float) -> None:
        """Give a host a multiplier of its own: the current VM is claimed there."""
        raise NotImplementedError

    def unplanned_weights(
        self, session: PlacementSession, call: Call, weighed: Sequence[weights.WeighedHost]
    ) -> list[float]:
        """Return the weights for a VM without a group, or of class ``none``; [] for none."""
        return []


class PlacementSession(RequestReads):
    """A request from its first call until Nova drops its RequestSpec.

    Used by the one thread that serves the request. Each call of Nova goes this way, in one
    direction; what a call does not need it leaves out:

    ========  ======================================================  ==========================
    phase     what is done                                            may be followed by
    ========  ======================================================  ==========================
    new       nothing yet                                             read
    read      inputs at the first call, then what Nova did since      decided answered
    decided   the plan of the group, or a Rejection; other checks     claimed answered
    claimed   the plan's places, ahead of Nova                        read answered
    answered  the hosts that pass, or their order                     recorded
    recorded  the decision in log, decision log and metrics
    ========  ======================================================  ==========================

    A call passes *claimed* where nothing may be claimed, too: the plan then holds as it is. After
    *claimed* comes *read* where others have taken places of the plan: one more round, in
    :meth:`_rounds`. A refusal ends a call at any phase.
    """

    def __init__(self) -> None:
        super().__init__()
        self.phase = Phase.NEW
        self.served: ServedGroup | None = None
        self.deadline = request_deadline.RequestDeadline()
        self._is_read = False  # whether the group was read, or could not be
        self._is_checked = False  # whether HPCGroupFilter has checked the request

    def filtered(self, call: Call, plugin: Plugin) -> States:
        """Return the hosts that pass a filter; raises NoValidHost alone."""
        raise NotImplementedError

    def weighed(
        self, call: Call, plugin: Weigher, weighed: Sequence[weights.WeighedHost]
    ) -> list[float]:
        """Return the weights of hosts, [] for none."""
        raise NotImplementedError

    def place(self, call: Call) -> States:
        """Return the hosts on which the group keeps its constraints, its plan claimed.

        For the first VM of a request; for others the claims are kept on hosts that are left.

        :raises exceptions.RefusedError: if a guarantee cannot be kept
        """
        is_first, self._is_checked = not self._is_checked, True
        if not is_first:
            return self._place_next(call)
        served = self._read(call)
        self._enter(Phase.DECIDED)
        if served is None:
            checks.check_without_group(call.spec, self.hpc_specs(call.spec))
            return call.states
        answer = plans.checked_plan(served.group)
        is_move = served.group.inputs.membership.is_move
        take = follower_holds.hold if is_move else gang_claiming.claim
        answer = self._rounds(served, take(served.claims, call.spec, answer))
        self._enter(Phase.ANSWERED)
        kept = passing.passing(served.claims, answer)
        is_planned = isinstance(answer, Plan)
        if is_planned:
            served.arrange(kept)
        if len(kept) == 1 or not is_planned:
            # With one host Nova calls no weigher, which would log the decision otherwise.
            self._enter(Phase.RECORDED)
            request_record.log(served.record, answer)
        return served.states(kept)

    def choose_processor(self, call: Call) -> States:
        """Return the hosts of the group's processor type, all if it is only preferred.

        :raises exceptions.RefusedError: if no type that is required holds the group
        """
        if (served := self._read(call)) is None:
            return call.states
        self._enter(Phase.DECIDED)
        keep = processor_type.choose(served.group, is_claimed=served.claims.gang is not None)
        return call.states if keep is None else served.states(served.group.event.candidates[keep])

    def prune(self, call: Call) -> States:
        """Return the hosts of the plan's leaves and spares, while places are claimed.

        :raises exceptions.RefusedError: if a group with constraints has no plan
        """
        if (served := self._read(call)) is None:
            return call.states
        self._enter(Phase.DECIDED)
        answer = plans.plan_of_rest(served.group)
        if answer is None:
            return call.states
        self._enter(Phase.ANSWERED)
        kept = passing.in_leaves_and_spares(served.group, answer)
        self._enter(Phase.RECORDED)
        request_record.log(served.record, answer)
        return served.states(kept)

    @property
    def placed(self) -> int:
        """The number of VMs that the request has placed, as of the last update."""
        of_group = self.served.group.event.number if self.served is not None else 0
        return max(of_group, self._colocated.placed if self._colocated is not None else 0)

    def _needs_proof(self, call: Call, plugin: Plugin) -> bool:
        """True if an error refuses a request: a new VM has a guarantee that is not proven."""
        try:
            return not request_spec.is_move(call.spec) and plugin.needs_proof(self, call)
        except Exception:
            # The error itself is logged. An unreadable request may have a guarantee.
            return True

    def _enter(self, phase: Phase) -> None:
        assert phase in TRANSITIONS[self.phase], f"{phase} after {self.phase}"
        self.phase = phase

    def _read(self, call: Call) -> ServedGroup | None:
        """Return the group that a request places, or None without one.

        Read from the databases once per request; later calls return the same object, updated by the
        claims since. A read that fails is not repeated for this request.
        """
        self.phase = Phase.READ
        served = self.served
        if not self._is_read or (
            served is not None and not served.group.nova.hosts.knows(call.states)
        ):
            self._is_read, self.served = True, None
            there = partial(self.colocated, call.spec, call.states)
            self.served = served = ServedGroup.read(call, self._fabric, there)
        if served is not None:
            served.claims.note_placed()
            served.group.observe(call.spec.instance_uuid, call.states)
        return served

    def _rounds(self, served: ServedGroup, rounds: Rounds) -> Plan | Rejection:
        """Return the answer that holds, once what was taken meanwhile is read and planned again.

        One round in the quiet case; what claims bounds their number.
        """
        found = None
        with closing(rounds):
            while True:
                self._enter(Phase.CLAIMED)
                try:
                    doubt = rounds.send(found)
                except StopIteration as end:
                    answer: Plan | Rejection = end.value
                    return answer
                self._enter(Phase.READ)
                is_read = served.read_again(doubt)
                self._enter(Phase.DECIDED)
                found = plans.plan_of_candidates(served.group, anew=True) if is_read else None

    def _place_next(self, call: Call) -> States:
        """Return the hosts for a VM after the first: all, but where a bound at least needs others.

        Keeps the claims on hosts that are still candidates; arranges the allocation candidates.
        """
        served = self.served
        if served is None:
            return call.states
        is_spread = served.group.inputs.first.constraints.bounds.change_with_each_vm
        # To look at the claims of all hosts takes a while, and most hosts have one candidate.
        if not (
            is_spread or served.group.inputs.rooms.candidates.offered.differ or served.claims.gang
        ):
            return call.states
        if (served := self._read(call)) is None:
            return call.states
        group, place = served.group, served.claims.place
        positions = group.event.candidates
        if place is not None and not (
            group.inputs.rooms.candidates.offers(place) and place.position in positions
        ):
            self._enter(Phase.DECIDED)
            answer = plans.plan_of_candidates(group)
            self._rounds(served, gang_claiming.reclaim(served.claims, answer))
        self._enter(Phase.ANSWERED)
        if is_spread:
            positions = passing.passing_next(group)
        served.arrange(positions)
        return served.states(positions) if is_spread else call.states
