"""A Nova in this process whose computes are rows: for tests about choosing hosts.

API, conductor, scheduler and Placement are Nova's own, as in :mod:`tests.functional.tested_cloud`.
A compute node is a row, a provider and Nova's resource tracker, which accounts for each VM as it
does in nova-compute. No RPC is sent to a compute and no virt driver builds. What a compute decides
itself (retries, late checks of policies, moves, failed builds) needs a real one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import fixtures
import os_traits
import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.compute import power_state, provider_tree, resource_tracker, rpcapi, vm_states
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova.scheduler.client import query, report
from nova.tests.fixtures.cast_as_call import CastAsCallFixture
from nova.virt import fake
from oslo_utils import timeutils

from hpc_sched.demo.nova_cloud import Progress, _not_shown
from tests.functional import host_rows, nova_objects, provider_rows
from tests.functional.tested_cloud import TestedCloud

#: Computes that are rows report nothing: services count as up for a day.
STAYS_UP_SECONDS = 86400
#: A call to the conductor lasts until all VMs of the request are built, also on a busy machine.
CALL_SECONDS = 600
# What the tracker reads of a VM.
ATTRIBUTES = ["flavor", "numa_topology", "pci_devices", "pci_requests", "resources"]
RPC_METHODS = [
    name
    for name, value in vars(rpcapi.ComputeAPI).items()
    if callable(value) and not name.startswith("_") and name not in ("router", "get_client")
]


class Tracker(resource_tracker.ResourceTracker):
    """Nova's accounting for the VMs of one compute node, without the reports to Placement.

    A VM changes no inventory, and its allocations are the scheduler's.
    """

    def _update_to_placement(self, *_args: Any, **_kwargs: Any) -> None:
        pass


class ThinCompute:
    """A compute node with its service, provider and tracker."""

    def __init__(
        self,
        in_cell: nova_context.RequestContext,
        cell: objects.CellMapping,
        host: str,
        vcpus_used: int = 0,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Write the node as a nova-compute with Nova's fake driver would, without its provider.

        :param in_cell: targeted at the cell
        :param size: VCPUs and MB; those of the cloud by default
        """
        driver = fake.FakeLiveMigrateDriver(virtapi=None)
        if size is not None:
            driver.resources.vcpus, driver.resources.memory_mb = size
        driver.init_host(host)
        reported = driver.get_available_resource(host)
        node = nova_objects.stored_compute_node(
            in_cell,
            cell,
            host,
            **nova_objects.reported_fields(reported)
            | {"vcpus_used": vcpus_used, "stats": {"failed_builds": "0"}},
        )
        traits = [name for name, has in driver.capabilities_as_traits().items() if has]
        traits.append(os_traits.COMPUTE_NODE)
        self.provider = host_rows.provider(node, traits)
        self.tracker = Tracker(host, driver, report.report_client_singleton())
        self.tracker.compute_nodes[host] = node
        self.tracker.build_succeeded(host)  # as at a compute's start: no failed build
        self.tracker.provider_tree = provider_tree.ProviderTree()
        self.tracker._setup_pci_tracker(in_cell, node, reported)
        self._scheduler = query.SchedulerQueryClient()

    def build(self, context: nova_context.RequestContext, vm: objects.Instance, node: str) -> None:
        """Write an instance as active, with what it takes of the node.

        :param context: targeted at the cell of the instance
        """
        client = self.tracker.reportclient
        vm.vm_state, vm.task_state = vm_states.BUILDING, None
        vm.save()
        allocations = client.get_allocations_for_consumer(context, vm.uuid)
        self.tracker.instance_claim(context, vm, node, allocations)
        vm.vm_state, vm.power_state = vm_states.ACTIVE, power_state.RUNNING
        vm.launched_at = timeutils.utcnow()
        vm.save()
        self.tracker.build_succeeded(node)
        updated = objects.InstanceList(objects=[vm])
        self._scheduler.update_instance_info(context.elevated(), vm.host, updated)

    def count_builds(self, *, failed: bool) -> None:
        """Report a build that has failed, or one that has succeeded and ends the count."""
        node = self.tracker.compute_nodes[self.tracker.host]
        (self.tracker.build_failed if failed else self.tracker.build_succeeded)(node.host)
        node.stats = self.tracker.stats[node.host]
        node.save()

    def terminate(
        self,
        context: nova_context.RequestContext,
        vm: objects.Instance,
        bdms: Iterable[objects.BlockDeviceMapping],
    ) -> None:
        """Delete an instance and what it holds.

        :param context: targeted at the cell of the instance
        """
        for bdm in bdms:
            bdm.destroy()
        vm.vm_state, vm.task_state = vm_states.DELETED, None
        vm.power_state, vm.terminated_at = power_state.NOSTATE, timeutils.utcnow()
        vm.save()
        self.tracker.update_usage(context, vm, vm.node)
        self.tracker.reportclient.delete_allocation_for_instance(context, vm.uuid, force=True)
        self._scheduler.delete_instance_info(context.elevated(), vm.host, vm.uuid)
        vm.destroy()


