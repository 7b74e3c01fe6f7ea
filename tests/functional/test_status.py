"""Every check of hpc-sched-status, on a real Nova: where all is well, and each fault by itself."""

import importlib.metadata
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import nova.conf
import pytest
from nova.scheduler import weights
from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code

from hpc_sched import conf
from hpc_sched.nova_glue.io import databases
from hpc_sched.nova_glue.read.instances import instance_applications
from hpc_sched.status import inspected_cloud as cloud_module
from hpc_sched.status import upgrade_check
from hpc_sched.status.checks import (
    app_classes,
    filters,
    installation,
    multipliers,
    options,
    placement_candidates,
    processor_types,
    topology_hosts,
    weighers,
)
from hpc_sched.status.finding import Findings
from hpc_sched.status.inspected_cloud import InspectedCloud
from tests.functional.cloud_kinds import STATUS
from tests.functional.clouds import write_topology
from tests.functional.shared_clouds import cloud_mark
from tests.functional.statements import collected
from tests.functional.tested_cloud import TestedCloud

CONF = nova.conf.CONF

pytestmark = cloud_mark(STATUS)

# n4 is not enabled.
COMPUTES = ["n1", "n2", "n3", "n4", "n5"]
HOP_BYTE = "hpc_sched.weighers.hop_byte.HopByteWeigher"
BUNCH = "hpc_sched.weighers.bunch.BunchWeigher"
MDOBP = "hpc_sched.weighers.mdobp.MDOBPWeigher"
WHOLE_LEAF = "hpc_sched.weighers.whole_leaf.WholeLeafWeigher"
NOVAS = "nova.scheduler.weights.all_weighers"
CHECKS = {check.name: check for check in upgrade_check.CHECKS}
ALL_FILTERS = ["nova.scheduler.filters.all_filters", "hpc_sched.filters.all_filters"]


@pytest.fixture
def set_(cloud: TestedCloud) -> Iterator[Callable[..., None]]:
    """Set options of nova.conf for one test: section, then names with their values."""
    before: list[tuple[str, str, dict[str, Any]]] = []

    def set__(group: str, **values: Any) -> None:
        for name, value in values.items():
            info = CONF._get_opt_info(name, group)
            kept = {key: info[key] for key in ("override", "location") if key in info}
            before.append((group, name, kept))
            CONF.set_override(name, value, group)

    yield set__
    for group, name, kept in reversed(before):
        CONF.clear_override(name, group)
        # That leaves behind where the value came from, which one check reads.
        info = CONF._get_opt_info(name, group)
        info.pop("location")
        info.update(kept)


@pytest.fixture
def class_unset(cloud: TestedCloud) -> Iterator[None]:
    """Leave default_app_class out of nova.conf for one test; the sample has it."""
    info = CONF._get_opt_info("default_app_class", "hpc_sched")
    kept = {key: info.pop(key) for key in ("override", "location") if key in info}
    yield
    info.update(kept)


@pytest.fixture
def aggregate(cloud: TestedCloud) -> Iterator[Callable[..., None]]:
    """Make host aggregates with metadata for one test."""
    made: list[tuple[int, list[str]]] = []

    def aggregate_(name: str, hosts: list[str], **metadata: str) -> None:
        number = cloud.api.post_aggregate({"aggregate": {"name": name}})["id"]
        made.append((number, hosts))
        for host in hosts:
            cloud.api.add_host_to_aggregate(number, host)
        body = {"set_metadata": {"metadata": metadata}}
        cloud.api.post_aggregate_action(number, body)

    yield aggregate_
    for number, hosts in made:
        for host in hosts:
            cloud.api.remove_host_from_aggregate(number, host)
        cloud.api.delete_aggregate(number)


def judged(
    find: Callable[[InspectedCloud], Findings], view: InspectedCloud | None = None
) -> tuple[Code, str]:
    found = upgrade_check.judge(find, view or InspectedCloud())
    return found.code, found.details or ""


@pytest.fixture(autouse=True)
def running(cloud: TestedCloud) -> TestedCloud:
    """Have the cloud for every test; checks read it past the API."""
    return cloud


# The command


@pytest.mark.default
def test_the_table_and_the_exit_code_are_those_of_oslo_upgradecheck(set_, capsys):
    set_("hpc_sched", default_app_class="sync")
    assert upgrade_check.UpgradeCommands().check() == Code.SUCCESS
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].strip("| ") == "Upgrade Check Results"
    assert [line[9:].strip("| ") for line in lines if line.startswith("| Check: ")] == [
        check.name for check in upgrade_check.CHECKS
    ]


def test_the_worst_check_is_the_exit_code(set_, capsys):
    set_("hpc_sched", default_app_class="sync")
    set_("filter_scheduler", host_subset_size=2)
    assert upgrade_check.UpgradeCommands().check() == Code.WARNING
    set_("filter_scheduler", enabled_filters=["NoSuchFilter"])
    assert upgrade_check.UpgradeCommands().check() == Code.FAILURE
    assert "Result: Failure" in capsys.readouterr().out


@pytest.mark.usefixtures("class_unset")
def test_a_uuid_is_not_broken_over_lines_and_each_finding_begins_a_line(cloud, capsys):
    group = cloud.server_group("a-group-with-a-name-that-fills-the-rest-of-the-line", "affinity")
    upgrade_check.UpgradeCommands().check()
    cloud.api.delete_server_group(group)
    out = capsys.readouterr().out
    assert group in out
    assert "|   a-group-with" in out


# The topology


def test_a_topology_that_names_every_enabled_compute_is_success(cloud):
    assert judged(topology_hosts.check) == (
        Code.SUCCESS,
        f"6 hosts, 2 leaves, depth 2 (yaml: {CONF.hpc_sched.topology_file}).\n"
        "All 4 enabled computes are in it.\n"
        "1 host of the topology are no computes: x1. They do no harm.",
    )


def test_computes_that_the_topology_does_not_name_are_a_warning_folded(set_, tmp_path):
    path = write_topology(tmp_path, {"leaf1": ["n1"]})
    set_("hpc_sched", topology_file=str(path))
    code, text = judged(topology_hosts.check)
    assert code == Code.WARNING
    # n4 is disabled.
    assert "3 of 4 enabled computes are not in the topology" in text
    assert "n[2-3,5]. Add them to the topology, or disable them." in text


def test_where_no_name_fits_the_name_map_is_mentioned(set_, tmp_path):
    path = write_topology(tmp_path, {"leaf1": ["ib1", "ib2"]})
    set_("hpc_sched", topology_file=str(path))
    code, text = judged(topology_hosts.check)
    assert code == Code.WARNING
    assert "(or name them in topology_name_map)" in text
    assert "2 hosts of the topology are no computes: ib[1-2]" in text


def test_short_names_in_the_topology_are_found_for_long_ones_of_computes(set_, tmp_path):
    path = write_topology(tmp_path, {"leaf1": [f"{name}.example.org" for name in COMPUTES]})
    set_("hpc_sched", topology_file=str(path))
    assert judged(topology_hosts.check)[0] == Code.SUCCESS


