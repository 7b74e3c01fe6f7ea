"""hpc-sched group show: standard output, standard error and exit code; the cloud is a file."""

import json

import pytest
from msgspec.structs import replace

from hpc_sched.cli import main
from tests.snapshots import HOSTS, flavor, group, saved, server, uuid_of

FULL = flavor("full", 16)


@pytest.fixture
def job(tmp_path):
    """Return a saved cloud: four VMs of a group, half a host each, of which one stands apart.

    ::

                      core1
                 /             \\
               pod1            pod2
              /     \\         /     \\
        leaf01   leaf02    leaf03   leaf04
        2 1 x .  x . . !   1 . . .  . . . .
    """
    vms = [server(f"job-{i}", host) for i, host in enumerate(["n01", "n01", "n02", "n09"])]
    vms.append(server("job-new", None))
    others = [server("other-1", "n03"), server("other-2", "n05", FULL)]
    groups = [group("job", vms), group("jobs", [])]
    return saved(tmp_path, vms + others, groups, disabled=["n08"])


def test_the_table_has_every_vm_the_picture_and_what_it_costs(job, capsys):
    assert main.main(["group", "show", "job", "--snapshot", job]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.splitlines()[3:] == [
        "| job-0   | job-0-uuid   | ACTIVE | n01  | leaf01 | pod1 core1 |",
        "| job-1   | job-1-uuid   | ACTIVE | n01  | leaf01 | pod1 core1 |",
        "| job-2   | job-2-uuid   | ACTIVE | n02  | leaf01 | pod1 core1 |",
        "| job-3   | job-3-uuid   | ACTIVE | n09  | leaf03 | pod2 core1 |",
        "| job-new | job-new-uuid | BUILD  | None | None   | None       |",
        "+---------+--------------+--------+------+--------+------------+",
        "",
        "pod1 leaf01  2 1 x .",
        "pod1 leaf02  x . . !",
        "pod2 leaf03  1 . . .",
        "pod2 leaf04  . . . .",
        "",
        "             1-9 + VMs of the group   x VMs of others   . none   ! takes no VMs   "
        "? not in Nova",
        "",
        "VMs placed       4 of 5",
        "hosts used       3",
        "leaves used      2",
        "Hop-Byte cost    17",
        "least possible   4",
        "best move        job-3 from n09 to n02 in pod1 leaf01: Hop-Byte 4, all under one leaf",
    ]


def test_hop_byte_counts_the_switches_between_all_pairs(job, capsys):
    # n01 n01 n02 n09: 0 + 1 + 1 within leaf01, 5 three times up to core1 and down.
    assert main.main(["group", "show", "job", "--snapshot", job, "--summary", "-f", "json"]) == 0
    [told] = json.loads(capsys.readouterr().out)
    assert told == {
        "Group": "job",
        "ID": uuid_of("job"),
        "Policy": "soft-affinity",
        "VMs": 5,
        "Placed": 4,
        "Hosts": 3,
        "Leaves": 2,
        "Hop-Byte": 17,
        "Least possible": 4,
        "Move": "job-3",
        "Move ID": "job-3-uuid",
        "Move From": "n09",
        "Move To": "n02",
        "Hop-Byte Then": 4,
    }


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        ("json", '"Host": "n09"'),
        ("yaml", "Host: n09"),
        ("csv", '"job-3","job-3-uuid","ACTIVE","n09","leaf03","pod2 core1"'),
        ("value", "job-3 job-3-uuid ACTIVE n09 leaf03 pod2 core1"),
    ],
)
def test_formats_for_machines_have_the_vms_and_no_picture(job, capsys, format_, expected):
    assert main.main(["group", "show", uuid_of("job"), "--snapshot", job, "-f", format_]) == 0
    out = capsys.readouterr().out
    assert expected in out
    assert "least possible" not in out


def test_a_vm_without_a_host_has_no_place_in_json(job, capsys):
    main.main(["group", "show", "job", "--snapshot", job, "-f", "json"])
    told = {row["Name"]: row for row in json.loads(capsys.readouterr().out)}
    assert (told["job-new"]["Host"], told["job-new"]["Leaf"]) == (None, None)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ("jbo", "there is no server group 'jbo': there is job"),
        ("zzz", "there is no server group 'zzz'"),
        ("", "there is no server group ''"),
    ],
)
def test_a_group_that_is_not_there_names_similar_ones(job, capsys, wanted, error):
    assert main.main(["group", "show", wanted, "--snapshot", job]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err.splitlines()[-1]) == ("", error)


