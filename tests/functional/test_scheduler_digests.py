"""The digests of a scheduler: in its log, in each record, and different for what decides."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import nova.conf
import pytest
from nova.scheduler.weights import HostWeightHandler
from oslo_config import cfg, types
from oslo_utils.fixture import uuidsentinel as uuids

import hpc_sched
from hpc_sched import conf, digests
from hpc_sched.core.sharing.interference_file import read_index
from hpc_sched.filters.interference import HPCInterferenceFilter
from hpc_sched.nova_glue.io import loaded_topology, scheduler_digests
from hpc_sched.nova_glue.read.instances import group_members
from hpc_sched.nova_glue.record import logged_entry
from hpc_sched.weighers.hop_byte import HopByteWeigher
from tests.functional.clouds import ROOT
from tests.functional.pods import FABRIC, states_of
from tests.functional.states import (
    FILTERS,
    queue_of,
    read_decisions,
    read_landings,
    run,
    schedule,
    spec,
    why_refused,
    wishing,
)
from tests.functional.trees import write_tree

CONF = nova.conf.CONF

pytestmark = pytest.mark.usefixtures("two_pods")

# Those of other digests, and those that decide nothing.
APART = {
    *("topology_driver", "topology_file", "topology_command", "topology_command_timeout"),
    *("topology_reload_interval", "topology_name_map", "topology_name", "topology_host_pattern"),
    *("topology_settle_time", "topology_accept_incomplete", "topology_cloud"),
    *("topology_aggregate_key", "topology_node_key"),
    *("topology_port_pattern", "topology_switch_pattern"),
    *("interference_file", "decision_log"),
    *("metrics_address", "metrics_directory", "metrics_project"),
}
# Options of Nova, with a value that is not their default.
OF_NOVA = {
    ("filter_scheduler", "enabled_filters"): ["ComputeFilter", "HPCGroupFilter"],
    ("filter_scheduler", "weight_classes"): ["hpc_sched.weighers.hop_byte.HopByteWeigher"],
    ("filter_scheduler", "host_subset_size"): 3,
    ("filter_scheduler", "shuffle_best_same_weighed_hosts"): True,
    ("filter_scheduler", "pci_in_placement"): True,
    ("filter_scheduler", "ram_weight_multiplier"): 2.5,
    ("filter_scheduler", "build_failure_weight_multiplier"): 7.0,
    ("scheduler", "max_attempts"): 9,
    ("scheduler", "max_placement_results"): 77,
}


def options() -> str:
    return digests.of(scheduler_digests.option_lines())


@pytest.fixture
def set_(request: pytest.FixtureRequest) -> Callable[[str, str, Any], None]:
    """Set an option of nova.conf for one test."""

    def set__(group: str, name: str, value: Any) -> None:
        CONF.set_override(name, value, group)
        request.addfinalizer(lambda: CONF.clear_override(name, group))

    return set__


def other(opt: cfg.Opt) -> Any:
    """Return a value that an option may have, and that is not its default."""
    if isinstance(opt, cfg.BoolOpt):
        return not opt.default
    if isinstance(opt, cfg.IntOpt | cfg.FloatOpt):
        return opt.default / 2 or 1.0 if isinstance(opt, cfg.FloatOpt) else opt.default + 1
    if isinstance(opt, cfg.ListOpt):
        choices = getattr(opt.type.item_type, "choices", None)
        return ["one", "two"] if choices is None else list(choices)
    if isinstance(opt, cfg.DictOpt):
        return {"leaf": "other"}
    if isinstance(opt.type, types.Dict):
        return {"leaf": 4.0}
    if isinstance(opt.type, conf.RatesType):
        return "0.5,1"
    if isinstance(opt.type, conf.SpeedsType):
        return "one=2"
    if isinstance(opt.type, types.String) and opt.type.choices:
        return next(choice for choice in opt.type.choices if choice != opt.default)
    return "other"


@pytest.mark.parametrize("opt", conf.OPTS, ids=lambda opt: opt.dest)
def test_every_option_of_hpc_sched_that_decides_is_in_the_digest(opt, set_):
    before = options()
    set_("hpc_sched", opt.dest, other(opt))
    assert (options() == before) == (opt.dest in APART)


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        pytest.param("gold=3000, silver=2130", True, id="another number"),
        pytest.param("gold=3000", True, id="one type less"),
        pytest.param(" silver=2.4e3,gold=3000.0 ", False, id="the same in another order"),
    ],
)
def test_schedulers_with_other_speeds_of_processors_differ(set_, other, differs):
    set_("hpc_sched", "processor_speeds", "gold=3000, silver=2400")
    before = options()
    set_("hpc_sched", "processor_speeds", other)
    assert (options() != before) == differs


def test_the_order_of_ratios_by_level_is_no_difference(set_):
    set_("hpc_sched", "uplink_oversubscription", {"leaf": 4.0, "pod": 2.0})
    before = options()
    set_("hpc_sched", "uplink_oversubscription", {"pod": 2.0, "leaf": 4.0})
    assert options() == before
    set_("hpc_sched", "uplink_oversubscription", {"pod": 4.0, "leaf": 2.0})
    assert options() != before


@pytest.mark.parametrize(("option", "value"), OF_NOVA.items(), ids=lambda part: str(part)[:60])
def test_what_matters_of_novas_options_is_in_the_digest(option, value, set_):
    before = options()
    set_(*option, value)
    assert options() != before


def test_the_order_of_filters_is_a_difference_and_that_of_weighers_is_none(set_):
    set_("filter_scheduler", "enabled_filters", ["HPCGroupFilter", "HPCRackCapacityFilter"])
    set_("filter_scheduler", "weight_classes", ["a.A", "b.B"])
    before = options()
    set_("filter_scheduler", "weight_classes", ["b.B", "a.A"])
    assert options() == before
    set_("filter_scheduler", "enabled_filters", ["HPCRackCapacityFilter", "HPCGroupFilter"])
    assert options() != before


def test_the_order_of_classes_is_no_difference(set_):
    before = options()
    set_("hpc_sched", "mdobp_classes", ["async", "sync", "async"])
    assert options() == before


def test_a_weigher_that_is_named_twice_counts_twice_in_nova_and_is_a_difference(set_):
    ram, cpu = "nova.scheduler.weights.ram.RAMWeigher", "nova.scheduler.weights.cpu.CPUWeigher"
    set_("filter_scheduler", "weight_classes", [ram, cpu])
    before = options()
    set_("filter_scheduler", "weight_classes", [ram, cpu, ram])
    found = HostWeightHandler().get_matching_classes(CONF.filter_scheduler.weight_classes)
    assert [weigher.__name__ for weigher in found] == ["RAMWeigher", "CPUWeigher", "RAMWeigher"]
    assert options() != before


def test_an_option_that_cannot_be_read_is_a_line_and_no_error(tmp_path):
    path = tmp_path / "nova.conf"
    path.write_text("[hpc_sched]\ncell_timeout = soon\n")
    CONF([], default_config_files=[str(path)])
    assert "[hpc_sched] cell_timeout = cannot be read" in scheduler_digests.option_lines()


@pytest.mark.ci
def test_the_digest_of_options_does_not_depend_on_the_hash_seed_of_the_process():
    code = (
        "import hpc_sched.demo.nova_cloud\n"
        "import nova.conf\n"
        "from hpc_sched import conf, digests\n"
        "from hpc_sched.nova_glue.io import scheduler_digests\n"
        "conf.register_opts(nova.conf.CONF)\n"
        "nova.conf.CONF([], default_config_files=[])\n"
        "print(digests.of(scheduler_digests.option_lines()))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the log with digests."""
    return [text for text in caplog.messages if " options " in text and "hpc_sched" in text]