def test_remarks_of_the_driver_are_a_warning(set_, monkeypatch, tmp_path):
    # No YAML gives a remark; drivers of other files do.
    real = InspectedCloud().topology()
    view = InspectedCloud()
    monkeypatch.setattr(
        cloud_module, "described_topology", lambda: replace(real, remarks=("leaf 'a' is also 'b'",))
    )
    code, text = judged(topology_hosts.check, view)
    assert code == Code.WARNING
    assert text.startswith("leaf 'a' is also 'b'\n")


def test_a_topology_that_does_not_load_is_a_failure_with_all_its_problems(set_, tmp_path):
    path = tmp_path / "topology.yaml"
    path.write_text(
        "switches:\n- name: a\n  hosts: n1\n- name: a\n  hosts: n2\n- name: b\n  hosts: n1\n"
    )
    set_("hpc_sched", topology_file=str(path))
    code, text = judged(topology_hosts.check)
    assert code == Code.FAILURE
    assert f"{path}:4: " in text
    assert f"{path}:7: " in text
    assert "nova-scheduler does not start with this topology" in text


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"topology_file": None}, "expected a file ([hpc_sched] topology_file)"),
        ({"topology_file": "/nowhere"}, "/nowhere: cannot be read: No such file or directory"),
        ({"topology_driver": "nope"}, "no topology driver 'nope'"),
    ],
    ids=["none is named", "it is missing", "an unknown driver"],
)
def test_a_topology_that_cannot_be_had_is_a_failure(set_, values, error):
    set_("hpc_sched", **values)
    code, text = judged(topology_hosts.check)
    assert code == Code.FAILURE
    assert error in text


def test_a_driver_that_fails_in_a_way_of_its_own_is_a_failure(monkeypatch):
    def load(*_: Any, **__: Any) -> None:
        raise OSError("no such database")

    monkeypatch.setattr(cloud_module.topology_, "load", load)
    code, text = judged(topology_hosts.check)
    assert code == Code.FAILURE
    assert "topology driver 'yaml' failed: OSError: no such database" in text


# Filters


def test_the_filters_of_the_sample_are_success():
    assert judged(filters.check) == (
        Code.SUCCESS,
        "enabled_filters ends in HPCHomogeneityFilter, HPCGroupFilter, HPCRackCapacityFilter.",
    )


@pytest.mark.parametrize(
    ("available", "error"),
    [
        (ALL_FILTERS[:1], "Add a line available_filters = hpc_sched.filters.all_filters"),
        (ALL_FILTERS[1:], "Add a line available_filters = nova.scheduler.filters.all_filters"),
        (
            [ALL_FILTERS[0], f"{ALL_FILTERS[1]}  # ours"],
            "nova.conf has no comments behind a value",
        ),
        ([", ".join(ALL_FILTERS)], f"Repeat it: available_filters = {ALL_FILTERS[0]}; "),
        ([ALL_FILTERS[0], "hpc_sched.all_filters"], "cannot be imported: "),
    ],
    ids=["ours missing", "Nova's missing", "a comment", "two on a line", "a wrong path"],
)
def test_available_filters_that_stop_the_start_are_a_failure(set_, available, error):
    set_("filter_scheduler", available_filters=available)
    code, text = judged(filters.check)
    assert code == Code.FAILURE
    assert error in text
    assert "nova-scheduler does not start" in text


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("HPCGroupFliter", "Did you mean HPCGroupFilter?"),
        ("HPCRackFilter", "Did you mean HPCRackCapacityFilter?"),
        ("DedicatedHostFilter", "Did you mean HPCDedicatedHostFilter?"),
        ("ComputeFliter", "Did you mean ComputeFilter?"),
        ("Xyzzy", "Remove it, or add its available_filters"),
        ("HPCGroupFilter # packs", "nova.conf has no comments behind a value"),
    ],
)
def test_a_filter_that_does_not_exist_is_a_failure_that_names_what_was_meant(set_, name, error):
    set_("filter_scheduler", enabled_filters=["ComputeFilter", name])
    code, text = judged(filters.check)
    assert code == Code.FAILURE
    assert f"enabled_filters names '{name}'" in text
    assert error in text


def test_without_the_group_filter_there_is_a_warning_with_the_line_to_paste(set_):
    set_("filter_scheduler", enabled_filters=["HPCRackCapacityFilter", "ComputeFilter"])
    code, text = judged(filters.check)
    assert code == Code.FAILURE  # for the order
    assert (
        "HPCGroupFilter is not enabled: a group that does not fit is spread instead of refused"
        in text
    )
    assert "hpc:require, " in text
    assert "hpc:objective=isolated are no guarantees" in text
    assert "Set enabled_filters = ComputeFilter, HPCGroupFilter, HPCRackCapacityFilter" in text
    set_("filter_scheduler", enabled_filters=["ComputeFilter"])
    assert judged(filters.check)[0] == Code.WARNING


@pytest.mark.parametrize(
    ("names", "code", "error"),
    [
        (
            ["HPCGroupFilter", "ComputeFilter", "HPCRackCapacityFilter"],
            Code.WARNING,
            "HPCGroupFilter before ComputeFilter",
        ),
        (
            ["ComputeFilter", "HPCGroupFilter", "HPCHomogeneityFilter"],
            Code.WARNING,
            "HPCGroupFilter before HPCHomogeneityFilter",
        ),
        (
            ["HPCInterferenceFilter", "HPCDedicatedHostFilter", "HPCGroupFilter"],
            Code.WARNING,
            "HPCInterferenceFilter before HPCDedicatedHostFilter",
        ),
        (
            ["HPCRackCapacityFilter", "ComputeFilter", "HPCGroupFilter"],
            Code.FAILURE,
            "ComputeFilter, HPCGroupFilter behind HPCRackCapacityFilter",
        ),
    ],
)
def test_a_wrong_order_says_the_right_line(set_, names, code, error):
    set_("filter_scheduler", enabled_filters=names)
    found, text = judged(filters.check)
    assert found == code
    assert error in text
    line = re.search("enabled_filters = (.*)", text)
    assert line
    set_("filter_scheduler", enabled_filters=line[1].split(", "))
    assert judged(filters.check)[0] == Code.SUCCESS


def test_a_filter_that_is_named_twice_is_a_warning(set_):
    set_("filter_scheduler", enabled_filters=["HPCGroupFilter", "HPCGroupFilter"])
    assert judged(filters.check) == (
        Code.WARNING,
        "HPCGroupFilter is named 2 times in enabled_filters and is run as often. Name it once.",
    )


# Weighers


def test_a_filter_that_counts_and_is_not_enabled_is_a_warning(set_):
    set_("hpc_sched", counting_filters=["ComputeFilter", "site.filters.RackFilter"])
    assert judged(filters.check) == (
        Code.WARNING,
        "[hpc_sched] counting_filters names site.filters.RackFilter, which enabled_filters does "
        "not name: plans ignore the limits of such a filter. Write the class name as there.",
    )


def test_the_weighers_of_the_sample_are_success():
    assert judged(weighers.check) == (Code.SUCCESS, "HopByteWeigher places by topology.")