class ThinCloud(TestedCloud):
    """A Nova in this process whose computes are rows.

    Casts are calls: when a request returns, its VMs are built, refused or deleted.
    """

    #: VCPUs that are in use before the first VM
    in_use: Mapping[str, int] = {}
    #: VCPUs and MB of hosts that differ from the others
    sizes: Mapping[str, tuple[int, int]] = {}

    def setUp(self) -> None:
        """Start everything but computes."""
        self.thin: dict[str, ThinCompute] = {}
        methods = {name: _lacks(name) for name in RPC_METHODS}
        methods["build_and_run_instance"] = lambda _, *args, **said: self._build(*args, **said)
        methods["terminate_instance"] = lambda _, *args: self._terminate(*args)
        methods["soft_delete_instance"] = lambda _, *args: _stay_as(vm_states.SOFT_DELETED, *args)
        methods["restore_instance"] = lambda _, *args: _stay_as(vm_states.ACTIVE, *args)
        # Nova's fake driver has no pools of hypervisors.
        for name in ("add_aggregate_host", "remove_aggregate_host"):
            methods[name] = lambda _, *_args, **_said: None
        for name, method in methods.items():
            self.useFixture(fixtures.MonkeyPatch(f"nova.compute.rpcapi.ComputeAPI.{name}", method))
        super().setUp()

    def start_api(self) -> None:
        """Start Nova's API, whose casts are calls and for which computes stay up."""
        self.useFixture(CastAsCallFixture(self))
        self.flags(service_down_time=STAYS_UP_SECONDS, rpc_response_timeout=CALL_SECONDS)
        super().start_api()

    def start_computes(
        self, hosts: Iterable[str], progress: Progress = _not_shown, cell: str | None = None
    ) -> None:
        """Write a compute node a host, in the first cell or the one named."""
        mapping = self.cell_mappings[cell or "cell1"]
        with nova_context.target_cell(nova_context.get_admin_context(), mapping) as in_cell:
            made = {
                host: ThinCompute(
                    in_cell, mapping, host, self.in_use.get(host, 0), self.sizes.get(host)
                )
                for host in hosts
            }
        provider_rows.write([compute.provider for compute in made.values()])
        self.thin.update(made)

    def remove(self, servers: Iterable[str]) -> None:
        """Delete servers as their computes do, those without a host through the API."""
        wanted = set(servers)
        admin = nova_context.get_admin_context()
        for mapping in self.cell_mappings.values():
            if not wanted:
                return
            with nova_context.target_cell(admin, mapping) as in_cell:
                these = {"uuid": sorted(wanted), "deleted": False, "soft_deleted": True}
                found = objects.InstanceList.get_by_filters(
                    in_cell, these, expected_attrs=ATTRIBUTES
                )
                placed = [vm for vm in found if vm.host in self.thin]
                for vm in placed:
                    self.thin[vm.host].terminate(in_cell, vm, ())
            gone = [vm.uuid for vm in placed]
            _queue_for_delete(gone)
            wanted -= set(gone)
        super().remove(sorted(wanted))

    @contextmanager
    def only(self, hosts: Iterable[str]) -> Iterator[None]:
        """Disable the services of all other hosts for a block, as an operator does."""
        others = sorted(self.thin.keys() - set(hosts))
        self._set_disabled(others, disabled=True)
        try:
            yield
        finally:
            self._set_disabled(others, disabled=False)

    def _set_disabled(self, hosts: Iterable[str], *, disabled: bool) -> None:
        service = main_models.Service
        changed = sa.update(service).where(service.host.in_(hosts)).values(disabled=disabled)
        for mapping in self.cell_mappings.values():
            with (
                nova_context.target_cell(nova_context.get_admin_context(), mapping) as in_cell,
                main_db.get_context_manager(in_cell).writer.using(in_cell) as session,
            ):
                session.execute(changed)

    def _build(
        self, context: nova_context.RequestContext, instance: objects.Instance, **said: Any
    ) -> None:
        self.thin[said["host"]].build(context, instance, said["node"])

    def _terminate(
        self, context: nova_context.RequestContext, instance: objects.Instance, bdms: Any
    ) -> None:
        self.thin[instance.host].terminate(context, instance, bdms)


def _queue_for_delete(uuids: Sequence[str]) -> None:
    """Mark the mappings of deleted instances, as the API does."""
    mapping = api_models.InstanceMapping
    with api_db.context_manager.writer.using(nova_context.get_admin_context()) as session:
        marked = sa.update(mapping).where(mapping.instance_uuid.in_(uuids))
        session.execute(marked.values(queued_for_delete=True))


def _stay_as(
    vm_state: str, _context: nova_context.RequestContext, instance: objects.Instance
) -> None:
    """Soft-delete an instance, or restore it: it keeps its host."""
    instance.vm_state, instance.task_state = vm_state, None
    instance.save()


def _lacks(name: str) -> Callable[..., None]:
    def refuse(*_args: Any, **_kwargs: Any) -> None:
        raise NotImplementedError(f"{name}: thin computes build, delete and restore only")

    return refuse