def test_a_start_is_one_line_in_the_log_however_many_filters_load_the_topology(
    caplog, tmp_path, set_
):
    caplog.set_level("INFO", "hpc_sched")
    path = write_tree(tmp_path / "other.yaml", {"core": {"leaf1": ["n1", "n2"], "leaf2": ["n3"]}})
    set_("hpc_sched", "topology_file", str(path))
    for made in (*FILTERS, HopByteWeigher):
        made()
    topology = loaded_topology.current().digest
    assert said(caplog) == [
        f"hpc_sched {hpc_sched.__version__} on {CONF.host}: options {options()}, "
        f"topology {topology} (yaml, 3 hosts, 2 leaves, depth 2)"
    ]


def test_a_change_of_topology_or_options_is_one_more_line(caplog, tmp_path, two_pods, set_):
    caplog.set_level("INFO", "hpc_sched")
    before = loaded_topology.current().digest
    loaded_topology.reload()
    caplog.clear()
    write_tree(tmp_path / "new.yaml", {"core": {"leaf1": ["n01"]}}).replace(two_pods)
    loaded_topology.reload()
    loaded_topology.reload()
    after = loaded_topology.current().digest
    assert before != after
    [line] = said(caplog)
    assert f"topology {after} (yaml, 1 host, 1 leaf, depth 2)" in line

    caplog.clear()
    set_("hpc_sched", "planning_timeout", 3.0)
    loaded_topology.reload()
    loaded_topology.reload()
    [line] = said(caplog)
    assert f"options {options()}, topology {after}" in line