@pytest.mark.parametrize(
    ("classes", "code", "error", "line"),
    [
        ([NOVAS], Code.WARNING, "No weigher by topology is enabled", [NOVAS, HOP_BYTE]),
        (
            [NOVAS, BUNCH, HOP_BYTE],
            Code.FAILURE,
            "2 weighers by topology are enabled, BunchWeigher, HopByteWeigher",
            [NOVAS, HOP_BYTE],
        ),
        (
            [NOVAS, "hpc_sched.weighers.all_weighers"],
            Code.FAILURE,
            "3 weighers by topology are enabled, BunchWeigher, HopByteWeigher, RackCapacityWeigher",
            [NOVAS, HOP_BYTE, MDOBP],
        ),
        (
            [HOP_BYTE],
            Code.WARNING,
            "None of Nova's own weighers is enabled",
            [NOVAS, HOP_BYTE],
        ),
        ([NOVAS, HOP_BYTE, NOVAS], Code.WARNING, "RAMWeigher is enabled 2 times", None),
        (
            [NOVAS, "hpc_sched.weighers.hopbyte.HopByteWeigher"],
            Code.FAILURE,
            f"cannot be imported: .* nova-scheduler does not start. Did you mean {HOP_BYTE}\\?",
            None,
        ),
        ([f"{HOP_BYTE} # ours"], Code.FAILURE, "nova.conf has no comments behind a value", None),
        ([NOVAS, "os.path"], Code.FAILURE, "names 'os.path', which cannot be imported", None),
    ],
    ids=["none", "two", "all of ours", "ours alone", "twice", "misspelt", "a comment", "no class"],
)
def test_weighers_that_do_not_place_by_one_topology(set_, classes, code, error, line):
    set_("filter_scheduler", weight_classes=classes)
    found, text = judged(weighers.check)
    assert found == code
    assert re.search(error, text)
    assert "Traceback" not in text
    if line is not None:
        assert f"Set weight_classes = {', '.join(line)}" in text
        set_("filter_scheduler", weight_classes=line)
        assert judged(weighers.check)[0] == Code.SUCCESS


def test_a_second_weigher_by_topology_that_is_switched_off_is_none(set_):
    set_("filter_scheduler", weight_classes=[NOVAS, BUNCH, HOP_BYTE])
    set_("hpc_sched", bunch_weight_multiplier=0)
    assert judged(weighers.check)[0] == Code.SUCCESS


def test_gather_groups_needs_the_weigher_that_follows_it(set_):
    set_("hpc_sched", gather_groups=True)
    set_("filter_scheduler", weight_classes=[NOVAS, BUNCH])
    code, text = judged(weighers.check)
    assert code == Code.WARNING
    assert f"HopByteWeigher alone follows it. Set weight_classes = {NOVAS}, {HOP_BYTE}" in text
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE])
    assert judged(weighers.check)[0] == Code.SUCCESS


def test_hosts_that_are_shared_want_mdobp(set_):
    names = [*CONF.filter_scheduler.enabled_filters, "HPCInterferenceFilter"]
    set_("filter_scheduler", enabled_filters=names)
    code, text = judged(weighers.check)
    assert code == Code.WARNING
    assert "HPCInterferenceFilter without MDOBPWeigher" in text
    assert f"Set weight_classes = {NOVAS}, {HOP_BYTE}, {MDOBP}" in text
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, MDOBP])
    assert judged(weighers.check)[0] == Code.SUCCESS


def test_the_weigher_of_single_vms_wants_a_multiplier_and_its_multiplier_wants_it(set_):
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, WHOLE_LEAF])
    code, text = judged(weighers.check)
    assert code == Code.WARNING
    assert "[hpc_sched] whole_leaf_weight_multiplier = 0. Set it to 100000" in text
    set_("hpc_sched", whole_leaf_weight_multiplier=100000.0)
    assert judged(weighers.check)[0] == Code.SUCCESS
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE])
    code, text = judged(weighers.check)
    assert code == Code.WARNING
    assert f"Set weight_classes = {NOVAS}, {HOP_BYTE}, {WHOLE_LEAF}" in text


def test_one_weigher_places_single_vms(set_):
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, MDOBP, WHOLE_LEAF])
    set_("hpc_sched", whole_leaf_weight_multiplier=100000.0)
    assert judged(weighers.check)[0] == Code.SUCCESS
    set_("hpc_sched", mdobp_classes=["sync", "async", "none"])
    code, text = judged(weighers.check)
    assert code == Code.WARNING
    assert "take none out of mdobp_classes" in text


def test_the_weigher_of_single_vms_is_no_rival_of_the_topology(set_):
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, WHOLE_LEAF])
    before = judged(multipliers.check)
    set_("hpc_sched", whole_leaf_weight_multiplier=100000.0)
    code, text = judged(multipliers.check)
    assert code == Code.SUCCESS
    assert before[1] in text
    assert "WholeLeafWeigher decides strictly" in text
    set_("hpc_sched", whole_leaf_weight_multiplier=9.0)
    code, text = judged(multipliers.check)
    assert code == Code.WARNING
    assert "WholeLeafWeigher decides mostly" in text
    assert "Set [hpc_sched] whole_leaf_weight_multiplier = 25" in text
    set_("hpc_sched", whole_leaf_weight_multiplier=-1.0)
    code, text = judged(multipliers.check)
    assert code == Code.FAILURE
    assert "VMs break whole leaves first" in text


def test_a_class_that_is_not_hpc_wants_mdobp_to_be_packed_and_mdobp_wants_a_class(set_):
    set_("hpc_sched", mdobp_classes=["sync", "async", "none"])
    code, text = judged(weighers.check)
    assert code == Code.WARNING
    assert "mdobp_classes = sync,async,none: nothing packs requests that are not HPC" in text
    assert f"Set weight_classes = {NOVAS}, {HOP_BYTE}, {MDOBP}" in text
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, MDOBP])
    assert judged(weighers.check)[0] == Code.SUCCESS
    set_("hpc_sched", mdobp_classes=[])
    code, text = judged(weighers.check)
    assert code == Code.WARNING
    assert "places no VMs: mdobp_classes is empty" in text


class Unbuildable(weights.BaseHostWeigher):
    def __init__(self) -> None:
        raise RuntimeError("no licence")

    def _weigh_object(self, host_state: Any, weight_properties: Any) -> float:
        return 0.0


class Curious(weights.BaseHostWeigher):
    def weight_multiplier(self, host_state: Any) -> float:
        return float(host_state.vcpus_total)

    def _weigh_object(self, host_state: Any, weight_properties: Any) -> float:
        return 0.0


def test_a_weigher_that_cannot_be_built_is_a_failure(set_):
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, f"{__name__}.Unbuildable"])
    code, text = judged(weighers.check)
    assert code == Code.FAILURE
    assert f"Unbuildable of {__name__}.Unbuildable cannot be built: no licence" in text


# Multipliers: four computes are enabled, so that three steps make a multiplier


def test_the_delivered_multiplier_decides_strictly():
    assert judged(multipliers.check) == (
        Code.SUCCESS,
        "HopByteWeigher decides strictly: with 4 enabled computes the smallest step of 4 ranks "
        "is 100000 / 3 = 33333.33, more than 8, the sum of the other multipliers.",
    )


