"""hpc-sched group show -f hostfile, machinefile and rankfile: the group in the order of the fabric.

The fabric of :mod:`tests.snapshots`::

                   core1
              /             \\
            pod1            pod2
           /     \\         /     \\
     leaf01   leaf02    leaf03   leaf04
     n01-n04  n05-n08   n09-n12  n13-n16
"""

import pytest

from hpc_sched.cli import main
from tests.snapshots import flavor, group, saved, server

# Two requests of one group: the second found room only before the first in the fabric.
VMS = [
    server("vm-1", "n09"),
    server("vm-2", "n09"),
    server("vm-10", "n10"),
    server("vm-11", "n02"),
    server("vm-20", "n02"),
    server("vm-3", None),
]


def shown(capsys: pytest.CaptureFixture[str], path: str, *args: str) -> tuple[list[str], str]:
    """Return the lines of a group and what is on standard error; it must be shown."""
    assert main.main(["group", "show", "job", "--snapshot", path, *args]) == 0
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err


def failed(capsys: pytest.CaptureFixture[str], code: int, path: str, *args: str) -> str:
    """Return the last line of standard error of a group that cannot be shown."""
    assert main.main(["group", "show", "job", "--snapshot", path, *args]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()[-1]


@pytest.fixture
def job(tmp_path) -> str:
    return saved(tmp_path, VMS, [group("job", VMS)])


def test_the_vms_of_all_requests_are_in_the_order_of_the_fabric_in_every_format(job, capsys):
    names = ["vm-11", "vm-20", "vm-1", "vm-2", "vm-10", "vm-3"]
    assert shown(capsys, job, "-f", "value", "-c", "Name") == (names, "")
    lines, _ = shown(capsys, job)
    assert [line.split()[1] for line in lines[3:9]] == names


def test_a_hostfile_has_a_line_for_each_vm_with_a_host_and_its_processors(job, capsys):
    lines, errors = shown(capsys, job, "-f", "hostfile")
    assert lines == [
        "vm-11 slots=8",
        "vm-20 slots=8",
        "vm-1 slots=8",
        "vm-2 slots=8",
        "vm-10 slots=8",
    ]
    assert errors == "note: 1 VM without a host left out\n"


def test_a_machinefile_has_the_notation_of_mpich(job, capsys):
    lines, _ = shown(capsys, job, "-f", "machinefile", "--slots", "2")
    assert lines == ["vm-11:2", "vm-20:2", "vm-1:2", "vm-2:2", "vm-10:2"]


def test_a_rankfile_binds_each_process_to_cores_of_its_own(tmp_path, capsys):
    vms = [server("b", "n01", flavor("four", 4)), server("a", "n05", flavor("five", 5))]
    path = saved(tmp_path, vms, [group("job", vms)])
    lines, errors = shown(capsys, path, "-f", "rankfile")
    assert lines == [
        *(f"rank {core}=b slot={core}" for core in range(4)),
        *(f"rank {4 + core}=a slot={core}" for core in range(5)),
    ]
    assert errors == ""
    lines, _ = shown(capsys, path, "-f", "rankfile", "--slots", "2")
    assert lines == [
        "rank 0=b slot=0-1",
        "rank 1=b slot=2-3",
        "rank 2=a slot=0-1",
        "rank 3=a slot=2-3",
    ]
    lines, _ = shown(capsys, path, "-f", "rankfile", "--slots", "1")
    assert lines == ["rank 0=b slot=0-3", "rank 1=a slot=0-4"]


def test_more_processes_than_processors_are_no_ranks_on_cores_of_their_own(job, capsys):
    lines, _ = shown(capsys, job, "-f", "hostfile", "--slots", "9")
    assert lines[0] == "vm-11 slots=9"
    assert failed(capsys, 1, job, "-f", "rankfile", "--slots", "9") == (
        "VM 'vm-11' (vm-11-uuid): 9 processes for 8 VCPUs: expected a VCPU or more for each in a "
        "rankfile"
    )


def test_a_vm_that_does_not_run_is_noted(tmp_path, capsys):
    vms = [server("a", "n01", status="SHUTOFF"), server("b", "n02")]
    lines, errors = shown(
        capsys, saved(tmp_path, vms, [group("job", vms)]), "-f", "hostfile", "--slots", "1"
    )
    assert lines == ["a slots=1", "b slots=1"]
    assert errors == "note: VM a is SHUTOFF\n"


@pytest.mark.parametrize("name", ["a b", "a\nrank", "a slots=9", "a:2", "#a", "", "ä"])
def test_a_name_that_would_be_something_else_in_the_file_is_an_error(tmp_path, capsys, name):
    vms = [server("first", "n01"), server(name, "n02", uuid="b")]
    path = saved(tmp_path, vms, [group("job", vms)])
    for kind in ("hostfile", "machinefile", "rankfile"):
        assert failed(capsys, 1, path, "-f", kind) == (
            f"VM {name!r} (b): its name cannot be in a {kind}: expected letters, digits and . _ -"
        )


def test_a_name_of_two_vms_is_an_error(tmp_path, capsys):
    vms = [server("a", "n01", uuid="one"), server("a", "n02", uuid="two")]
    path = saved(tmp_path, vms, [group("job", vms)])
    assert failed(capsys, 1, path, "-f", "hostfile") == (
        "VM 'a' (one): 2 VMs of the group have this name: expected one in a hostfile"
    )


def test_an_empty_group_has_an_empty_file(tmp_path, capsys):
    path = saved(tmp_path, [], [group("job", [])])
    assert shown(capsys, path, "-f", "hostfile") == ([], "")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("-f hostfile --summary", "--summary has no format hostfile"),
        ("-f hostfile -c Name", "columns need a format that has them, such as -f table"),
        ("-f json --slots 2", "--slots needs a format for MPI: -f hostfile, machinefile, rankfile"),
        ("-f hostfile --slots 0", "argument --slots: expected a whole number >= 1, found '0'"),
    ],
)
def test_options_that_a_format_does_not_have_are_wrong_usage(job, capsys, options, error):
    assert failed(capsys, 2, job, *options.split()).endswith(error)