def test_a_name_of_two_groups_is_an_error_with_their_uuids(tmp_path, capsys):
    twins = [group("twin", []), group("twin", [])]
    path = saved(tmp_path, groups=[twins[0], type(twins[1])("b", "twin", "p", "affinity", ())])
    assert main.main(["group", "show", "twin", "--snapshot", path]) == 1
    error = "2 server groups are called 'twin': expected a uuid, one of b, twin-uuid"
    assert capsys.readouterr().err.splitlines()[-1] == error


def test_hosts_that_the_topology_does_not_name_are_leaves_of_their_own_with_a_note(
    tmp_path, capsys
):
    vms = [server("a", "n01"), server("b", "x1")]
    path = saved(tmp_path, vms, [group("job", vms)], hosts=[*HOSTS, "x1", "x2"])
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    captured = capsys.readouterr()
    note = "note: 2 hosts (x[1-2]) not in the topology, each a leaf of its own\n"
    assert captured.err == note
    assert "x1           1" in captured.out
    assert "Hop-Byte cost    5\nleast possible   0" in captured.out


def test_islands_have_no_cost_and_empty_numbers_in_json(tmp_path, capsys):
    fabric = 'switches: [{name: one, hosts: "n[01-08]"}, {name: two, hosts: "n[09-16]"}]'
    vms = [server("a", "n01"), server("b", "n09")]
    path = saved(tmp_path, vms, [group("job", vms)], topology=fabric)
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    assert "Hop-Byte cost    infinite (islands)\nleast possible   0" in capsys.readouterr().out
    main.main(["group", "show", "job", "--snapshot", path, "--summary", "-f", "json"])
    [told] = json.loads(capsys.readouterr().out)
    assert (told["Hop-Byte"], told["Least possible"]) == (None, 0)


def test_the_least_possible_keeps_the_policy_and_the_room_of_others(tmp_path, capsys):
    # Anti-affinity: a host each. leaf01 has two hosts left beside full ones, so the cheapest
    # way for three is any leaf with three free hosts: 3 pairs, 1 switch each.
    vms = [server("a", "n01"), server("b", "n05"), server("c", "n09")]
    full = [server(f"f{host}", host, FULL) for host in ("n02", "n03")]
    groups = [group("job", vms, "anti-affinity")]
    path = saved(tmp_path, vms + full, groups)
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    assert "Hop-Byte cost    13\nleast possible   3" in capsys.readouterr().out


def test_where_they_are_is_the_least_possible_when_nothing_else_is_free(tmp_path, capsys):
    vms = [server("a", "n01"), server("b", "n16")]
    full = [server(f"f{host}", host, FULL) for host in HOSTS[1:-1]]
    halves = [server("h1", "n01"), server("h16", "n16")]
    path = saved(tmp_path, vms + full + halves, [group("job", vms)])
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    assert "Hop-Byte cost    5\nleast possible   5" in capsys.readouterr().out


def least(capsys, path: str) -> int:
    capsys.readouterr()
    assert main.main(["group", "show", "job", "--snapshot", path, "--summary", "-f", "json"]) == 0
    [told] = json.loads(capsys.readouterr().out)
    return told["Least possible"]


def test_the_least_possible_is_that_of_the_fabric_also_for_a_class_that_does_not_mind_it(
    tmp_path, capsys
):
    loose = flavor("loose", 16, app_class="async")
    vms = [server("a", "n01", loose), server("b", "n13", loose)]
    others = [
        server(f"o-{host}", host, FULL) for host in HOSTS if host not in ("n01", "n13", "n14")
    ]
    path = saved(tmp_path, vms + others, [group("job", vms)], [loose])
    assert least(capsys, path) == 1


def test_the_least_possible_leaves_out_that_mdobp_chooses_hosts(tmp_path, capsys):
    vms = [server("a", "n01"), server("b", "n13")]
    # MDOBP would take two hosts, of which much memory is left for VMs that want little.
    others = [server(f"o-{host}", host, flavor("most", 8)) for host in HOSTS[1:12]]
    enabled = ("hpc_sched.weighers.mdobp.MDOBPWeigher",)
    path = saved(tmp_path, vms + others, [group("job", vms)], weighers=enabled)
    assert least(capsys, path) == 0