@pytest.mark.parametrize(
    ("multiplier", "code", "how"),
    [
        (24.1, Code.SUCCESS, "decides strictly"),
        (24, Code.WARNING, "decides mostly"),
        (8.1, Code.WARNING, "decides mostly"),
        (8, Code.WARNING, "hardly decides"),
        (0, Code.WARNING, "HopByteWeigher is switched off"),
        (-1, Code.FAILURE, "turns the order round"),
    ],
)
def test_a_multiplier_is_compared_with_the_sum_of_the_others(set_, multiplier, code, how):
    set_("hpc_sched", hop_byte_weight_multiplier=multiplier)
    found, text = judged(multipliers.check)
    assert (found, how in text) == (code, True), text
    if multiplier > 0 and code == Code.WARNING:
        # One step, value / 3, must be more than 8.
        assert "Set [hpc_sched] hop_byte_weight_multiplier = 25 for it to decide strictly" in text
        set_("hpc_sched", hop_byte_weight_multiplier=25)
        assert judged(multipliers.check)[0] == Code.SUCCESS


def test_the_multipliers_of_all_enabled_weighers_count_whatever_their_sign(set_):
    set_("filter_scheduler", ram_weight_multiplier=-40000.0)
    code, text = judged(multipliers.check)
    assert code == Code.WARNING
    assert "40007, the sum of the other multipliers" in text
    assert "hop_byte_weight_multiplier = 130000 for it to decide strictly." in text
    assert "not below" not in text
    set_("filter_scheduler", ram_weight_multiplier=400000.0)
    text = judged(multipliers.check)[1]
    # Nova's fixtures switch build failures off.
    assert "hop_byte_weight_multiplier = 1300000 for it to decide strictly. That is not " in text
    assert "below CrossCellWeigher: lower the other multipliers" in text
    set_("filter_scheduler", weight_classes=["nova.scheduler.weights.cpu.CPUWeigher", HOP_BYTE])
    assert "more than 1, the sum" in judged(multipliers.check)[1]


def test_a_weigher_whose_multiplier_depends_on_the_host_is_reported(set_):
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, f"{__name__}.Curious"])
    code, text = judged(multipliers.check)
    assert code == Code.WARNING
    assert "The multiplier of Curious cannot be read" in text
    assert "HopByteWeigher decides strictly" in text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.7e308])
def test_a_multiplier_that_is_no_finite_number_is_a_failure(set_, value):
    set_("filter_scheduler", cpu_weight_multiplier=1e308, ram_weight_multiplier=value)
    code, text = judged(multipliers.check)
    assert code == Code.FAILURE
    assert "The multiplier of RAMWeigher is no finite number, or too large" in text


def test_metrics_count_only_where_some_are_named(set_):
    set_("metrics", weight_multiplier=50000.0)
    assert judged(multipliers.check)[0] == Code.SUCCESS
    set_("metrics", weight_setting=["power=1.0"])
    assert judged(multipliers.check)[0] == Code.WARNING


def test_a_multiplier_not_below_that_of_build_failures_is_a_warning(set_):
    set_("filter_scheduler", build_failure_weight_multiplier=1000000.0)
    set_("hpc_sched", hop_byte_weight_multiplier=999999.0)
    assert judged(multipliers.check)[0] == Code.SUCCESS
    set_("hpc_sched", hop_byte_weight_multiplier=1000000.0)
    code, text = judged(multipliers.check)
    assert code == Code.WARNING
    assert "is not below the multiplier of BuildFailureWeigher, 1000000" in text
    assert "is not below the multiplier of CrossCellWeigher, 1000000" in text
    assert "VMs go to hosts on which builds fail. Lower it" in text


def test_hosts_with_failed_builds_are_a_warning_with_the_way_out(cloud, set_):
    trackers = {host: cloud.thin[host].tracker for host in COMPUTES}

    def report(host: str) -> None:
        node = trackers[host].compute_nodes[host]
        node.stats = dict(trackers[host].stats[host])
        node.save()

    # n4 is not enabled: no group would be placed there.
    for host in ("n2", "n2", "n4", "n5"):
        trackers[host].build_failed(host)
        report(host)
    assert judged(weighers.check_failed_builds) == (
        Code.SUCCESS,
        "BuildFailureWeigher does not outvote the weighers of hpc_sched.",
    )
    set_("filter_scheduler", build_failure_weight_multiplier=1000000.0)
    code, text = judged(weighers.check_failed_builds)
    assert code == Code.WARNING
    assert text.startswith("Builds have failed on 2 hosts: n2 (2), n5 (1). ")
    assert "restart its nova-compute" in text
    set_("hpc_sched", hop_byte_weight_multiplier=2000000.0)
    assert judged(weighers.check_failed_builds)[0] == Code.SUCCESS
    set_("hpc_sched", hop_byte_weight_multiplier=100000.0)
    for host, tracker in trackers.items():
        tracker.build_succeeded(host)
        report(host)
    assert judged(weighers.check_failed_builds)[1] == "No build has failed on any enabled compute."


@pytest.mark.parametrize("stats", [None, "", "{}", "[]", "{", '{"failed_builds": null}'])
def test_statistics_without_failed_builds_count_none(stats):
    assert cloud_module._failed_builds(stats) == 0


def test_listing_1_as_published_has_much_smaller_steps(set_):
    set_("filter_scheduler", weight_classes=[NOVAS, BUNCH])
    set_("hpc_sched", bunch_weight_multiplier=100.0)
    assert judged(multipliers.check)[0] == Code.SUCCESS
    set_("hpc_sched", bunch_weight_scale="listing1")
    code, text = judged(multipliers.check)
    assert code == Code.WARNING
    # leaf1 has 3 hosts: up to 3 * (3 + 1) + 3.
    assert "of Listing 1 for a group of 3 is 100 / 15 = 6.67, not more than 8" in text


def test_mdobp_decides_between_topology_and_novas_weighers(set_):
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, MDOBP])
    code, text = judged(multipliers.check)
    assert code == Code.SUCCESS
    assert "MDOBPWeigher decides strictly: the step between two hosts of a leaf is 9.00" in text
    set_("hpc_sched", mdobp_weight_multiplier=160.0)
    code, text = judged(multipliers.check)
    assert code == Code.WARNING
    assert "MDOBPWeigher decides mostly inside a leaf" in text
    assert "Set [hpc_sched] mdobp_weight_multiplier = 170" in text
    # Two leaves, three ranks of steps; three hosts of a leaf are 0.1 apart: 3 * (8 + 0.1 * 2e6).
    set_("hpc_sched", mdobp_weight_multiplier=2000000.0)
    code, text = judged(multipliers.check)
    assert code == Code.WARNING
    assert "HopByteWeigher hardly decides" not in text
    assert "HopByteWeigher decides mostly" in text
    assert "hop_byte_weight_multiplier = 610000 for it to decide strictly" in text
    # Without class sync MDOBP has no part in the order of a group's hosts.
    set_("hpc_sched", mdobp_classes=["async"])
    assert "HopByteWeigher decides strictly" in judged(multipliers.check)[1]
    set_("hpc_sched", mdobp_weight_multiplier=0.0)
    assert "MDOBPWeigher is switched off" in judged(multipliers.check)[1]


