"""The VMs on hosts, corrected by those that have changed."""

from hpc_sched.core.sharing.cache_interference import Application
from hpc_sched.nova_glue.read.instances.kept import host_vms
from hpc_sched.nova_glue.read.instances.kept.host_vms import HostVMs
from hpc_sched.nova_glue.read.instances.placed_instance import PlacedInstance


def vm(name: str, host: str, app_class: str | None = "none") -> PlacedInstance:
    application = Application(app_class) if app_class else None
    return PlacedInstance(name, host, host, None, 1, 1, 1, 1, application=application)


def at(*vms: PlacedInstance) -> dict[host_vms.Place, HostVMs]:
    return host_vms.corrected({}, (), vms)


def test_a_vm_that_moves_is_on_one_host_and_others_are_untouched():
    before = at(vm("a", "n1"), vm("b", "n1"), vm("c", "n2"))
    found = host_vms.corrected(before, [vm("a", "n1")], [vm("a", "n3")])
    assert found == at(vm("b", "n1"), vm("c", "n2"), vm("a", "n3"))
    # Requests that have the former one keep it, and what was summed up stays.
    assert before == at(vm("a", "n1"), vm("b", "n1"), vm("c", "n2"))
    assert found["n2", "n2"] is before["n2", "n2"]


def test_a_host_without_vms_is_not_kept():
    assert host_vms.corrected(at(vm("a", "n1")), [vm("a", "n1")], ()) == {}


def test_a_vm_that_changes_where_it_is_replaces_itself():
    before = at(vm("a", "n1", "none"))
    found = host_vms.corrected(before, [vm("a", "n1")], [vm("a", "n1", "extreme")])
    assert found["n1", "n1"].applications.has_extreme
    assert not before["n1", "n1"].applications.has_extreme


def test_vms_that_are_not_known_are_counted():
    there = at(vm("a", "n1"), vm("b", "n1", None))["n1", "n1"]
    assert there.unknown == 1
    assert there.applications.each == (Application("none"),)


def test_hosts_of_one_name_in_two_cells_have_the_vms_of_both():
    one, two = at(vm("a", "n1"), vm("b", "n2")), at(vm("c", "n1"))
    found = host_vms.union([one, two])
    assert [there.uuid for there in found["n1", "n1"]] == ["a", "c"]
    assert found["n2", "n2"] is one["n2", "n2"]
    assert host_vms.union([one]) is one
    assert host_vms.union([]) == {}
