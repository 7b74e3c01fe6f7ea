"""What one request holds in Placement ahead of Nova, and what it shares with its group's others."""

from collections.abc import Mapping

from hpc_sched.nova_glue.claim.group_turns import GroupTurn
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.decide.group_placement import GroupPlacement
from hpc_sched.nova_glue.io.allocations import Owner
from hpc_sched.nova_glue.read.room.allocation_candidates import ClaimedPlace
from hpc_sched.nova_glue.read.room.providers.offered_candidates import Candidate


class RequestClaims:
    """The gang claim of a request; it has none until something is claimed.

    Used by the thread that serves the request; :mod:`claim_followup` uses it from its own with the
    lock of the gang claim held.
    """

    def __init__(self, group: GroupPlacement, turn: GroupTurn) -> None:
        """Hold nothing yet.

        :param turn: what the group's requests share
        """
        self.group = group
        self.turn = turn
        self.gang: GangClaim | None = None
        self.multiplier = 0.0  # with which a claimed host wins against all weighers together
        self.instances: frozenset[str] = frozenset()  # those that Nova has claimed included
        # Whether the claim at the first VM has ended. gang_claiming.reclaim sends others later, but
        # only while places are held, and so while claim_followup has not finished anyway.
        self.is_complete = False
        self.is_over = False  # whether its thread serves another request

    def begin(self, owner: Owner, multiplier: float, instances: frozenset[str]) -> GangClaim:
        """Return the gang claim of the request, made now; it holds nothing at first."""
        self.gang = GangClaim(owner)
        self.multiplier, self.instances = multiplier, instances
        self.group.held_places = self._places
        self.group.inputs.rooms.hold(self._candidates)
        return self.gang

    @property
    def place(self) -> ClaimedPlace | None:
        """Where the current VM is claimed; None without a claim, and once Nova has placed it."""
        return self._places().get(self.group.event.instance or "")

    def note_placed(self) -> None:
        """Note where Nova has placed the last VM, if it has; see :meth:`GangClaim.note_placed`."""
        group, uuid = self.group, self.group.event.instance
        if self.gang is None or uuid is None:
            return
        taken = group.nova.taken_since()
        claimed = group.inputs.rooms.candidates.chosen(taken[0]) if len(taken) == 1 else None
        if claimed is not None:
            self.gang.note_placed(uuid, claimed["allocations"])

    def release(self) -> None:
        """Remove what Nova has not claimed."""
        if self.gang is not None:
            self.gang.release()

    def fence(self) -> None:
        """Keep what was sent without an answer from being made while Nova claims VM by VM.

        Their consumers in Placement are claimed anew; no host is fenced.
        """
        if self.gang is not None:
            self.gang.fence()

    def _places(self) -> Mapping[str, ClaimedPlace]:
        return {} if self.gang is None else self.gang.places

    def _candidates(self) -> list[Candidate]:
        return [place.candidate for place in self._places().values()]