def test_mdobp_over_all_hosts_stays_below_novas_guards(set_):
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, MDOBP])
    # Four enabled computes: up to 3 steps of 0.05.
    set_("hpc_sched", mdobp_weight_multiplier=6000000.0)
    assert "without a leaf" not in judged(multipliers.check)[1]
    set_("hpc_sched", mdobp_weight_multiplier=7000000.0)
    code, text = judged(multipliers.check)
    assert code == Code.WARNING
    what = "The largest weight of MDOBPWeigher without a leaf, 1050000, is not below"
    assert f"{what} the multiplier of CrossCellWeigher, 1000000" in text


def test_aggregates_that_override_a_multiplier_are_listed(aggregate):
    aggregate("islands", ["n1", "n2"], hop_byte_weight_multiplier="5")
    assert judged(multipliers.check)[0] == Code.WARNING
    text = judged(multipliers.check)[1]
    assert "Aggregate islands overrides hop_byte_weight_multiplier with 5 for 2 hosts" in text


def test_novas_multipliers_in_aggregates_count_too(aggregate):
    aggregate("quiet", ["n1"], io_ops_weight_multiplier="-50000")
    code, text = judged(multipliers.check)
    assert code == Code.WARNING
    assert "not more than 50007, the sum" in text


def test_a_multiplier_of_the_other_sign_in_an_aggregate_pulls_hosts_further_apart(aggregate):
    # 1 is taken from the busiest host, 5 are added to one in the aggregate.
    aggregate("busy", ["n1"], io_ops_weight_multiplier="5")
    assert "more than 13, the sum" in judged(multipliers.check)[1]


def test_a_multiplier_in_an_aggregate_that_is_no_number_is_a_failure(aggregate):
    aggregate("odd", ["n1"], ram_weight_multiplier="nan")
    code, text = judged(multipliers.check)
    assert code == Code.FAILURE
    assert "in the metadata of aggregates" in text


def test_a_topology_that_does_not_load_leaves_the_multipliers_to_be_checked(set_):
    set_("hpc_sched", topology_file="/nowhere")
    assert judged(multipliers.check)[0] == Code.SUCCESS


@pytest.mark.parametrize(
    ("number", "expected"),
    [(24, 25), (79992, 80000), (80000, 81000), (99, 100), (0, 1), (0.5, 0.51), (9.99, 10)],
)
def test_a_value_to_set_has_two_digits_and_is_above_the_least(number, expected):
    assert multipliers.above(number) == pytest.approx(expected)
    assert multipliers.above(number) > number


# What flavors say


def test_flavors_whose_extra_specs_have_an_effect_are_success():
    assert judged(app_classes.check_flavors) == (
        Code.SUCCESS,
        "1 flavor with extra specs of hpc:, all valid.",
    )


@pytest.fixture
def flavor(cloud: TestedCloud) -> Iterator[Callable[..., None]]:
    """Make flavors as openstackclient does, with a microversion at which nothing is validated."""
    made: list[str] = []

    def flavor_(name: str, **extra_specs: str) -> None:
        made.append(cloud.flavor(name))
        latest, cloud.api.microversion = cloud.api.microversion, "2.61"
        specs = {f"hpc:{key}": value for key, value in extra_specs.items()}
        cloud.api.post_extra_spec(name, {"extra_specs": specs})
        cloud.api.microversion = latest

    yield flavor_
    for name in made:
        cloud.delete_flavor(name)


def test_every_wrong_key_and_value_of_every_flavor_is_named(flavor):
    flavor("one", group_size="99999", bogus="1")
    flavor("two", app_class="fast", require="rack")
    flavor("three", require="core", app_class="none")
    flavor("four", requires="leaf", app_class="Sync")
    code, text = judged(app_classes.check_flavors)
    assert code == Code.FAILURE
    first, *lines = text.splitlines()
    assert first.startswith("4 wrong extra specs of flavors: HPCGroupFilter refuses new VMs")
    assert "--os-compute-api-version 2.86" in first
    assert lines[:4] == [
        "four: hpc:requires='leaf': unknown extra spec hpc:requires; did you mean hpc:require?",
        "one: hpc:group_size='99999': expected a whole number from 1 to 4096",
        "two: hpc:app_class='fast': expected one of extreme, sync, async, none",
        "two: hpc:require='rack': expected one of the levels leaf, pod",
    ]
    assert lines[4].startswith("2 wrong or unknown extra specs of flavors: ignored")
    assert lines[5].startswith(
        "one: hpc:bogus='1': unknown extra spec hpc:bogus; expected hpc: and one of app_class, "
    )
    # Class none has no constraints.
    assert lines[6] == "three: hpc:require='core': expected one of the levels leaf, pod"
    assert len(lines) == 7


@pytest.mark.parametrize(
    ("enabled", "refused"),
    [
        ([], []),
        (["HPCInterferenceFilter"], ["one: hpc:app_class='fast'"]),
        (["HPCDedicatedHostFilter"], ["one: hpc:app_class='fast'"]),
    ],
)
def test_a_wrong_extra_spec_that_no_enabled_filter_refuses_is_a_warning(
    flavor, set_, enabled, refused
):
    flavor("one", app_class="fast", requires="leaf")
    flavor("two", app_class="none", max_leaves="0")
    set_("filter_scheduler", enabled_filters=["ComputeFilter", *enabled])
    found = list(app_classes.check_flavors(InspectedCloud()))
    assert "HPCGroupFilter" not in "".join(each.details for each in found)
    failures = [each.details for each in found if each.code == Code.FAILURE][1:]
    assert [text.partition(": expected")[0] for text in failures] == refused
    warnings = {each.details.partition(": ")[0] for each in found if each.code == Code.WARNING}
    assert warnings >= {"one", "two"}


def test_wrong_constraints_of_class_none_are_a_warning(flavor):
    flavor("one", app_class="none", max_leaves="0")
    code, text = judged(app_classes.check_flavors)
    assert code == Code.WARNING
    assert "one: hpc:max_leaves='0': expected a whole number from 1 to" in text


def test_an_unknown_key_that_does_no_harm_is_a_warning(flavor):
    flavor("one", bogus="1")
    code, text = judged(app_classes.check_flavors)
    assert code == Code.WARNING
    assert "one: hpc:bogus='1': unknown extra spec hpc:bogus" in text


def test_a_guarantee_without_a_class_is_a_fault_where_none_is_the_default(flavor, set_):
    flavor("one", require="leaf")
    assert judged(app_classes.check_flavors)[0] == Code.SUCCESS
    set_("hpc_sched", default_app_class="none")
    code, text = judged(app_classes.check_flavors)
    assert code == Code.FAILURE
    assert "one: hpc:require: only HPC applications can have that" in text


def test_levels_are_not_checked_without_a_topology(flavor, set_):
    set_("hpc_sched", topology_file="/nowhere")
    assert judged(app_classes.check_flavors)[0] == Code.SUCCESS
    flavor("one", require="rack", group_size="0")
    code, text = judged(app_classes.check_flavors)
    assert code == Code.FAILURE
    assert "one: hpc:group_size='0': expected" in text
    assert "rack" not in text
    assert "The levels of hpc:require, hpc:prefer and hpc:segment_level are not checked" in text


