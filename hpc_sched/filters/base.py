"""The base class of the filters: entry from Nova, refusals, and handling of errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

import nova.conf
from nova import exception, objects
from nova.scheduler import filters, host_manager
from nova.scheduler import utils as scheduler_utils

from hpc_sched import conf, exceptions
from hpc_sched.core.plan.result import Refusal
from hpc_sched.nova_glue import configured_plugins, served_requests, shadow
from hpc_sched.nova_glue.decide.group_state import GroupState
from hpc_sched.nova_glue.exporter import worker
from hpc_sched.nova_glue.io import databases, loaded_topology
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.record import decision_record

CONF = nova.conf.CONF

States = list[host_manager.HostState]


class GroupFilter(filters.BaseHostFilter):
    """A filter that checks all candidates of a request together, by default once.

    Requests without a group, and rebuilds, pass unchanged. An error in hpc_sched is logged with
    its traceback; then all hosts pass, or none if a new VM has a guarantee. A move is never
    refused because something cannot be read. In shadow mode all hosts pass, see
    :mod:`hpc_sched.nova_glue.shadow`.

    One object serves all requests from many threads and has no state of any request.
    """

    run_filter_once_per_request = True
    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        """Load the topology and begin to count; raises as :func:`loaded_topology.start` does."""
        super().__init__()
        loaded_topology.start()
        worker.prepare(type(self).__name__)

    def host_passes(
        self, host_state: host_manager.HostState, filter_properties: objects.RequestSpec
    ) -> bool:
        """Return True: one host alone says nothing about a group."""
        return True

    def filter_all(
        self, filter_obj_list: Iterable[host_manager.HostState], spec_obj: objects.RequestSpec
    ) -> States:
        """Return the hosts that the group may use, in their order."""
        states, name = list(filter_obj_list), type(self).__name__
        if conf.is_shadow(CONF):
            shadow.run_filter(name, self._keep, self._needs_proof, states, spec_obj)
            return states
        with ExitStack() as stack:
            try:
                # Overriding this method bypasses Nova's own check for rebuilds.
                if not states or scheduler_utils.request_is_rebuild(spec_obj):
                    return states
                stack.enter_context(served_requests.charge_waiting(spec_obj))
                refused = served_requests.get_refusal(spec_obj)
                if refused is not None:
                    raise refused
                return self._keep(states, spec_obj)
            except exceptions.RefusedError as refusal:
                try:
                    return self._refuse(states, spec_obj, refusal)
                except exception.NoValidHost:
                    raise
                except Exception:
                    served_requests.log_failure(f"{name} refused ({refusal}) and failed", name)
                    return []
                finally:
                    # What was claimed is part of the decision that is logged.
                    served_requests.release_claims(spec_obj)
            except databases.OUTAGES as error:
                served_requests.log_outage(spec_obj, name, error)
            except Exception:
                served_requests.log_failure(f"{name} failed", name)
            return self._unchecked(states, spec_obj)

    def _unchecked(self, states: States, spec: objects.RequestSpec) -> States:
        """Return the hosts that pass after an error: none if a new VM has a guarantee."""
        try:
            needs_proof = served_requests.get_refusal(spec) or (
                not request_spec.is_move(spec) and self._needs_proof(spec)
            )
        except Exception:
            # The error is logged above. An unreadable request may have a guarantee.
            needs_proof = True
        if not needs_proof:
            return states
        served_requests.release_claims(spec)
        return []

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        """Return the hosts that pass.

        :raises exceptions.RefusedError: if a guarantee cannot be kept
        """
        raise NotImplementedError

    def _refuse(
        self, states: States, spec: objects.RequestSpec, refusal: exceptions.RefusedError
    ) -> States:
        """Log the reason and return no host.

        If HPCGroupFilter is enabled behind this filter, all hosts pass: it refuses the request
        with the stored reason, and reports it to the user too.
        """
        plugins = configured_plugins.enabled()
        if not served_requests.count_placed(spec) and plugins.group_filter_follows(
            type(self).__name__
        ):
            served_requests.store_refusal(spec, refusal)
            return states
        state = served_requests.find_state(spec)
        if state is None:
            served_requests.log_early_refusal(spec, str(refusal))
        else:
            decision_record.log_refusal(state, state.positions(states), str(refusal))
        return []

    def _needs_proof(self, spec: objects.RequestSpec) -> bool:
        """True if the request has a guarantee that this filter checks."""
        return served_requests.get_hpc_specs(spec).needs_proof


def check_members(state: GroupState) -> None:
    """Check that the known members suffice to keep the guarantees of a group with a new VM.

    :raises exceptions.RefusedError: if a cell or Placement has not answered
    """
    if state.group.is_partial and not state.group.is_move and not state.has_known_members:
        raise exceptions.RefusedError(
            f"where the members of the group are is not known: {'; '.join(state.group.problems)}",
            "where the members of the group are is not known at the moment; try again later",
        )


def refused(refusal: Refusal) -> exceptions.RefusedError:
    """Return the exception with which a filter refuses a request."""
    return exceptions.RefusedError(refusal.operator, refusal.tenant)


def select(states: Sequence[host_manager.HostState], keep: Iterable[bool]) -> States:
    """Return the HostStates that are kept, in their order."""
    return [state for state, is_kept in zip(states, keep, strict=True) if is_kept]
