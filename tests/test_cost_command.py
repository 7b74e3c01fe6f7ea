"""hpc-sched cost: standard output, standard error and exit code; the cloud is a file.

Hosts of :mod:`tests.snapshots` have 16 vcpus.
"""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc_sched.cli import main
from hpc_sched.core.cost import Prices
from hpc_sched.core.extra_spec_names import APP_CLASSES
from hpc_sched.snapshot import hosts_in_use
from hpc_sched.snapshot.cloud import Cloud
from hpc_sched.snapshot.snapshot_model import Server
from hpc_sched.topology.model import Topology
from tests.snapshots import HOSTS, flavor, group, saved, server, snapshot

EXTREME = flavor("extreme", 4, app_class="extreme")
SYNC = flavor("sync", 6, app_class="sync")
ASYNC = flavor("async", 10, app_class="async")


def cost(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main.main(["cost", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def rows(capsys, path: str, *arguments: str) -> dict[str, list[Any]]:
    """Return the rows without the classes, by class."""
    code, out, err = cost(capsys, "--snapshot", path, *arguments, "-f", "json")
    assert (code, err) == (0, "")
    found = {row.pop("Class"): list(row.values()) for row in json.loads(out)}
    assert list(found)[-1] == "all"
    return found


def test_vms_and_hosts_in_use_are_counted_by_class_and_a_shared_host_once_for_all(
    tmp_path: Path, capsys
):
    servers = [
        server("a", "n01", SYNC),
        server("b", "n01", ASYNC),
        server("c", "n02", SYNC),
        server("d", "n03", EXTREME),
        server("e", "n04"),
        server("f", None, SYNC),
    ]
    found = rows(capsys, saved(tmp_path, servers))
    assert found == {
        # VMs, vcpus, hosts, cores of these
        "extreme": [1, 4, 1, 16],
        "sync": [2, 12, 2, 32],
        "async": [1, 10, 1, 16],
        "none": [1, 8, 1, 16],
        "all": [5, 34, 4, 64],
    }


def test_a_price_for_all_classes_is_the_revenue_an_hour_of_hosts_and_of_their_cores(
    tmp_path: Path, capsys
):
    servers = [server("a", "n01", SYNC), server("b", "n01", ASYNC), server("c", "n02", EXTREME)]
    found = rows(capsys, saved(tmp_path, servers), "--price", "0.5")
    assert {name: row[4:] for name, row in found.items()} == {
        # An extreme VM pays for its 4 vcpus, on a host of 16.
        "extreme": [2.0, 2.0, 0.125],
        "sync": [3.0, 3.0, 0.1875],
        "async": [5.0, 5.0, 0.3125],
        "all": [10.0, 5.0, 0.3125],
    }


def test_a_class_without_a_price_is_counted_as_0_and_named_on_standard_error(
    tmp_path: Path, capsys
):
    path = saved(tmp_path, [server("a", "n01", SYNC), server("b", "n01", ASYNC)])
    code, out, err = cost(capsys, "--snapshot", path, "--price", "sync=2", "-f", "json")
    assert (code, err) == (0, "note: no price for class async: counted as 0\n")
    assert [row["Revenue/h"] for row in json.loads(out)] == [12, 0, 12]
    assert cost(capsys, "--snapshot", path, "--price", "1,sync=2")[2] == ""


def test_table_1_of_gupta2013_earns_23_percent_more_on_shared_hosts(tmp_path: Path, capsys):
    host = {"VCPU": 88, "MEMORY_MB": 61952, "DISK_GB": 3370}
    prices = f"extreme={2.4 / 88},sync={2.4 / 88},async={0.9 / 13}"
    whole, beside = (flavor(name, n, app_class=name) for name, n in (("extreme", 88), ("sync", 75)))
    small = flavor("async", 13, app_class="async")
    earned = []
    for kinds in ([whole], [beside, small]):
        vms = [server(f"{kind.name}-{n}", n, kind) for kind in kinds for n in HOSTS[:4]]
        found = rows(capsys, saved(tmp_path, vms, capacity=host), "--price", prices)
        assert found["all"][2:4] == [4, 4 * 88]
        earned.append(found["all"][5])
    assert earned[0] == pytest.approx(2.4)
    assert earned[1] / earned[0] == pytest.approx(1.2273, abs=1e-4)


def test_a_class_comes_from_group_and_options_where_the_flavor_names_none(tmp_path: Path, capsys):
    own = [server("a", "n01"), server("b", "n02")]
    together = [server(name, "n03", reservation_id="r-1") for name in "cd"]
    vms = [*own, *together]
    found = rows(capsys, saved(tmp_path, vms, [group("job", own)]))
    assert {name: row[0] for name, row in found.items()} == {"sync": 2, "none": 2, "all": 4}
    options = {"default_app_class": "async", "implicit_groups": True}
    found = rows(capsys, saved(tmp_path, vms, [group("job", own)], options=options))
    assert {name: row[0] for name, row in found.items()} == {"async": 4, "all": 4}


def test_options_of_a_named_nova_conf_come_before_those_of_the_snapshot(tmp_path: Path, capsys):
    own = [server("a", "n01"), server("b", "n02")]
    path = saved(tmp_path, own, [group("job", own)], options={"default_app_class": "async"})
    conf = tmp_path / "nova.conf"
    conf.write_text("[hpc_sched]\ndefault_app_class = extreme\n")
    assert rows(capsys, path, "--config-file", str(conf)).keys() == {"extreme", "all"}


def test_bare_metal_has_the_cores_of_its_flavor(tmp_path: Path, capsys):
    path = saved(tmp_path, [server("a", "n01", SYNC)], capacity={"CUSTOM_BAREMETAL_GOLD": 1})
    assert rows(capsys, path, "--price", "1")["all"] == [1, 6, 1, 6, 6, 6, 1]


def test_pinned_processors_and_allocation_ratios_are_cores_that_a_host_offers(
    tmp_path: Path, capsys
):
    path = saved(tmp_path, [server("a", "n01", SYNC)], capacity={"VCPU": 64.0, "PCPU": 16})
    assert rows(capsys, path)["all"] == [1, 6, 1, 80]


def test_disabled_hosts_and_vms_that_are_shut_off_are_in_use(tmp_path: Path, capsys):
    vms = [server("a", "n01", SYNC, status="SHUTOFF"), server("b", "gone", SYNC)]
    # Of a host that Nova does not list, the vcpus of its VMs are known alone.
    found = rows(capsys, saved(tmp_path, vms, disabled=["n01"], down=["n01"]))
    assert found["all"] == [2, 12, 2, 16 + 6]


def test_hosts_with_vms_are_never_more_than_all_hosts(tmp_path: Path, capsys):
    vms = [server(name, host, SYNC) for name, host in (("a", "n01"), ("b", "gone"), ("c", "too"))]
    code, out, _ = cost(capsys, "--snapshot", saved(tmp_path, vms, hosts=["n01"]))
    assert code == 0
    assert "Hosts with VMs: 3 of 3." in out


def test_an_empty_cloud_has_one_row_and_no_revenue_of_a_host(tmp_path: Path, capsys):
    path = saved(tmp_path)
    assert rows(capsys, path, "--price", "1") == {"all": [0, 0, 0, 0, 0, None, None]}
    code, out, _ = cost(capsys, "--snapshot", path, "--price", "1", "-f", "csv")
    [row] = csv.DictReader(out.splitlines())
    assert (code, row["VMs"], row["Per host-hour"]) == (0, "0", "")


def test_a_cloud_without_hypervisors_is_an_error_that_says_so(tmp_path: Path, capsys):
    path = saved(tmp_path, hosts=[])
    assert cost(capsys, "--snapshot", path) == (1, "", f"{path}: there is no hypervisor\n")


def test_people_get_a_table_with_a_sentence_below(tmp_path: Path, capsys):
    code, out, err = cost(capsys, "--snapshot", saved(tmp_path, [server("a", "n01", SYNC)]))
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == "| Class | VMs | vcpus | Hosts | Host cores |"
    assert out.splitlines()[-1] == (
        "Hosts with VMs: 1 of 16. Their cores: 16, of which VMs have 6."
    )
    assert "Revenue" not in out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--price", "much"], 2, "argument --price: expected PRICE or CLASS=PRICE,..., each"),
        (["--price", "web=1"], 2, "with classes of extreme, sync, async, none, found 'web'"),
        (["--snapshot", "a", "--cloud", "b"], 2, "not allowed with argument"),
        (["--snapshot", "/nowhere.json"], 1, "/nowhere.json: cannot be read"),
    ],
)
def test_what_cannot_be_shown_is_an_error(capsys, arguments, code, said):
    found, out, err = cost(capsys, *arguments)
    assert (found, out) == (code, "")
    assert said in err


CLASSED = {name: flavor(name, 1 + i, app_class=name) for i, name in enumerate(APP_CLASSES)}
VMS = st.lists(st.tuples(st.sampled_from(HOSTS[:5]), st.sampled_from(APP_CLASSES)), max_size=12)


def cloud(vms: Iterable[Server]) -> Cloud:
    return Cloud.of(snapshot(vms), Topology.from_tree({"cloud": list(HOSTS)}))


@given(VMS, st.permutations(range(12)))
def test_all_is_the_sum_of_the_classes_but_for_hosts_that_they_share(drawn, order):
    vms = [server(f"vm{i}", host, CLASSED[name]) for i, (host, name) in enumerate(drawn)]
    found = hosts_in_use.by_class(cloud(vms))
    every, classes = found["all"], [use for name, use in found.items() if name != "all"]
    assert every.vms == len(drawn) == sum(use.vms for use in classes)
    assert every.vcpus == sum(use.vcpus for use in classes) == every.hourly.all_core_hours
    assert every.hosts == len({host for host, _ in drawn}) <= sum(use.hosts for use in classes)
    assert every.hourly.host_core_hours == 16 * every.hosts
    prices = Prices({"sync": 3.0}, others=0.5)
    parts = sum(use.hourly.revenue(prices) for use in classes)
    assert every.hourly.revenue(prices) == parts
    # Other names and another order of the VMs change nothing.
    renamed = [
        server(f"vm{i}", host, CLASSED[n]) for i, (host, n) in zip(order, drawn, strict=False)
    ]
    assert hosts_in_use.by_class(cloud(renamed)) == found
