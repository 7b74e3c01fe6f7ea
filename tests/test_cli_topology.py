"""hpc-sched topology: standard output, standard error and exit code of each command."""

import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from hpc_sched import topology
from hpc_sched.cli import main
from hpc_sched.cli.common import output
from hpc_sched.cli.topology import topology_check, topology_show
from hpc_sched.snapshot.snapshot_model import Aggregate, Flavor, Hypervisor, Server, Snapshot
from hpc_sched.snapshot.source import snapshot_file as snapshot_file
from hpc_sched.topology import Topology
from hpc_sched.topology.links import Cables, Links
from hpc_sched.topology.tree import Details

#               core1
#             /       \
#          pod1        pod2
#         /    \           \
#    leaf01    leaf02      leaf03
#   n[01-04]   n[05-08]   n[09-12]
FABRIC = """\
levels: [leaf, pod, core]
switches:
- name: core1
  switches:
  - name: pod1
    switches:
    - {name: leaf01, hosts: "n[01-04]", processor: gold-6338}
    - {name: leaf02, hosts: "n[05-08]"}
  - name: pod2
    switches:
    - {name: leaf03, hosts: "n[09-12]"}
"""
BROKEN = """\
switches:
- name: spine
  switches:
  - {name: a, hosts: n1, speed: 9}
  - {name: b, hosts: n2}
  - {name: c, hosts: n2}
  - {name: b, hosts: n3}
"""
BROKEN_LINES = [
    "bad.yaml:4: unknown key 'speed' in a switch of switch 'spine'; known: name, switches, hosts, "
    "processor, members, ids, uplinks, host_links",
    "bad.yaml:6: host 'n2' is under leaf 'b' and leaf 'c'",
    "bad.yaml:7: switch 'b' stands twice, first on line 5: a switch has one parent",
]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Return a function that runs hpc-sched topology in a folder with fabrics."""
    monkeypatch.chdir(tmp_path)
    Path("fabric.yaml").write_text(FABRIC)
    Path("bad.yaml").write_text(BROKEN)
    Path("nova.conf").write_text("[hpc_sched]\ntopology_file = fabric.yaml\n")

    def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main.main(["topology", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    """Return the path of a cloud: n[01-10] of the fabric and gpu1, some of it in use."""

    def node(name: str, used: int = 0, enabled: bool = True, up: bool = True) -> Hypervisor:
        return Hypervisor(name, name, enabled, up, {"VCPU": 64}, {"VCPU": used})

    def vm(number: int, host: str) -> Server:
        flavor = Flavor("hpc", 32, 1024)
        return Server(f"u{number}", f"vm{number}", "p", "ACTIVE", host, host, flavor, "2026-01-01")

    nodes = [node("gpu1"), node("n01", 64), node("n02", 32), node("n03", enabled=False)]
    nodes += [node("n04", up=False), *(node(f"n{i:02}") for i in range(5, 11))]
    path = tmp_path / "cloud.json"
    servers = (vm(1, "n01"), vm(2, "n01"), vm(3, "n02"))
    snapshot_file.write(path, Snapshot("2026-01-01T00:00:00+00:00", tuple(nodes), servers, (), ()))
    return str(path)


def install(monkeypatch: pytest.MonkeyPatch, fabric: Topology) -> None:
    """Have every source be this fabric: with links, merged switches or remarks, as drivers give.

    The driver ``yaml`` tells of none of them.
    """
    monkeypatch.setattr("hpc_sched.cli.common.sources.topology_of", lambda *_args: fabric)


MERGED = Topology.from_tree(
    {"spine+1": {"rail+1": ["n1", "n2"], "leaf3": ["n3", "n4"]}},
    details=Details(
        members={"rail+1": ("rail-a", "rail-b"), "spine+1": ("spine1", "spine2")},
        links={
            "rail+1": Links(800, Cables.of([100] * 4)),
            "leaf3": Links(400, Cables.of([100, 100, 200])),
        },
        ids={"rail+1": ("0x0002c90200404717", "0x0002c90200404718")},
    ),
    remarks=("the fabric is no tree: distances are rounded up to one",),
)


# --- host aggregates ----------------------------------------------------------------------------


@pytest.fixture
def racks(snapshot: str) -> str:
    """Return the path of the same cloud with two racks of five hosts as aggregates."""
    found = snapshot_file.read(snapshot)
    hosts = {1: [f"n{i:02}" for i in range(1, 6)], 2: [f"n{i:02}" for i in range(6, 11)]}
    aggregates = tuple(
        Aggregate(f"rack{i}", tuple(below), {"hpc:leaf": f"l{i}"}) for i, below in hosts.items()
    )
    snapshot_file.write(snapshot, replace(found, aggregates=aggregates))
    return snapshot


def test_the_aggregates_of_a_snapshot_are_a_topology(call, racks):
    code, out, _ = call("validate", f"aggregates:{racks}")
    assert (code, out) == (0, "ok: 10 hosts, 2 leaves, depth 2\n")


def test_where_nova_conf_says_aggregates_those_of_the_cloud_count(call, racks):
    Path("nova.conf").write_text("[hpc_sched]\ntopology_driver = aggregates\n")
    code, out, _ = call(
        "show", "--snapshot", racks, "--config-file", "nova.conf", "-f", "value", "-c", "Switch"
    )
    assert (code, out) == (0, "l1\nl2\n")


def test_aggregates_without_a_cloud_are_an_error_that_says_what_to_name(call):
    Path("nova.conf").write_text("[hpc_sched]\ntopology_driver = aggregates\n")
    code, out, err = call("show", "--config-file", "nova.conf")
    assert (code, out) == (1, "")
    assert "topology_driver = aggregates: expected the cloud" in err
    assert "--snapshot" in err


# --- show ---------------------------------------------------------------------------------------


def shown(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_show_draws_the_tree_of_a_file(call):
    assert call("show", "fabric.yaml") == (
        0,
        shown(
            "switch        level  hosts  processor  below",
            "core1         core      12             3 leaves",
            "├─ pod1       pod        8             2 leaves",
            "│  ├─ leaf01  leaf       4  gold-6338  n[01-04]",
            "│  └─ leaf02  leaf       4             n[05-08]",
            "└─ pod2       pod        4             1 leaf",
            "   └─ leaf03  leaf       4             n[09-12]",
        ),
        "",
    )


def test_show_draws_what_nova_conf_names(call):
    _, expected, _ = call("show", "fabric.yaml")
    assert call("show", "--config-file", "nova.conf") == (0, expected, "")


def test_show_reads_standard_input(call):
    _, expected, _ = call("show", "fabric.yaml")
    assert call("show", "-", stdin=FABRIC) == (0, expected, "")
    assert call("show", "yaml:-", stdin=FABRIC) == (0, expected, "")


@pytest.mark.parametrize("cut", [("--level", "pod"), ("--depth", "2")], ids=" ".join)
def test_show_stops_at_a_level(call, cut: tuple[str, str]):
    assert call("show", "fabric.yaml", *cut) == (
        0,
        shown(
            "switch   level  hosts  processor           below",
            "core1    core      12                      3 leaves",
            "├─ pod1  pod        8  gold-6338, unknown  2 leaves: n[01-08]",
            "└─ pod2  pod        4                      1 leaf: n[09-12]",
        ),
        "",
    )


def test_show_draws_one_switch_and_what_is_below_it(call):
    assert call("show", "fabric.yaml", "--switch", "pod2") == (
        0,
        shown(
            "switch     level  hosts  below",
            "pod2       pod        4  1 leaf",
            "└─ leaf03  leaf       4  n[09-12]",
        ),
        "",
    )


def test_show_draws_islands_one_after_the_other(call):
    text = "switches: [{name: a, hosts: h1}, {name: b, switches: [{name: b1, hosts: h2}]}]"
    assert call("show", "-", stdin=text) == (
        0,
        shown(
            "switch  level  hosts  below",
            "a       leaf       1  h1",
            "b       pod        1  1 leaf",
            "└─ b1   leaf       1  h2",
        ),
        "",
    )


def test_show_with_a_cloud_tells_what_runs_below_each_switch(call, snapshot):
    assert call("show", "fabric.yaml", "--snapshot", snapshot) == (
        0,
        shown(
            "switch        level  hosts  vms   vcpus  free  off  processor  below",
            "core1         core      12    3  96/640     6    4             3 leaves",
            "├─ pod1       pod        8    3  96/512     4    2             2 leaves",
            "│  ├─ leaf01  leaf       4    3  96/256     0    2  gold-6338  n[01-04]",
            "│  └─ leaf02  leaf       4    0   0/256     4    0             n[05-08]",
            "└─ pod2       pod        4    0   0/128     2    2             1 leaf",
            "   └─ leaf03  leaf       4    0   0/128     2    2             n[09-12]",
        ),
        "1 hypervisor not in this topology: see hpc-sched topology check\n",
    )


def test_the_fabric_of_a_snapshot_is_taken_where_none_is_named(call, snapshot):
    held = replace(snapshot_file.read(snapshot), topology=FABRIC)
    snapshot_file.write("held.json", held)
    assert (
        call("show", "--snapshot", "held.json")[1]
        == (call("show", "fabric.yaml", "--snapshot", snapshot)[1])
    )
    assert call("check", "--snapshot", "held.json")[1].endswith("11 hypervisors in Nova\n")
    assert call("convert", "--snapshot", "held.json", "--to", "dot")[0] == 0
    Path("one.yaml").write_text("switches: [{name: leaf, hosts: n01}]")
    assert "n01" in call("show", "one.yaml", "--snapshot", "held.json")[1].splitlines()[-1]
    snapshot_file.write("held.json", replace(held, topology="switches: []"))
    code, _, err = call("show", "--snapshot", "held.json")
    assert code == 1
    assert err == "held.json: topology:1: the file has no switches\n"


def test_show_gives_programs_a_row_a_leaf(call, snapshot):
    code, out, _ = call("show", "fabric.yaml", "--snapshot", snapshot, "-f", "json")
    assert code == 0
    rows = json.loads(out)
    assert [row["Switch"] for row in rows] == ["leaf01", "leaf02", "leaf03"]
    assert rows[0] == {
        "Switch": "leaf01",
        "Level": "leaf",
        "Above": "core1/pod1",
        "Hosts": 4,
        "Names": "n[01-04]",
        "Processor": "gold-6338",
        "Stands for": "",
        "Uplinks": "",
        "Uplinks Gb/s": None,
        "Oversubscription": None,
        "VMs": 3,
        "VCPUs used": 96,
        "VCPUs": 256,
        "Free hosts": 0,
        "Disabled": 1,
        "Down": 1,
        "Not in Nova": 0,
    }


@pytest.mark.parametrize("format_", ["csv", "table", "value", "yaml"])
def test_show_has_the_usual_formats(call, format_: str):
    code, out, _ = call("show", "fabric.yaml", "-f", format_, "-c", "Switch", "-c", "Hosts")
    assert code == 0
    assert [line for line in out.splitlines() if "leaf02" in line and ("4" in line or ":" in line)]
    if format_ == "yaml":
        assert yaml.safe_load(out)[1] == {"Switch": "leaf02", "Hosts": 4}


def test_show_tells_what_a_merged_switch_stands_for(call, monkeypatch):
    install(monkeypatch, MERGED)
    code, out, err = call("show", "any")
    assert code == 0
    assert out == shown(
        "switch     level  hosts  uplinks                 ratio  below",
        "spine+1    pod        4                                 2 leaves",
        "├─ rail+1  leaf       2  4 x 100 Gb/s            2:1    n[1-2]",
        "└─ leaf3   leaf       2  1 x 200 + 2 x 100 Gb/s  1:1    n[3-4]",
    )
    members = call("show", "any", "--members")[1]
    assert members == shown(
        "switch     level  hosts  uplinks                 ratio  below",
        "spine+1    pod        4                                 2 leaves (spine[1-2])",
        "├─ rail+1  leaf       2  4 x 100 Gb/s            2:1    n[1-2] (rail-a,rail-b)",
        "└─ leaf3   leaf       2  1 x 200 + 2 x 100 Gb/s  1:1    n[3-4]",
    )
    assert err == "1 remark on this topology: see hpc-sched topology validate\n"
    _, out, _ = call("show", "any", "-f", "value", "-c", "Stands for", "-c", "Oversubscription")
    assert out == "rail-a,rail-b 2.0\n 1.0\n"
    rows = json.loads(call("show", "any", "-f", "json")[1])
    assert [(row["Uplinks"], row["Uplinks Gb/s"]) for row in rows] == [
        ("4 x 100", 400),
        ("1 x 200 + 2 x 100", 400),
    ]


def test_show_finds_a_switch_by_a_member_or_a_guid(call, monkeypatch):
    install(monkeypatch, MERGED)
    expected = shown(
        "switch  level  hosts  uplinks       ratio  below",
        "rail+1  leaf       2  4 x 100 Gb/s  2:1    n[1-2]",
    )
    code, out, err = call("show", "any", "--switch", "rail-b")
    assert (code, out) == (0, expected)
    assert err.startswith("rail-b is part of rail+1\n")
    code, out, err = call("show", "any", "--switch", "0x0002C90200404718")
    assert (code, out) == (0, expected)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["no.yaml"], 1, "no.yaml: cannot be read: No such file or directory"),
        (["fabric.yaml", "--switch", "pod9"], 1, "switch 'pod9' is not in the topology"),
        (["fabric.yaml", "--level", "row"], 1, "--level row: expected one of leaf, pod, core"),
        (["fabric.yaml", "--snapshot", "no"], 1, "no: cannot be read: No such file"),
        (["--config-file", "no.conf"], 1, "Failed to find some config files:"),
        (["fabric.yaml", "--depth", "0"], 2, "expected a whole number >= 1, found '0'"),
        (["fabric.yaml", "--depth", "1", "--level", "pod"], 2, "not allowed with argument"),
        (["fabric.yaml", "-c", "Switch"], 2, "columns need a format that has them"),
        (["fabric.yaml", "-f", "xml"], 2, "invalid choice: 'xml'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_show_that_cannot_be_says_why(call, arguments: list[str], code: int, error: str):
    result, out, err = call("show", *arguments)
    assert (result, out) == (code, "")
    assert error in err.splitlines()[-1]


def test_every_problem_of_a_broken_file_is_told(call):
    code, out, err = call("show", "bad.yaml")
    assert (code, out) == (1, "")
    assert err.splitlines() == [f"{BROKEN_LINES[0]} (and 2 more problems)", *BROKEN_LINES[1:]]


def run(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of shell in which $SCHED is the command."""
    (folder / "fabric.yaml").write_text(FABRIC)
    leaves = [f"{{name: leaf{i:04}, hosts: 'n{i}-[1-9]'}}" for i in range(2000)]
    (folder / "big.yaml").write_text(f"switches: [{', '.join(leaves)}]")
    variables = os.environ | {"SCHED": f"{sys.executable} -m hpc_sched.cli.main"} | environment
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=variables, capture_output=True, check=False
    )