def test_vms_on_hosts_that_take_no_others_may_stay_for_the_least_possible(tmp_path, capsys):
    #  leaf01: two of the group on a disabled host, room for one beside it; all else is full
    vms = [server("a", "n01"), server("b", "n01"), server("c", "n13")]
    beside = [server("d", "n02"), server("e", "n13")]
    full = [server(f"o-{host}", host, FULL) for host in (*HOSTS[2:12], *HOSTS[13:])]
    path = saved(tmp_path, vms + beside + full, [group("job", vms)], disabled=["n01"])
    assert least(capsys, path) == 2


def test_vms_of_several_flavors_and_members_that_are_gone_are_told(tmp_path, capsys):
    vms = [server("a", "n01"), server("b", "n01", flavor("quarter", 4))]
    gone = server("gone", "n02")
    path = saved(tmp_path, vms, [group("job", [*vms, gone])])
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "note: its VMs are of several flavors (quarter, half): the least possible takes all for "
        "the largest",
        "note: 1 of its members are no servers any more",
    ]


def test_a_group_without_vms_is_shown_as_one(job, capsys):
    assert main.main(["group", "show", "jobs", "--snapshot", job]) == 0
    assert "VMs placed       0 of 0" in capsys.readouterr().out


def test_a_large_fabric_is_pictured_by_the_leaves_of_the_group(tmp_path, capsys):
    leaves = ", ".join(f"{{name: leaf{i}, hosts: h{i}}}" for i in range(100))
    fabric = f"switches: [{{name: core, switches: [{leaves}]}}]"
    vms = [server("a", "h7"), server("b", "h42")]
    hosts = [f"h{i}" for i in range(100)]
    path = saved(tmp_path, vms, [group("job", vms)], hosts=hosts, topology=fabric)
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    assert "leaf7   1\nleaf42  1\nand 98 leaf switches without" in capsys.readouterr().out


def test_hosts_of_the_topology_that_nova_does_not_have_are_marked(tmp_path, capsys):
    path = saved(tmp_path, groups=[group("job", [])], hosts=HOSTS[:-1], down=["n15"])
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    assert "pod2 leaf04  . . ! ?" in capsys.readouterr().out


