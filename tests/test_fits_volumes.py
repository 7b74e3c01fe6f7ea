"""hpc-sched fits takes VMs of a group's own flavor to be as those that the group has."""

from msgspec.structs import replace

from hpc_sched.cli import main
from tests.snapshots import flavor as made
from tests.snapshots import group, saved, server


def test_a_group_whose_vms_boot_from_volumes_needs_no_root_disk(tmp_path, capsys):
    # A host has 1000 GB of disk.
    flavor = replace(made("large", 4), root_gb=2000)
    member = server("one", "n01", flavor, boots_from_volume=True)
    path = saved(tmp_path, [member], [group("job", [member])], flavors=[flavor], hosts=["n02"])
    code = main.main(["fits", "--snapshot", path, "--group", "job", "--count", "1"])
    assert code == 0, capsys.readouterr().out
