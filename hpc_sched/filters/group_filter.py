"""The base class of the filters: entry from Nova."""

from collections.abc import Iterable

from nova import objects
from nova.scheduler import filters, host_manager

from hpc_sched.nova_glue import served_requests
from hpc_sched.nova_glue.phases import Call, States
from hpc_sched.nova_glue.session import Plugin


class GroupFilter(Plugin, filters.BaseHostFilter):
    """A filter that checks all candidates of a request together, by default once.

    Requests without a group, and rebuilds, pass unchanged. An error in hpc_sched is logged with
    its traceback; then all hosts pass, or none if a new VM has a guarantee. A move is never
    refused because something cannot be read. In shadow mode all hosts pass, see
    :mod:`hpc_sched.nova_glue.shadow_session`.

    One object serves all requests from many threads and has no state of any request.
    """

    run_filter_once_per_request = True
    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        """Load what the plugin needs; raises as :func:`served_requests.start` does."""
        super().__init__()
        served_requests.start(type(self).__name__)

    def host_passes(
        self, host_state: host_manager.HostState, filter_properties: objects.RequestSpec
    ) -> bool:
        """Return True: one host alone says nothing about a group."""
        return True

    def filter_all(
        self, filter_obj_list: Iterable[host_manager.HostState], spec_obj: objects.RequestSpec
    ) -> States:
        """Return the hosts that the group may use, in their order."""
        call = Call(type(self).__name__, spec_obj, list(filter_obj_list))
        return served_requests.session_of(spec_obj).filtered(call, self)
