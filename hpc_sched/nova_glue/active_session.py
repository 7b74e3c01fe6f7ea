"""A request in active mode: what passes filters, what refusals and errors do."""

from collections.abc import Sequence

import numpy as np
from nova import exception
from nova.scheduler import utils as scheduler_utils
from nova.scheduler import weights
from oslo_log import log as logging

from hpc_sched import exceptions
from hpc_sched.nova_glue import configured_plugins, failures
from hpc_sched.nova_glue.decide import checks
from hpc_sched.nova_glue.io import databases, request_deadline
from hpc_sched.nova_glue.phases import Call, Phase, States
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.record import decision_record, request_record
from hpc_sched.nova_glue.session import PlacementSession, Plugin, Weigher

LOG = logging.getLogger(__name__)


class ActiveSession(PlacementSession):
    """A request that hpc_sched places."""

    def __init__(self) -> None:
        super().__init__()
        # Texts for operator and tenant of the first refusal, which HPCGroupFilter reports. Not the
        # exception: its traceback would hold the RequestSpec, and so this session, for ever.
        self._refusal: tuple[str, str] | None = None
        self._is_early_logged = False  # whether a refusal is logged by log_early

    def filtered(self, call: Call, plugin: Plugin) -> States:
        """Return the hosts that pass a filter; raises NoValidHost for HPCGroupFilter alone.

        After an error all hosts pass, or none if a new VM has a guarantee.
        """
        with request_deadline.active(self.deadline, call.began):
            try:
                # Overriding filter_all bypasses Nova's own check for rebuilds.
                if not call.states or scheduler_utils.request_is_rebuild(call.spec):
                    return call.states
                if self._refusal is not None:
                    raise exceptions.RefusedError(*self._refusal)
                return plugin.keep(self, call)
            except exceptions.RefusedError as refusal:
                return self._refused(call, plugin, refusal)
            except databases.OUTAGES as error:
                failures.log_outage(call.plugin, error)
            except Exception:
                failures.log(f"{call.plugin} failed", call.plugin)
            return self._unchecked(call, plugin)

    def weighed(
        self, call: Call, plugin: Weigher, weighed: Sequence[weights.WeighedHost]
    ) -> list[float]:
        """Return the weights of hosts, [] for none, and log the decision."""
        with request_deadline.active(self.deadline, call.began):
            served = self._read(call)
            if served is None:
                return plugin.unplanned_weights(self, call, weighed)
            group, claims = served.group, served.claims
            group.nova.remember(weighed)
            served.order.note(group.event.instance, group.event.candidates, claims.place)
            self._enter(Phase.DECIDED)
            answer: list[float] = []
            if plugin.places(group):
                checks.warn_of_faults(group)
                answer = plugin.group_weights(group)
            self._enter(Phase.ANSWERED)
            place = claims.place if plugin.follows_claims else None
            if answer and place is not None:
                for i in np.flatnonzero(group.event.candidates == place.position).tolist():
                    answer[i] = max(answer) + 1
                    plugin.prefer(call.states[i], claims.multiplier)
            if group.decisions.answer is not None:
                self._enter(Phase.RECORDED)
                request_record.log(served.record, group.decisions.answer)
            return answer

    def _refused(self, call: Call, plugin: Plugin, refusal: exceptions.RefusedError) -> States:
        """Return what passes for a request that is refused, and release its claims."""
        try:
            return self._refuse(call, plugin, refusal)
        except exception.NoValidHost:
            raise
        except Exception:
            failures.log(f"{call.plugin} refused ({refusal}) and failed", call.plugin)
            return []
        finally:
            # What was claimed is part of the decision that is logged.
            self._release()

    def _refuse(self, call: Call, plugin: Plugin, refusal: exceptions.RefusedError) -> States:
        """Log the reason and return no host.

        If HPCGroupFilter is enabled behind the filter, all hosts pass: it refuses the request
        with the stored reason, and reports it to the user too. It alone refuses a request once more
        whose plan is logged: a later VM has no place.
        """
        is_placed = self.placed > 0
        plugins = configured_plugins.enabled()
        if not is_placed and plugins.group_filter_follows(call.plugin):
            self._refusal = self._refusal or (str(refusal), refusal.tenant)
            return call.states
        served = self.served
        if served is None or (plugin.reports_refusals and served.record.is_accepted):
            self._log_early(call, str(refusal))
        else:
            among = served.positions(call.states)
            request_record.log_refusal(served.record, among, str(refusal))
        if plugin.reports_refusals and not is_placed:
            raise exception.NoValidHost(reason=refusal.tenant)
        return []

    def _log_early(self, call: Call, why: str) -> None:
        """Log once the refusal of a request whose group has not been read, or is planned.

        Not if all VMs of the request are placed: Nova then looks for alternates only.
        """
        if self._is_early_logged:
            return
        there = self._colocated
        if there is not None:
            wanted = 1 if there.host_instances.is_move else request_spec.count_of(call.spec)
            if there.placed >= wanted:
                return
        self._is_early_logged = True
        decision_record.log_early(call.spec, why, self._fabric.digest)

    def _unchecked(self, call: Call, plugin: Plugin) -> States:
        """Return the hosts that pass after an error: none if a new VM has a guarantee."""
        if self._refusal is None and not self._needs_proof(call, plugin):
            return call.states
        self._release()
        return []

    def _release(self) -> None:
        """Release at once what a request holds that gets no host; never raises.

        Nova releases what it has claimed itself. The request is over, but Nova does not say so: nor
        where it has placed the last VM, which stays if only alternates are refused.
        """
        try:
            if self.served is not None:
                self.served.claims.note_placed()
                self.served.claims.release()
        except Exception:
            LOG.exception("The claims of a refused request are released later")
