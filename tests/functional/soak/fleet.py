"""The VMs, groups and hosts that there are, and their records in Nova and Placement.

Hosts and VMs are rows. What a compute or a conductor would do on the way is written by
:mod:`tests.functional.rows`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nova import objects

from tests.functional import rows
from tests.functional.claims import ClaimsOnly, request
from tests.functional.soak import fabrics
from tests.functional.soak.vms import TASK_OF, TYPE_OF, VM, Group, Size

ENDED = ("confirmed", "reverted", "error", "completed", "done")


@dataclass
class Fleet:
    """What is true of the VMs, and who writes it down."""

    nova: ClaimsOnly
    vms: dict[str, VM] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)  # hosts

    def by_host(self) -> dict[str, list[VM]]:
        """Return the VMs on each host, those that move on both."""
        found: dict[str, list[VM]] = defaultdict(list)
        for vm in self.vms.values():
            for host in vm.sides:
                found[host].append(vm)
        return found

    def by_group(self) -> dict[str, list[VM]]:
        """Return the VMs of each server group."""
        found: dict[str, list[VM]] = defaultdict(list)
        for vm in self.vms.values():
            if vm.group:
                found[vm.group].append(vm)
        return found

    def report(self, hosts: Iterable[str]) -> None:
        """Report what is in use on hosts, as their computes do to databases and scheduler."""
        here = self.by_host()
        info = self.nova.scheduler.host_manager._instance_info
        for host in sorted(set(hosts)):
            vms = [vm for vm in here[host] if vm.host == host]
            rows.set_usage(
                self.nova.cloud,
                host,
                vcpus=sum(vm.size.vcpus for vm in vms),
                memory_mb=sum(vm.size.memory_mb for vm in vms),
                vms=len(vms),
            )
        for host in fabrics.HOSTS:
            landed = [vm for vm in here[host] if vm.host == host]
            there = {vm.uuid: objects.Instance(uuid=vm.uuid) for vm in landed}
            info[host] = {"instances": there, "updated": True}

    def delete(self, vms: Iterable[VM]) -> None:
        """Delete VMs, wherever they are on their way."""
        gone = list(vms)
        rows.delete(self.nova.cloud, [vm.uuid for vm in gone])
        for vm in gone:
            for consumer in vm.allocations():
                self.release(consumer)
            del self.vms[vm.uuid]
        self.leave_group(gone)
        self.report(host for vm in gone for host in vm.sides)

    def clean(self) -> None:
        """Remove what Nova keeps of the deleted, and what its fixtures collect."""
        rows.purge(self.nova.cloud, ENDED)
        used = self.by_group()
        for uuid in [uuid for uuid in self.groups if uuid not in used]:
            objects.InstanceGroup.get_by_uuid(self.nova.context, uuid).destroy()
            del self.groups[uuid]
        self.nova.cloud.notifier.reset()

    def spec(self, vm: VM, size: Size) -> objects.RequestSpec:
        """Return the request as the conductor hands it to the scheduler."""
        group = self.groups[vm.group] if vm.group else None
        spec = request(
            count=vm.siblings,
            group=vm.group,
            policy=group.policy if group else "",
            vcpus=size.vcpus,
            memory_mb=size.memory_mb,
            extra_specs=vm.said,
            uuid=vm.uuid,
        )
        spec.flavor.id = size.type_id
        if group:
            others = [one for one in self.vms.values() if one.group == group.uuid]
            spec.instance_group.members = [one.uuid for one in others]
            spec.instance_group.hosts = sorted(
                {one.host for one in others if one.host and one is not vm}
            )
        return spec

    def flavor(self, vm: VM, size: Size) -> objects.Flavor:
        """Return the flavor of a VM of some size."""
        return self.spec(vm, size).flavor

    def set_out(self, vm: VM, kind: str, new: Size, migration: str) -> None:
        """Write down what the conductor does before it asks the scheduler for a place.

        :param new: what the VM takes there
        :param migration: uuid that holds its place at the source meanwhile
        """
        cloud = self.nova.cloud
        vm.moves, vm.new = kind, new
        rows.change_vm(cloud, vm.uuid, task_state=TASK_OF[kind])
        if kind not in TYPE_OF:
            return
        rows.add_migration(
            cloud,
            vm.uuid,
            status="accepted" if kind == "evacuate" else "pre-migrating",
            migration_type=TYPE_OF[kind],
            source_compute=vm.host,
            source_node=vm.host,
            dest_compute=None,
            dest_node=None,
            old_instance_type_id=vm.size.type_id,
            new_instance_type_id=new.type_id,
        )
        if kind == "resize":
            current, wanted = self.flavor(vm, vm.size), self.flavor(vm, new)
            rows.set_flavors(cloud, vm.uuid, cur=current, old=None, new=wanted)
        if kind != "evacuate":
            vm.migration = migration
            self.release(vm.uuid)
            self.allocate(migration, {str(vm.host): vm.size})

    def arrive(self, vm: VM) -> None:
        """Let a VM reach the place that it was given."""
        cloud, kind = self.nova.cloud, vm.moves
        assert vm.place is not None
        values: dict[str, object] = {"task_state": None}
        if kind == "resize":
            assert vm.new is not None
            size = vm.new
            values |= {
                "instance_type_id": size.type_id,
                "vcpus": size.vcpus,
                "memory_mb": size.memory_mb,
            }
            rows.set_flavors(cloud, vm.uuid, cur=self.flavor(vm, size))
        if kind in TYPE_OF:
            status = "done" if kind == "evacuate" else "confirmed"
            rows.change_migrations(cloud, vm.uuid, status=status)
            if kind == "evacuate":
                vm.left_on = vm.host
            else:
                self.release(vm.migration)
                vm.migration = ""
        rows.change_vm(cloud, vm.uuid, **values)
        rows.land(cloud, vm.uuid, vm.place)
        vm.host, vm.size = vm.place, vm.new or vm.size
        vm.place = vm.new = vm.moves = None
        if vm.left_on and vm.left_on not in self.down:
            self.clean_up(vm)

    def stay(self, vm: VM) -> None:
        """Let a VM be where and what it was before it set out, if it was anywhere."""
        if vm.moves is None:
            return
        cloud, was_placed = self.nova.cloud, vm.place is not None
        kind, vm.moves, vm.place, vm.new = vm.moves, None, None, None
        if was_placed or kind not in ("evacuate", "unshelve"):
            self.release(vm.uuid)
            if vm.migration:
                self.release(vm.migration)
            if vm.host:
                self.allocate(vm.uuid, {vm.host: vm.size})
        vm.migration = ""
        rows.change_vm(cloud, vm.uuid, task_state=None)
        if kind in TYPE_OF:
            rows.change_migrations(cloud, vm.uuid, status="error")
        if kind == "resize":
            rows.set_flavors(cloud, vm.uuid, cur=self.flavor(vm, vm.size))

    def clean_up(self, vm: VM) -> None:
        """Give up what an evacuation has left on the host that failed."""
        vm.left_on = None
        self.release(vm.uuid)
        for consumer, places in vm.allocations().items():
            self.allocate(consumer, places)

    def leave_group(self, vms: Iterable[VM]) -> None:
        """Take VMs out of the members of their groups."""
        for uuid, members in _grouped(vms):
            group = objects.InstanceGroup.get_by_uuid(self.nova.context, uuid)
            objects.InstanceGroup._remove_members_in_db(self.nova.context, group.id, members)

    def release(self, consumer: str) -> None:
        """Give up what a consumer holds in Placement."""
        self.nova.cloud.placement.delete(f"/allocations/{consumer}", version="1.28")

    def allocate(self, consumer: str, places: dict[str, Size]) -> None:
        """Have a consumer hold places in Placement: hosts, and what it takes there."""
        body = {
            "allocations": {
                self.nova.provider_of[host]: {
                    "resources": {
                        "VCPU": size.vcpus,
                        "MEMORY_MB": size.memory_mb,
                        "DISK_GB": 1,
                    }
                }
                for host, size in places.items()
            },
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
        }
        answer = self.nova.cloud.placement.put(
            f"/allocations/{consumer}", version="1.28", body=body
        )
        assert answer.status == 204, answer.body


def _grouped(vms: Iterable[VM]) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, list[str]] = defaultdict(list)
    for vm in vms:
        if vm.group:
            found[vm.group].append(vm.uuid)
    yield from found.items()