def test_the_flavors_are_one_query_however_many_there_are(flavor):
    for number in range(5):
        flavor(f"more{number}", bogus="1", group_size="0")
    with collected() as sent:
        code, text = judged(app_classes.check_flavors)
    assert (code, len(sent)) == (Code.FAILURE, 1)
    assert all(f"more{number}: hpc:bogus='1'" in text for number in range(5))


@pytest.mark.parametrize(
    ("spec", "value", "error", "remedy"),
    [
        ("hpc:app_class", "extreme", "hpc:app_class=extreme (f): other VMs may join", "Dedicated"),
        ("hpc:app_class", "async", "hpc:app_class=async (f): their VMs are not", "MDOBP"),
        ("hpc:cache_score", "12", "hpc:cache_score (f): no host is kept", "Interference"),
        ("hpc:app_name", "LU", "hpc:app_name (f): no host is kept", "Interference"),
    ],
)
def test_an_extra_spec_that_nothing_enabled_reads_is_a_warning(
    cloud, set_, spec, value, error, remedy
):
    cloud.flavor("f", extra_specs={spec: value})
    try:
        code, text = judged(app_classes.check_flavors)
        assert code == Code.WARNING
        assert f"1 flavor with {error}" in text
        ours = ["HPCDedicatedHostFilter", "HPCInterferenceFilter"]
        assert any(remedy in name for name in [*ours, MDOBP] if f"Add {name}" in text)
        set_("filter_scheduler", enabled_filters=ours, weight_classes=[NOVAS, HOP_BYTE, MDOBP])
        assert judged(app_classes.check_flavors)[0] == Code.SUCCESS
        if value == "async":
            set_("hpc_sched", mdobp_classes=["sync"])
            assert "Add async to mdobp_classes" in judged(app_classes.check_flavors)[1]
    finally:
        cloud.delete_flavor("f")


# Server groups


@pytest.fixture
def group(cloud: TestedCloud) -> Iterator[Callable[..., str]]:
    """Make server groups, with a VM of each flavor that is named; gone after the test."""
    made: list[str] = []
    servers: list[str] = []

    def group_(name: str, policy: str, *flavors: str, **boot: Any) -> str:
        made.append(cloud.server_group(name, policy))
        new = [
            server for flavor in flavors for server in cloud.boot(flavor, group=made[-1], **boot)
        ]
        servers.extend(new)
        cloud.wait(new)
        return made[-1]

    yield group_
    cloud.remove(servers)
    for uuid in made:
        cloud.api.delete_server_group(uuid)


@pytest.mark.usefixtures("class_unset")
def test_without_groups_an_unset_class_is_success_that_says_so():
    code, text = judged(app_classes.check_groups)
    assert code == Code.SUCCESS
    assert "default_app_class is not set, but there is no server group" in text


@pytest.mark.default
@pytest.mark.usefixtures("class_unset")
def test_groups_that_would_be_packed_are_a_failure_and_listed(group):
    empty = group("empty", "affinity")
    web = group("web", "anti-affinity", "plain")
    mixed = group("mixed", "soft-anti-affinity", "hpc", "plain")
    group("job", "soft-anti-affinity", "hpc", "hpc")
    code, text = judged(app_classes.check_groups)
    assert code == Code.FAILURE
    first, *listed = text.splitlines()
    assert "default_app_class is not set: 3 server groups" in first
    assert "Add to [hpc_sched] in nova.conf the line default_app_class=none" in first
    for line, name, uuid, policy, number in zip(
        listed,
        ("web", "mixed", "empty"),
        (web, mixed, empty),
        ("anti-affinity", "soft-anti-affinity", "affinity"),
        ("1 VM", "2 VMs", "0 VMs"),
        strict=True,
    ):
        assert re.fullmatch(rf"{name} \({uuid}, project \w+, {policy}, {number}\)", line)


@pytest.mark.parametrize("value", ["sync", "none"])
def test_a_class_that_is_set_is_success_be_it_the_default(group, set_, value):
    group("web", "anti-affinity")
    set_("hpc_sched", default_app_class=value)
    assert judged(app_classes.check_groups) == (
        Code.SUCCESS,
        f"default_app_class = {value} is set.",
    )


@pytest.mark.usefixtures("class_unset")
def test_a_group_of_deleted_vms_is_judged_as_one_without(cloud, group):
    uuid = group("gone", "anti-affinity", "hpc")
    assert judged(app_classes.check_groups)[0] == Code.SUCCESS
    for server in cloud.api.get_servers(detail=False):
        cloud.api.delete_server(server["id"])
    code, text = judged(app_classes.check_groups)
    assert code == Code.FAILURE
    assert f"gone ({uuid}" in text
    assert "0 VMs" in text


@pytest.mark.usefixtures("class_unset")
def test_hints_name_a_class_where_they_count(group, set_):
    group("hinted", "soft-affinity", "plain", hints={"hpc:app_class": "sync"})
    assert judged(app_classes.check_groups)[0] == Code.FAILURE
    set_("hpc_sched", allow_user_hints=True)
    assert judged(app_classes.check_groups)[0] == Code.SUCCESS


@pytest.mark.usefixtures("class_unset")
def test_of_very_many_groups_twenty_are_listed(group):
    for number in range(23):
        group(f"g{number:02d}", "soft-affinity")
    code, text = judged(app_classes.check_groups)
    assert code == Code.FAILURE
    lines = text.splitlines()
    assert "23 server groups" in lines[0]
    assert lines[20].startswith("g19 (")
    assert lines[21:] == ["and 3 more"]


# Options of Nova's scheduler


def test_options_as_delivered_are_success():
    for check in (
        placement_candidates.check_results,
        CHECKS["Host subset"].find,
        CHECKS["Shuffled hosts"].find,
        CHECKS["Instance tracking"].find,
    ):
        assert judged(check)[0] == Code.SUCCESS


def test_less_results_of_placement_than_computes_are_a_warning(set_):
    set_("scheduler", max_placement_results=4)
    assert judged(placement_candidates.check_results)[0] == Code.SUCCESS
    set_("scheduler", max_placement_results=3)
    code, text = judged(placement_candidates.check_results)
    assert code == Code.WARNING
    assert "at most 3 of 4 enabled computes" in text
    assert "Set [scheduler] max_placement_results = 1000" in text


@pytest.mark.parametrize(
    ("check", "option", "value", "error"),
    [
        (CHECKS["Host subset"].find, "host_subset_size", 3, "Set it to 1"),
        (
            CHECKS["Shuffled hosts"].find,
            "shuffle_best_same_weighed_hosts",
            True,
            "Set it to false",
        ),
        (
            CHECKS["Instance tracking"].find,
            "track_instance_changes",
            False,
            "Set it to true",
        ),
    ],
)
def test_options_that_make_groups_less_compact_are_a_warning(set_, check, option, value, error):
    set_("filter_scheduler", **{option: value})
    code, text = judged(check)
    assert code == Code.WARNING
    assert f"[filter_scheduler] {option} = {str(value).lower()}: " in text
    assert error in text


@pytest.fixture
def as_recommended(set_):
    set_("filter_scheduler", enabled_filters=["HPCGroupFilter"], weight_classes=[weighers.HOP_BYTE])


def test_gang_claims_as_recommended_are_success(as_recommended):
    code, text = judged(options.check_gang_claims)
    assert code == Code.SUCCESS
    assert "allocation_conflict_retry_count = 1" in text


