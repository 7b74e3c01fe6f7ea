"""Where the next VM of a group that is apart starts, says hpc-sched fits with gather_groups."""

import json

import pytest

from hpc_sched.cli import main
from tests.snapshots import HOSTS, flavor, group, saved, server

WHOLE = flavor("whole", 16, prefer="leaf")


@pytest.mark.parametrize(
    ("gathers", "oldest", "leaf"),
    [
        pytest.param(False, "leaf02", "leaf01", id="next to most members"),
        pytest.param(True, "leaf02", "leaf01", id="next to the youngest member, among most"),
        pytest.param(True, "leaf01", "leaf02", id="next to the youngest member, among fewer"),
    ],
)
def test_the_next_vm_starts_where_the_whole_group_can_go(tmp_path, capsys, gathers, oldest, leaf):
    #  leaf01: two of the group and a free host   leaf02: one of the group and two free hosts
    hosts = ["n05", "n01", "n02"] if oldest == "leaf02" else ["n01", "n02", "n05"]
    vms = [
        server(f"{len(hosts) - number}", host, WHOLE, created=f"2026-01-3{number}T12:00:00Z")
        for number, host in enumerate(hosts)
    ]
    full = [server(f"f{host}", host, WHOLE) for host in HOSTS if host in ("n04", "n08")]
    full += [server(f"f{host}", host, WHOLE) for host in HOSTS[8:]]
    options = {"gather_groups": gathers}
    path = saved(tmp_path, vms + full, [group("job", vms)], [WHOLE], options=options)
    arguments = ["fits", "--group", "job", "--count", "1", "--snapshot", path, "-f", "json"]
    assert main.main(arguments) == 0
    assert [row["Leaf"] for row in json.loads(capsys.readouterr().out)] == [leaf]
