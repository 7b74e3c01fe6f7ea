"""What is read once for a request, with or without a group: its fabric, instances on its hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nova import objects
from nova.scheduler import host_manager

from hpc_sched.core.hpc_specs import HPCSpecs
from hpc_sched.nova_glue.decide.unplanned_request import UnplannedRequest
from hpc_sched.nova_glue.io import loaded_topology
from hpc_sched.nova_glue.io.fabric import Fabric
from hpc_sched.nova_glue.phases import Call
from hpc_sched.nova_glue.read import request_spec
from hpc_sched.nova_glue.read.instances import colocated_instances
from hpc_sched.nova_glue.read.instances.colocated_instances import ColocatedInstances

if TYPE_CHECKING:
    # WholeLeafWeigher is off as delivered.
    from hpc_sched.nova_glue.decide.single_vms import SingleVMs


class RequestReads:
    """What filters and weighers have read of one request; used by the thread that serves it."""

    def __init__(self) -> None:
        self._known_fabric: Fabric | None = None  # the one at the first call
        self._colocated: ColocatedInstances | None = None
        self._is_unplanned: bool | None = None  # None: not known yet
        self._unplanned: UnplannedRequest | None = None
        self.single_vms: SingleVMs | None = None  # what WholeLeafWeigher has read

    def unplanned(self, call: Call) -> UnplannedRequest | None:
        """Return a request without a group that MDOBP places, updated by its claims, or None.

        Reads the instances on the hosts once per request.
        """
        if self._is_unplanned is None:
            self._is_unplanned = request_spec.is_unplanned(call.spec)
        if not self._is_unplanned:
            return None
        found = self._unplanned
        if found is None or not found.nova.hosts.knows(call.states):
            there = self.colocated(call.spec, call.states)
            found = self._unplanned = UnplannedRequest(call.spec, call.states, there)
        found.nova.observe(call.spec.instance_uuid, call.states)
        return found

    def colocated(
        self, spec: objects.RequestSpec, states: Sequence[host_manager.HostState]
    ) -> ColocatedInstances:
        """Return the instances on the hosts, read once per request."""
        if self._colocated is None or not self._colocated.hosts.knows(states):
            self._colocated = colocated_instances.read(spec, states)
        return self._colocated

    def hpc_specs(self, spec: objects.RequestSpec) -> HPCSpecs:
        """Return the ``hpc:`` values of a request, checked against the levels of its fabric."""
        return request_spec.hpc_specs_of(spec, self._fabric.topology.request_levels)

    @property
    def _fabric(self) -> Fabric:
        """The fabric that the request is placed by; raises TopologyError without one."""
        if self._known_fabric is None:
            self._known_fabric = loaded_topology.current()
        return self._known_fabric