@pytest.mark.parametrize(
    ("section", "option", "value", "why"),
    [
        ("filter_scheduler", "enabled_filters", [], "HPCGroupFilter is not enabled"),
        ("filter_scheduler", "weight_classes", [], "HopByteWeigher is not enabled with a"),
        ("filter_scheduler", "host_subset_size", 2, "host_subset_size is above 1"),
        ("hpc_sched", "hop_byte_weight_multiplier", 0.0, "HopByteWeigher is not enabled with a"),
    ],
)
def test_what_keeps_groups_from_being_claimed_at_once_is_a_warning(
    as_recommended, set_, section, option, value, why
):
    set_(section, **{option: value})
    code, text = judged(options.check_gang_claims)
    assert code == Code.WARNING
    assert text.startswith(why)
    set_("hpc_sched", gang_claims=False)
    assert judged(options.check_gang_claims)[0] == Code.SUCCESS


# Our own options


def test_options_that_can_be_used_are_success():
    assert judged(options.check) == (Code.SUCCESS, "All options of [hpc_sched] can be used.")


def test_shadow_mode_is_said_and_nothing_is_claimed_in_it(set_, as_recommended):
    set_("hpc_sched", mode="shadow")
    code, text = judged(options.check)
    assert code == Code.SUCCESS
    assert "mode = shadow: hpc_sched places no VM and refuses none" in text
    code, text = judged(options.check_gang_claims)
    assert (code, text) == (Code.SUCCESS, "mode is shadow: nothing is claimed ahead of Nova.")
    set_("hpc_sched", mdobp_weight_multiplier=float("nan"))
    code, text = judged(options.check)
    assert code == Code.FAILURE
    assert "does not start with it, except in shadow mode, which logs it and goes on." in text


def test_a_value_that_cannot_be_used_is_a_failure(set_):
    set_("hpc_sched", mdobp_weight_multiplier=float("nan"))
    code, text = judged(options.check)
    assert code == Code.FAILURE
    assert "mdobp_weight_multiplier = nan: expected a finite number" in text


def test_the_former_name_of_a_renamed_option_is_no_misspelling(tmp_path, monkeypatch):
    """docs/support.rst promises that it works until it is removed."""
    renamed = cfg.StrOpt("new_name", deprecated_name="old-name")
    monkeypatch.setattr(conf, "OPTS", [*conf.OPTS, renamed])
    path = tmp_path / "nova.conf"
    path.write_text("[hpc_sched]\nold_name = x\n")
    assert list(options.unknown_names([str(path)])) == []


def test_misspelt_options_are_a_warning_that_names_the_file(tmp_path):
    first, second = tmp_path / "nova.conf", tmp_path / "more.conf"
    first.write_text("[filter_scheduler]\nanything = 1\n[hpc_sched]\ntopolgy_file = x\n")
    second.write_text("[hpc_sched]\ntopology_file = x\nxyzzy = 1\n")
    found = options.unknown_names([str(first), str(second), str(tmp_path / "none.conf")])
    assert [(finding.code, finding.details) for finding in found] == [
        (
            Code.WARNING,
            f"{first}: [hpc_sched] topolgy_file is no option and has no effect: did you mean "
            "topology_file?",
        ),
        (Code.WARNING, f"{second}: [hpc_sched] xyzzy is no option and has no effect: remove it."),
        (
            Code.FAILURE,
            f"{tmp_path}/none.conf: cannot be read: [Errno 2] No such file or directory: "
            f"'{tmp_path}/none.conf'.",
        ),
    ]


def test_the_interference_file_is_read_where_its_filter_is_enabled(set_, tmp_path):
    path = tmp_path / "index.csv"
    set_("hpc_sched", interference_file=str(path))
    code, text = judged(options.check)
    assert code == Code.WARNING
    assert "is not used: HPCInterferenceFilter is not enabled" in text
    set_("filter_scheduler", weight_classes=[NOVAS, HOP_BYTE, MDOBP])
    code, text = judged(options.check)
    assert code == Code.FAILURE
    assert "is read by MDOBPWeigher alone, and keeps no applications apart" in text
    set_("filter_scheduler", enabled_filters=["HPCInterferenceFilter"])
    code, text = judged(options.check)
    assert code == Code.FAILURE
    assert f"{path}: cannot be read: No such file or directory" in text
    path.write_text("WRF, LU, 0.87, 0.98\n")
    assert judged(options.check) == (Code.SUCCESS, f"{path} knows 2 applications.")


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("/usr/bin/sudo,ibnetdiscover", "sudo"),
        ("doas,-n,ibnetdiscover", "doas"),
        ("sudo,-n,/usr/bin/timeout,--signal=KILL,20,ibnetdiscover", None),
        ("timeout,20,ibnetdiscover", None),
        ("/usr/sbin/ibnetdiscover", None),
    ],
)
def test_a_command_of_root_without_a_limit_is_a_warning(set_, command, runs):
    set_("hpc_sched", topology_command=command.split(","))
    code, text = judged(options.check)
    if runs is None:
        assert (code, text) == (Code.SUCCESS, "All options of [hpc_sched] can be used.")
    else:
        assert code == Code.WARNING
        assert text.startswith(f"topology_command runs {runs}: nova-scheduler cannot kill")
        assert f"{runs},timeout,--signal=KILL,20,ibnetdiscover" in text


def test_a_decision_log_that_cannot_be_written_is_a_warning(set_, tmp_path):
    set_("hpc_sched", decision_log=str(tmp_path / "decisions"))
    assert judged(options.check)[0] == Code.SUCCESS
    for path in (tmp_path, tmp_path / "none" / "decisions"):
        set_("hpc_sched", decision_log=str(path))
        code, text = judged(options.check)
        assert code == Code.WARNING
        assert f"decision_log = {path} cannot be written" in text
    assert not (tmp_path / "decisions").exists()


# What is installed


