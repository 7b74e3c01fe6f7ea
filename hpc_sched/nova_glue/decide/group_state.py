"""One group during one request: the values read at the first call, and its claims since."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import nova.conf
import numpy as np
from nova.scheduler import host_manager
from oslo_log import log as logging

from hpc_sched import clock, conf
from hpc_sched.core import server_group_policy
from hpc_sched.core.arrays import Array, Mask
from hpc_sched.core.capacity import UNBOUNDED
from hpc_sched.core.group_request import GroupRequest
from hpc_sched.core.plan.result import Plan, Rejection
from hpc_sched.core.processors.group_processors import HostProcessors
from hpc_sched.nova_glue.claim.group_turns import GroupTurn
from hpc_sched.nova_glue.claim.transaction.gang_claim import GangClaim
from hpc_sched.nova_glue.claim.transaction.ledger import ClaimedPlace
from hpc_sched.nova_glue.decide.decision_cache import DecisionCache
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import group_members, mdobp_input
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances
from hpc_sched.nova_glue.read.nova_claims import ClaimObserver, GroupClaims
from hpc_sched.nova_glue.read.room.host_rooms import HostRooms
from hpc_sched.nova_glue.record.followed_request import LoggedDecision, Subject
from hpc_sched.topology.model import Topology

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


class GroupState:
    """A group during one request.

    Built when a RequestSpec is first seen and kept as long as it. Used by the thread that serves
    the request; :mod:`claim_followup` and :mod:`landed_record` read it from theirs. Arrays over
    HostStates are in the order of the first call.
    """

    def __init__(
        self,
        request: request_spec.RequestedGroup,
        group: group_members.GroupMembership,
        states: Sequence[host_manager.HostState],
        fabric: loaded_topology.Fabric,
        colocated: ColocatedInstances | None = None,
        shunned: Mapping[str, Mask] | None = None,
        turn: GroupTurn | None = None,
    ) -> None:
        """Build the GroupRequest before the first claim.

        :param colocated: the VMs that run on the hosts; None if they are not needed
        :param shunned: reason to the HostStates that are shunned, see :mod:`shunned_hosts`
        :param turn: what the group's requests share
        """
        self.request = request
        self.colocated = colocated
        self.fabric = fabric
        self.turn = turn or GroupTurn()
        self.gang: GangClaim | None = None  # what the request has claimed ahead of Nova
        self.decisions = DecisionCache(conf.number(CONF, "planning_timeout"))
        # Hosts in the order of RackCapacityWeigher; indices in topology.hosts, shape (hosts,).
        self.rack_order: Array | None = None
        self.is_logged = False  # whether the decision is logged, or could not be
        self.logged: LoggedDecision | None = None
        self.observed_at = clock.current.monotonic()
        self.removed: Counter[str] = Counter()  # reason to hosts that hpc_sched removed
        self.shunned: Mapping[str, Mask] = shunned or {}
        self.is_bounded = False  # whether the plan was made without these hosts
        # What HPCHomogeneityFilter chose from, and how; None if it did not choose.
        self.processors: HostProcessors | None = None
        self.homogeneous = "false"
        # HostStates of the processor type that comes first; shape (HostStates,).
        self._preferred: Mask | None = None
        self._is_warned = False  # of faults
        self._is_unproven = False  # whether that was reported
        # The VM whose candidates are in order, and the one that weighers have seen them for.
        self._arranged_for: str | None = None
        self._noted_for: str | None = None
        self._states = list(states)
        self.rooms = HostRooms(
            self._states,
            request.demand,
            request.fitting,
            most_per_host=server_group_policy.most_per_host(request.max_per_host),
        )
        # Shape (HostStates,): VMs that each takes next to those of others.
        self._colocation_room = np.full(len(states), UNBOUNDED, dtype=np.int64)
        if colocated is not None:
            for name in request.bounded_by:
                np.minimum(
                    self._colocation_room, colocated.room(name, states), out=self._colocation_room
                )
        self.set_members(group)

    def set_members(self, group: group_members.GroupMembership) -> None:
        """Build the GroupRequest before the first claim of Nova's."""
        self.group = group
        self.claims = GroupClaims(self._states, group.queue)
        self._now: GroupRequest | None = None
        request, fabric, states = self.request, self.fabric, self._states
        places = [(state.host, state.nodename) for state in states]
        names, unknown = fabric.names.find_all(places)
        fabric.report_unknown(unknown)
        # A candidate has the same name as the place of a member.
        name_at = dict(zip(places, names, strict=True))
        members, leaving = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for named, counts in ((members, group.members), (leaving, group.leaving)):
            for (host, node), count in counts.items():
                named[host, name_at.get((host, node)) or fabric.name_of(host, node)] += count
        hosts = dict.fromkeys([*names, *(name for _, name in (*members, *leaving))])
        self.topology: Topology = (
            Topology.from_tree({"cloud": list(hosts)})
            if request.hpc_specs.is_flat
            else fabric.topology.including(hosts)
        )
        packing = None
        if request.by_mdobp:
            packing = mdobp_input.packing(request.demand, request.policy, states, self.colocated)
        shunned = list(self.shunned.values())
        self._first = GroupRequest.of(
            self.topology,
            request.hpc_specs,
            group_id=request.group_id,
            policy=request.policy,
            max_per_host=request.max_per_host,
            places=places,
            names=names,
            room=self.room,
            members=members,
            leaving=leaving,
            left=group.left,
            awaiting=group.awaiting,
            orphans=group.orphans,
            is_move=group.is_move,
            packing=packing,
            check=self.rooms,
            shunned=np.logical_or.reduce(shunned) if shunned else None,
            preferred=self._preferred,
        )
        # Members when the request came, shape (hosts,).
        self.members: Array = self._first.members
        # Shape (HostStates,): index in topology.hosts.
        self.host_index: Array = self._first.hosts_of_rows

    def prefer(self, hypervisors: Mask, request: GroupRequest, plan: Plan) -> None:
        """Plan on hosts of one processor type as long as these can hold the group.

        :param hypervisors: of the type; shape (HostStates,)
        :param request: that was decided
        :param plan: the decision, on these hosts
        """
        self._preferred = hypervisors
        self._first, self._now = replace(self._first, preferred=hypervisors), None
        self.decisions.keep(request, plan)

    def drop_final_size(self) -> None:
        """Plan for the VMs that have requests, no more for those of ``hpc:group_size``."""
        self._first, self._now = replace(self._first, missing=0), None

    @property
    def candidates(self) -> Sequence[host_manager.HostState]:
        """The HostStates of the first call, as the filters before hpc_sched's leave them."""
        return self.claims.hosts.states

    def positions(self, states: Sequence[host_manager.HostState]) -> Array:
        """Return the position of each HostState in the order of the first call."""
        return self.claims.hosts.positions(states)

    def arrange_candidates(self, states: Sequence[host_manager.HostState]) -> None:
        """Put first the allocation candidate that the next VM shall claim on each host."""
        if conf.is_shadow(CONF):
            return
        current, place = self.claims.current_uuid, self.claimed_place
        if self.rooms.has_choices and self._arranged_for != current:
            self._arranged_for = current
            self.rooms.arrange_candidates(self.positions(states))
        if place is not None and self.rooms.offers(place.position, place.candidate):
            self.rooms.put_first(place.position, place.candidate)

    def note_candidates(self, states: Sequence[host_manager.HostState]) -> None:
        """Note which candidate is first on each host, after the last filter.

        Filters behind those of hpc_sched may have removed some.
        """
        current = self.claims.current_uuid
        if self._noted_for == current:
            return
        self._noted_for = current
        if self.rooms.has_choices and self._arranged_for == current:
            self.rooms.note_first(self.positions(states))
        self.arrange_candidates(states)

    def observe(self, instance_uuid: str) -> None:
        """Update the claims; ``instance_uuid`` is the VM to place next."""
        self.settle()
        self.claims.observe(instance_uuid)
        self.rooms.observe(self.claims.placed, self.lost.tolist())
        self.observed_at = clock.current.monotonic()
        self._now = None

    def settle(self) -> None:
        """Note where Nova has placed the last VM, if it has; see :meth:`GangClaim.settle`."""
        uuid = self.claims.current_uuid
        if self.gang is None or uuid is None:
            return
        taken = self.claims.taken_since()
        claimed = self.rooms.chosen(taken[0]) if len(taken) == 1 else None
        if claimed is not None:
            self.gang.settle(uuid, claimed["allocations"])

    @property
    def observer(self) -> ClaimObserver:
        """The HostStates of the first call."""
        return self.claims.hosts

    @property
    def subject(self) -> Subject:
        """What the record of the outcome has of the request."""
        hosts, request = self.topology.hosts, self.request
        members = {hosts[i]: int(self.members[i]) for i in np.flatnonzero(self.members)}
        return Subject(
            request_id=request.request_id,
            instance=request.instance_uuid,
            instances=self.group.queue,
            group=request.group_uuid,
            left=self.group.left,
            name=request.name,
            topology=self.topology,
            digest=self.fabric.digest,
            members=Counter(members),
            by_topology=request.hpc_specs.by_topology,
        )

    def name_of(self, position: int) -> str:
        """Return the name of a HostState in the topology."""
        return str(self.topology.hosts[self.host_index[position]])

    @property
    def has_known_members(self) -> bool:
        """True if the known members alone determine how to keep the group's guarantees.

        One member fixes the switch and the processor type, not the number of leaves.
        """
        return bool(self.group.members) and self.request.hpc_specs.constraints.max_leaves is None

    @property
    def claimed_place(self) -> ClaimedPlace | None:
        """Where the current VM is claimed; None without a claim, and once Nova has placed it."""
        uuid = self.claims.current_uuid
        return self.gang.places.get(uuid) if self.gang is not None and uuid is not None else None

    def held(self, *, for_others: bool = False) -> Array:
        """Return the VMs of the request that are claimed on each HostState ahead of Nova.

        Shape (HostStates,).

        :param for_others: whether the current VM is left out
        """
        held = np.zeros(len(self.candidates), dtype=np.int64)
        if self.gang is not None:
            places = list(self.gang.places.items())
            left_out = self.claims.current_uuid if for_others else None
            np.add.at(held, [place.position for uuid, place in places if uuid != left_out], 1)
        return held

    @property
    def lost(self) -> Array:
        """Positions of the HostStates that lost a claim, and hold none. Shape (lost,)."""
        lost = self.claims.lost
        without: Array = lost[self.held()[lost] == 0]
        return without

    def group_request(self, positions: Array | None = None) -> GroupRequest:
        """Return the group after the claims so far; built once a VM.

        Hosts that lost a claim have room for what the request holds there alone. O(hosts of the
        topology).

        :param positions: of the HostStates that are candidates; all by default
        """
        if self._now is None:
            self._now = self._first.after(self.claims.placed)
        room = self.room
        lost = self.claims.lost
        room[lost] = np.minimum(room, self.held())[lost]
        now = replace(self._now, room=room, full_hosts=self.full_hosts)
        if positions is None:
            return now
        candidates = np.zeros(len(room), dtype=np.bool_)
        candidates[positions] = True
        return now.among(candidates)

    def decide(self, request: GroupRequest, *, anew: bool = False) -> Plan | Rejection:
        """Return the decision on the group: the rest of the last plan if that still holds.

        :param anew: whether the last plan is forgotten
        """
        if anew:
            self.decisions.forget()
        before = self.rooms.room
        answer = self.decisions.decide(request, placed=self.claims.number)
        if (self.rooms.room > before).any():
            room = np.where(request.room > 0, self.group_request().room, 0)
            self.decisions.forget()
            answer = self.decisions.decide(replace(request, room=room), placed=self.claims.number)
        has_timed_out = self.decisions.has_timed_out
        if has_timed_out and isinstance(answer, Plan) and not answer.is_proven:
            self._warn_of_unproven(request)
        return answer

    def finds_more_room(self, request: GroupRequest) -> bool:
        """True if hosts have more room than their HostStates say; asked before a refusal.

        One call to Placement for all hosts, once a request, where room bounds the group.
        """
        if not request.is_bounded_by_room or not self.rooms.read_all():
            return False
        self.decisions.forget()
        return True

    def host_order(self, request: GroupRequest) -> Array:
        """Return the hosts, best one for the next VM first; see :meth:`GroupRequest.host_order`."""
        answer = self.decide(request)
        if isinstance(answer, Plan):
            return request.host_order(answer, self.claims.slot)
        with self.decisions.planning() as limit:
            return request.host_order(answer, self.claims.slot, limit)

    @property
    def room(self) -> Array:
        """VMs that each HostState takes, before the server group's policy. Shape (HostStates,)."""
        others = self._colocation_room - self.claims.placed
        room: Array = np.maximum(np.minimum(self.rooms.left, others), 0)
        return room

    @property
    def full_of_others(self) -> Mask:
        """Whether each HostState is full because of the VMs of others. Shape (HostStates,)."""
        placed = self.claims.placed
        return (self.rooms.room > placed) & (self._colocation_room <= placed)

    @property
    def full_hosts(self) -> dict[str, int]:
        """Reason to the number of hosts that are full because of the VMs of others."""
        if self.colocated is None:
            return {}
        found = Counter(self.colocated.removed)
        # The hosts that a filter has removed are not among the candidates.
        found["the VMs of others"] += int(self.full_of_others.sum())
        return dict(+found)

    def count_removed(self, why: str, number: int, *, bounds_plan: bool = True) -> None:
        """Count hosts that a filter of hpc_sched removed.

        :param bounds_plan: whether the plan was made without them
        """
        if number:
            self.removed[why] += number
            self.is_bounded |= bounds_plan

    def warn_of_faults(self) -> None:
        """Log ignored constraints once per request."""
        specs = self.request.hpc_specs
        ignored = specs.faults + specs.ignored
        if ignored and not self._is_warned:
            self._is_warned = True
            LOG.warning(
                "Ignored for instance %s: %s", self.request.instance_uuid, "; ".join(ignored)
            )

    def _warn_of_unproven(self, request: GroupRequest) -> None:
        """Report once that the time for planning was over."""
        if self._is_unproven:
            return
        self._is_unproven = True
        wanted = asdict(request.constraints).items()
        constraints = [f"{key}={value}" for key, value in wanted if value is not None]
        LOG.warning(
            "The plan for instance %s is not proven best: planning took %.1f s, planning_timeout "
            "is %g s; up to %d VMs beside %d members on %d hosts with room, %s",
            self.request.instance_uuid,
            self.decisions.planning_seconds,
            self.decisions.timeout,
            request.sizes[0],
            int(request.members.sum()),
            int((request.room > 0).sum()),
            ", ".join(constraints) or "no constraints",
        )