def test_a_terminal_without_unicode_gets_plain_lines(tmp_path: Path):
    done = run("$SCHED topology show fabric.yaml", tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"|  `- leaf02  leaf" in done.stdout
    assert b"`- pod2       pod" in done.stdout


def test_a_reader_that_goes_away_leaves_no_traceback(tmp_path: Path):
    for name in ("fabric.yaml", "big.yaml"):
        done = run(f"$SCHED topology show {name} | true; exit ${{PIPESTATUS[0]}}", tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (output.CLOSED_PIPE, b"", b"")


def test_a_full_disk_is_a_failure(tmp_path: Path):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    done = run("$SCHED topology show fabric.yaml > /dev/full", tmp_path)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


# --- validate -----------------------------------------------------------------------------------


def test_validate_tells_the_size_of_what_is_right(call):
    assert call("validate", "fabric.yaml") == (0, "ok: 12 hosts, 3 leaves, depth 3\n", "")
    assert call("validate", "-", stdin=FABRIC)[:2] == (0, "ok: 12 hosts, 3 leaves, depth 3\n")
    assert call("validate", "--config-file", "nova.conf")[0] == 0


def test_validate_tells_every_problem(call):
    lines = [*BROKEN_LINES, "failed: 3 problems"]
    assert call("validate", "bad.yaml") == (1, shown(*lines), "")


def test_validate_of_several_files_names_each_and_goes_on(call):
    assert call("validate", "bad.yaml", "fabric.yaml", "no.yaml") == (
        1,
        shown(
            *BROKEN_LINES,
            "bad.yaml: failed: 3 problems",
            "fabric.yaml: ok: 12 hosts, 3 leaves, depth 3",
            "no.yaml: cannot be read: No such file or directory",
            "no.yaml: failed: 1 problem",
        ),
        "",
    )


def test_validate_tells_remarks_merged_switches_and_oversubscription(call, monkeypatch):
    install(monkeypatch, MERGED)
    expected = [
        "remark: the fabric is no tree: distances are rounded up to one",
        "remark: leaf oversubscribed 1:1, where 1 of 2 are 2:1: leaf3",
        "merged: pod spine+1 stands for 2 switches",
        "merged: leaf rail+1 stands for 2 switches",
    ]
    members = call("validate", "any", "--members")[1]
    assert "merged: pod spine+1 stands for spine[1-2]\n" in members
    assert "merged: leaf rail+1 stands for rail-a,rail-b\n" in members
    end = "ok: 4 hosts, 2 leaves, depth 2; uplinks: leaf 4 x 100 Gb/s; oversubscription: leaf 2:1"
    assert call("validate", "any") == (0, shown(*expected, end), "")
    assert call("validate", "--strict", "any") == (
        1,
        shown(*expected, "failed: 2 problems"),
        "",
    )


def test_validate_has_rows_for_programs(call):
    code, out, _ = call("validate", "bad.yaml", "-f", "json")
    assert code == 1
    assert [(row["Source"], row["Kind"]) for row in json.loads(out)] == [
        *[("bad.yaml", topology_check.PROBLEM)] * 3,
        ("bad.yaml", topology_check.FAILED),
    ]


def test_standard_input_is_validated_once(call):
    code, out, err = call("validate", "-", "-", stdin=FABRIC)
    assert (code, out) == (2, "")
    assert "standard input can be read once only" in err


# --- convert ------------------------------------------------------------------------------------


def test_convert_prints_a_picture(call):
    code, out, err = call("convert", "fabric.yaml", "--to", "svg", "--title", "prod")
    assert (code, err) == (0, "")
    titles = [found.text for found in ET.fromstring(out).iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "prod: 12 hosts, 3 leaves, depth 3"
    assert "n12" in titles


def test_convert_colours_a_picture_by_what_runs(call, snapshot):
    code, out, _ = call("convert", "fabric.yaml", "--to", "svg", "--snapshot", snapshot)
    assert code == 0
    for legend in ("free (6)", "other VMs (2)", "disabled, down or unknown to Nova (4)"):
        assert f">{legend}<" in out
    assert "n01, gold-6338, 2 VMs, 64 of 64 vcpus used" in out


def test_convert_writes_a_file_and_tells_so(call):
    code, out, err = call("convert", "fabric.yaml", "--to", "dot", "--output", "fabric.dot")
    assert (code, out) == (0, "")
    assert err == "fabric.dot: wrote 12 hosts, 3 leaves, depth 3\n"
    assert Path("fabric.dot").read_text() == call("convert", "fabric.yaml", "--to", "dot")[1]


def test_convert_reads_standard_input(call):
    assert call("convert", "-", "--to", "dot", stdin=FABRIC)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["fabric.yaml"], 2, "the following arguments are required: --to"),
        (["fabric.yaml", "--to", "pdf"], 2, "invalid choice: 'pdf'"),
        (["fabric.yaml", "--to", "dot", "--cloud", "x"], 2, "--cloud means nothing with --to dot"),
        (["fabric.yaml", "--to", "dot", "--title", "x"], 2, "--title means nothing with --to dot"),
        (["no.yaml", "--to", "dot"], 1, "no.yaml: cannot be read: No such file or directory"),
        (
            ["fabric.yaml", "--to", "dot", "--output", "no/fabric.dot"],
            1,
            "no/fabric.dot: cannot be written: No such file or directory",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_convert_that_cannot_be_says_why(call, arguments: list[str], code: int, error: str):
    result, out, err = call("convert", *arguments)
    assert (result, out) == (code, "")
    assert error in err.splitlines()[-1]


def test_a_file_that_is_there_survives_a_source_that_is_broken(call):
    Path("old.dot").write_text("old")
    code, _, err = call("convert", "bad.yaml", "--to", "dot", "--output", "old.dot")
    assert code == 1
    assert len(err.splitlines()) == 3
    assert Path("old.dot").read_text() == "old"


@pytest.mark.parametrize("format_", ["yaml", "slurm"])
def test_convert_writes_files_that_are_read_as_the_same_fabric(call, format_: str):
    code, _, _ = call("convert", "fabric.yaml", "--to", format_, "--output", "written")
    assert code == 0
    old, new = topology.load("yaml", path="fabric.yaml"), topology.load(format_, path="written")
    assert new.hosts == old.hosts
    for a in old.hosts:
        assert [new.hops(a, b) for b in old.hosts] == [old.hops(a, b) for b in old.hosts]


def test_a_picture_is_utf_8_whatever_the_terminal(tmp_path: Path):
    (tmp_path / "odd.yaml").write_text(f"switches: [{{name: '{'ä' * 50}', hosts: h1}}]")
    done = run("$SCHED topology convert odd.yaml --to svg", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "ä\N{HORIZONTAL ELLIPSIS}" in done.stdout.decode()


def test_warnings_of_a_format_are_told(call, monkeypatch):
    monkeypatch.setattr(
        topology_show, "_written", lambda *_args, **_options: ("x\n", ("no levels",))
    )
    assert call("convert", "fabric.yaml", "--to", "slurm") == (0, "x\n", "warning: no levels\n")


# --- diff ---------------------------------------------------------------------------------------


def test_diff_of_the_same_fabric_is_silent(call):
    Path("same.yaml").write_text(yaml.safe_dump(yaml.safe_load(FABRIC)))
    assert call("diff", "fabric.yaml", "same.yaml") == (0, "", "")
    assert call("diff", "fabric.yaml", "-", "--brief", stdin=FABRIC) == (0, "", "")
    assert call("diff", "fabric.yaml", "--config-file", "nova.conf") == (0, "", "")


LINKED = "uplinks: {leaf: 4 x 100, pod: 8 x 100}\nhost_links: 1 x 100\n" + FABRIC


def test_diff_tells_changed_uplinks_and_ratios(call):
    Path("linked.yaml").write_text(LINKED)
    less = LINKED.replace('hosts: "n[09-12]"', 'uplinks: 2 x 100, hosts: "n[09-12]"')
    assert call("diff", "linked.yaml", "-", stdin=less) == (
        1,
        "links of leaf03: 4 x 100 up became 2 x 100 up\n",
        "",
    )
    rows = json.loads(call("diff", "linked.yaml", "-", "-f", "json", stdin=less)[1])
    assert rows == [{"What": "links", "Names": "leaf03", "Old": "4 x 100 up", "New": "2 x 100 up"}]
    Path("ratio.yaml").write_text("oversubscription: {leaf: 4}\n" + FABRIC)
    other = "oversubscription: {leaf: 2}\n" + FABRIC
    assert call("diff", "ratio.yaml", "-", "--brief", stdin=other) == (
        1,
        "oversubscription changed: leaf\n",
        "",
    )


def test_diff_tells_what_only_one_of_the_two_states(call):
    Path("linked.yaml").write_text(LINKED)
    note = "only one of the two states links of 5 switches, links of 12 hosts: no difference\n"
    assert call("diff", "fabric.yaml", "linked.yaml") == (0, "", note)
    assert call("diff", "linked.yaml", "fabric.yaml") == (0, "", note)


def test_uplinks_of_a_file_are_shown_converted_and_remarked_on(call):
    text = LINKED.replace('hosts: "n[09-12]"', 'uplinks: [1 x 50, 1 x 100], hosts: "n[09-12]"')
    Path("linked.yaml").write_text(text)
    assert call("show", "linked.yaml")[1] == shown(
        "switch        level  hosts  uplinks                ratio   processor  below",
        "core1         core      12                                            3 leaves",
        "├─ pod1       pod        8  8 x 100 Gb/s           1:1                2 leaves",
        "│  ├─ leaf01  leaf       4  4 x 100 Gb/s           1:1     gold-6338  n[01-04]",
        "│  └─ leaf02  leaf       4  4 x 100 Gb/s           1:1                n[05-08]",
        "└─ pod2       pod        4  8 x 100 Gb/s           0.19:1             1 leaf",
        "   └─ leaf03  leaf       4  1 x 100 + 1 x 50 Gb/s  2.67:1             n[09-12]",
    )
    code, out, _ = call("validate", "linked.yaml")
    assert code == 0
    assert out == shown(
        "remark: leaf with uplinks of 1 x 100 + 1 x 50 Gb/s, at most half of the median, 4 x 100 "
        "Gb/s: leaf03",
        "remark: pod oversubscribed 0.19:1, where 1 of 2 are 1:1: pod2",
        "ok: 12 hosts, 3 leaves, depth 3; uplinks: leaf 4 x 100 Gb/s, pod 8 x 100 Gb/s; "
        "oversubscription: leaf 1:1, pod 1:1",
    )
    code, out, _ = call("convert", "linked.yaml", "--to", "yaml")
    assert (code, call("diff", "linked.yaml", "-", stdin=out)) == (0, (0, "", ""))
    code, out, err = call("convert", "linked.yaml", "--to", "slurm")
    assert "warning: uplinks and links of hosts are left out\n" in err
    assert 'label="1 x 100 + 1 x 50 Gb/s"' in call("convert", "linked.yaml", "--to", "dot")[1]
    assert "links: 1 x 100 + 1 x 50 Gb/s up" in call("convert", "linked.yaml", "--to", "svg")[1]


def test_diff_tells_every_change(call):
    changed = FABRIC.replace("n[09-12]", "n[09-11]").replace("leaf02", "sw02")
    changed = changed.replace("gold-6338", "epyc")
    assert call("diff", "fabric.yaml", "-", stdin=changed) == (
        1,
        shown(
            "host gone from leaf03: n12",
            "switch renamed: leaf02 is now sw02",
            "processor of n[01-04]: gold-6338 became epyc",
        ),
        "",
    )
    assert call("diff", "-", "fabric.yaml", "--brief", stdin=changed) == (
        1,
        "hosts new: n12; switches renamed: leaf02; processors changed: n[01-04]\n",
        "",
    )


def test_diff_has_rows_for_programs(call):
    changed = FABRIC.replace("n[05-08]", "n[05-07]").replace("n[09-12]", "n[08-12]")
    code, out, _ = call("diff", "fabric.yaml", "-", "-f", "json", stdin=changed)
    assert code == 1
    assert json.loads(out) == [
        {"What": "hosts", "Names": "n08", "Old": "leaf02", "New": "leaf03"},
        {"What": "hops", "Names": "3 pairs of hosts", "Old": "1", "New": "5"},
        {"What": "hops", "Names": "4 pairs of hosts", "Old": "3", "New": "5"},
        {"What": "hops", "Names": "4 pairs of hosts", "Old": "5", "New": "1"},
    ]


@pytest.mark.parametrize(
    ("arguments", "errors"),
    [
        (["fabric.yaml", "no.yaml"], ["no.yaml: cannot be read: No such file or directory"]),
        (["bad.yaml", "fabric.yaml"], BROKEN_LINES),
        (["-", "-"], ["A and B are both -: standard input can be read once only"]),
        ([], ["the following arguments are required: A"]),
    ],
    ids=["a missing file", "a broken file", "standard input twice", "nothing"],
)
def test_diff_in_trouble_ends_as_diff_does(call, arguments: list[str], errors: list[str]):
    code, out, err = call("diff", *arguments, stdin=FABRIC)
    assert (code, out) == (2, "")
    for line, error in zip(err.splitlines()[-len(errors) :], errors, strict=True):
        assert error in line


# --- check --------------------------------------------------------------------------------------


def test_check_finds_hosts_that_one_side_alone_knows(call, snapshot):
    assert call("check", "fabric.yaml", "--snapshot", snapshot) == (
        1,
        shown(
            "missing: 1 host in Nova, but not in the topology: gpu1",
            "absent: 2 hosts in the topology, but not in Nova: n[11-12]",
            "found 2: 12 hosts, 3 leaves, depth 3; 11 hypervisors in Nova",
        ),
        "",
    )


def test_check_of_what_agrees_is_ok(call, snapshot):
    right = FABRIC.replace('"n[09-12]"', "[n09, n10, gpu1]")
    code, out, err = call("check", "-", "--snapshot", snapshot, "--ignore", "size", stdin=right)
    assert (code, out, err) == (0, "ok: 11 hosts, 3 leaves, depth 3; 11 hypervisors in Nova\n", "")


def test_check_finds_what_is_odd_in_the_fabric_itself(call, snapshot):
    islands = (
        "switches:\n"
        "- {name: a, hosts: 'n[01-03]'}\n- {name: b, hosts: 'n[04-06]'}\n"
        "- {name: c, hosts: 'n[07-09]'}\n- {name: d, hosts: n10}\n"
        "- {name: e, hosts: 'gpu[1-2]'}\n"
    )
    code, out, _ = call(
        "check", "-", "--snapshot", snapshot, "--ignore", "absent", "-f", "json", stdin=islands
    )
    assert code == 1
    assert [row["Kind"] for row in json.loads(out)] == ["islands", "single", "size"]


def test_check_can_leave_kinds_out(call, snapshot):
    arguments = ["fabric.yaml", "--snapshot", snapshot, "--ignore", "missing"]
    code, out, _ = call("check", *arguments)
    assert code == 1
    assert out.startswith("absent: ")
    assert call("check", *arguments, "--ignore", "absent")[0] == 0


def test_check_tells_oversubscription_and_hosts_that_are_several(call, monkeypatch, tmp_path):
    install(monkeypatch, MERGED)
    nodes = tuple(
        Hypervisor(host, name, True, True, {}, {})
        for host, name in (("n1", "bm-1"), ("n1", "bm-2"), ("n2", "n2"), ("n3", "x"), ("n4", "y"))
    )
    path = tmp_path / "cloud.json.gz"
    snapshot_file.write(path, Snapshot("2026-01-01T00:00:00+00:00", nodes, (), (), ()))
    assert call("check", "any", "--snapshot", str(path)) == (
        1,
        shown(
            "doubled: host n1 of the topology is 2 in Nova: bm-1, bm-2",
            "links: leaf oversubscribed 1:1, where 1 of 2 are 2:1: leaf3",
            "found 2: 4 hosts, 2 leaves, depth 2; uplinks: leaf 4 x 100 Gb/s; oversubscription: "
            "leaf 2:1; "
            "5 hypervisors in Nova",
        ),
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["bad.yaml", "--snapshot", "cloud.json"], 1, BROKEN_LINES[-1]),
        (["fabric.yaml", "--snapshot", "no.json"], 1, "no.json: cannot be read: No such file"),
        (["fabric.yaml", "--snapshot", "fabric.yaml"], 1, "fabric.yaml: not JSON"),
        (["fabric.yaml", "--ignore", "all"], 2, "invalid choice: 'all'"),
        (["fabric.yaml", "--cloud", "a", "--snapshot", "b"], 2, "not allowed with argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_check_that_cannot_be_says_why(call, snapshot, arguments: list[str], code: int, error: str):
    result, out, err = call("check", *arguments)
    assert (result, out) == (code, "")
    assert error in err.splitlines()[-1]


# --- help ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["show", "validate", "convert", "diff", "check"])
def test_the_help_has_examples_and_exit_codes(call, command: str):
    code, out, _ = call(command, "--help")
    assert code == 0
    assert f"  hpc-sched topology {command}" in out
    assert "exit codes" in out
    assert "slurm:/etc/slurm/topology.conf" in out


def test_no_line_has_a_thousand_characters_where_names_follow_no_pattern(call, monkeypatch):
    odd = [f"x{i * 7919 % 10007:05}-{'abcdefg'[i % 7]}" for i in range(268)]
    members = tuple(f"sw{i * 104729 % 10007}-{'xyz'[i % 3]}" for i in range(72))
    fabric = Topology.from_tree(
        {"director": {"leaf1": odd, "leaf2": ["n1"]}},
        details=Details(members={"director": members}),
        incomplete=["dump: cut off"],
    )
    install(monkeypatch, fabric)
    for command in (("show",), ("show", "--members"), ("validate",), ("validate", "--members")):
        _, out, _ = call(command[0], "any", *command[1:])
        assert max(map(len, out.splitlines())) < 1000, command
    assert "268" in call("show", "any")[1]
    assert len(json.loads(call("show", "any", "-f", "json")[1])[0]["Names"]) > 1000


def test_what_was_cut_off_does_not_validate_as_good(call, monkeypatch):
    fabric = Topology.from_tree({"leaf": ["n1"]}, incomplete=["dump: the last line has no end"])
    install(monkeypatch, fabric)
    assert call("validate", "any") == (
        1,
        shown("incomplete: dump: the last line has no end", "failed: 1 problem"),
        "",
    )
