"""hpc-sched fits where MDOBP chooses hosts: single VMs, classes, and the interference index.

The fabric is that of :mod:`tests.snapshots`. All VMs have 4 GB for a vcpu; n03 and n10 have large
ones, n12 has a small one that runs ChaNGa.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpc_sched.cli import main
from hpc_sched.snapshot.snapshot_model import Flavor
from tests.snapshots import flavor, group, saved, server

WEIGHERS = ("hpc_sched.weighers.hop_byte.HopByteWeigher", "hpc_sched.weighers.mdobp.MDOBPWeigher")
INDEX = {"LU.C": {"ChaNGa": 2.2}, "ChaNGa": {"LU.C": 1.0}}
CHANGA = replace(flavor("changa", 2, app_class="async", app_name="ChaNGa"), memory_mb=8192)


def lu(**said: str) -> Flavor:
    return replace(flavor("lu", 2, **said), memory_mb=8192)


def hosts(
    folder: Path, capsys: Any, kind: Flavor, *arguments: str, changa: str = "n12", **fields: Any
) -> list[str]:
    """Return the hosts of the plan, each with its VMs."""
    large = replace(CHANGA, vcpus=8, memory_mb=32768, extra_specs={})
    there = [server("one", "n03", large), server("other", "n10", large)]
    there.append(server("changa", changa, CHANGA))
    fields = {"filters": (), "weighers": WEIGHERS, "interference": INDEX} | fields
    path = saved(folder, there, flavors=[kind], **fields)
    asked = ["fits", "--snapshot", path, "--flavor", kind.name, *arguments, "-f", "json"]
    assert main.main(asked) == 0
    return [row["Hosts"] for row in json.loads(capsys.readouterr().out)]


@pytest.mark.parametrize("app_class", ["sync", "async"])
def test_a_single_vm_gets_the_host_of_mdobp_whatever_its_leaf(tmp_path, capsys, app_class: str):
    one = lu(app_class=app_class)
    assert hosts(tmp_path, capsys, one, "--count", "1") == ["n03: 1"]
    named = lu(app_class=app_class, app_name="LU.C")
    assert hosts(tmp_path, capsys, named, "--count", "1") == ["n12: 1"]


def test_a_single_vm_that_is_not_hpc_does_so_where_the_classes_name_none(tmp_path, capsys):
    options = {"mdobp_classes": ["none"]}
    for kind in (lu(), lu(app_class="none")):
        assert hosts(tmp_path, capsys, kind, "--count", "1", options=options) == ["n03: 1"]
    named = lu(app_name="LU.C")
    assert hosts(tmp_path, capsys, named, "--count", "1", options=options) == ["n12: 1"]


def test_a_single_vm_is_no_group_and_that_is_told(tmp_path, capsys):
    path = saved(tmp_path, flavors=[lu(app_class="sync")], weighers=WEIGHERS, filters=())
    asked = ["fits", "--snapshot", path, "--flavor", "lu"]
    note = "MDOBP alone places a single VM without a server group, on any host"
    assert main.main([*asked, "--count", "1"]) == 0
    assert note in capsys.readouterr().err
    # The largest groups, and a VM of a server group, are a question about groups.
    for more in ([], ["--count", "1", "--policy", "soft-affinity"], ["--count", "2"]):
        assert main.main([*asked, *more]) == 0
        assert note not in capsys.readouterr().err


def test_a_group_goes_where_it_is_attracted_inside_the_leaf_of_its_plan(tmp_path, capsys):
    """Of equal leaves the one with least room is taken: that of n09 to n12."""
    kind = lu(app_class="sync", app_name="LU.C")
    asked = ["--count", "2", "--policy", "soft-affinity"]
    assert hosts(tmp_path, capsys, kind, *asked) == ["n12: 2"]
    assert hosts(tmp_path, capsys, kind, *asked, interference={}) == ["n10: 2"]
    # ChaNGa on the other leaf with a large VM leaves least room there; on an empty one it does not.
    assert hosts(tmp_path, capsys, kind, *asked, changa="n04") == ["n04: 2"]
    assert hosts(tmp_path, capsys, kind, *asked, changa="n05") in (["n03: 2"], ["n10: 2"])


def test_members_of_the_own_group_do_not_attract(tmp_path, capsys):
    kind = lu(app_class="async", app_name="LU.C")
    own = server("own", "n09", CHANGA)
    path = saved(
        tmp_path,
        [own, server("changa", "n12", CHANGA)],
        groups=[group("job", [own], policy="anti-affinity", max_per_host=9)],
        flavors=[kind],
        filters=(),
        weighers=WEIGHERS,
        interference=INDEX,
    )
    asked = ["fits", "--snapshot", path, "--group", "job", "--flavor", "lu", "--count", "1"]
    assert main.main([*asked, "-f", "json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["Hosts"] == "n12: 1"


def test_the_tolerance_of_the_snapshot_decides_which_pairs_attract(tmp_path, capsys):
    kind = lu(app_class="async", app_name="LU.C")
    index = {"LU.C": {"ChaNGa": 1.2}, "ChaNGa": {"LU.C": 0.95}}
    for tolerance, host in ((0.1, "n12"), (0.01, "n03"), (0.5, "n03")):
        options = {"interference_tolerance": tolerance}
        found = hosts(tmp_path, capsys, kind, "--count", "1", interference=index, options=options)
        assert found == [f"{host}: 1"], tolerance


def test_a_class_that_is_no_choice_in_a_snapshot_is_an_error(tmp_path, capsys):
    options = {"mdobp_classes": ["sync", "extreme"]}
    path = saved(tmp_path, flavors=[lu()], weighers=WEIGHERS, options=options)
    assert main.main(["fits", "--snapshot", path, "--flavor", "lu", "--count", "1"]) == 1
    expected = "options['mdobp_classes']: Valid values are [sync, async, none], but found 'extreme'"
    assert expected in capsys.readouterr().err


def test_a_host_with_bad_company_attracts_no_vm_where_no_filter_removes_it(tmp_path, capsys):
    index = {"LU.C": {"ChaNGa": 2.2, "IS.B": 0.6}, "ChaNGa": {"LU.C": 1.0}, "IS.B": {"LU.C": 0.9}}
    named = lu(app_class="async", app_name="LU.C")
    bad = flavor("is", 2, app_class="async", app_name="IS.B")
    there = [server("changa", "n12", CHANGA), server("bad", "n12", replace(bad, memory_mb=8192))]
    there.append(server("beside", "n03", CHANGA))
    path = saved(
        tmp_path, there, flavors=[named], filters=(), weighers=WEIGHERS, interference=index
    )
    asked = ["fits", "--snapshot", path, "--flavor", "lu", "--count", "1", "-f", "json"]
    assert main.main(asked) == 0
    assert [row["Hosts"] for row in json.loads(capsys.readouterr().out)] == ["n03: 1"]
