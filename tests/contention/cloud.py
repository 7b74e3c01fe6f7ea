"""What nova-api, nova-conductor and nova-compute do to a request's VMs, but for the scheduler."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from nova.objects.cell_mapping import CellMapping
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report
from oslo_db import api as oslo_db_api

from tests.contention import placement_rows
from tests.contention.bursts import Outcome, Request
from tests.contention.deployment import Deployment, Scheduler, SchedulerDiedError
from tests.contention.fabric import HOSTS, VCPUS
from tests.functional import build_requests, nova_objects

MEMORY_MB = 1024  # of each VM
_again = oslo_db_api.wrap_db_retry(max_retries=10, retry_on_deadlock=True)


@dataclass
class Cloud:
    """A cloud with hosts and without VMs."""

    deployment: Deployment
    context: nova_context.RequestContext = field(default_factory=nova_context.get_admin_context)
    groups: dict[str, str] = field(default_factory=dict)  # name to uuid
    deleted: set[str] = field(default_factory=set)  # VMs that users deleted before they had a host
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.cell, self.cell0 = (
            CellMapping.get_by_uuid(self.context, self.deployment.databases.cell_uuids[name])
            for name in ("cell1", "cell0")
        )
        self.placement = report.SchedulerReportClient()
        # Writes of nova-compute and reads for the checks, which leave Nova's own pools alone.
        self.cell_engine = sa.create_engine(self.deployment.databases.urls["cell1"])
        self.placement_engine = sa.create_engine(self.deployment.placement_url)

    def add_hosts(self) -> None:
        """Create all hosts of the fabric."""
        with nova_context.target_cell(self.context, self.cell) as in_cell:
            for host in HOSTS:
                node = nova_objects.stored_compute_node(in_cell, self.cell, host, vcpus=VCPUS)
                nova_objects.add_provider(self._send, node)

    def _send(self, method: str, path: str, version: str, body: Any) -> None:
        answer = getattr(self.placement, method)(path, body, version=version)
        assert answer.status_code < 300, answer.text

    def set_use(self, used: Mapping[str, int]) -> None:
        """Have VCPUs of the hosts used by others; written to the databases, for calls take long."""
        node = main_models.ComputeNode
        with self.cell_engine.begin() as cell:
            for host, vcpus in used.items():
                cell.execute(sa.update(node).where(node.host == host).values(vcpus_used=vcpus))
        text = (
            "UPDATE inventories SET reserved = :used WHERE resource_class_id = 0 AND "
            "resource_provider_id = (SELECT id FROM resource_providers WHERE name = :host)"
        )
        with self.placement_engine.begin() as placement:
            placement.execute(
                sa.text(text), [{"host": host, "used": vcpus} for host, vcpus in used.items()]
            )

    def add_group(self, name: str, policy: str) -> None:
        """Create a server group."""
        group = objects.InstanceGroup(
            self.context, project_id="project", user_id="user", name=name, policy=policy
        )
        group.create()
        self.groups[name] = group.uuid

    def create(self, request: Request, scheduler: Scheduler) -> Outcome:
        """Create the VMs of a request, as nova-api and the conductor do."""
        spec = self._accept(request)
        scheduler_utils.setup_instance_group(self.context, spec)
        sent = time.monotonic()
        try:
            answer = scheduler.ask(spec, request.vms)
        except SchedulerDiedError:
            answer, is_dead = {"refused": "the scheduler died"}, True
        else:
            is_dead = False
        answered = time.monotonic()
        hosts = tuple(answer.get("hosts", ()))
        if hosts:
            self._build(request, spec, hosts)
        else:
            self._bury(request, spec)
        refused = answer.get("refused") or answer.get("failed")
        return Outcome(request, hosts, refused, sent, answered, is_dead)

    def delete_before_claim(self, vm: str) -> None:
        """Delete a VM as nova-api does while it has no host; nothing if it has one."""
        with self.lock:
            if vm in build_requests.known([vm]):
                # Its mapping stays, without a cell.
                build = api_models.BuildRequest
                self._api(sa.delete(build).where(build.instance_uuid == vm))
                self.deleted.add(vm)

    def _accept(self, request: Request) -> objects.RequestSpec:
        flavor = nova_objects.flavor(
            vcpus=request.vcpus,
            memory_mb=MEMORY_MB,
            extra_specs={f"hpc:{key}": str(value) for key, value in (request.wishes or {}).items()},
        )
        group = None
        if request.group is not None:
            uuid = self.groups[request.group]
            _again(objects.InstanceGroup.add_members)(self.context, uuid, list(request.vms))
            group = objects.InstanceGroup.get_by_uuid(self.context, uuid)
        first = request.vms[0]
        spec = nova_objects.request_spec(flavor, group, count=len(request.vms), uuid=first)
        _again(build_requests.add)(request.vms, f"r-{first[:8]}", flavor)
        text = json.dumps(spec.obj_to_primitive())
        self._api(
            sa.insert(api_models.RequestSpec),
            [{"instance_uuid": vm, "spec": text} for vm in request.vms],
        )
        return spec

    def _build(self, request: Request, spec: objects.RequestSpec, hosts: Sequence[str]) -> None:
        """Create the VMs in their cell; those deleted meanwhile give their claims back."""
        with self.lock:
            left = build_requests.known(request.vms)
            found = [(v, h) for v, h in zip(request.vms, hosts, strict=True) if v in left]
            self._write("cell1", [_instance(v, h, spec) for v, h in found])
            node = main_models.ComputeNode
            with self.cell_engine.begin() as cell:
                for host, count in sorted(Counter(host for _, host in found).items()):
                    more = node.vcpus_used + count * request.vcpus
                    cell.execute(sa.update(node).where(node.host == host).values(vcpus_used=more))
            self._map([vm for vm, _ in found], self.cell.id)
        for vm in set(request.vms) - left:
            self.placement.delete_allocation_for_instance(self.context, vm, force=True)

    def _bury(self, request: Request, spec: objects.RequestSpec) -> None:
        with self.lock:
            left = build_requests.known(request.vms)
            self._write("cell0", [_instance(v, None, spec) for v in request.vms if v in left])
            # Those that were deleted meanwhile, too: their rows in cell0 are deleted at once.
            self._map(request.vms, self.cell0.id)

    def _map(self, vms: Sequence[str], cell_id: int) -> None:
        mapping, build = api_models.InstanceMapping, api_models.BuildRequest
        self._api(sa.update(mapping).where(mapping.instance_uuid.in_(vms)).values(cell_id=cell_id))
        self._api(sa.delete(build).where(build.instance_uuid.in_(vms)))

    def delete_all(self, outcomes: Sequence[Outcome]) -> None:
        """Delete all servers that users still have, and purge the rows of all."""
        vms = [vm for outcome in outcomes for vm in outcome.request.vms]
        for vm in vms:
            if vm not in self.deleted:
                self.placement.delete_allocation_for_instance(self.context, vm, force=True)
        for part in ("cell0", "cell1"):
            engine = self.deployment.databases.engines[part]
            with engine.begin() as connection:
                for model in (main_models.InstanceExtra, main_models.Instance):
                    column = getattr(model, "instance_uuid", None) or model.uuid
                    connection.execute(sa.delete(model).where(column.in_(vms)))
        for model in (
            api_models.InstanceMapping,
            api_models.RequestSpec,
            api_models.BuildRequest,
            api_models.InstanceGroupMember,
        ):
            self._api(sa.delete(model).where(model.instance_uuid.in_(vms)))
        for uuid in self.groups.values():
            objects.InstanceGroup.get_by_uuid(self.context, uuid).destroy()
        self.groups.clear()

    def allocations(self) -> dict[str, dict[str, int]]:
        """Return what is held of hosts' VCPUs: consumer to host to VCPUs."""
        return placement_rows.allocations(self.placement_engine)

    @_again
    def _api(self, statement: Any, rows: Any = None) -> None:
        with api_db.context_manager.writer.using(self.context) as session:
            session.execute(statement, rows)

    def _write(self, part: str, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        with self.deployment.databases.engines[part].begin() as connection:
            connection.execute(
                sa.insert(main_models.Instance),
                [{k: v for k, v in row.items() if k != "flavor"} for row in rows],
            )
            connection.execute(
                sa.insert(main_models.InstanceExtra),
                [
                    {"instance_uuid": row["uuid"], "flavor": row["flavor"], "deleted": 0}
                    for row in rows
                ],
            )


def _instance(vm: str, host: str | None, spec: objects.RequestSpec) -> dict[str, Any]:
    """Return the row of an instance that is being built, or has no place."""
    return {
        "uuid": vm,
        "host": host,
        "node": host,
        "instance_type_id": 1,
        "vcpus": spec.flavor.vcpus,
        "memory_mb": spec.flavor.memory_mb,
        "root_gb": 1,
        "ephemeral_gb": 0,
        "vm_state": "building" if host else "error",
        "project_id": "project",
        "user_id": "user",
        "hidden": False,
        "deleted": 0,
        "flavor": json.dumps({"cur": spec.flavor.obj_to_primitive(), "old": None, "new": None}),
    }