def test_the_installed_releases_are_supported():
    code, text = judged(installation.check_versions)
    assert code == Code.SUCCESS
    assert f"nova {importlib.metadata.version('nova')}" in text


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Install a package that is nothing but its metadata; return its name."""

    def package_(metadata: str = "", entry_points: str = "") -> str:
        folder = tmp_path / "stray-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: stray\nVersion: 1\n{metadata}"
        )
        (folder / "entry_points.txt").write_text(entry_points)
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        return "stray"

    return package_


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        (
            'Requires-Dist: nova<31,>=30; extra == "nova"',
            r"Nova 3\S* is not supported: .*tested with <31,>=30",
        ),
        ("Requires-Python: >=4", "Python 3.* is not supported: expected >=4"),
        ("Requires-Dist: numpy>=99", r"numpy \S+ is not supported: pip install 'numpy>=99'"),
        ("Requires-Dist: xyzzy>=1", "xyzzy is not installed: pip install 'xyzzy>=1'"),
    ],
    ids=["Nova", "Python", "a library", "a library that is missing"],
)
def test_a_release_that_is_not_supported_is_a_failure(package, metadata, error):
    name = package(metadata + '\nRequires-Dist: pytest>=99; extra == "test"\n')
    found = list(installation.check_versions(InspectedCloud(), name))
    assert [finding.code for finding in found] == [Code.FAILURE]
    assert re.search(error, found[0].details)


def test_the_validators_of_extra_specs_are_installed():
    code, text = judged(installation.check_validators)
    assert code == Code.SUCCESS
    assert text.startswith("15 extra specs are validated by nova-api")


def test_validators_that_are_missing_or_broken_are_reported(package):
    [found] = installation.check_validators(InspectedCloud(), "no.such.group")
    assert found.code == Code.WARNING
    assert "There is no entry point hpc_sched in no.such.group" in found.details
    package(entry_points="[broken]\nhpc_sched = xyzzy.nothing\n")
    [found] = installation.check_validators(InspectedCloud(), "broken")
    assert found.code == Code.FAILURE
    assert "No module named 'xyzzy'" in found.details


# How the databases are read


def break_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_context: Any, _: list[str]) -> list[Any]:
        raise OSError("gone")

    monkeypatch.setattr(cloud_module, "computes_of_cell", broken)


def test_a_cell_that_does_not_answer_is_a_warning_where_its_computes_matter(monkeypatch):
    break_cell(monkeypatch)
    view = InspectedCloud()
    for check in (
        topology_hosts.check,
        multipliers.check,
        placement_candidates.check_results,
    ):
        code, text = judged(check, view)
        assert code == Code.WARNING
        assert re.search(r"cell \d+: OSError: gone\. Its computes are not", text)
        assert "are no computes" not in text


def test_what_cannot_be_read_is_not_tried_again(monkeypatch):
    tried = []

    def broken(*_: Any) -> None:
        tried.append(1)
        raise OSError("mysql://nova:s3cret@host/ gone\n(Background: ...)")

    monkeypatch.setattr(databases, "read_cells", broken)
    view = InspectedCloud()
    for check in (
        topology_hosts.check,
        multipliers.check,
        placement_candidates.check_results,
    ):
        code, text = judged(check, view)
        assert code == Code.FAILURE
        assert "OSError: mysql://***@host/ gone. Run this where nova-scheduler runs" in text
    assert tried == [1]


# Processor types

NEHALEM = "Intel Nehalem 4x1x1"  # what the computes' driver reports


def test_without_an_order_or_speeds_nothing_is_read_of_processor_types():
    with collected() as sent:
        assert judged(processor_types.check) == (
            Code.SUCCESS,
            "Neither processor_order nor processor_speeds is set: types come by cores per host.",
        )
    assert not sent


def test_entries_that_the_cloud_has_are_success(set_, aggregate):
    aggregate("new", ["n1"], **{"hpc:processor": "gold"})
    set_("hpc_sched", processor_speeds=f"gold=3000, {NEHALEM} +pge=2130")
    assert judged(processor_types.check) == (
        Code.SUCCESS,
        f"2 processor types, 2 with an entry: {NEHALEM}; gold.",
    )
    set_("hpc_sched", processor_speeds={}, processor_order=["gold"])
    assert judged(processor_types.check) == (
        Code.SUCCESS,
        f"2 processor types, 1 with an entry: {NEHALEM}; gold.",
    )


def test_a_host_whose_processor_is_not_known_takes_no_features_from_its_type(
    set_, aggregate, monkeypatch
):
    real = processor_types._processors_of_cell

    def partly(*args: Any) -> list[tuple[str, str, str | None]]:
        return [(host, node, None if host == "n2" else found) for host, node, found in real(*args)]

    monkeypatch.setattr(processor_types, "_processors_of_cell", partly)
    aggregate("gold", ["n1", "n2"], **{"hpc:processor": "gold"})
    set_("hpc_sched", processor_order=["gold +pge"])
    code, text = judged(processor_types.check)
    assert (code, "no host is of" in text) == (Code.SUCCESS, False)


@pytest.mark.parametrize(
    ("option", "value"),
    [("processor_speeds", {NEHALEM: 1, "Nehalem": 2}), ("processor_order", [NEHALEM, "Nehalem"])],
)
def test_an_entry_that_names_no_type_of_the_cloud_is_a_warning(set_, option, value):
    set_("hpc_sched", **{option: value})
    code, text = judged(processor_types.check)
    assert code == Code.WARNING
    assert text.splitlines() == [
        f"{option}: no host is of Nehalem. Correct or remove that.",
        f"1 processor type, 1 with an entry: {NEHALEM}.",
    ]


def test_a_type_without_a_speed_next_to_others_with_one_is_a_warning(set_, aggregate):
    aggregate("new", ["n1"], **{"hpc:processor": "gold"})
    set_("hpc_sched", processor_speeds={NEHALEM: 2130})
    code, text = judged(processor_types.check)
    assert code == Code.WARNING
    assert "processor_speeds: there is no speed of gold. Groups take other types first" in text
    set_("hpc_sched", processor_order=["gold"])
    assert judged(processor_types.check)[0] == Code.SUCCESS


def test_speeds_that_no_filter_reads_are_a_warning(set_):
    set_("hpc_sched", processor_speeds={NEHALEM: 2130})
    set_("filter_scheduler", enabled_filters=["HPCGroupFilter"])
    code, text = judged(processor_types.check)
    assert code == Code.WARNING
    assert text.startswith("processor_speeds has no effect: HPCHomogeneityFilter is not enabled.")


def test_processor_types_that_the_topology_may_state_are_not_judged_without_it(set_):
    set_("hpc_sched", processor_speeds={NEHALEM: 2130}, topology_file="/nowhere")
    code, text = judged(processor_types.check)
    assert code == Code.WARNING
    assert text.startswith("The topology cannot be read")


def test_entries_are_not_judged_while_a_cell_does_not_answer(set_, monkeypatch):
    def read(*_args: object) -> None:
        raise OSError("gone")

    set_("hpc_sched", processor_speeds={"gold": 2130})
    monkeypatch.setattr(processor_types, "_processors_of_cell", read)
    code, text = judged(processor_types.check)
    assert code == Code.WARNING
    assert "The types of its hosts are not known here." in text
    assert "no host is of" not in text


@pytest.mark.default
@pytest.mark.usefixtures("class_unset")
def test_a_run_costs_fifteen_queries_whatever_there_is(group, aggregate, capsys):
    def cost() -> int:
        instance_applications.cache = instance_applications.ApplicationCache()
        with collected() as sent:
            upgrade_check.UpgradeCommands().check()
        return len(sent)

    # The cells, one in the only one; aggregates; groups and their requests; flavors, and those with
    # devices; schedulers.
    # For shared hosts build requests, cells, the VMs of the only one, their requests, and cells
    # again with their flavors; aggregates.
    group("one", "soft-anti-affinity", "plain", "hpc")
    few = cost()
    assert few == 15
    for number in range(5):
        group(f"more{number}", "soft-anti-affinity", "plain", "hpc")
        aggregate(f"aggregate{number}", ["n1"], hop_byte_weight_multiplier="7")
    assert cost() == few


@pytest.mark.parametrize("check", upgrade_check.CHECKS, ids=CHECKS)
def test_the_reference_of_checks_has_a_sentence_for_each(check):
    # docs/reference/status.rst takes them from the table or the docstrings.
    assert (check.sentence or check.find.__doc__ or "").startswith("Return ")
