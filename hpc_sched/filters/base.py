"""What the filters have in common: the way in from Nova, and the guard around our own code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import nova.conf
from nova import exception, objects
from nova.scheduler import filters, host_manager
from nova.scheduler import utils as scheduler_utils
from oslo_log import log as logging

from hpc_sched import exceptions
from hpc_sched.nova_glue import configured_plugins
from hpc_sched.nova_glue.io import databases, loaded_topology
from hpc_sched.nova_glue.request import decision_record, served_requests
from hpc_sched.nova_glue.request.group_state import GroupState

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

States = list[host_manager.HostState]


class GroupFilter(filters.BaseHostFilter):
    """A filter that judges all candidates of a request together, by default once.

    Requests without a group and rebuilds pass untouched. An error of our own is logged with
    its traceback; all hosts pass then, unless the request asks for a guarantee, which nobody
    has proven.

    One object serves all requests from many threads; it keeps nothing of any of them.
    """

    run_filter_once_per_request = True
    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        """Make ready the fabric; raises as :func:`fabric.start` does."""
        super().__init__()
        loaded_topology.start()

    def host_passes(
        self, host_state: host_manager.HostState, filter_properties: objects.RequestSpec
    ) -> bool:
        """Return True: one host alone says nothing about a group."""
        return True

    def filter_all(
        self,
        filter_obj_list: Iterable[host_manager.HostState],
        spec_obj: objects.RequestSpec,
    ) -> States:
        """Return the hosts that the group may use, in the order in which they came."""
        states = list(filter_obj_list)
        try:
            # Overriding this method bypasses Nova's own check for rebuilds.
            if not states or scheduler_utils.request_is_rebuild(spec_obj):
                return states
            refused = served_requests.refusal_of(spec_obj)
            if refused is not None:
                raise refused
            with served_requests.waiting_for(spec_obj):
                return self._keep(states, spec_obj)
        except exceptions.RefusedError as refused:
            return self._told(states, spec_obj, refused)
        except Exception as error:
            if isinstance(error, databases.OUTAGES):
                LOG.warning(
                    "%s: %s: %s",
                    type(self).__name__,
                    databases.API_DATABASE,
                    databases.reason(error),
                )
            else:
                LOG.exception("%s failed", type(self).__name__)
            return self._unproven(states, spec_obj)

    def _told(
        self, states: States, spec: objects.RequestSpec, refusal: exceptions.RefusedError
    ) -> States:
        """Refuse; where an error of our own spoils that, refuse all the same."""
        try:
            return self._refuse(states, spec, refusal)
        except exception.NoValidHost:
            raise
        except Exception:
            LOG.exception("%s refused (%s) and failed", type(self).__name__, refusal)
            return []

    def _keep(self, states: States, spec: objects.RequestSpec) -> States:
        """Return the hosts that pass.

        :raises exceptions.RefusedError: where a guarantee cannot be given
        """
        raise NotImplementedError

    def _refuse(
        self, states: States, spec: objects.RequestSpec, refusal: exceptions.RefusedError
    ) -> States:
        """Tell the operator why, and return what is left of the request: no host.

        HPCGroupFilter, where it is enabled behind this one, does it in its stead: it can tell
        the user too.
        """
        plugins = configured_plugins.enabled()
        if not served_requests.placed(spec) and plugins.group_filter_follows(type(self).__name__):
            served_requests.refuse_later(spec, refusal)
            return states
        state = served_requests.known(spec)
        if state is None:
            served_requests.log_early_refusal(spec, str(refusal))
        else:
            decision_record.log_refusal(state, state.positions(states), str(refusal))
        return []

    def _unproven(self, states: States, spec: objects.RequestSpec) -> States:
        try:
            needs_proof = served_requests.refusal_of(spec) is not None or self._needs_proof(spec)
        except Exception:
            # The caller has logged what is wrong. Who cannot be read may ask for a guarantee.
            needs_proof = True
        return [] if needs_proof else states

    def _needs_proof(self, spec: objects.RequestSpec) -> bool:
        """Tell whether a request asks for a guarantee that this filter gives."""
        return served_requests.hpc_specs_of(spec).needs_proof


def check_members(state: GroupState) -> None:
    """Check that enough is known of the members to promise where the others go.

    Any member tells under which switch, and on which processors, all of them are, but not how
    many leaves they use.

    :raises exceptions.RefusedError: where a cell or Placement has not told
    """
    has_members = bool(state.group.members)
    known = has_members and state.request.hpc_specs.constraints.max_leaves is None
    if state.group.is_partial and not known:
        raise exceptions.RefusedError(
            f"where the members of the group are is not known: {'; '.join(state.group.problems)}",
            "where the members of the group are is not known at the moment; try again later",
        )


def select(states: Sequence[host_manager.HostState], keep: Iterable[bool]) -> States:
    """Return the HostStates that are kept, in their order."""
    return [state for state, is_kept in zip(states, keep, strict=True) if is_kept]