def test_on_debug_the_text_of_the_options_is_logged_once(caplog, set_):
    caplog.set_level("DEBUG", "hpc_sched")
    set_("hpc_sched", "planning_timeout", 4.0)
    loaded_topology.reload()
    loaded_topology.reload()
    [line] = [text for text in caplog.messages if text.startswith(f"Options {options()} are")]
    assert "[hpc_sched] planning_timeout = 4.0; " in line


def test_the_interference_index_has_a_digest_of_its_own(caplog, tmp_path, set_):
    caplog.set_level("INFO", "hpc_sched")
    path = tmp_path / "index.csv"
    path.write_text("WRF,LU,0.87,0.98\n")
    set_("hpc_sched", "interference_file", str(path))
    HPCInterferenceFilter()
    digest = digests.of(read_index(path).lines())
    assert said(caplog)[-1].endswith(f", interference index {digest}")
    assert scheduler_digests.record("").interference == digest


def test_every_kind_of_record_names_the_scheduler_and_its_digests(
    group, tmp_path, set_, monkeypatch
):
    log = tmp_path / "decisions"
    set_("hpc_sched", "decision_log", str(log))
    loaded_topology.reload()
    queue = queue_of(2)
    group(queue=queue, left=2)
    request = spec(count=2, uuid=queue[0])
    schedule(states_of(), request, queue, HopByteWeigher(), [made() for made in FILTERS])
    read_landings(log)
    group(left=99)
    why_refused(states_of(), spec(count=99, uuid=uuids.other, extra_specs=wishing(require="leaf")))
    monkeypatch.setattr(group_members, "is_placed", lambda _uuid: False)
    why_refused(states_of(), spec(group=None, extra_specs=wishing(max_leaves=1)))
    records = read_decisions(log) + read_landings(log)
    assert sorted(record["decision"] for record in records) == [
        *("landed", "planned", "refused", "refused"),
    ]
    for record in records:
        assert record["scheduler"] == {
            "host": CONF.host,
            "version": hpc_sched.__version__,
            "options": options(),
            "topology": loaded_topology.current().digest,
            "interference": None,
        }


def test_a_request_is_recorded_with_the_topology_that_it_began_with(
    group, tmp_path, two_pods, set_
):
    log = tmp_path / "decisions"
    set_("hpc_sched", "decision_log", str(log))
    before = loaded_topology.current().digest
    group(left=1)
    request, weigher = spec(), HopByteWeigher()
    states = run(states_of("leaf1"), request, FILTERS[0]())
    new = write_tree(tmp_path / "new.yaml", {"core": {"leaf9": list(FABRIC.hosts)}})
    new.replace(two_pods)
    assert loaded_topology.reload()
    schedule(states, request, [request.instance_uuid], weigher)
    [record] = read_decisions(log)
    assert record["scheduler"]["topology"] == before != loaded_topology.current().digest


def test_a_record_costs_no_digest(monkeypatch):
    def fail(*_: object) -> str:
        raise AssertionError("a digest was computed")

    loaded = loaded_topology.current()
    monkeypatch.setattr(digests, "of", fail)
    monkeypatch.setattr(scheduler_digests, "option_lines", fail)
    first = scheduler_digests.record(loaded.digest)
    assert scheduler_digests.record(loaded.digest) is first
    assert logged_entry.scheduler_digests is scheduler_digests