def test_names_that_would_steer_a_terminal_are_shown_with_escapes(tmp_path, capsys):
    vm = replace(server("a", "far\x1b[2J"), name="a\n\x1b[31mb")
    path = saved(tmp_path, [vm], [group("job", [vm])], notes=["odd\x07"])
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    captured = capsys.readouterr()
    assert "| a\\n\\x1b[31mb |" in captured.out
    assert "far\\x1b[2J" in captured.out
    assert captured.err.splitlines()[0] == "note: odd\\x07"
    assert (captured.out + captured.err).replace("\n", "").isprintable()
    assert main.main(["group", "show", "job", "--snapshot", path, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["Name"] == vm.name


def shown_move(capsys, path: str) -> str | None:
    """Return the line on the best move, or None."""
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    return next((line for line in lines if line.startswith("best move")), None)


NO_MOVE = "best move        none: no live migration of one VM lowers the cost"


def test_no_move_is_shown_for_a_group_that_is_together(tmp_path, capsys):
    vms = [server("a", "n01"), server("b", "n02")]
    path = saved(tmp_path, vms, [group("job", vms)])
    assert shown_move(capsys, path) is None
    main.main(["group", "show", "job", "--snapshot", path, "--summary", "-f", "json"])
    [told] = json.loads(capsys.readouterr().out)
    assert (told["Move"], told["Move To"], told["Hop-Byte Then"]) == (None, None, None)
    # It prefers no more than one pod.
    pod = flavor("pod", 16, prefer="pod")
    vms = [server("a", "n01", pod), server("b", "n05", pod)]
    assert shown_move(capsys, saved(tmp_path, vms, [group("job", vms)], [pod])) is None


def test_a_class_that_is_not_placed_by_the_fabric_has_no_move(tmp_path, capsys):
    for app_class in ("async", "none"):
        loose = flavor("loose", 16, app_class=app_class)
        vms = [server("a", "n01", loose), server("b", "n13", loose)]
        assert shown_move(capsys, saved(tmp_path, vms, [group("job", vms)], [loose])) is None


def test_a_move_keeps_room_policy_and_hosts_that_are_down_or_disabled(tmp_path, capsys):
    #  leaf01: a . full full    leaf02: one host down, one disabled    leaf03: b and c
    vms = [server("a", "n01"), server("b", "n09"), server("c", "n10")]
    others = [server(f"f-{host}", host, FULL) for host in ("n02", "n03", "n04", "n11")]
    groups = [group("job", vms, "anti-affinity")]
    path = saved(tmp_path, vms + others, groups, disabled=["n05"], down=["n12"])
    # Nothing is left under leaf03, and leaf04 is nearer to it than leaf01.
    line = shown_move(capsys, path)
    assert line is not None
    assert line.startswith("best move        a from n01 to n1")
    assert line.endswith("in pod2 leaf04: Hop-Byte 7")
    path = saved(tmp_path, vms + others, [group("job", vms)], disabled=["n05"], down=["n12"])
    assert shown_move(capsys, path) == (
        "best move        a from n01 to n09 in pod2 leaf03: Hop-Byte 2, all under one leaf"
    )


def test_no_move_where_the_group_cannot_come_nearer(tmp_path, capsys):
    vms = [server("a", "n01"), server("b", "n05")]
    full = [server(f"f{host}", host, FULL) for host in HOSTS if host not in ("n01", "n05")]
    halves = [server("h1", "n01"), server("h5", "n05")]
    path = saved(tmp_path, vms + full + halves, [group("job", vms)])
    assert shown_move(capsys, path) == NO_MOVE


def test_a_vm_moves_live_only_if_it_runs_on_a_host_that_is_up(tmp_path, capsys):
    vms = [server("a", "n01"), server("b", "n09", status="SHUTOFF")]
    path = saved(tmp_path, vms, [group("job", vms)])
    assert "a from n01 to n09 in" in (shown_move(capsys, path) or "")
    path = saved(tmp_path, vms, [group("job", vms)], down=["n01"])
    assert shown_move(capsys, path) == NO_MOVE


def test_a_move_keeps_what_the_group_requires(tmp_path, capsys):
    kind = flavor("two", 16, max_leaves="2")
    vms = [server("a", "n01", kind), server("b", "n05", kind), server("c", "n06", kind)]
    full = [server(f"f{host}", host, FULL) for host in ("n07", "n08")]
    path = saved(tmp_path, vms + full, [group("job", vms)], [kind])
    # a has no room under leaf02; b may go to leaf01 or leaf03 alone, and gains nothing there.
    line = shown_move(capsys, path)
    assert line == NO_MOVE
    kind = flavor("pod", 16, require="pod")
    vms = [server("a", "n01", kind), server("b", "n05", kind), server("c", "n13", kind)]
    line = shown_move(capsys, saved(tmp_path, vms, [group("job", vms)], [kind]))
    assert line is not None
    assert "c from n13 to n0" in line
    assert line.endswith("Hop-Byte 7, all under one pod")


def test_each_vm_moves_with_its_own_flavor(tmp_path, capsys):
    # The large one could be next to a, if it were as small.
    vms = [server("a", "n01"), server("c", "n05"), server("large", "n09", FULL)]
    halves = [server("half", "n05")]
    full = [server(f"f{host}", host, FULL) for host in HOSTS if host not in ("n01", "n05", "n09")]
    path = saved(tmp_path, vms + halves + full, [group("job", vms)])
    expected = "best move        c from n05 to n01 in pod1 leaf01: Hop-Byte 10"
    assert shown_move(capsys, path) == expected


@pytest.mark.parametrize(
    ("objective", "line"),
    [
        ("bottleneck", "objective        bottleneck: spread so that its busiest link carries less"),
        ("isolated", "objective        isolated: no uplinks that other isolated groups use"),
    ],
)
def test_a_group_by_another_objective_is_shown_with_it(tmp_path, capsys, objective, line):
    kind = flavor("apart", 16, objective=objective)
    vms = [server("a", "n01", kind), server("b", "n09", kind)]
    path = saved(tmp_path, vms, [group("job", vms)])
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert line in lines
    # One by bottleneck is spread on purpose.
    assert any(one.startswith("best move") for one in lines) == (objective == "isolated")


@pytest.mark.parametrize("app_class", ["none", "async"])
def test_the_objective_of_a_class_that_does_not_mind_the_fabric_is_not_shown(
    tmp_path, capsys, app_class
):
    kind = flavor("loose", 16, objective="bottleneck", app_class=app_class)
    vms = [server("a", "n01", kind), server("b", "n09", kind)]
    path = saved(tmp_path, vms, [group("job", vms)])
    assert main.main(["group", "show", "job", "--snapshot", path]) == 0
    assert "objective" not in capsys.readouterr().out
